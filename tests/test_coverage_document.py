"""The page that says what of the suite's contract is held by which test leaves no number out and names no test that there is not."""

from __future__ import annotations

import ast
import re
from functools import cache

from tests.test_house import CHECKOUT

PAGE = (CHECKOUT / "docs/BENCHMARKS_COVERAGE.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (B\d+|\d\.\d+|[a-z]{2}-\d{2}) \| (.+) \| (.*) \|$", re.M)
ROWS = ROW.findall(PAGE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


@cache
def functions_of(path: str) -> frozenset[str]:
    """Names a file's tests without importing it."""
    file = CHECKOUT / path
    found = ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if file.exists() else ()
    return frozenset(node.name for node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"))


def test_every_number_stands_there_once() -> None:
    numbers = [number for number, _, _ in ROWS]
    assert [number for number in numbers if number.startswith("B")] == [f"B{n}" for n in range(1, 126)]
    assert [number for number in numbers if number.startswith("3.")] == [f"3.{n}" for n in range(1, 19)]
    assert len(set(numbers)) == len(numbers)
    assert len(numbers) == PAGE.count("\n| ") - 5, "every line of the tables but their heads is a row"


def test_every_row_is_told_and_held_by_tests_that_there_are() -> None:
    assert not [number for number, told, _ in ROWS if not told.strip()]
    assert not [number for number, _, held in ROWS if not NAMED.search(held)], "held by nothing"
    assert not [number for number, _, held in ROWS if "tests/" in NAMED.sub("", held)], "a test that is not named as file and function"
    assert not {(number, name) for number, _, held in ROWS for path, name in NAMED.findall(held) if name not in functions_of(path)}
