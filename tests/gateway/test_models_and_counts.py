"""What a key's caller is shown of what can be asked, and how many tokens a request would be."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.fake import Answer, hang, reply, status
from tests.http import Reply
from tests.live import Bench

pytestmark = pytest.mark.formats

HI: list[Any] = [{"role": "user", "content": "hi"}]


def behind(bench: Bench, kind: str, name: str, *answers: Any, **more: Any) -> str:
    return bench.model(name, *answers, endpoint=bench.endpoint(f"at-{name}", bench.fake.root, kind=kind), **more)


# ------------------------------------------------------------------ lists


def names_of(bench: Bench, key: str) -> list[set[str]]:
    """What each of the lists shows to one key."""

    def got(path: str, **headers: str) -> Any:
        return bench.live.send("GET", path, headers={"authorization": f"Bearer {key}", **{k.replace("_", "-"): v for k, v in headers.items()}}).json

    gemini = bench.live.send("GET", "/v1/models?pageSize=1000", headers={"x-goog-api-key": key}).json
    return [
        {m["id"] for m in got("/v1/models")["data"]},
        {m["id"] for m in got("/v1/models?limit=1000", anthropic_version="2023-06-01")["data"]},
        {m["name"].removeprefix("models/") for m in gemini["models"]},
        {m["name"].removeprefix("models/") for m in got("/v1beta/models?pageSize=1000")["models"]},
        {m["name"] for m in got("/api/tags")["models"]},
    ]


def test_every_list_shows_what_the_key_may_ask_and_nothing_else(bench: Bench) -> None:
    mine, free, theirs, old = bench.model("mine"), bench.model("free/one"), bench.model("theirs"), bench.model("old")
    core, other = bench.collection([mine, theirs]), bench.collection([theirs], "other")
    key = bench.key(collections=[core.removeprefix("bench/")], models=[mine, f"{bench.tag}-free/*", old])
    bench.live.api("POST", f"models/{old}/retire", {"reason": "old"})
    for names in names_of(bench, key):
        assert names == {mine, free, core, f"{core}:merged", f"{core}:route"}
    for names in names_of(bench, bench.key()):
        assert {mine, free, theirs, core, other, f"{other}:route"} <= names
        assert old not in names
    hidden = bench.live.send("GET", f"/v1/models/{theirs}", key=key)
    assert (hidden.status, hidden.code) == (404, "model_not_found")


def test_lists_tell_sizes_where_they_are_known(bench: Bench) -> None:
    fast = bench.model("fast", facts={"context_window": 4096, "output_limit": 512})
    core = bench.collection([fast, bench.model("big", facts={"context_window": 8192})])
    bench.load()
    models = {m["id"]: m for m in bench.live.send("GET", "/v1/models").json["data"]}
    assert models[fast]["context_window"] == 4096
    gemini = {m["name"]: m for m in bench.live.send("GET", "/v1beta/models?pageSize=1000").json["models"]}
    assert (gemini[f"models/{fast}"]["inputTokenLimit"], gemini[f"models/{fast}"]["outputTokenLimit"]) == (4096, 512)
    assert gemini[f"models/{core}"]["inputTokenLimit"] == 8192


# ------------------------------------------------------------------ counts

PLACES = ("anthropic-messages", "gemini")


def count(bench: Bench, place: str, model: str, text: str = "hi", **more: Any) -> tuple[int, str, Reply]:
    """What a client of either format is told, and how it came about."""
    if place == "gemini":
        answer = bench.load().live.send("POST", f"/v1beta/models/{model}:countTokens", {"contents": [{"role": "user", "parts": [{"text": text}]}]}, **more)
    else:
        body = {"model": model, "messages": [{"role": "user", "content": text}]}
        answer = bench.load().live.send("POST", "/v1/messages/count_tokens", body, **more)
    assert answer.status == 200, answer.body
    (tokens,) = [v for k, v in answer.json.items() if k in ("input_tokens", "totalTokens")]
    return tokens, answer.headers["x-bench-count"], answer


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("mode", ["", ":route", ":merged", "direct"])
def test_a_provider_that_counts_is_asked(bench: Bench, place: str, mode: str) -> None:
    counting = behind(bench, "gemini", "counting")
    core = bench.collection([counting, bench.model("other")])
    tokens, how, _ = count(bench, place, counting if mode == "direct" else f"{core}{mode}")
    assert (tokens, how) == (321, "counted")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["openai", "ollama", "anthropic", "openai-responses"])
def test_where_nobody_counts_an_estimate_errs_high_and_says_so(bench: Bench, place: str, kind: str) -> None:
    """The fake of the last two answers 404 to a count: they have no way to."""
    model = behind(bench, kind, "fast")
    few, how, _ = count(bench, place, model)
    many, _, _ = count(bench, place, model, "word " * 1000)
    assert how == "estimated"
    assert 0 < few < 50
    assert many >= math.ceil(5000 / 4)


@pytest.mark.parametrize("answer", [status(429, headers={"retry-after": "300"}), status(401), status(503), status(500), reply("no count")])
def test_a_count_that_fails_rests_nobody_and_stands_in_no_ledger(bench: Bench, answer: Answer) -> None:
    counting = behind(bench, "gemini", "counting", answer, reply("answered"))
    core = bench.collection([counting])
    tokens, how, _ = count(bench, "gemini", f"{core}:route")
    assert tokens > 0
    assert how in ("estimated", "counted")
    got = bench.ask(f"{core}:route")
    assert (got.status, got.content) == (200, "answered")
    bench.live.attempts(1, model=counting)
    assert not bench.live.rows("health.Rest", scope__contains=f":{bench.tag}-")


def test_a_count_uses_up_nothing_of_a_key(bench: Bench) -> None:
    fast = behind(bench, "gemini", "fast", facts={"input_usd_per_mtok": "1", "output_usd_per_mtok": "1"})
    key = bench.key(rpm=1, tpm=100_000, budget_usd="0.000001")
    for _ in range(3):
        assert count(bench, "anthropic-messages", fast, key=key)[0] > 0


def test_what_may_not_be_asked_is_not_counted(bench: Bench) -> None:
    fast = behind(bench, "gemini", "fast")
    key = bench.key(models=["another"])
    body = {"model": fast, "messages": HI}
    assert bench.live.send("POST", "/v1/messages/count_tokens", body, key=key).status == 403
    assert bench.live.send("POST", "/v1/messages/count_tokens", {**body, "model": "nobody"}).status == 404
    assert bench.live.send("POST", "/v1/messages/count_tokens", {"model": fast}).status == 400
    assert not bench.fake.calls


def test_a_provider_that_does_not_answer_a_count_is_not_waited_for_long(bench: Bench) -> None:
    counting = behind(bench, "gemini", "counting", hang())
    assert count(bench, "gemini", counting)[1] == "estimated"
    bench.fake.closed(counting)
