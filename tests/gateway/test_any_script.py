"""Names of any script, with spaces, quotes, slashes and colons: asked for in every format, percent-encoded in headers and addresses."""

from __future__ import annotations

from urllib.parse import quote, unquote

import pytest

from tests.fake import reply
from tests.gateway.shape import check_bench
from tests.gateway.speakers import EVERY, Speaker
from tests.live import Bench

NAMES = ["نموذج عربي", "模型/一号:free@x", "🦙 llama 3.3", "quo\"te & <b>'s 100%"]


@pytest.mark.parametrize("speaker", EVERY, ids=lambda s: s.name)
@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_any_script_is_asked_for_in_every_format(bench: Bench, speaker: Speaker, name: str) -> None:
    alias = bench.model(name, reply("fine"))
    core = bench.collection([alias], name.replace("/", "-"))
    for asked in (alias, f"{core}:route"):
        answer = speaker.ask(bench, asked)
        assert answer.status == 200, answer.body[:300]
        assert answer.headers["x-bench-model"] == quote(alias, safe="")
        assert unquote(answer.headers["x-bench-model"]) == alias
        assert "fine" in speaker.text(answer.json)
        with speaker.stream(bench, asked) as stream:
            assert unquote(stream.headers["x-bench-model"]) == alias
            assert speaker.told(stream.rest()).finished
    answer = speaker.ask(bench, core)
    assert [s["model"] for s in check_bench(answer.json["bench"])] == [alias]
    assert answer.json["bench"]["collection"] == core.removeprefix("bench/")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_any_script_is_listed_told_and_managed(bench: Bench, name: str) -> None:
    alias = bench.model(name)
    core = bench.collection([alias], name.replace("/", "-"))
    live = bench.load().live
    listed = {m["id"] for m in live.send("GET", "/v1/models").json["data"]}
    assert {alias, core, f"{core}:merged", f"{core}:route"} <= listed
    for one in (alias, core):
        assert live.send("GET", f"/v1/models/{quote(one, safe='')}").json["id"] == one
        assert live.send("GET", f"/v1beta/models/{quote(one, safe='')}").json["name"] == f"models/{one}"
    assert live.api("GET", f"models/{quote(alias, safe='')}")["alias"] == alias
    assert live.api("GET", f"collections/{quote(core.removeprefix('bench/'), safe='')}")["members"] == [alias]
    key = bench.key(models=[alias])
    assert live.ask(alias, key=key).status == 200
    live.api("POST", f"models/{quote(alias, safe='')}/retire", {"reason": "a test"})
    assert live.ask(alias, key=key).status == 404
