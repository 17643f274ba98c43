"""One token-level edit of a file: the bytes that go and those that come, all else as it was; and what holds of one that may be planted."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from suite.review.functions import AnyFunction, parsed


@dataclass(frozen=True, slots=True)
class Edit:
    """Shape: bytes `start` to `end` of the file become `text`. `was` is what they were, `place` the node that the edit is about."""

    operator: str
    start: int
    end: int
    text: str
    was: str
    line: int


class Text:
    """A file with the places of its nodes, which Python counts in bytes of UTF-8."""

    def __init__(self, source: str) -> None:
        self.source, self.bytes = source, source.encode("utf-8", "surrogatepass")
        self.starts = [0]
        for line in self.bytes.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    def start(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def between(self, start: int, end: int) -> str:
        return self.bytes[start:end].decode("utf-8", "replace")

    def of(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        return self.between(self.start(node), self.end(node))

    def line_at(self, offset: int) -> int:
        low, high = 0, len(self.starts) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.starts[middle] <= offset else (low, middle - 1)
        return low + 1

    def edit(self, operator: str, start: int, end: int, text: str) -> Edit:
        return Edit(operator, start, end, text, self.between(start, end), self.line_at(start))

    def replace(self, operator: str, node: ast.expr | ast.keyword, text: str) -> Edit:
        return self.edit(operator, self.start(node), self.end(node), text)

    def applied(self, *edits: Edit) -> str:
        """Gives the file with edits made. They must not overlap."""
        found = self.bytes
        for one in sorted(edits, key=lambda e: e.start, reverse=True):
            found = found[: one.start] + one.text.encode() + found[one.end :]
        return found.decode("utf-8", "surrogatepass")


def is_one_line(edit: Edit) -> bool:
    return "\n" not in edit.was and "\n" not in edit.text and edit.was != edit.text


def statement_of(function: AnyFunction, line: int) -> ast.stmt | None:
    """Finds the innermost statement that a line belongs to."""
    found: ast.stmt | None = None
    for node in ast.walk(function):
        is_there = isinstance(node, ast.stmt) and node is not function and node.lineno <= line <= (node.end_lineno or node.lineno)
        if is_there and isinstance(node, ast.stmt) and (found is None or (node.lineno, -(node.end_lineno or 0)) >= (found.lineno, -(found.end_lineno or 0))):
            found = node
    return found


def changed_statements(before: AnyFunction, after: AnyFunction) -> int:
    """Counts the places where two functions differ, in statements; a signature that differs counts as many."""
    if ast.dump(before.args) != ast.dump(after.args) or before.name != after.name:
        return 99
    first, second = list(heads(before)), list(heads(after))
    return 99 if len(first) != len(second) else sum(a != b for a, b in zip(first, second, strict=True))


def heads(function: AnyFunction) -> list[str]:
    """Writes each statement of a function without the statements inside it."""
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.stmt):
            parts = [type(node).__name__]
            for name, value in ast.iter_fields(node):
                if isinstance(value, list) and any(isinstance(one, ast.stmt | ast.ExceptHandler | ast.match_case) for one in value):
                    parts += [name, str(len(value)), *(ast.dump(one.type) if isinstance(one, ast.ExceptHandler) and one.type else "" for one in value)]
                    parts += [ast.dump(one.pattern) + (ast.dump(one.guard) if one.guard else "") for one in value if isinstance(one, ast.match_case)]
                elif isinstance(value, list):
                    parts += [name, *(ast.dump(one) if isinstance(one, ast.AST) else str(one) for one in value)]
                else:
                    parts += [name, ast.dump(value) if isinstance(value, ast.AST) else str(value)]
            found.append(" ".join(parts))
    return found


def is_sound(text: Text, edit: Edit, function: AnyFunction) -> bool:
    """Tells whether an edit changes one statement on one line, and leaves all else as it was."""
    from suite.review import functions

    if not is_one_line(edit):
        return False
    after = parsed(text.applied(edit))
    if after is None:
        return False
    twin = next((f.node for f in functions.of("", after) if f.node.lineno == function.lineno and f.node.name == function.name), None)
    return twin is not None and changed_statements(function, twin) == 1
