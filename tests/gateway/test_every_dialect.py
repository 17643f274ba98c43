"""What holds in every format alike: panels, merged and routed answers, streamed or whole, and how each of them fails."""

from __future__ import annotations

import pytest

from tests.fake import reply, status
from tests.gateway.shape import check_bench
from tests.gateway.speakers import EVERY, PIXEL, Speaker
from tests.live import Bench

pytestmark = pytest.mark.formats

SPEAKERS = pytest.mark.parametrize("speaker", EVERY, ids=lambda s: s.name)
MODES = pytest.mark.parametrize("mode", ["", ":merged", ":route"])


# ------------------------------------------------------------------ answers


@SPEAKERS
def test_a_merged_answer_whole_and_streamed(bench: Bench, speaker: Speaker) -> None:
    one, two = bench.model("one", reply("alpha")), bench.model("two", reply("beta"))
    writer = bench.model("writer", reply(["both ", "[A] and [B]"]))
    core = f"{bench.collection([one, two], mergers=[writer])}:merged"
    answer = speaker.ask(bench, core)
    assert answer.status == 200, answer.body[:500]
    assert "both [A] and [B]" in speaker.text(answer.json)
    with speaker.stream(bench, core) as stream:
        told = speaker.told(stream.rest())
    assert told.finished
    assert not told.error
    assert "both [A] and [B]" in told.text
    for bench_field in (answer.json["bench"], told.bench):
        seats = check_bench(bench_field)
        assert (bench_field["mode"], bench_field["status"]) == ("merged", "complete")
        assert {(s["model"], s["seat"], s["text"]) for s in seats} == {
            (one, "member", "alpha"),
            (two, "member", "beta"),
            (writer, "merger", "both [A] and [B]"),
        }
    assert len(bench.fake.calls_to(writer)) == 2


@SPEAKERS
def test_a_merger_that_fails_leaves_the_answers_side_by_side(bench: Bench, speaker: Speaker) -> None:
    one, two, writer = bench.model("one", reply("alpha")), bench.model("two", reply("beta")), bench.model("writer", status(500))
    core = f"{bench.collection([one, two], mergers=[writer])}:merged"
    with speaker.stream(bench, core) as stream:
        told = speaker.told(stream.rest())
    assert told.finished
    assert (told.bench["mode"], told.bench["status"]) == ("merged", "degraded")
    assert "unmerged" in told.bench["reason"]
    assert "alpha" in told.text
    assert "beta" in told.text


@SPEAKERS
@MODES
def test_an_image_in_a_user_turn_reaches_who_can_see(bench: Bench, speaker: Speaker, mode: str) -> None:
    blind, seeing = bench.model("blind", facts={"vision": False}), bench.model("seeing", reply("a cat"), facts={"vision": True})
    core = bench.collection([blind, seeing])
    answer = speaker.ask(bench, core + mode, **speaker.seeing)
    assert answer.status == 200, answer.body[:500]
    assert "a cat" in speaker.text(answer.json)
    assert not bench.fake.calls_to(blind)
    assert PIXEL in bench.fake.call(seeing).body.decode()


@SPEAKERS
@MODES
def test_an_empty_tool_list_is_no_tools(bench: Bench, speaker: Speaker, mode: str) -> None:
    fast = bench.model("fast", reply("alpha"))
    answer = speaker.ask(bench, bench.collection([fast]) + mode, **speaker.no_tools)
    assert answer.status == 200, answer.body[:500]
    sent = bench.fake.call(fast).json
    assert "tools" not in sent
    assert "tool_choice" not in sent


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize("speaker", [s for s in EVERY if s.takes_tools], ids=lambda s: s.name)
@pytest.mark.parametrize("mode", ["", ":merged"])
@pytest.mark.parametrize("streamed", [False, True])
def test_tools_to_a_panel_are_refused_and_say_where_they_go(bench: Bench, speaker: Speaker, mode: str, streamed: bool) -> None:
    fast = bench.model("fast")
    core = bench.collection([fast]) + mode
    if streamed:
        with speaker.stream(bench, core, **speaker.tools) as stream:
            answer = stream.whole
    else:
        answer = speaker.ask(bench, core, **speaker.tools)
    assert (answer.status, speaker.code(answer.json)) == (400, "tools_need_route")
    assert ":route" in answer.text
    assert not bench.fake.calls_to(fast)


