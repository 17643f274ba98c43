"""Verdicts: what a judge found of a call, kept with its history."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fake import reply
from tests.live import Bench

VERDICT_FIELDS = {"id", "call", "judge", "useful", "note", "real", "false", "at", "replaces"}


def asked(bench: Bench, key: str | None = None) -> dict[str, Any]:
    core = bench.collection([bench.model("one", reply("claims a and b")), bench.model("two")])
    told: dict[str, Any] = bench.ask(core, key=key).json["bench"]
    return told


def test_a_verdict_is_stored_and_told(bench: Bench) -> None:
    call = asked(bench)["seats"][0]["call"]
    answer = bench.live.send("POST", "/bench/verdict", {"call": call, "useful": True, "note": "good", "real": ["a"], "false": ["b"]})
    assert answer.status == 200
    verdict = answer.json
    assert set(verdict) == VERDICT_FIELDS
    assert {k: verdict[k] for k in ("call", "judge", "useful", "note", "real", "false", "replaces")} == {
        "call": call,
        "judge": "local",
        "useful": True,
        "note": "good",
        "real": ["a"],
        "false": ["b"],
        "replaces": None,
    }


def test_a_second_verdict_replaces_the_first_and_the_history_stays(bench: Bench) -> None:
    call = asked(bench)["seats"][0]["call"]
    first = bench.live.send("POST", "/bench/verdict", {"call": call, "useful": True}).json
    second = bench.live.send("POST", "/bench/verdict", {"call": call, "useful": False, "false": ["a"]}).json
    assert second["replaces"] == first["id"]
    rows = bench.live.rows("panels.Verdict", call=call)
    assert sorted((r["useful"], r["current"]) for r in rows) == [(False, True), (True, False)]


def test_different_judges_keep_their_own(bench: Bench) -> None:
    call = asked(bench)["seats"][0]["call"]
    ann, bob, anon = bench.key(owner="ann"), bench.key(owner="bob"), bench.key(name=f"{bench.tag}-anon")
    verdicts = [
        bench.live.send("POST", "/bench/verdict", {"call": call, "useful": u}, key=k).json
        for u, k in ((True, ann), (False, bob), (None, anon))
        if u is not None
    ]
    assert [v["judge"] for v in verdicts] == ["ann", "bob"]
    named = bench.live.send("POST", "/bench/verdict", {"call": call, "note": "meh", "useful": False}, key=anon).json
    assert named["judge"].endswith(f"{bench.tag}-anon")
    assert len([r for r in bench.live.rows("panels.Verdict", call=call) if r["current"]]) == 3


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({}, ""),
        ({"useful": None}, ""),
        ({"useful": "yes"}, "useful"),
        ({"useful": 1}, "useful"),
        ({"note": 5, "useful": True}, "note"),
        ({"real": "a"}, "real"),
        ({"real": [1]}, "real"),
        ({"false": {"a": 1}}, "false"),
        ({"real": ["x"] * 201}, "real"),
        ({"false": ["x" * 10_001]}, "false"),
        ({"call": 5, "useful": True}, "call"),
        ({"call": None, "useful": True}, "call"),
    ],
    ids=str,
)
def test_what_judges_nothing_or_has_wrong_types_is_refused_by_name(bench: Bench, change: dict[str, Any], field: str) -> None:
    call = asked(bench)["seats"][0]["call"]
    answer = bench.live.send("POST", "/bench/verdict", {"call": call, **change})
    assert answer.status == 400
    assert answer.headers["content-type"].startswith("application/problem+json")
    assert field in answer.text
    assert not bench.live.rows("panels.Verdict", call=call)


@pytest.mark.parametrize("call", ["call_00000000000000000000000000", "nonsense", "", "x" * 500, "call_'--"])
def test_an_unknown_call_is_not_found(bench: Bench, call: str) -> None:
    answer = bench.load().live.send("POST", "/bench/verdict", {"call": call, "useful": True})
    assert answer.status == 404 or (answer.status == 400 and not call)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff\xfe", b"[" * 5000, b'{"call": NaN}'])
def test_a_body_that_is_no_object_is_refused(bench: Bench, body: bytes) -> None:
    answer = bench.load().live.send("POST", "/bench/verdict", body)
    assert answer.status == 400
    assert answer.headers["content-type"].startswith("application/problem+json")


def test_a_verdict_right_behind_the_answer_finds_the_call(bench: Bench) -> None:
    core = bench.collection([bench.model("one")])
    for _ in range(5):
        call = bench.ask(core).json["bench"]["seats"][0]["call"]
        assert bench.live.send("POST", "/bench/verdict", {"call": call, "useful": True}).status == 200


def test_a_direct_call_can_be_judged_too(bench: Bench) -> None:
    call = bench.ask(bench.model("fast")).headers["x-bench-call"]
    assert bench.live.send("POST", "/bench/verdict", {"call": call, "useful": True}).status == 200


def test_pending_verdicts_are_those_of_the_asker(bench: Bench) -> None:
    key = bench.key(owner=f"{bench.tag}-ann")
    told, others = asked(bench, key), asked(bench)
    bench.live.attempts(2, panel=told["panel"])
    bench.live.attempts(2, panel=others["panel"])
    (pending,) = [
        p for p in bench.live.send("GET", "/bench/verdicts/pending?limit=500", key=key).json["data"] if p["panel"] in (told["panel"], others["panel"])
    ]
    assert set(pending) == {"panel", "asked_at", "collection", "seats"}
    assert pending["panel"] == told["panel"]
    assert [s["model"] for s in pending["seats"]] == [f"{bench.tag}-one", f"{bench.tag}-two"]
    local = {p["panel"] for p in bench.live.send("GET", "/bench/verdicts/pending?limit=500").json["data"]}
    assert others["panel"] in local
    assert told["panel"] not in local
    for seat in told["seats"]:
        bench.live.send("POST", "/bench/verdict", {"call": seat["call"], "useful": True}, key=key)
    assert told["panel"] not in {p["panel"] for p in bench.live.send("GET", "/bench/verdicts/pending?limit=500", key=key).json["data"]}


def test_judging_needs_the_scope_for_it(bench: Bench) -> None:
    call = asked(bench)["seats"][0]["call"]
    assert bench.live.send("POST", "/bench/verdict", {"call": call, "useful": True}, key=bench.key(scopes=["ask"])).status == 403
