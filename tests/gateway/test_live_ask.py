"""Asking as a page does: seats interleave as they write, each tells its beginning and its end, and refusals come before anything begins."""

from __future__ import annotations

from typing import Any

import pytest

from tests import factories
from tests.fake import reply, status
from tests.gateway.asking import ask, body_of, events_in, named, signed_in, watched
from tests.live import Bench, Live, eventually

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def panel_of(bench: Bench, *answers: Any, **collection: Any) -> str:
    members = [bench.model(f"m{n}", answer, endpoint=bench.endpoint(f"at{n}"), facts=dict(factories.PRICES)) for n, answer in enumerate(answers)]
    return bench.collection(members, **collection)


# ------------------------------------------------------------------ the events


def test_a_panel_tells_who_sits_then_each_seats_words_and_its_end(bench: Bench) -> None:
    core = panel_of(bench, reply(["alpha", "beta"]), reply("gamma"))
    events = watched(bench, core)
    (first, panel), *rest = events
    assert first == "panel"
    assert (panel["collection"], panel["mode"]) == (core.removeprefix("bench/"), "panel")
    assert [(s["model"], s["seat"], s["status"], s["position"], s["error"]) for s in panel["seats"]] == [
        (f"{bench.tag}-m0", "member", "running", 0, None),
        (f"{bench.tag}-m1", "member", "running", 1, None),
    ]
    assert rest[-1][0] == "done"
    done = rest[-1][1]
    assert done["status"] == "complete"
    assert done["text"] is None
    seats = {s["call"]: s for s in named(events, "seat")}
    assert [{**s, "position": n} for n, s in enumerate(done["seats"])] == [seats[s["call"]] for s in panel["seats"]]
    for call, seat in seats.items():
        assert "".join(d.get("text", "") for d in named(events, "delta") if d["call"] == call) == seat["text"]
        last_delta = max(i for i, (name, data) in enumerate(events) if name == "delta" and data["call"] == call)
        assert last_delta < next(i for i, (name, data) in enumerate(events) if name == "seat" and data["call"] == call)


def test_seats_are_heard_side_by_side_while_they_write(bench: Bench) -> None:
    gates = [bench.fake.gate(), bench.fake.gate()]
    core = panel_of(bench, reply(["one", "two"]).holding(gates[0], "one"), reply(["three", "four"]).holding(gates[1], "three"))
    with ask(bench, core) as stream:
        stream.until('"text":"one"')
        stream.until('"text":"three"')
        assert b"event: seat\n" not in stream.got
        gates[1].open()
        stream.until("event: seat\n")
        gates[0].open()
        events = events_in(stream.rest())
    assert [s["text"] for s in named(events, "seat")] == ["threefour", "onetwo"]


def test_reasoning_comes_apart_from_the_answer(bench: Bench) -> None:
    core = panel_of(bench, reply("so it is", reasoning="let me think"))
    events = watched(bench, core)
    assert "".join(d.get("reasoning", "") for d in named(events, "delta")) == "let me think"
    assert named(events, "seat")[0]["text"] == "so it is"


def test_a_merger_is_announced_before_it_writes_and_its_text_stands_at_the_end(bench: Bench) -> None:
    merger = bench.model("merger", reply(["all ", "agree"]), facts=dict(factories.PRICES))
    core = panel_of(bench, reply("alpha"), reply("beta"), mergers=[merger])
    events = watched(bench, f"{core}:merged")
    started = named(events, "seat_started")
    assert [(s["model"], s["seat"], s["status"], s["position"]) for s in started] == [(merger, "merger", "running", 2)]
    call = started[0]["call"]
    assert "".join(d["text"] for d in named(events, "delta") if d["call"] == call) == "all agree"
    done = named(events, "done")[0]
    assert (done["mode"], done["text"], [s["seat"] for s in done["seats"]]) == ("merged", "all agree", ["member", "member", "merger"])


def test_a_merged_panel_whose_merger_fails_says_why_and_keeps_the_answers(bench: Bench) -> None:
    merger = bench.model("merger", status(500))
    core = panel_of(bench, reply("alpha"), reply("beta"), mergers=[merger])
    done = named(watched(bench, f"{core}:merged"), "done")[0]
    assert done["text"] is None
    assert "unmerged" in done["reason"]
    assert done["status"] == "degraded"


