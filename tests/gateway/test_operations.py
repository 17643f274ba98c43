"""One question, however many tries it took: one operation of its key, every try a row of its own, every token counted once."""

from __future__ import annotations

import pytest

from tests.fake import reply, sse, status
from tests.http import content_of, events_of
from tests.live import Bench

PRICE = {"input_usd_per_mtok": "1", "output_usd_per_mtok": "10"}


def own(bench: Bench, name: str, *answers: object, **more: object) -> str:
    """A model behind an endpoint of its own, so that a rest of one is nobody else's."""
    return bench.model(name, *answers, endpoint=bench.endpoint(f"at-{name}", bench.fake.root), facts=PRICE, **more)


def test_three_tries_are_one_operation_three_rows_and_count_once_for_the_key(bench: Bench) -> None:
    filtered = {"error": {"message": "filtered"}, "usage": {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}}
    one, two = own(bench, "one", status(500, body={"error": {}})), own(bench, "two", status(500, body=filtered))
    three = own(bench, "three", reply("c", usage=(10, 5)))
    core = f"{bench.collection([one, two, three])}:route"
    key = bench.key(rpm=2)
    answer = bench.ask(core, key=key)
    assert (answer.status, answer.content, answer.headers["x-bench-attempts"]) == (200, "c", "3")

    panel = answer.headers["x-bench-panel"]
    rows = bench.live.attempts(3, panel=panel)
    assert {row["call"] for row in rows} == {answer.headers["x-bench-call"]}
    told = {(r["model"], r["status"], r["http_status"]) for r in rows}  # ids of one millisecond have no order
    assert told == {(one, "error", 500), (two, "error", 500), (three, "ok", 200)}
    assert sum(r["input_tokens"] for r in rows) == 20
    assert sum(r["output_tokens"] for r in rows) == 9
    (seat,) = bench.live.api("GET", f"panels/{panel}")["seats"]
    assert len(seat["tries"]) == 3
    assert (seat["usage"]["input_tokens"], seat["usage"]["output_tokens"]) == (20, 9)
    assert seat["cost_usd"] == "0.00011"

    # Two a minute: one is left, and no more.
    assert bench.ask(core, key=key).status == 200
    assert bench.ask(core, key=key).status == 429


def test_a_failed_try_is_on_record_with_its_reason_and_its_time(bench: Bench) -> None:
    one, two = own(bench, "one", status(502, "bad gateway")), own(bench, "two", reply("B"))
    answer = bench.ask(f"{bench.collection([one, two])}:route")
    assert (answer.content, answer.headers["x-bench-attempts"]) == ("B", "2")
    failed, served = bench.live.attempts(2, panel=answer.headers["x-bench-panel"])
    assert (failed["model"], failed["status"], failed["http_status"]) == (one, "error", 502)
    assert "bad gateway" in failed["error"]
    assert failed["latency_ms"] >= 0
    assert (served["model"], served["status"]) == (two, "ok")
    text = bench.live.send("GET", "/metrics", key=bench.live.operator_key).text
    assert text


@pytest.mark.parametrize("code", [502, 503])
def test_a_failure_that_a_stream_reports_inside_a_200_is_an_error_with_its_own_code(bench: Bench, code: int) -> None:
    chunk = {"id": "g1", "object": "chat.completion.chunk", "choices": [], "error": {"code": code, "message": "worker limit reached"}}
    one, two = own(bench, "one", sse(chunk)), own(bench, "two", reply("from B"))
    with bench.stream(f"{bench.collection([one, two])}:route") as stream:
        answer = stream.whole
    assert content_of(list(events_of(answer.body))) == "from B"
    failed, _ = bench.live.attempts(2, panel=answer.headers["x-bench-panel"])
    assert (failed["model"], failed["status"]) == (one, "error")
    assert str(code) in f"{failed['http_status']} {failed['error']} {failed['code']}"
    assert "worker limit reached" in failed["error"]


def test_a_request_that_is_itself_wrong_is_one_row_and_rests_nobody(bench: Bench) -> None:
    one, two = own(bench, "one", status(400, "messages.0.content is required", error_code="invalid_request_error"), reply("fine")), own(bench, "two")
    core = f"{bench.collection([one, two])}:route"
    answer = bench.ask(core)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "messages.0.content is required" in answer.message
    assert not bench.fake.calls_to(two)
    (row,) = bench.live.attempts(1, model=one)
    assert (row["status"], row["http_status"]) == ("error", 400)
    assert not bench.live.rows("health.Rest", scope__contains=bench.tag)
    assert bench.ask(core, "another").content == "fine"
