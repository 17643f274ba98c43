"""The answers of a panel compared: claims with quotes that stand in the answers, kept with the panel and paid for as any call."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from tests import factories
from tests.fake import Answer, hang, reply, status
from tests.gateway.asking import named, signed_in, watched
from tests.http import Reply
from tests.live import Bench, eventually

ONE, TWO = "The lock is released twice.\nThe cache is fine.", "I see that the lock is   released twice. The cache is broken!"


def asked(bench: Bench, *mergers: Any, answers: tuple[str, ...] = (ONE, TWO), key: str | None = None, **collection: Any) -> tuple[str, list[str]]:
    """A panel on record whose collection's mergers give these answers. Shape: its id and its calls."""
    members = [bench.model(f"m{n}", reply(text), endpoint=bench.endpoint(f"at{n}")) for n, text in enumerate(answers)]
    names = [bench.model(f"merger{n}", answer, endpoint=bench.endpoint(f"by{n}"), facts=dict(factories.PRICES)) for n, answer in enumerate(mergers)]
    core = bench.collection(members, mergers=names, **collection)
    panel = named(watched(bench, core, "Is this code right?", key=key), "panel")[0]
    eventually(lambda: bench.live.api("GET", f"panels/{panel['panel']}")["status"] != "running", "the panel is on record")
    return panel["panel"], [s["call"] for s in panel["seats"]]


def compare(bench: Bench, panel: str, body: Any = None, key: str | None = None) -> Reply:
    return bench.load().live.send("POST", f"/bench/panels/{panel}/compare", body, key=key)


def listed(bench: Bench, claims: Any) -> Any:
    """A merger that gives these claims, in which ONE and TWO are the letters that the two answers have."""

    def letters(call: Any) -> str:
        said = call.json["messages"][-1]["content"]
        first = said.index("Answer A") < said.index(ONE.split("\n")[0]) < said.index("Answer B")
        return json.dumps(claims).replace("ONE", "A" if first else "B").replace("TWO", "B" if first else "A")

    return Answer(lambda call: reply(letters(call), usage=(300, 50)).steps(call))


CLAIMS = {
    "claims": [
        {
            "text": "The lock is released twice.",
            "kind": "shared",
            "seats": [{"answer": "ONE", "quote": "lock is released twice"}, {"answer": "Answer TWO", "quote": "the lock is released twice"}],
        },
        {
            "text": "The cache works.",
            "kind": "contradicted",
            "seats": [{"answer": "ONE", "quote": "The cache is fine."}, {"answer": "TWO", "quote": "The cache is broken!"}],
        },
        {"text": "Made up.", "kind": "unique", "seats": [{"answer": "ONE", "quote": "nobody said this"}]},
        {
            "text": "Half made up.",
            "kind": "shared",
            "seats": [{"answer": "ONE", "quote": "The cache is fine."}, {"answer": "Z", "quote": "The cache is fine."}],
        },
    ]
}


def test_claims_are_listed_with_quotes_that_stand_in_the_answers(bench: Bench) -> None:
    panel, (one, two) = asked(bench, listed(bench, CLAIMS))
    answer = compare(bench, panel)
    assert answer.status == 200, answer.body
    found = answer.json
    assert [(c["text"], c["kind"], {s["call"] for s in c["seats"]}) for c in found["claims"]] == [
        ("The lock is released twice.", "shared", {one, two}),
        ("The cache works.", "contradicted", {one, two}),
        ("Half made up.", "unique", {one}),
    ]
    assert found["dropped"] == {"claims": 1, "quotes": 2}
    assert (found["model"], found["status"], found["judge"]) == (f"{bench.tag}-merger0", "ok", "local")
    assert found["cost_usd"] is not None
    assert found["usage"]["output_tokens"] == 50
    kept = eventually(lambda: bench.live.api("GET", f"panels/{panel}")["comparison"], "the comparison is kept")
    assert kept == found
    row = next(r for r in bench.live.attempts(3, panel=panel) if r["call"] == found["call"])
    assert (row["seat"], row["purpose"], row["judge"]) == ("merger", "compare", "local")


def test_the_merger_reads_answers_without_names(bench: Bench) -> None:
    panel, _ = asked(bench, listed(bench, CLAIMS))
    assert compare(bench, panel).status == 200
    sent = bench.fake.calls_to(f"{bench.tag}-merger0")[0].json
    said = sent["messages"][-1]["content"]
    assert "Is this code right?" in said
    assert ONE in said
    assert bench.tag not in said
    assert "response_format" not in sent


def test_a_model_that_keeps_to_a_schema_is_held_to_it(bench: Bench) -> None:
    panel, _ = asked(bench, status(500))
    able = bench.model("able", listed(bench, CLAIMS), facts={"structured_output": True})
    assert compare(bench, panel, {"with": able}).status == 200
    assert bench.fake.calls_to(able)[0].json["response_format"]["json_schema"]["name"] == "claims"