def test_a_seat_that_cannot_see_is_skipped_from_the_start_with_its_reason(bench: Bench) -> None:
    sees = bench.model("sees", reply("a cat"), facts={"vision": True})
    core = bench.collection([bench.model("blind", reply("?")), sees])
    events = watched(bench, core, [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, IMAGE]}])
    blind, _ = named(events, "panel")[0]["seats"]
    assert (blind["status"], blind["error"]["code"]) == ("skipped", "no_vision")
    ended = next(s for s in named(events, "seat") if s["call"] == blind["call"])
    assert (ended["status"], ended["error"]["code"]) == ("skipped", "no_vision")
    assert named(events, "done")[0]["status"] == "degraded"


def test_a_seat_with_a_limit_waits_and_says_when_it_begins(bench: Bench) -> None:
    alias = bench.model("limited", reply("x"), limits={"requests": {"minute": 100}})
    core = bench.collection([alias])
    for name in (core, alias, f"{core}:route"):
        events = watched(bench, name)
        assert named(events, "panel")[0]["seats"][0]["status"] == "waiting"
        assert [s["status"] for s in named(events, "seat_started")] == ["running"]


@pytest.mark.parametrize("mode", ["direct", "route"])
def test_one_models_answer_is_a_panel_of_one_seat(bench: Bench, mode: str) -> None:
    alias = bench.model("fast", reply(["here", " you are"]), facts=dict(factories.PRICES))
    core = bench.collection([alias])
    events = watched(bench, alias if mode == "direct" else f"{core}:route")
    panel, done = named(events, "panel")[0], named(events, "done")[0]
    assert (panel["mode"], panel["collection"]) == (mode, None if mode == "direct" else core.removeprefix("bench/"))
    assert [(s["model"], s["seat"], s["status"]) for s in panel["seats"]] == [(alias, mode, "running")]
    assert "".join(d["text"] for d in named(events, "delta")) == "here you are"
    assert [s["text"] for s in named(events, "seat")] == ["here you are"]
    assert (done["status"], done["mode"], [s["call"] for s in done["seats"]]) == ("complete", mode, [panel["seats"][0]["call"]])
    assert done["cost_usd"] is not None


def test_a_route_says_who_takes_the_turn_after_a_member_that_failed(bench: Bench) -> None:
    down = bench.model("down", status(500), endpoint=bench.endpoint("a"))
    up = bench.model("up", reply("I do"), endpoint=bench.endpoint("b"))
    events = watched(bench, f"{bench.collection([down, up])}:route")
    (first,) = named(events, "panel")[0]["seats"]
    (second,) = named(events, "seat_started")
    assert (first["model"], second["model"], first["call"]) == (down, up, second["call"])
    (seat,) = named(events, "seat")
    assert (seat["model"], [t["model"] for t in seat["tries"]]) == (up, [down, up])


# ------------------------------------------------------------------ who sits


def test_exactly_those_sit_who_are_named_and_nobody_explores(bench: Bench) -> None:
    members = [bench.model(f"m{n}", reply(str(n))) for n in range(3)]
    other = bench.model("other", reply("mine"))
    core = bench.collection(members, explorers=2)
    seats = named(watched(bench, core, wishes={"seats": [other, members[2], other]}), "panel")[0]["seats"]
    assert [(s["model"], s["seat"]) for s in seats] == [(other, "member"), (members[2], "member"), (other, "member")]


def test_some_may_sit_besides(bench: Bench) -> None:
    core = panel_of(bench, reply("a"))
    other = bench.model("other", reply("b"))
    seats = named(watched(bench, core, wishes={"with": [other]}), "panel")[0]["seats"]
    assert [s["model"] for s in seats] == [f"{bench.tag}-m0", other]


def test_a_collections_own_mergers_write_for_seats_by_name(bench: Bench) -> None:
    a, b, own = bench.model("a", reply("a")), bench.model("b", reply("b")), bench.model("own", reply("merged"), ad_hoc=False)
    core = bench.collection([own])
    done = named(watched(bench, f"{core}:merged", wishes={"seats": [a, b]}), "done")[0]
    assert [(s["model"], s["seat"]) for s in done["seats"]] == [(a, "member"), (b, "member"), (own, "merger")]


@pytest.mark.parametrize(
    ("wishes", "code", "field"),
    [
        ({"seats": []}, 400, "bench.seats"),
        ({"seats": "m0"}, 400, "bench.seats"),
        ({"seats": ["nobody-at-all"]}, 404, "bench.seats"),
        ({"with": ["nobody-at-all"]}, 404, "bench.with"),
        ({"with": [7]}, 400, "bench.with[0]"),
        ({"seat": ["m0"]}, 400, "bench.seat"),
        ({"again": "pan_00000000000000000000000000"}, 404, "bench.again"),
        ({"again": "no panel"}, 404, "bench.again"),
        ([], 400, "bench"),
    ],
)
def test_wishes_that_cannot_be_met_name_their_field(bench: Bench, wishes: Any, code: int, field: str) -> None:
    core = panel_of(bench, reply("a"))
    answer = bench.load().live.send("POST", "/bench/ask", body_of(core, wishes=wishes))
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status, answer.json["field"]) == (code, field)
    assert not bench.fake.calls_to(f"{bench.tag}-m0")


