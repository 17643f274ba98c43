"""A collection asked as a panel: every seat's answer, labelled, and the same as data."""

from __future__ import annotations

from typing import Any

import pytest

from tests import factories
from tests.fake import hang, reply, status
from tests.gateway.shape import check_bench, headings
from tests.http import content_of
from tests.live import Bench

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
PICTURE = [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, IMAGE]}]


def panel_of(bench: Bench, *answers: Any, **collection: Any) -> str:
    # Each behind an endpoint of its own: a limit rests all that share a key.
    members = [bench.model(f"m{n}", answer, endpoint=bench.endpoint(f"at{n}"), facts=dict(factories.PRICES)) for n, answer in enumerate(answers)]
    return bench.collection(members, **collection)


def test_every_seats_answer_stands_under_its_heading(bench: Bench) -> None:
    core = panel_of(bench, reply("alpha says"), reply("beta says\nin two lines"))
    answer = bench.ask(core)
    assert answer.status == 200
    seats = check_bench(answer.json["bench"])
    at = headings(answer.content, seats)
    lines = answer.content.split("\n")
    assert at == sorted(at)
    assert "alpha says" in "\n".join(lines[at[0] : at[1]])
    assert "beta says\nin two lines" in "\n".join(lines[at[1] :])
    assert answer.json["model"] == core
    assert answer.json["choices"][0]["finish_reason"] == "stop"


def test_the_bench_field_tells_all_of_each_seat(bench: Bench) -> None:
    usage = {
        "prompt_tokens": 812,
        "completion_tokens": 240,
        "total_tokens": 1052,
        "prompt_tokens_details": {"cached_tokens": 12},
        "completion_tokens_details": {"reasoning_tokens": 40},
    }
    core = panel_of(bench, reply("alpha", usage=usage), reply("beta", usage=(100, 10)))
    answer = bench.ask(core)
    told = answer.json["bench"]
    first, second = check_bench(told)
    assert (told["collection"], told["mode"], told["status"]) == (core.removeprefix("bench/"), "panel", "complete")
    assert (first["model"], first["seat"], first["status"], first["text"], first["finish_reason"], first["error"]) == (
        f"{bench.tag}-m0",
        "member",
        "ok",
        "alpha",
        "stop",
        None,
    )
    assert first["usage"] == {
        "input_tokens": 812,
        "output_tokens": 240,
        "cache_read_tokens": 12,
        "cache_write_tokens": 0,
        "reasoning_tokens": 40,
        "estimated": False,
    }
    assert first["cost_usd"] == "0.000766"
    assert second["cost_usd"] == "0.000065"
    assert told["cost_usd"] == "0.000831"
    assert [(t["model"], t["status"], t["code"], t["cost_usd"]) for t in first["tries"]] == [(f"{bench.tag}-m0", 200, None, "0.000766")]
    assert answer.headers["x-bench-panel"] == told["panel"]
    assert answer.json["usage"]["prompt_tokens"] == 912
    assert answer.json["usage"]["completion_tokens"] == 250


def test_cached_tokens_are_charged_once_at_their_own_price(bench: Bench) -> None:
    facts = {"input_usd_per_mtok": "3", "output_usd_per_mtok": "15", "cache_read_usd_per_mtok": "0.3"}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100, "prompt_tokens_details": {"cached_tokens": 800}}
    core = bench.collection([bench.model("cached", reply("x", usage=usage), facts=facts)])
    assert check_bench(bench.ask(core).json["bench"])[0]["cost_usd"] == "0.00234"


def test_an_unknown_price_is_no_zero(bench: Bench) -> None:
    core = bench.collection([bench.model("unpriced")])
    told = bench.ask(core).json["bench"]
    assert told["cost_usd"] is None
    assert told["seats"][0]["cost_usd"] is None


def test_a_count_that_the_provider_did_not_send_is_estimated_and_says_so(bench: Bench) -> None:
    core = panel_of(bench, reply("some words that were said", usage=None))
    usage = check_bench(bench.ask(core).json["bench"])[0]["usage"]
    assert usage["estimated"] is True
    assert usage["input_tokens"] > 0
    assert usage["output_tokens"] > 0


