"""A key's prefix that ends in `*` opens what begins with it, in every mode, and nothing that only looks like it."""

from __future__ import annotations

import pytest

from tests.fake import reply, status
from tests.live import Bench


@pytest.mark.parametrize(
    ("name", "allowed"),
    [("bed/x", True), ("bedz/x", False), ("bed", False), ("BED/y", False), ("bed/../other/x", False), ("other/bed/x", False), ("bed/deep/er:free", True)],
)
@pytest.mark.parametrize("mode", ["direct", "route"])
def test_a_prefix_opens_what_begins_with_it(bench: Bench, name: str, allowed: bool, mode: str) -> None:
    model = bench.model(name, reply("fine"))
    core = bench.collection([model])
    key = bench.key(models=[f"{bench.tag}-bed/*"], collections=[core.removeprefix("bench/")])
    answer = bench.ask(model if mode == "direct" else f"{core}:route", key=key)
    assert answer.status == (200 if allowed else 403), answer.body[:300]
    if not allowed:
        assert answer.code == "not_allowed"
        assert not bench.fake.calls_to(model)


@pytest.mark.parametrize("stranger", ["bedz/x", "bed", "other"])
def test_a_turn_never_fails_over_to_what_the_prefix_does_not_open(bench: Bench, stranger: str) -> None:
    own = bench.model("bed/x", status(500), endpoint=bench.endpoint("own"))
    other = bench.model(stranger, reply("no"), endpoint=bench.endpoint("other"))
    core = bench.collection([own, other])
    key = bench.key(models=[f"{bench.tag}-bed/*"], collections=[core.removeprefix("bench/")])
    for streamed in (False, True):
        if streamed:
            with bench.stream(f"{core}:route", "again", key=key) as stream:
                answer = stream.whole
        else:
            answer = bench.ask(f"{core}:route", key=key)
        assert answer.status == 502
    assert len(bench.fake.calls_to(own)) == 2
    assert not bench.fake.calls_to(other)


def test_the_list_of_models_is_what_the_prefix_opens(bench: Bench) -> None:
    own = bench.model("bed/x")
    for name in ("bedz/x", "bed", "bed/../other/x"):
        bench.model(name)
    key = bench.key(models=[f"{bench.tag}-bed/*"])
    assert [m["id"] for m in bench.live.send("GET", "/v1/models", key=key).json["data"]] == [own]