def test_seats_by_name_are_for_panels(bench: Bench) -> None:
    alias = bench.model("fast", reply("x"))
    core = bench.collection([alias])
    for name in (alias, f"{core}:route"):
        answer = bench.load().live.send("POST", "/bench/ask", body_of(name, wishes={"seats": [alias]}))
        assert (answer.status, answer.json["field"]) == (400, "bench.seats")


def test_a_key_seats_only_whom_it_may_ask_or_its_collection_has(bench: Bench) -> None:
    inside, outside = bench.model("inside", reply("a")), bench.model("outside", reply("b"))
    core = bench.collection([inside])
    key = bench.key(collections=[core.removeprefix("bench/")])
    refused = bench.live.send("POST", "/bench/ask", body_of(core, wishes={"seats": [outside]}), key=key)
    assert (refused.status, refused.json["code"], refused.json["field"]) == (403, "not_allowed", "bench.seats")
    assert named(watched(bench, core, wishes={"seats": [inside, inside]}, key=key), "done")[0]["status"] == "complete"


# ------------------------------------------------------------------ again


def test_a_panel_is_asked_again_with_the_same_words_and_seats(bench: Bench) -> None:
    members = [bench.model(f"m{n}", reply(f"say {n}"), facts={"vision": True}) for n in range(3)]
    core = bench.collection(members)
    prompt = [{"role": "system", "content": "Be short."}, {"role": "user", "content": [{"type": "text", "text": "Look."}, IMAGE]}]
    first = named(watched(bench, f"{core}:merged", prompt, wishes={"seats": members[:2]}), "panel")[0]
    bench.fake.forget()
    again = named(watched(bench, None, None, {"again": first["panel"]}), "panel")[0]
    assert (again["mode"], again["collection"]) == ("merged", core.removeprefix("bench/"))
    assert [s["model"] for s in again["seats"]] == members[:2]
    assert again["panel"] != first["panel"]
    sent = bench.fake.calls_to(members[0])[0].json["messages"]
    assert sent == prompt
    reseated = named(watched(bench, None, None, {"again": first["panel"], "reseat": True}), "panel")[0]
    assert [s["model"] for s in reseated["seats"] if s["seat"] == "member"] == members
    other = named(watched(bench, None, None, {"again": first["panel"], "seats": [members[2]]}), "panel")[0]
    assert [s["model"] for s in other["seats"]] == [members[2]]


def test_who_has_left_the_roster_is_skipped_when_a_panel_is_asked_again(bench: Bench) -> None:
    stays, leaves = bench.model("stays", reply("a")), bench.model("leaves", reply("b"))
    core = bench.collection([stays])
    panel = named(watched(bench, core, wishes={"with": [leaves]}), "panel")[0]["panel"]
    bench.live.api("DELETE", f"models/{leaves}", status=204)
    seats = named(watched(bench, None, None, {"again": panel}), "panel")[0]["seats"]
    assert [(s["model"], s["status"], s["error"] and s["error"]["code"]) for s in seats] == [(stays, "running", None), (leaves, "skipped", "unknown")]


def test_a_keys_explorers_of_then_need_no_right_of_their_own(bench: Bench) -> None:
    inside, other = bench.model("inside", reply("a")), bench.model("other", reply("b"), ad_hoc=False)
    core = bench.collection([inside], explorers=1)
    bench.load()
    bench.no_explorers_but_mine()
    key = bench.key(collections=[core.removeprefix("bench/")])
    first = named(watched(bench, core, key=key), "panel")[0]
    assert [s["model"] for s in first["seats"]] == [inside, other]
    again = named(watched(bench, None, None, {"again": first["panel"]}, key=key), "panel")[0]
    assert [s["model"] for s in again["seats"]] == [inside]


def test_only_who_may_read_a_panel_may_ask_it_again(bench: Bench) -> None:
    core = panel_of(bench, reply("a"))
    mine, other = bench.key(), bench.key()
    panel = named(watched(bench, core, "a secret of mine", key=mine), "panel")[0]["panel"]
    refused = bench.live.send("POST", "/bench/ask", body_of(None, None, {"again": panel}), key=other)
    assert (refused.status, refused.json["code"]) == (403, "not_allowed")
    assert b"secret" not in refused.body
    assert named(watched(bench, None, None, {"again": panel}, key=mine), "done")
    assert named(watched(bench, None, None, {"again": panel}, key=bench.live.operator_key), "done")


