"""The rules of a good plant, by tables: operators, what a linter or a comment would give away, what changes nothing, what counts as the same function."""

from __future__ import annotations

import ast
import random
import textwrap
from itertools import pairwise
from typing import Any

import pytest

from suite.review import baselines, claims, edits, functions, neutral, operators, tasks, telling
from suite.review.edits import Text
from suite.review.operators.site import Site
from suite.review.scopes import Module, findings


def site_of(source: str) -> tuple[Site, functions.Function, Text]:
    source = textwrap.dedent(source).lstrip("\n")
    tree = functions.parsed(source)
    assert tree is not None
    text = Text(source)
    function = list(functions.of("shop.py", tree))[-1]
    return Site.of(text, function, Module.of(tree)), function, text


def planted(operator: str, body: str) -> set[str]:
    """Gives the lines that an operator makes of a function's body, each sound."""
    site, function, text = site_of(body)
    found = set()
    for edit in operators.every()[operator](site):
        if edits.is_sound(text, edit, function.node):
            found.add(text.applied(edit).split("\n")[edit.line - 1].strip())
    return found


HEAD = "def f(low: int, high: int, name: str, rows: list[int], wide: bool):\n"
MISTAKES = [
    ("wrong_identifier", HEAD + "    g(low)\n    g(high)\n    return name\n", {"g(high)", "g(low)"}, {"g(name)", "g(rows)"}),
    ("wrong_operand", HEAD + "    g(high)\n    return low + 1\n", {"return high + 1"}, {"return name + 1"}),
    ("missing_argument", HEAD + "    return d.get(name, low)\n", {"return d.get(name)"}, {"return d.get()"}),
    ("missing_argument", HEAD + "    return g(name, key=low)\n", {"return g(name)"}, set()),
    ("wrong_function", HEAD + "    return min(low, high)\n", {"return max(low, high)"}, set()),
    ("wrong_function", HEAD + "    return name.startswith('a')\n", {"return name.endswith('a')"}, set()),
    ("missing_wrapping_call", HEAD + "    return sorted(rows)\n", {"return rows"}, set()),
    ("wrong_attribute", HEAD + "    g(x.left)\n    x = low\n    return x.right\n", {"return x.left", "g(x.right)"}, set()),
    ("numeric_literal", HEAD + "    return low + 20\n", {"return low + 21", "return low + 19", "return low + 2"}, set()),
    ("condition_too_broad", HEAD + "    return low and high\n", {"return high", "return low"}, set()),
    ("condition_too_narrow", HEAD + "    return (low or high)\n", {"return (low)", "return (high)"}, set()),
    ("missing_method_call", HEAD + "    return name.strip().lower()\n", {"return name.lower()", "return name.strip()"}, set()),
    ("missing_element", HEAD + "    return [low, high]\n", {"return [low]", "return [high]"}, set()),
    ("missing_element", HEAD + "    return {'a': low, 'b': high}\n", {"return {'a': low}"}, set()),
    ("extra_argument", HEAD + "    return name.split(',')\n", {"return name.split(',', 1)"}, set()),
    ("extra_argument", HEAD + "    return range(low)\n", {"return range(1, low)"}, set()),
    ("boolean_literal", HEAD + "    return g(True)\n", {"return g(False)"}, set()),
    ("missing_attribute_access", HEAD + "    x = g()\n    return h(x.size)\n", {"return h(x)"}, set()),
    ("binary_operator", HEAD + "    return low < high\n", {"return low <= high"}, {"return low > high"}),
    ("binary_operator", HEAD + "    return low not in rows\n", {"return low in rows"}, set()),
    ("wrong_receiver", HEAD + "    a = [low]\n    b = [high]\n    a.append(1)\n    b.append(2)\n", {"b.append(1)", "a.append(2)"}, set()),
    ("keyword_argument", "def g(a: int = 0, b: int = 0): ...\ndef f(x: int):\n    return g(a=x)\n", {"return g(b=x)"}, set()),
    ("unary_operator", HEAD + "    if not wide:\n        return low\n    return high\n", {"if wide:"}, set()),
    ("swapped_arguments", "def g(a: int, b: int): ...\ndef f(x, y):\n    return g(x, y)\n", {"return g(y, x)"}, set()),
    ("constant_type", HEAD + "    return name or None\n", set(), set()),
    ("constant_type", HEAD + "    return None\n", {'return ""'}, set()),
]


@pytest.mark.parametrize(("operator", "body", "wanted", "unwanted"), MISTAKES)
def test_an_operator_makes_the_mistake_that_it_is_named_after(operator: str, body: str, wanted: set[str], unwanted: set[str]) -> None:
    found = planted(operator, body)
    assert wanted <= found, found
    assert not unwanted & found, found


def test_every_mistake_has_a_weight_and_an_operator() -> None:
    assert set(operators.every()) == set(operators.WEIGHTS)
    assert {case[0] for case in MISTAKES} == set(operators.WEIGHTS), "each is tried above"


