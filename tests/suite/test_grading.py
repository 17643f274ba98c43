"""Answers as models write them, and what they count as. Each table is a kind of task; each line an answer that somebody's grader got wrong, or could."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from suite import grading
from suite.grading import answers, numbers, strictjson
from suite.grading.contract import Call, Options, Output, RowError
from suite.grading.outcomes import SCORED, Outcome, scored

PLAIN = Options()


def graded(kind: str, text: str, row_input: Any, expected: Any, options: Options = PLAIN, calls: tuple[Call, ...] = ()) -> Outcome:
    found = grading.every()[kind]
    found.check(row_input, expected)
    return found.grade(Output(text, calls), row_input, expected, options).outcome


MATH = [
    ("3 apples cost 12", "12", "passed"),
    ("The total is 72 clips, altogether.", "72", "passed"),
    (r"\boxed{8,000}", "8000", "passed"),
    (r"So we get \boxed{$9{,}500}.", "9500", "passed"),
    (r"1\,000", "1000", "passed"),
    (r"\$20", "20", "passed"),
    ("It costs $1,234.50.", "1234.5", "passed"),
    ("25", "5", "failed"),
    ("The answer is 25", "5", "failed"),
    ("\u22125", "-5", "passed"),
    ("\u00bd", "0.5", "passed"),
    ("1\u00bd", "1.5", "passed"),
    ("\uff11\uff12", "12", "passed"),
    ("1.234,5", "1234.5", "judge_failed"),
    ("1,5", "1.5", "judge_failed"),
    ("1/2^98", "1/2^99", "failed"),
    ("1/2^99", "1/2^99", "passed"),
    ("0.0833333333333333", "1/12", "passed"),
    ("0.0833", "1/12", "failed"),
    (r"\frac{1}{12}", "1/12", "passed"),
    (r"The answer is $\dfrac{3}{4}$.", "0.75", "passed"),
    ("ANSWER: 42\nLet me double check: 6*7 = 42, of 100 tries.", "42", "passed"),
    ("ANSWER: 41\nWait.\nANSWER: 42", "42", "passed"),
    ("First I thought the answer is 7. But no.\n#### 9", "9", "passed"),
    ("**Answer:** 17", "17", "passed"),
    ("The final answer is: 3.14.", "3.14", "passed"),
    ("1.2e-5", "0.000012", "passed"),
    ("3-5", "5", "passed"),
    ("x = 5 - 3 = 2", "2", "passed"),
    ("between 10\u201312, so 12", "12", "passed"),
    ("1/0", "1", "unparsed"),
    ("I cannot tell.", "1", "unparsed"),
    ("", "1", "unparsed"),
    ("0", "0", "passed"),
    ("0.0000000001", "0", "passed"),
    ("0.1", "0", "failed"),
    ("12345678901234567890123", "12345678901234567890123", "passed"),
    ("12345678901234567890124", "12345678901234567890123456", "failed"),
    ("10^999999", "1", "unparsed"),
    ("9" * 5000, "1", "unparsed"),
    ("1e99999", "1", "unparsed"),
    ("50%", "50", "passed"),
    ("Version 2.3.4 needs 7 days", "7", "passed"),
    ("the answer would be 8 apples, not 9", "8", "passed"),
]


@pytest.mark.parametrize(("text", "gold", "outcome"), MATH)
def test_numbers(text: str, gold: str, outcome: str) -> None:
    assert graded("math", text, {"question": "?"}, {"value": gold}) == outcome


def test_a_locale_says_how_to_read_an_ambiguous_number() -> None:
    comma, point = Options(decimal=","), Options(decimal=".")
    assert graded("math", "1.234,5", {"question": "?"}, {"value": 1234.5}, comma) == "passed"
    assert graded("math", "1,5", {"question": "?"}, {"value": "1.5"}, point) == "unparsed"


CHOICE = [
    ("A common slip is B. The answer is C", "C", "passed"),
    ("G", "G", "passed"),
    ("ANSWER: A,", "A", "passed"),
    ("ANSWER: A, B, and C", ["A", "B", "C"], "passed"),
    ("ANSWER: A, B, and C", "A", "failed"),
    ("answer: b", "B", "passed"),
    ("ANSWER: A\nNo, wait.\nANSWER: D", "D", "passed"),
    ("The choices are A, B, C, D. I weigh them.\nANSWER: C", "C", "passed"),
    ("**Answer: (C)**", "C", "passed"),
    (r"\boxed{C}", "C", "passed"),
    (r"$\boxed{\text{C}}$", "C", "passed"),
    ("(C)", "C", "passed"),
    ("C.", "C", "passed"),
    ("c", "C", "passed"),
    ("The correct option is C because it rains.", "C", "passed"),
    ("I think that A is a trap, so D.", "D", "unparsed"),
    ("A good reader picks D here.", "D", "passed"),
    ("I would say B", "B", "passed"),
    ("It is B", "B", "passed"),
    ("gamma", "C", "passed"),
    ("The answer is gamma.", "C", "passed"),
    ("ANSWER: Z", "A", "unparsed"),
    ("ANSWER: none of these", "A", "unparsed"),
    ("", "A", "unparsed"),
    ("Apples are a fine fruit.", "A", "unparsed"),
    ("A\u200bNSWER: C", "C", "passed"),
    ("ANSWER:C", "C", "passed"),
    ("The answer is: C) gamma", "C", "passed"),
    ("Final answer \u2013 see above: C\nC", "C", "passed"),
]


@pytest.mark.parametrize(("text", "gold", "outcome"), CHOICE)
def test_choices(text: str, gold: Any, outcome: str) -> None:
    row = {"question": "?", "choices": ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"]}
    assert graded("multiple_choice", text, row, {"value": gold}) == outcome


EXACT = [
    ("world hello", "hello world", "failed"),
    ("Hello   World", "hello world", "passed"),
    ("(3.14)", "3.14", "passed"),
    ("3.14.", "3.14", "passed"),
    ("3.140", "3.14", "passed"),
    ('"Paris"', "Paris", "passed"),
    ("**Paris**", "Paris", "passed"),
    ("ANSWER: Paris\n", "Paris", "passed"),
    ("The answer is Paris.", "Paris", "passed"),
    ("Paris, France", "Paris", "failed"),
    ("caf\u00e9", "cafe\u0301", "passed"),
    ("no", ["yes", "No"], "passed"),
    ("", "x", "unparsed"),
    ("f(x) (g)", "f(x) (g", "failed"),
    ("(a) or (b)", "a) or (b", "failed"),
]


@pytest.mark.parametrize(("text", "gold", "outcome"), EXACT)
def test_short_texts(text: str, gold: Any, outcome: str) -> None:
    assert graded("exact", text, {"question": "?"}, {"value": gold}) == outcome


FUNCTIONS = [{"type": "function", "function": {"name": "f", "parameters": {}}}, {"name": "g", "parameters": {}}]


@pytest.mark.parametrize(
    ("calls", "wanted", "outcome"),
    [
        ([("f", {"a": 1}), ("f", {"a": 1})], [("f", {"a": 1})], "failed"),
        ([("f", {"a": 1})], [("f", {"a": 1}), ("f", {"a": 1})], "failed"),
        ([("f", {"a": 1.0})], [("f", {"a": 1})], "passed"),
        ([("f", {"b": 2, "a": [1, 2]})], [("f", {"a": [1, 2], "b": 2})], "passed"),
        ([("f", {"a": [2, 1]})], [("f", {"a": [1, 2]})], "failed"),
        ([("f", {"a": True})], [("f", {"a": 1})], "failed"),
        ([("g", {}), ("f", {})], [("f", {}), ("g", {})], "passed"),
        ([], [], "passed"),
        ([], [("f", {})], "failed"),
        ([("f", {"a": "1"})], [("f", {"a": 1})], "failed"),
    ],
)
def test_tool_calls_are_a_bag(calls: list[tuple[str, Any]], wanted: list[tuple[str, Any]], outcome: str) -> None:
    made = tuple(Call(name, json.dumps(args)) for name, args in calls)
    row, gold = {"question": "?", "functions": FUNCTIONS}, {"value": [{"name": name, "args": args} for name, args in wanted]}
    assert graded("function_call", "", row, gold, calls=made) == outcome
    if made:
        assert graded("function_call", json.dumps([{"name": n, "arguments": a} for n, a in calls]), row, gold) == outcome


def test_arguments_that_are_no_json_are_no_answer() -> None:
    row, gold = {"question": "?", "functions": FUNCTIONS}, {"value": [{"name": "f", "args": {}}]}
    assert graded("function_call", "", row, gold, calls=(Call("f", "{a:"),)) == "unparsed"
    assert graded("function_call", "I call f.", row, gold) == "failed"


JSONS = [
    ('prose with `x` then {"a":1}', {"a": 1}, "passed"),
    ('{"a": "a `tick` inside"}', {"a": "a `tick` inside"}, "passed"),
    (json.dumps({"a": "```json\n{}\n```"}), {"a": "```json\n{}\n```"}, "passed"),
    ('```json\n{"a": 1}\n```', {"a": 1}, "passed"),
    ('First `{"a": 0}`, no:\n```\n{"a": 1}\n```\nDone.', {"a": 1}, "passed"),
    ('{"a": 1} or rather {"a": 2}', {"a": 2}, "passed"),
    ('{"a": NaN}', {"a": 1}, "unparsed"),
    ('{"a": 1, "a": 2}', {"a": 2}, "unparsed"),
    ('{"a": 1e999}', {"a": 1}, "unparsed"),
    ("[" * 10_000, [], "unparsed"),
    ('{"a":' * 5_000 + "1" + "}" * 5_000, {}, "unparsed"),
    ("false", False, "passed"),
    ("0", 0, "passed"),
    ('""', "", "passed"),
    ("0", False, "failed"),
    ("null", None, "passed"),
    ("not json", {}, "unparsed"),
    ('{"a": 1.0}', {"a": 1}, "passed"),
]


@pytest.mark.parametrize(("text", "value", "outcome"), JSONS)
def test_json_values(text: str, value: Any, outcome: str) -> None:
    assert graded("json", text, {"question": "?"}, {"value": value}) == outcome


@pytest.mark.parametrize(
    ("text", "want", "outcome"),
    [
        ('{"blocked":false}', False, "passed"),
        ('{"blocked":0}', 0, "passed"),
        ('{"blocked":""}', "", "passed"),
        ("{}", False, "unparsed"),
        ('{"blocked":0}', False, "failed"),
    ],
)
def test_false_zero_and_nothing_are_answers(text: str, want: Any, outcome: str) -> None:
    assert graded("json", text, {"question": "?"}, {"path": "blocked", "value": want}) == outcome


def test_a_hostile_json_is_refused_in_bounded_time() -> None:
    began = time.process_time()
    for text in ("[" * 1_000_000, "{" * 300_000 + "}" * 300_000, '{"a":' * 100_000, "[1," * 400_000):
        with pytest.raises(strictjson.NoJson):
            strictjson.read(text)
    assert time.process_time() - began < 30  # a reader that tries every bracket would take hours


@pytest.mark.parametrize(("value", "outcome"), [({"n": 3}, "passed"), ({"n": "3"}, "failed"), ({}, "failed")])
def test_a_schema_decides(value: Any, outcome: str) -> None:
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    assert graded("json", json.dumps(value), {"question": "?"}, {"schema": schema}) == outcome


CLAIMS = [
    ("ANSWER: TRUE", True, "passed"),
    ("It is not true.", False, "passed"),
    ("The claim is incorrect", False, "passed"),
    ("At first it looks false, but...\nANSWER: TRUE", True, "passed"),
    ("True or false? Hard to say.", True, "unparsed"),
    ("**FALSE**", False, "passed"),
    ("Yes", True, "passed"),
    ("That isn't correct.", False, "passed"),
    ("The loop returns True.\nSo the claim is wrong.", False, "passed"),
    ("Untrue.", False, "passed"),
    ("", True, "unparsed"),
    ("ANSWER: TRUE and FALSE", True, "unparsed"),
]


@pytest.mark.parametrize(("text", "gold", "outcome"), CLAIMS)
def test_claims(text: str, gold: bool, outcome: str) -> None:
    assert graded("claim", text, {"claim": "?", "code": "x = 1"}, {"value": gold}) == outcome


CODE = "def f(a):\n    b = a\n    if b:\n        return b\n    return a\n"
REVIEWS = [
    ("42", [3], "unparsed"),
    ("3", [3], "passed"),
    ("L3", [3], "passed"),
    ("line 3", [3], "passed"),
    ("ANSWER: line 3", [3], "passed"),
    ("ANSWER: 2-3", [2, 3], "failed"),  # half a point is no pass
    ("ANSWER: 1-4", [3], "failed"),
    ('{"line": 3}', [3], "passed"),
    ('ANSWER: {"line": 3}', [3], "passed"),
    ('{"line": null}', [], "passed"),
    ("ANSWER: NONE", [], "passed"),
    ("no bug", [], "passed"),
    ("ANSWER: NONE", [3], "failed"),
    ("ANSWER: 3", [], "failed"),
    ("ANSWER: 2", [3], "failed"),
    ("The fault is `if b:`", [3], "passed"),
    ("ANSWER: `if b:`", [3], "passed"),
    ("I would look at lines 1 and 2 first.\nANSWER: 5", [5], "passed"),
    ("ANSWER: 1, 2, 3, 4, 5", [3], "failed"),
    ("No idea.", [3], "unparsed"),
    ("", [3], "unparsed"),
    ("ANSWER: No fault found", [], "passed"),
]


@pytest.mark.parametrize(("text", "gold", "outcome"), REVIEWS)
def test_faulty_lines(text: str, gold: list[int], outcome: str) -> None:
    assert graded("review_line", text, {"code": CODE}, {"lines": gold}) == outcome


def test_a_range_that_holds_the_fault_earns_its_share() -> None:
    kind = grading.every()["review_line"]
    grade = kind.grade(Output("ANSWER: 2-3"), {"code": CODE}, {"lines": [3]}, PLAIN)
    assert (grade.score, grade.outcome) == (0.5, "failed")
    assert kind.grade(Output("ANSWER: 2-4"), {"code": CODE}, {"lines": [3]}, PLAIN).score == pytest.approx(1 / 3)
    assert kind.grade(Output("ANSWER: 1-4"), {"code": CODE}, {"lines": [3]}, PLAIN).score == 0.0


ROWS: list[tuple[str, Any, Any, str]] = [
    ("multiple_choice", {"question": "?", "choices": ["A", ""]}, {"value": "A"}, "/input/choices/1"),
    ("multiple_choice", {"question": "?", "choices": []}, {"value": "A"}, "/input/choices"),
    ("multiple_choice", {"question": "?", "choices": ["x", "x "]}, {"value": "A"}, "/input/choices/1"),
    ("multiple_choice", {"question": "?", "choices": ["x", "y"]}, {"value": "C"}, "/expected/value"),
    ("multiple_choice", {"question": "?", "choices": ["x", "y"]}, {"value": []}, "/expected/value"),
    ("multiple_choice", {"choices": ["x", "y"]}, {"value": "A"}, "/input/question"),
    ("math", {"question": "?"}, {"value": "twelve"}, "/expected/value"),
    ("math", {"question": "?"}, {"value": True}, "/expected/value"),
    ("math", {"question": " "}, {"value": 1}, "/input/question"),
    ("exact", {"question": "?"}, {"value": ""}, "/expected/value"),
    ("exact", {"question": "?"}, None, "/expected/value"),
    ("function_call", {"question": "?", "functions": []}, {"value": []}, "/input/functions"),
    ("function_call", {"question": "?", "functions": [{}]}, {"value": []}, "/input/functions/0"),
    ("function_call", {"question": "?", "functions": FUNCTIONS}, {"value": [{"name": "f"}]}, "/expected/value/0"),
    ("json", {"question": "?"}, {"schema": {"type": 7}}, "/expected/schema"),
    ("json", {"question": "?"}, {"schema": {"$ref": "http://169.254.169.254/x"}}, "/expected/schema"),
    ("json", {"question": "?"}, {}, "/expected"),
    ("claim", {"claim": "?"}, {"value": True}, "/input/code"),
    ("claim", {"claim": "?", "code": "x"}, {"value": "true"}, "/expected/value"),
    ("review_line", {"code": CODE}, {"lines": [0]}, "/expected/lines/0"),
    ("review_line", {"code": CODE}, {"lines": [6]}, "/expected/lines/0"),
    ("review_line", {"code": CODE}, {"lines": [True]}, "/expected/lines/0"),
    ("review_line", "code", {"lines": []}, "/input"),
]


@pytest.mark.parametrize(("kind", "row_input", "expected", "pointer"), ROWS)
def test_a_row_that_cannot_be_used_is_refused_where_it_is_wrong(kind: str, row_input: Any, expected: Any, pointer: str) -> None:
    with pytest.raises(RowError) as refused:
        grading.every()[kind].check(row_input, expected)
    assert refused.value.pointer == pointer


EXAMPLES: dict[str, tuple[Any, Any]] = {
    "multiple_choice": ({"question": "?", "choices": ["x", "y"]}, {"value": "B"}),
    "math": ({"question": "?"}, {"value": "1/3"}),
    "exact": ({"question": "?"}, {"value": "Paris"}),
    "function_call": ({"question": "?", "functions": FUNCTIONS}, {"value": [{"name": "f", "args": {"a": 1}}]}),
    "json": ({"question": "?"}, {"path": "a.1.b", "value": 3}),
    "claim": ({"claim": "?", "code": "x"}, {"value": False}),
    "review_line": ({"code": CODE}, {"lines": [3]}),
}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_oracle_is_right_and_silence_is_not(kind: str) -> None:
    row_input, expected = EXAMPLES[kind]
    found = grading.every()[kind]
    found.check(row_input, expected)
    assert found.grade(found.oracle(row_input, expected), row_input, expected, PLAIN).outcome == "passed"
    assert found.grade(Output(""), row_input, expected, PLAIN).outcome != "passed"
    assert found.ask(row_input).messages


@pytest.mark.parametrize("score", [True, False, None, float("nan"), float("inf"), -0.1, 1.5, "1", [1]])
def test_a_score_that_is_none_is_never_bent_into_one(score: Any) -> None:
    grade = scored(score)
    assert (grade.outcome, grade.score, grade.reason) == ("judge_failed", None, "bad_score")
    assert grade.outcome not in SCORED


@pytest.mark.parametrize(
    ("text", "rest", "broke_off"),
    [
        ("<think>A? B?</think>\nANSWER: C", "ANSWER: C", False),
        ("<think>A, B, comma", "", True),
        ("thinking without its beginning</think>C", "C", False),
        ("<think>one</think>x<think>two</think>y", "xy", False),
        ("<THINKING>a</THINKING>b", "b", False),
        ("no thought", "no thought", False),
        ("said<think>cut", "said", True),
    ],
)
def test_what_was_thought_is_no_answer(text: str, rest: str, broke_off: bool) -> None:
    assert answers.visible(text) == (rest, broke_off)


def test_numbers_are_found_in_order() -> None:
    assert numbers.in_text("from 3-5 to \u22127, then 1,000.50 and 2/3 of 10") == ["3", "5", "-7", "1,000.50", "2/3", "10"]