def test_a_panel_whose_words_are_gone_needs_new_ones(bench: Bench) -> None:
    core = panel_of(bench, reply("a"))
    key = bench.key()
    panel = named(watched(bench, core, key=key), "panel")[0]["panel"]
    eventually(lambda: bench.live.send("DELETE", f"/bench/panels/{panel}", key=key).status == 204, "the texts are deleted")
    gone = bench.live.send("POST", "/bench/ask", body_of(None, None, {"again": panel}), key=key)
    assert (gone.status, gone.json["field"]) == (404, "bench.again")
    assert named(watched(bench, None, "new words", {"again": panel}, key=key), "done")


# ------------------------------------------------------------------ one road


def test_it_is_recorded_as_any_other_panel(bench: Bench) -> None:
    core = panel_of(bench, reply("a"), reply("b"))
    key = bench.key(owner="kim")
    events = watched(bench, core, "what is it?", key=key)
    panel = named(events, "panel")[0]["panel"]
    rows = bench.live.attempts(2, panel=panel)
    assert {(row["purpose"], row["judge"], row["status"]) for row in rows} == {("panel", "kim", "ok")}
    kept = eventually(lambda: k if (k := bench.live.api("GET", f"panels/{panel}"))["status"] == "complete" else None, "the panel is on record")
    assert (kept["dialect"], kept["prompt"]) == ("bench", [{"role": "user", "content": "what is it?"}])
    assert [s["text"] for s in kept["seats"]] == ["a", "b"]


def test_sampling_goes_to_every_seat_and_the_wishes_to_none(bench: Bench) -> None:
    core = panel_of(bench, reply("a"), reply("b"))
    watched(bench, core, wishes={"with": []}, temperature=0.3, max_completion_tokens=77)
    for n in range(2):
        sent = bench.fake.calls_to(f"{bench.tag}-m{n}")[0].json
        assert (sent["temperature"], sent["max_completion_tokens"], sent["stream"]) == (0.3, 77, True)
        assert "bench" not in sent


def test_a_budget_refuses_before_anything_begins(bench: Bench) -> None:
    core = panel_of(bench, reply("a"))
    key = bench.key(budget_usd="0.000001")
    refused = bench.load().live.send("POST", "/bench/ask", body_of(core), key=key)
    assert (refused.status, refused.json["code"], refused.headers["content-type"]) == (402, "budget_exceeded", "application/problem+json")
    limited = bench.key(rpm=1)
    assert named(watched(bench, core, key=limited), "done")
    second = bench.live.send("POST", "/bench/ask", body_of(core), key=limited)
    assert (second.status, second.json["code"]) == (429, "rate_limit_exceeded")
    assert int(second.headers["retry-after"]) >= 1


def test_when_every_seat_fails_the_stream_ends_with_the_one_error(bench: Bench) -> None:
    core = panel_of(bench, status(500), status(500))
    events = watched(bench, core)
    assert [s["status"] for s in named(events, "seat")] == ["error", "error"]
    name, error = events[-1]
    assert (name, error["status"], error["code"]) == ("error", 502, "upstream_error")
    assert [s["model"] for s in error["seats"]] == [f"{bench.tag}-m0", f"{bench.tag}-m1"]
    assert not named(events, "done")


@pytest.mark.parametrize("answer", [status(500), reply(["half an ans", "wer"]).cut("half an ans")], ids=["before", "half-way"])
def test_a_direct_call_that_fails_ends_with_its_seat_and_the_error(bench: Bench, answer: Any) -> None:
    alias = bench.model("down", answer)
    events = watched(bench, alias)
    assert [name for name, _ in events if name != "delta"] == ["panel", "seat", "error"]
    assert named(events, "seat")[0]["error"]["code"] == named(events, "error")[0]["code"] or named(events, "error")[0]["status"] == 502


def test_what_nobody_can_take_is_refused_before_anything_begins(bench: Bench) -> None:
    core = bench.collection([bench.model("blind", reply("?")), bench.model("too", reply("?"))])
    answer = bench.load().live.send("POST", "/bench/ask", body_of(core, [{"role": "user", "content": [IMAGE]}]))
    assert (answer.status, answer.json["code"]) == (400, "invalid_request")
    assert [s["code"] for s in answer.json["seats"]] == ["no_vision", "no_vision"]
    assert bench.live.send("POST", "/bench/ask", body_of("bench/no-such")).json["code"] == "model_not_found"
    assert bench.live.send("POST", "/bench/ask", {"model": core}).json["field"] == "messages"
    assert bench.live.send("POST", "/bench/ask", body_of(core, tools=[{"type": "function", "function": {"name": "f"}}])).json["code"] == "tools_need_route"


