"""A program that is wanted, and tests that it has to stand. The tests run apart from it: what it prints, exits with or changes is no verdict."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from math import isfinite
from typing import Any

from suite.grading import programs
from suite.grading.contract import BoxedKind, Options, Output, Program, Question, RowError, text_at
from suite.grading.outcomes import Grade, undecided, unparsed

MOST_CHARS = 200_000
LIMITS = {"timeout": (1, 600), "memory_mb": (64, 8192)}


class Code(BoxedKind):
    name = "code"
    needs_sandbox = True

    def look_at(self, grader: Mapping[str, Any]) -> None:
        for name, (least, most) in LIMITS.items():
            value = grader.get(name, least)
            if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or not least <= value <= most:
                raise RowError(f"/{name}", f"must be a number from {least} to {most}.")

    def check(self, row_input: Any, expected: Any) -> None:
        text_at(row_input, "prompt", "/input")
        tests = text_at(expected, "test_code", "/expected")
        if len(tests) > MOST_CHARS:
            raise RowError("/expected/test_code", f"is longer than {MOST_CHARS} characters.")
        try:
            tree = ast.parse(tests)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise RowError("/expected/test_code", f"does not parse: {str(error)[:200]}") from None
        entry_point = expected.get("entry_point", "")
        if not isinstance(entry_point, str) or (entry_point and not entry_point.isidentifier()):
            raise RowError("/expected/entry_point", "must be the name of a function.")
        if not any(isinstance(node, ast.Assert | ast.Raise | ast.Call) for node in ast.walk(tree)):
            raise RowError("/expected/test_code", "asserts nothing and calls nothing: every answer would pass.")
        if only_defines_check(tree) and not entry_point:
            raise RowError("/expected/entry_point", "is missing: the tests define check(candidate) and never call it, so that every answer would pass.")
        if not isinstance(expected.get("solution", ""), str):
            raise RowError("/expected/solution", "must be a program as text.")

    def ask(self, row_input: Any) -> Question:
        text = f"{row_input['prompt']}\n\nAnswer with the whole program in Python, in one fenced code block."
        return Question([{"role": "user", "content": text}])

    def program(self, output: Output, row_input: Any, expected: Any) -> Program | Grade:
        entry_point, tests = str(expected.get("entry_point", "")), str(expected["test_code"])
        code = programs.program(output.text, {*programs.used(tests), *([entry_point] if entry_point else [])})
        if code is None:
            return unparsed("There is no Python program in the answer.")
        if len(code) > programs.LONGEST:
            return unparsed("The program is longer than any that a task asks for.")
        return Program(programs.completed(row_input["prompt"], code, entry_point), tests, entry_point)

    def grade(self, output: Output, row_input: Any, expected: Any, options: Options) -> Grade:
        return undecided("needs_sandbox", "Programs are graded in the sandbox alone.")

    def oracle(self, row_input: Any, expected: Any) -> Output:
        """Gives the row's own solution; without one there is no answer that must be right."""
        return Output(f"```python\n{expected.get('solution', '')}\n```" if expected.get("solution") else "")


def only_defines_check(tree: ast.Module) -> bool:
    """Tells whether tests are one function `check` of one argument that nobody calls, as HumanEval keeps them."""
    there = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "check" and len(node.args.args) == 1]
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    others = [node for node in tree.body if isinstance(node, ast.Assert) or (isinstance(node, ast.FunctionDef) and node.name.startswith("test"))]
    return bool(there) and "check" not in called and not others


KIND = Code()