def test_seats_never_interleave_and_come_as_they_finish(bench: Bench) -> None:
    gate = bench.fake.gate()
    core = panel_of(bench, reply([f"slow{i} " for i in range(20)]).after(gate), reply([f"quick{i} " for i in range(20)]))
    with bench.stream(core) as stream:
        early = stream.until("quick19")
        assert "slow" not in early
        gate.open()
        events = stream.events()
    text = content_of(events)
    assert "".join(f"quick{i} " for i in range(20)).strip() in text
    assert "".join(f"slow{i} " for i in range(20)).strip() in text
    (finishing,) = [e for e in events if isinstance(e, dict) and any(c.get("finish_reason") for c in e["choices"])]
    seats = check_bench(finishing["bench"])
    assert events[-1] == "[DONE]"
    headings(text, seats)
    assert [s["model"] for s in seats] == [f"{bench.tag}-m0", f"{bench.tag}-m1"]
    assert not any("bench" in e for e in events if isinstance(e, dict) and e is not finishing)


def test_a_stream_starts_at_once_and_is_kept_alive(bench: Bench) -> None:
    gate = bench.fake.gate()
    core = panel_of(bench, reply("late").after(gate))
    with bench.stream(core) as stream:
        assert stream.status == 200
        stream.until(": ")
        assert "late" not in stream.got.decode()
        gate.open()
        stream.until("[DONE]")


def test_usage_comes_where_it_was_asked_for(bench: Bench) -> None:
    core = panel_of(bench, reply("a", usage=(10, 1)), reply("b", usage=(20, 2)))
    with bench.stream(core, stream_options={"include_usage": True}) as stream:
        events = stream.events()
    assert events[-2]["choices"] == []
    assert events[-2]["usage"]["total_tokens"] == 33


def test_the_same_model_twice_is_two_seats(bench: Bench) -> None:
    twin = bench.model("twin", reply("first answer"), reply("second answer"))
    answer = bench.ask(bench.collection([twin, twin]))
    seats = check_bench(answer.json["bench"])
    assert [s["model"] for s in seats] == [twin, twin]
    assert {s["text"] for s in seats} == {"first answer", "second answer"}
    headings(answer.content, seats)


def test_a_seat_that_fails_degrades_the_panel_and_says_so_first(bench: Bench) -> None:
    core = panel_of(bench, reply("alpha"), status(500, "boom"))
    answer = bench.ask(core)
    assert answer.status == 200
    told = answer.json["bench"]
    ok, failed = check_bench(told)
    assert told["status"] == "degraded"
    assert (failed["status"], failed["error"]["code"]) == ("error", "upstream_error")
    first = answer.content.split("\n")[0]
    assert "degraded" in first.lower()
    assert ok["call"] not in first


def test_a_degraded_stream_says_so_in_a_line_after_the_last_seat(bench: Bench) -> None:
    core = panel_of(bench, reply("alpha"), status(500, "boom"))
    with bench.stream(core) as stream:
        events = stream.events()
    text = content_of(events).rstrip("\n")
    assert "degraded" in text.split("\n")[-1].lower()
    assert "degraded" not in text.split("\n")[0].lower()


def test_a_complete_panel_says_nothing_of_the_kind(bench: Bench) -> None:
    assert "degraded" not in bench.ask(panel_of(bench, reply("a"), reply("b"))).content.lower()


@pytest.mark.parametrize(
    ("answer", "seat_status", "code"),
    [
        (status(429, "slow down", headers={"retry-after": "7"}), "rate_limited", "rate_limit_exceeded"),
        (status(402, "no credit left"), "no_credit", None),
        (status(401, "bad key"), "error", "upstream_error"),
        (status(503, "overloaded"), "error", "upstream_overloaded"),
        (hang(), "timeout", "upstream_timeout"),
        (reply("", finish="content_filter"), "refused", None),
        (reply("cut", finish="length"), "truncated", None),
    ],
    ids=["429", "402", "401", "503", "hang", "filter", "length"],
)
def test_each_kind_of_failure_has_its_seat_status(bench: Bench, answer: Any, seat_status: str, code: str | None) -> None:
    core = panel_of(bench, reply("fine"), answer, timeout_s=2)
    told = bench.ask(core).json["bench"]
    seat = check_bench(told)[1]
    assert (seat["status"], told["status"]) == (seat_status, "degraded")
    if code:
        assert seat["error"]["code"] == code