@pytest.mark.parametrize("speaker", [s for s in EVERY if s.several], ids=lambda s: s.name)
@pytest.mark.parametrize("mode", ["", ":merged"])
def test_several_answers_of_a_panel_are_refused_by_the_fields_name(bench: Bench, speaker: Speaker, mode: str) -> None:
    fast = bench.model("fast")
    answer = speaker.ask(bench, bench.collection([fast]) + mode, **(speaker.several or {}))
    assert (answer.status, speaker.code(answer.json)) == (400, "invalid_request")
    assert "n must be 1" in answer.text or "candidateCount" in answer.text
    assert not bench.fake.calls_to(fast)


@SPEAKERS
@MODES
def test_a_collection_without_members_says_so(bench: Bench, speaker: Speaker, mode: str) -> None:
    answer = speaker.ask(bench, bench.collection([]) + mode)
    assert (answer.status, speaker.code(answer.json)) == (400, "invalid_request")
    assert "no members" in answer.text


@SPEAKERS
@MODES
def test_an_unknown_collection_is_not_found(bench: Bench, speaker: Speaker, mode: str) -> None:
    answer = speaker.ask(bench, f"bench/{bench.tag}-nothing{mode}")
    assert (answer.status, speaker.code(answer.json)) == (404, "model_not_found")


# ------------------------------------------------------------------ streams that wait, and streams that fail


@SPEAKERS
@MODES
def test_a_stream_that_waits_is_kept_alive_before_its_first_content(bench: Bench, speaker: Speaker, mode: str) -> None:
    gate = bench.fake.gate()
    one, two = bench.model("one", reply("alpha").after(gate)), bench.model("two", reply("beta").after(gate))
    core = bench.collection([one, two], mergers=[bench.model("writer", reply("merged"))])
    with speaker.stream(bench, core + mode) as stream:
        assert stream.status == 200
        speaker.until_alive(stream, 3)  # the opening may be one of them; a wait goes on as long as it takes
        gate.open()
        told = speaker.told(stream.rest())
    assert told.finished
    assert not told.error
    assert ("merged" if mode == ":merged" else "alpha") in told.text


@SPEAKERS
@MODES
def test_a_stream_that_nobody_answers_ends_legally(bench: Bench, speaker: Speaker, mode: str) -> None:
    gate = bench.fake.gate()
    one, two = bench.model("one", status(500).after(gate)), bench.model("two", status(400, "too long: maximum context length is 9 tokens").after(gate))
    with speaker.stream(bench, bench.collection([one, two]) + mode) as stream:
        speaker.until_alive(stream, 1)  # the headers have left, so that the error is the stream's own
        gate.open()
        told = speaker.told(stream.rest())
    assert not told.finished
    assert told.error == "upstream_error"
    assert {s["model"] for s in told.seats} == {one, two}


@SPEAKERS
@MODES
def test_an_answer_that_nobody_gave_has_the_status_of_what_was_wrong(bench: Bench, speaker: Speaker, mode: str) -> None:
    wait = {"retry-after": "7"}
    one, two = (bench.model(n, status(429, headers=wait), endpoint=bench.endpoint(n)) for n in ("one", "two"))
    answer = speaker.ask(bench, bench.collection([one, two]) + mode)
    assert (answer.status, speaker.code(answer.json)) == (429, "rate_limit_exceeded")
    assert 1 <= int(answer.headers["retry-after"]) <= 7
    assert one in answer.text
    assert two in answer.text
