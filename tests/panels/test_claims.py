"""A merger's list of claims, read and held against the answers it quotes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from panels import claims
from panels.outcome import SeatResult

ANSWERS = [
    SeatResult("call_b", 1, "venus", "member", "ok", text="The  lock is\nreleased twice. “Quoted” <b>here</b>."),
    SeatResult("call_a", 0, "mercury", "member", "partial", text="The lock is released twice"),
]


def listing(*said: Any) -> str:
    return json.dumps({"claims": list(said)})


def claim(*seats: tuple[str, str], kind: str = "shared", text: str = "t") -> dict[str, Any]:
    return {"text": text, "kind": kind, "seats": [{"answer": answer, "quote": quote} for answer, quote in seats]}


@pytest.mark.parametrize("name", ["A", "a", "Answer A", "answer a", " A ", "(A)", "[A]"])
def test_answers_are_known_by_their_letter_however_it_is_written(name: str) -> None:
    found = claims.read(listing(claim((name, "lock"))), ANSWERS)
    assert found.claims[0]["seats"] == [{"call": "call_b", "quote": "lock"}]


@pytest.mark.parametrize(
    ("quote", "stands"),
    [
        ("lock is released twice", True),
        ("  lock \n is\treleased twice ", True),
        ("“Quoted”", True),
        ('"Quoted"', False),
        ("Lock is released", False),
        ("released twice, and", False),
        ("", False),
        ("   ", False),
    ],
)
def test_a_quote_must_stand_in_the_answer_word_for_word(quote: str, stands: bool) -> None:
    found = claims.read(listing(claim(("A", quote))), ANSWERS)
    assert (len(found.claims), found.dropped_claims, found.dropped_quotes) == ((1, 0, 0) if stands else (0, 1, 1))


@pytest.mark.parametrize(
    ("said", "seats", "kind"),
    [
        ("shared", ("A", "B"), "shared"),
        ("unique", ("A", "B"), "shared"),
        ("contradicted", ("A", "B"), "contradicted"),
        ("nonsense", ("A", "B"), "shared"),
        ("shared", ("A",), "unique"),
        ("contradicted", ("A", "A"), "unique"),
    ],
)
def test_a_claims_kind_is_what_its_quotes_bear_out(said: str, seats: tuple[str, ...], kind: str) -> None:
    found = claims.read(listing(claim(*((seat, "lock is released") for seat in seats), kind=said)), ANSWERS)
    assert found.claims[0]["kind"] == kind


@pytest.mark.parametrize(
    "said",
    [
        None,
        7,
        "text",
        {},
        {"text": 7, "seats": []},
        {"text": " ", "seats": [{"answer": "A", "quote": "lock"}]},
        {"text": "t"},
        {"text": "t", "seats": "A"},
        {"text": "t", "seats": ["A"]},
        {"text": "t", "seats": [{"answer": 1, "quote": "lock"}]},
        {"text": "t", "seats": [{"answer": "A", "quote": 7}]},
    ],
)
def test_what_is_no_claim_is_dropped_and_counted(said: Any) -> None:
    found = claims.read(json.dumps({"claims": [said, claim(("A", "lock"))]}), ANSWERS)
    assert (len(found.claims), found.dropped_claims) == (1, 1)


def test_endless_lists_and_texts_are_cut() -> None:
    found = claims.read(listing(*[claim(("A", "lock"), text="x" * 5_000)] * (claims.MOST + 5)), ANSWERS)
    assert (len(found.claims), found.dropped_claims) == (claims.MOST, 5)
    assert len(found.claims[0]["text"]) == claims.TEXT_MAX


@pytest.mark.parametrize("text", ["", "no list", "{}", '{"claims": {}}', "[", '{"claims": [', "```json\nnothing\n```", "7"])
def test_what_is_no_list_cannot_be_read(text: str) -> None:
    with pytest.raises(claims.Unreadable):
        claims.read(text, ANSWERS)


@pytest.mark.parametrize(
    "around",
    ["%s", "```json\n%s\n```", "```\n%s\n```", "Here:\n```JSON\n%s\n```\nDone {see [1]}.", "<think>{maybe} [2]</think>%s", "First {a}, then %s"],
)
def test_a_list_is_found_inside_other_words(around: str) -> None:
    assert len(claims.read(around % listing(claim(("B", "twice"))), ANSWERS).claims) == 1
    if around == "%s":
        assert len(claims.read(json.dumps([claim(("B", "twice"))]), ANSWERS).claims) == 1


def test_the_merger_is_told_the_answers_without_names_and_what_broke_off() -> None:
    said = claims.instructions(ANSWERS, "Is <it> right & good?")
    assert "Is <it> right & good?" in said
    assert "<b>here</b>" in said
    assert "Answer B (it broke off" in said
    assert "mercury" not in said
    assert "call_a" not in said
