"""Answers as models write them: LaTeX, emphasis, units, several numbers, denials, hedges, explanations, calls as text.

One case a line of answers_written.jsonl: kind, answer, what is expected, outcome, and where the usual input of the kind will not do the name of another.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from suite import grading
from suite.grading.contract import Options, Output

LINES = "\n".join(f"    x{i} = {i}" for i in range(6, 31))
INPUTS: dict[str, Any] = {
    "math": {"question": "?"},
    "exact": {"question": "?"},
    "json": {"question": "?"},
    "multiple_choice": {"question": "?", "choices": ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"]},
    "cities": {"question": "?", "choices": ["Paris", "London", "New York", "Not enough information", "The answer is B"]},
    "function_call": {"question": "?", "functions": [{"type": "function", "function": {"name": "f", "parameters": {}}}, {"name": "g", "parameters": {}}]},
    "claim": {"claim": "?", "code": "x = 1"},
    "review_line": {"code": f"def f(a):\n    b = a\n    if b:\n        return b\n    return a\n{LINES}\n"},
}
CASES = [json.loads(line) for line in (Path(__file__).parent / "answers_written.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("kind", [kind for kind in INPUTS if kind != "cities"])
def test_an_answer_is_read_as_it_was_meant(kind: str) -> None:
    wrong = []
    for of, text, expected, outcome, *other in CASES:
        if of == kind:
            row = INPUTS[other[0] if other else kind]
            grading.every()[kind].check(row, expected)
            found = grading.every()[kind].grade(Output(text), row, expected, Options())
            if found.outcome != outcome:
                wrong.append((text, expected, outcome, str(found.outcome), found.answer))
    assert wrong == []
    assert sum(case[0] == kind for case in CASES) >= 20


@pytest.mark.parametrize("kind", [kind for kind in INPUTS if kind != "cities"])
def test_an_endless_answer_is_graded_like_any_other(kind: str) -> None:
    """A reading whose cost grows much faster than the answer would take hours here."""
    expected = next(case[2] for case in CASES if case[0] == kind)
    for piece in (
        "a",
        "A ",
        "9",
        "9 ",
        "9,",
        "\n",
        "*",
        "_",
        "(",
        "{",
        "answer ",
        "ANSWER: ",
        "true or ",
        "A, ",
        "A and ",
        "line 1, ",
        "no ",
        "wait ",
        "a-",
        "x=1 and y",
        "\\frac{",
    ):
        for text in (piece * (100_000 // len(piece)), f"ANSWER: {piece * (100_000 // len(piece))} !5"):
            assert grading.every()[kind].grade(Output(text), INPUTS[kind], expected, Options()).outcome


@pytest.mark.parametrize(("text", "gold", "outcome"), [("12 million", 12_000_000, "passed"), ("12 million", 12, "judge_failed"), ("5k", 5, "judge_failed")])
def test_a_number_with_a_scale_that_fits_only_without_it_is_undecided(text: str, gold: int, outcome: str) -> None:
    assert grading.every()["math"].grade(Output(f"ANSWER: {text}"), {"question": "?"}, {"value": gold}, Options()).outcome == outcome