NO_PLACE = [
    "    log.info('so many', 20)\n    return low",
    "    assert low == 20, 'so many'\n    return low",
    "    raise ValueError(20)",
    "    return f'{low + 20}'",
    '    """Twenty: 20."""\n    return low',
]


@pytest.mark.parametrize("body", NO_PLACE)
def test_nothing_is_planted_in_words_logs_assertions_and_messages(body: str) -> None:
    assert planted("numeric_literal", f"{HEAD}{body}\n") == set()


def test_an_edit_leaves_every_other_byte_as_it_was() -> None:
    source = "def f(a,  b):\n    é = a   # kept\n    return  a+b ;\n"
    site, function, text = site_of(source)
    (edit, *_) = [one for one in operators.every()["binary_operator"](site) if one.line == 3]
    assert text.applied(edit) == source.replace("a+b", "a-b")
    assert edits.is_sound(text, edit, function.node)


SEEN = [
    ("a name that is nowhere bound", "def f(a):\n    return a\n", "def f(a):\n    return b\n"),
    ("a local that nothing reads", "def f(a):\n    x = a\n    return x\n", "def f(a):\n    x = a\n    return a\n"),
    ("a parameter that nothing reads", "def f(a, b):\n    return a + b\n", "def f(a, b):\n    return a + a\n"),
    ("an import that nothing reads", "import os\ndef f():\n    return os\n", "import os\ndef f():\n    return 1\n"),
    ("a value compared with itself", "def f(a, b):\n    return a < b or b\n", "def f(a, b):\n    return a < a or b\n"),
    ("the same said twice", "def f(a, b):\n    return a and b or b\n", "def f(a, b):\n    return a and a or b\n"),
    ("is, with a literal", "def f(a):\n    return a == 1\n", "def f(a):\n    return a is 1\n"),
    (
        "the same handed over twice",
        "def f(a, b):\n    return g(a, b) + b\ndef g(x, y): return x + y\n",
        "def f(a, b):\n    return g(a, a) + b\ndef g(x, y): return x + y\n",
    ),
]


@pytest.mark.parametrize(("why", "before", "after"), SEEN, ids=[case[0] for case in SEEN])
def test_what_a_linter_would_find_is_found(why: str, before: str, after: str) -> None:
    assert findings(after, ast.parse(after)) != findings(before, ast.parse(before))


GIVES_AWAY = [
    ("a comment on the line", "def f(a):\n    x = a + 1  # odd\n    return x\n", "a + 1", "a - 1", 2, True),
    ("a comment above it", "def f(a):\n    # odd\n    x = a + 1\n    return x\n", "1", "2", 3, True),
    ("a docstring that names the number", 'def f(a):\n    """Adds one."""\n    b = 2\n    return a + 1\n', "1", "2", 4, True),
    ("a docstring that says at least", 'def f(a):\n    """Keeps those of at least five."""\n    b = 2\n    return a >= 5\n', ">=", ">", 4, True),
    ("a docstring that speaks of the name", 'def f(limit, count):\n    """Counts to the limits."""\n    b = 2\n    return limit\n', "limit", "count", 4, True),
    ("a docstring of something else", 'def f(width, size):\n    """Draws it."""\n    b = 2\n    return width\n', "width", "size", 4, False),
    ("a comment elsewhere", "def f(width, size):\n    # looks good\n    b = 2\n    c = 3\n    return width\n", "width", "size", 5, False),
]


@pytest.mark.parametrize(("why", "window", "was", "becomes", "line", "expected"), GIVES_AWAY, ids=[case[0] for case in GIVES_AWAY])
def test_words_beside_the_code_do_not_give_a_fault_away(why: str, window: str, was: str, becomes: str, line: int, expected: bool) -> None:
    assert telling.gives_away(window, 1, edits.Edit("any", 0, 0, becomes, was, line)) is expected


SAME = [
    ("other names of locals", "def f(a):\n    x = a\n    return x", "def g(b):\n    y = b\n    return y", True),
    ("another docstring", 'def f(a):\n    """One."""\n    return a', "def f(a):\n    return a", True),
    ("other formatting", "def f(a): return a+1", "def f(a):\n    return (a + 1)", True),
    ("another global", "def f(a):\n    return g(a)", "def f(a):\n    return h(a)", False),
    ("another operator", "def f(a):\n    return a + 1", "def f(a):\n    return a - 1", False),
    ("names that are swapped", "def f(a, b):\n    return a - b", "def f(a, b):\n    return b - a", False),
]


@pytest.mark.parametrize(("why", "one", "other", "expected"), SAME, ids=[case[0] for case in SAME])
def test_the_same_function_is_known_again(why: str, one: str, other: str, expected: bool) -> None:
    first, second = (functions.digest(ast.parse(text).body[0]) for text in (one, other))  # type: ignore[arg-type]
    assert (first == second) is expected