def test_a_silent_panel_is_kept_alive(bench: Bench) -> None:
    gate = bench.fake.gate()
    core = panel_of(bench, reply("late").after(gate))
    with ask(bench, core) as stream:
        stream.until("\n: ")
        gate.open()
        assert named(events_in(stream.rest()), "done")


def test_whoever_hangs_up_ends_what_runs(bench: Bench) -> None:
    gate = bench.fake.gate()
    core = panel_of(bench, reply(["one", "two"]).holding(gate, "one"), reply(["three", "four"]).holding(gate, "three"))
    with ask(bench, core) as stream:
        stream.until('"text":"one"')
        stream.until('"text":"three"')
    eventually(lambda: all(bench.fake.calls_to(f"{bench.tag}-m{n}")[0].closed_at for n in range(2)), "the providers' connections are closed")
    assert {row["status"] for row in bench.live.attempts(2, collection=core.removeprefix("bench/"))} == {"cancelled"}


# ------------------------------------------------------------------ who is signed in


def test_a_signed_in_user_asks_in_the_users_name(bench: Bench, live: Live) -> None:
    core = panel_of(bench, reply("a"))
    bench.load()
    browser = signed_in(live, f"{bench.tag}-kim", "judge")
    answer = browser.post("/bench/ask", body_of(core))
    assert answer.status == 200, answer.body
    panel = named(events_in(answer.body), "panel")[0]["panel"]
    assert live.attempts(1, panel=panel)[0]["judge"] == f"{bench.tag}-kim"


def test_a_session_needs_the_csrf_token_and_a_page_of_our_own(bench: Bench, live: Live) -> None:
    core = panel_of(bench, reply("a"))
    bench.load()
    browser = signed_in(live, f"{bench.tag}-kim", "judge")
    paths = ["/bench/ask", "/bench/estimate", "/bench/calls/call_00000000000000000000000000/cancel", "/bench/panels/pan_00000000000000000000000000/compare"]
    for path in paths:
        for wrong in (
            {"x_csrftoken": None},
            {"x_csrftoken": "z" * 32},
            {"origin": "http://evil.example"},
            {"origin": "null"},
            {"sec_fetch_site": "cross-site"},
        ):
            answer = browser.post(path, body_of(core), **wrong)
            assert (answer.status, answer.json["code"]) == (403, "not_allowed"), (path, wrong)
    assert not bench.fake.calls_to(f"{bench.tag}-m0")


def test_a_viewer_may_not_ask(bench: Bench, live: Live) -> None:
    core = panel_of(bench, reply("a"))
    bench.load()
    browser = signed_in(live, f"{bench.tag}-viewer", "viewer")
    for path in (
        "/bench/ask",
        "/bench/estimate",
        "/bench/panels/pan_00000000000000000000000000/cancel",
        "/bench/panels/pan_00000000000000000000000000/compare",
    ):
        answer = browser.post(path, body_of(core))
        assert (answer.status, answer.json["code"]) == (403, "not_allowed"), path


@pytest.mark.parametrize("how", ["expired", "inactive", "unknown"])
def test_a_session_that_is_over_is_nobodys(bench: Bench, live: Live, how: str) -> None:
    core = panel_of(bench, reply("a"))
    bench.load()
    name = f"{bench.tag}-kim"
    browser = signed_in(live, name, "judge")
    if how == "expired":
        live.order({"update": "sessions.Session", "where": {"session_key": browser.session}, "to": {"expire_date": "2020-01-01T00:00:00Z"}})
    elif how == "inactive":
        live.order({"update": "access.User", "where": {"username": name}, "to": {"is_active": False}})
    else:
        browser.session = "x" * 32
    # A forwarded request is nobody's own machine's, so without a session there is nothing left to ask by.
    answer = browser.post("/bench/ask", body_of(core), x_forwarded_for="203.0.113.7")
    assert (answer.status, answer.json["code"]) == (401, "missing_key")


def test_a_key_that_is_sent_is_checked_whoever_is_signed_in(bench: Bench, live: Live) -> None:
    core = panel_of(bench, reply("a"))
    bench.load()
    browser = signed_in(live, f"{bench.tag}-kim", "judge")
    answer = browser.post("/bench/ask", body_of(core), authorization="Bearer no-key-of-ours")
    assert (answer.status, answer.json["code"]) == (401, "invalid_key")