@pytest.mark.parametrize(
    "around",
    ["```json\n{}\n```", "Here it is:\n\n```\n{}\n```\nI hope it helps {}.", "<think>maybe [1] or {2}</think>\n{}", "Sure! {}"],
)
def test_a_list_is_found_in_what_a_model_writes_around_it(bench: Bench, around: str) -> None:
    said = json.dumps({"claims": [{"text": "t", "kind": "unique", "seats": [{"answer": "A", "quote": "same"}]}]})
    panel, _ = asked(bench, reply(around.replace("{}", said, 1)), answers=("the same", "the same"))
    answer = compare(bench, panel)
    assert (answer.status, len(answer.json["claims"])) == (200, 1), answer.body


def test_the_next_merger_is_asked_where_one_gives_no_list(bench: Bench) -> None:
    panel, _ = asked(bench, reply("I would rather not."), status(500), listed(bench, CLAIMS))
    found = compare(bench, panel).json
    assert found["model"] == f"{bench.tag}-merger2"
    assert {r["status"] for r in bench.live.attempts(5, panel=panel)} == {"ok", "error"}


def test_without_any_list_the_error_says_so_and_nothing_is_kept(bench: Bench) -> None:
    panel, _ = asked(bench, reply("I would rather not."))
    answer = compare(bench, panel)
    assert (answer.status, answer.json["code"], answer.headers["content-type"]) == (502, "upstream_garbage", "application/problem+json")
    assert bench.live.api("GET", f"panels/{panel}")["comparison"] is None


def test_a_second_comparison_takes_the_place_of_the_first(bench: Bench) -> None:
    panel, _ = asked(bench, listed(bench, CLAIMS), listed(bench, {"claims": []}))
    first = compare(bench, panel).json
    second = compare(bench, panel, {"with": f"{bench.tag}-merger1"}).json
    kept = eventually(lambda: k if (k := bench.live.api("GET", f"panels/{panel}")["comparison"])["call"] != first["call"] else None, "the second is kept")
    assert kept == second


def test_claims_go_with_the_panels_texts(bench: Bench) -> None:
    panel, _ = asked(bench, listed(bench, CLAIMS))
    assert compare(bench, panel).status == 200
    eventually(lambda: bench.live.api("GET", f"panels/{panel}")["comparison"], "the comparison is kept")
    bench.live.api("DELETE", f"panels/{panel}", status=204)
    assert bench.live.api("GET", f"panels/{panel}")["comparison"] is None
    assert [row["claims"] for row in bench.live.rows("panels.Comparison", panel=panel)] == [None]
    assert compare(bench, panel).json["code"] == "not_comparable"


def test_too_little_to_compare(bench: Bench) -> None:
    panel, _ = asked(bench, listed(bench, CLAIMS), answers=("alone",))
    answer = compare(bench, panel)
    assert (answer.status, answer.json["code"]) == (409, "not_comparable")
    assert compare(bench, "pan_00000000000000000000000000").status == 404
    assert compare(bench, panel, {"with": 7}).json["field"] == "with"


def test_only_who_may_read_a_panel_compares_it_and_with_whom_it_may_ask(bench: Bench) -> None:
    mine, other = bench.key(), bench.key()
    panel, _ = asked(bench, listed(bench, CLAIMS), key=mine)
    outside = bench.model("outside", listed(bench, CLAIMS))
    assert compare(bench, panel, key=other).status == 403
    assert compare(bench, panel, {"with": "no such model"}, key=mine).json["code"] == "model_not_found"
    assert compare(bench, panel, {"with": outside}, key=mine).status == 200
    viewer = signed_in(bench.live, f"{bench.tag}-viewer", "viewer")
    assert viewer.post(f"/bench/panels/{panel}/compare").status == 403


def test_a_budget_covers_comparisons_too(bench: Bench) -> None:
    key = bench.key(budget_usd="0.000001")
    panel, _ = asked(bench, listed(bench, CLAIMS), key=None)
    operator = bench.key(scopes=["ask", "operate"], budget_usd="0.000001")
    assert compare(bench, panel, key=operator).json["code"] == "budget_exceeded"
    assert compare(bench, panel, key=key).status == 403
    assert not bench.fake.calls_to(f"{bench.tag}-merger0")


def test_whoever_hangs_up_ends_the_comparison(bench: Bench) -> None:
    panel, _ = asked(bench, hang())
    merger = f"{bench.tag}-merger0"
    head = f"POST /bench/panels/{panel}/compare HTTP/1.1\r\nHost: {bench.live.host}\r\nContent-Length: 0\r\n\r\n"
    with socket.create_connection((bench.live.host, bench.live.port)) as waiting:
        waiting.sendall(head.encode())
        eventually(lambda: bench.fake.calls_to(merger), "the merger is asked")
    eventually(lambda: bench.fake.calls_to(merger)[0].closed_at, "the provider's connection is closed")
    assert {row["status"] for row in bench.live.attempts(3, panel=panel)} == {"ok", "cancelled"}