def behaves(source: str) -> Any:
    names: dict[str, Any] = {}
    exec(source, names)
    return [names["f"](a, b) for a in range(-3, 4) for b in range(3)]


NEUTRAL = (
    "def f(a, b):\n    first = a + 1\n    second = b + 2\n    total = 0\n    for n in range(b):\n        total = total + first * n\n    return total - second\n"
)


@pytest.mark.parametrize("seed", range(12))
def test_a_neutral_edit_changes_the_text_and_nothing_else(seed: int) -> None:
    site, function, text = site_of(NEUTRAL)
    chosen = neutral.edits(text, function, site.module, random.Random(seed))
    after = text.applied(*chosen)
    assert after != NEUTRAL
    assert behaves(after) == behaves(NEUTRAL)


NOT_NEUTRAL = [
    "def f(a, b):\n    x = a\n    y = x\n    return y\n",  # one reads the other; both are read in words
    "def f(a, b):\n    x = g()\n    y = h()\n    return 1\n",
    "def f(a, b):\n    x = 1\n    x = 2\n    return f'{x}'\n",
]


@pytest.mark.parametrize("source", NOT_NEUTRAL)
def test_statements_that_know_of_each_other_keep_their_places(source: str) -> None:
    _, function, text = site_of(source)
    assert list(neutral.swaps(text, function)) == []


FACTS = [
    ("in_a_loop", "def f(a):\n    g(a)\n    for x in a:\n        h(x)\n", {("`g(…)`", False), ("`h(…)`", True)}),
    ("assigned_twice", "def f(a):\n    x = 1\n    y = 2\n    x = y\n    return x\n", {("`x`", True), ("`y`", False)}),
    ("parameter_kept", "def f(a, b):\n    a = b\n    return a\n", {("`a`", False), ("`b`", True)}),
    ("raises", "def f(a):\n    try:\n        g()\n    except KeyError:\n        raise ValueError from None\n", {("`KeyError`", False), ("`ValueError`", True)}),
    ("runs_off", "def f(a):\n    if a:\n        return 1\n    else:\n        return 2\n", {("`f`", True)}),
    ("runs_off", "def f(a):\n    if a:\n        return\n    a.append(1)\n", {("`f`", False)}),
    ("runs_off", "def f(a):\n    while a:\n        return 1\n", set()),
]


@pytest.mark.parametrize(("form", "source", "expected"), FACTS)
def test_a_claim_says_what_the_text_proves(form: str, source: str, expected: set[tuple[str, bool]]) -> None:
    _, function, _ = site_of(source)
    found = [one for one in claims.facts(function) if one.form == form]
    assert {(word, one.value) for word, value in expected for one in found if word in one.claim.replace("`f`", "", form != "runs_off")} == expected
    assert len(found) == len(expected)


def rows(count: int) -> list[dict[str, Any]]:
    code = "\n".join(f"    value_{i} = {i}" for i in range(12)) + "\n"
    pairs = [
        tasks.Pair(f"p{i}", tasks.Half(f"def f{i}():\n{code}", (2 + i % 11,)), tasks.Half(f"def f{i}():\n{code}", ()), {"origin": "planted"}, "")
        for i in range(count)
    ]
    return tasks.rows_of(pairs, "mark", 1)


def test_answers_that_know_nothing_earn_nothing_of_a_sound_set() -> None:
    figures = baselines.of_review(rows(22))
    assert (figures["oracle"], figures["always_none"], figures["first_line"]["faulty"]) == (1.0, {"faulty": 0.0, "clean": 1.0}, 0.0)
    assert figures["silent"] == {"faulty": 0.0, "clean": 0.0}
    assert figures["any_line"]["faulty"] == pytest.approx(1 / 13, abs=1e-4)
    assert baselines.objections(figures) == []


def test_a_set_whose_fault_is_always_in_one_place_is_refused() -> None:
    made = rows(20)
    for row in made:
        row["expected"]["lines"] = [1] if row["expected"]["lines"] else []
    assert any("first_line" in said for said in baselines.objections(baselines.of_review(made)))


def test_claims_that_their_form_gives_away_are_refused() -> None:
    made = [
        {
            "task_id": str(i),
            "input": {"claim": f"c{i}", "code": "x = 1"},
            "expected": {"value": i % 2 == 0},
            "source": {"operator": "even" if i % 2 == 0 else "odd"},
        }
        for i in range(20)
    ]
    assert any("form of the sentence" in said for said in baselines.objections(baselines.of_claims(made)))


def test_a_cut_off_set_still_has_whole_pairs_that_stand_apart() -> None:
    made = rows(23)
    first = [row["source"]["pair"] for row in made[:20]]
    assert sorted(first.count(pair) for pair in set(first)) == [2] * 10
    assert all(one["source"]["pair"] != other["source"]["pair"] for one, other in pairwise(made[:40]))