def test_a_stream_that_dies_half_way_is_a_partial_seat(bench: Bench) -> None:
    core = panel_of(bench, reply("fine"), reply(["half ", "whole"]).cut(after="half "))
    with bench.stream(core) as stream:
        events = stream.events()
    (told,) = [e["bench"] for e in events if isinstance(e, dict) and "bench" in e]
    seat = check_bench(told)[1]
    assert (seat["status"], seat["error"]["code"]) == ("partial", "upstream_truncated")


@pytest.mark.parametrize(
    ("answers", "http_status", "code"),
    [
        ([status(429, headers={"retry-after": "7"}), status(429, headers={"retry-after": "30"})], 429, "rate_limit_exceeded"),
        ([hang(), hang()], 504, "upstream_timeout"),
        ([status(500), hang()], 502, "upstream_error"),
        ([status(500), status(429)], 502, "upstream_error"),
    ],
    ids=["all limited", "all silent", "broken and silent", "broken and limited"],
)
def test_when_every_seat_fails_the_request_does(bench: Bench, answers: list[Any], http_status: int, code: str) -> None:
    core = panel_of(bench, *answers, timeout_s=2)
    answer = bench.ask(core)
    assert (answer.status, answer.code) == (http_status, code)
    assert f"{bench.tag}-m0" in answer.message
    assert f"{bench.tag}-m1" in answer.message
    if http_status == 429:
        assert 1 <= int(answer.headers["retry-after"]) <= 30
    with bench.stream(core) as stream:
        if stream.status == 200:
            events = stream.events()
            assert "[DONE]" not in events
            assert events[-1]["error"]["code"] == code
            assert f"{bench.tag}-m1" in events[-1]["error"]["message"]
        else:
            assert stream.status == http_status


def test_a_prompt_too_long_for_a_seat_skips_that_seat(bench: Bench) -> None:
    small = bench.model("small", facts={"context_window": 100})
    large = bench.model("large", reply("fits"), facts={"context_window": 100_000})
    answer = bench.ask(bench.collection([small, large]), "word " * 500)
    skipped, ok = check_bench(answer.json["bench"])
    assert (skipped["status"], ok["status"], answer.json["bench"]["status"]) == ("skipped", "ok", "degraded")
    assert skipped["error"]["code"] == "context_too_small"
    assert small in skipped["error"]["message"]
    assert not bench.fake.calls_to(small)
    assert len(bench.fake.call(large).json["messages"][0]["content"]) == 2500


def test_an_image_skips_seats_that_cannot_see(bench: Bench) -> None:
    blind = bench.model("blind", facts={"vision": False})
    sighted = bench.model("sighted", reply("a cat"), facts={"vision": True})
    answer = bench.ask(bench.collection([blind, sighted]), PICTURE)
    skipped, ok = check_bench(answer.json["bench"])
    assert (skipped["status"], ok["status"]) == ("skipped", "ok")
    assert not bench.fake.calls_to(blind)
    assert bench.fake.call(sighted).json["messages"][0]["content"][1]["image_url"]["url"] == IMAGE["image_url"]["url"]  # type: ignore[index]


def test_a_retired_model_is_skipped_and_comes_back_when_restored(bench: Bench) -> None:
    old, new = bench.model("old"), bench.model("new")
    core = bench.collection([old, new])
    bench.load()
    bench.live.api("POST", f"models/{old}/retire", {"reason": "worse than new"})
    skipped, ok = check_bench(bench.ask(core).json["bench"])
    assert (skipped["status"], ok["status"]) == ("skipped", "ok")
    assert not bench.fake.calls_to(old)
    bench.live.api("POST", f"models/{old}/restore", {"reason": "needed again"})
    assert [s["status"] for s in check_bench(bench.ask(core).json["bench"])] == ["ok", "ok"]


@pytest.mark.parametrize("why", ["context", "vision"])
def test_when_no_seat_can_take_it_the_caller_hears_why(bench: Bench, why: str) -> None:
    names = [bench.model(n, facts={"context_window": 100, "vision": False}) for n in ("one", "two")]
    answer = bench.ask(bench.collection(names), "word " * 500 if why == "context" else PICTURE)
    assert answer.status == 400
    if why == "context":
        assert answer.code == "context_too_small"
    assert all(n in answer.message for n in names)
    assert not bench.fake.calls_to(names[0])


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/a.png",
        "http://10.1.2.3/a.png",
        "http://localhost/a.png",
        "http://2130706433/a.png",
        "http://[::1]/a.png",
        "http://0x7f.1/a.png",
        "file:///etc/passwd",
        "ftp://example.org/a",
    ],
)
def test_an_image_at_a_private_address_is_refused(bench: Bench, url: str) -> None:
    core = bench.collection([bench.model("sighted", facts={"vision": True})])
    answer = bench.ask(core, [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}])
    assert (answer.status, answer.code) == (400, "invalid_request")


def test_an_image_at_a_public_address_passes_as_it_is(bench: Bench) -> None:
    sighted = bench.model("sighted", facts={"vision": True})
    url = "https://images.example.org/cat.png?size=1"
    assert bench.ask(bench.collection([sighted]), [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]).status == 200
    assert bench.fake.call(sighted).json["messages"][0]["content"][0]["image_url"]["url"] == url


def test_a_conversation_keeps_its_order_and_ends_with_a_user_turn(bench: Bench) -> None:
    fast = bench.model("fast")
    core = bench.collection([fast])
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    bench.ask(core, turns)
    assert bench.fake.call(fast).json["messages"] == turns
    bench.ask(core, turns[:3])
    sent = bench.fake.call(fast, 1).json["messages"]
    assert sent[:3] == turns[:3]
    assert sent[-1]["role"] == "user"


def test_sampling_limits_and_format_go_to_every_seat(bench: Bench) -> None:
    one, two = bench.model("one"), bench.model("two")
    more = {"temperature": 0.1, "max_tokens": 77, "response_format": {"type": "json_object"}}
    bench.ask(bench.collection([one, two]), **more)
    for name in (one, two):
        sent = bench.fake.call(name).json
        assert {k: sent[k] for k in more} == more


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [("tools", [{"type": "function", "function": {"name": "look", "parameters": {}}}], "tools_need_route"), ("n", 2, "invalid_request")],
)
def test_what_a_panel_cannot_mean_is_refused_by_name(bench: Bench, field: str, value: Any, code: str) -> None:
    core = bench.collection([bench.model("fast")])
    answer = bench.ask(core, **{field: value})
    assert (answer.status, answer.code) == (400, code)
    assert field in answer.message
    assert bench.ask(core, tools=[]).status == 200


def test_a_panel_gives_no_member_headers(bench: Bench) -> None:
    headers = bench.ask(bench.collection([bench.model("fast")])).headers
    assert {"x-request-id", "x-bench-panel", "x-bench-overhead-ms"} <= headers.keys()
    assert not {"x-bench-model", "x-bench-call"} & headers.keys()


def test_an_alias_wins_over_nothing_and_a_collection_is_found_by_its_name(bench: Bench) -> None:
    core = bench.collection([bench.model("fast")], name="Größe")
    assert bench.ask(core).status == 200
    for wrong in (core.lower() + "x", core.upper(), core + ":unknown", core.removeprefix("bench/")):
        answer = bench.ask(wrong)
        assert (answer.status, answer.code) == (404, "model_not_found")


def test_a_merged_collection_answers_with_one_text(bench: Bench) -> None:
    members = [bench.model(f"m{n}", reply(f"view {n}")) for n in range(3)]
    merger = bench.model("merger", reply("They agree."))
    answer = bench.ask(bench.collection(members, mergers=[merger]) + ":merged")
    assert answer.status == 200
    assert answer.json["bench"]["mode"] == "merged"
    assert "They agree." in answer.content
    assert [s["seat"] for s in check_bench(answer.json["bench"])].count("merger") == 1
