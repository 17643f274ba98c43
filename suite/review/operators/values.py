"""The wrong value or sign: literals, elements, conditions, operators."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suite.review.edits import Edit
from suite.review.operators.site import Site

SIGNS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.Div: ("/", "//", "*"), ast.FloorDiv: ("//", "/"), ast.Mod: ("%", "//"),
    ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}  # fmt: skip


def numeric_literal(site: Site) -> Iterator[Edit]:
    for node in site.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
            said = site.text.of(node)
            if isinstance(node.value, int) and said.isdigit():
                for other in {node.value + 1, max(0, node.value - 1)} - {node.value}:
                    yield site.text.replace("numeric_literal", node, str(other))
                if node.value >= 20 and node.value % 10 == 0:
                    yield site.text.replace("numeric_literal", node, str(node.value // 10))
            elif isinstance(node.value, float) and said.replace(".", "").isdigit():
                yield site.text.replace("numeric_literal", node, str(node.value * 10) if node.value < 1 else str(node.value / 10))


def boolean_literal(site: Site) -> Iterator[Edit]:
    for node in site.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield site.text.replace("boolean_literal", node, str(not node.value))


def constant_type(site: Site) -> Iterator[Edit]:
    for node in site.nodes:
        if isinstance(node, ast.Constant) and (node.value is None or node.value == ""):
            parent = site.parent(node)
            if isinstance(parent, ast.Return | ast.Call | ast.Assign | ast.IfExp):
                yield site.text.replace("constant_type", node, '""' if node.value is None else "None")


def missing_element(site: Site) -> Iterator[Edit]:
    for node in site.nodes:
        if isinstance(node, ast.List | ast.Set | ast.Tuple) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            parent = site.parent(node)
            is_unpacked = isinstance(node, ast.Tuple) and (
                (isinstance(parent, ast.Assign) and any(isinstance(target, ast.Tuple) for target in parent.targets))
                or isinstance(parent, ast.Subscript | ast.Return | ast.Yield)
            )
            if is_unpacked or len(node.elts) < (3 if isinstance(node, ast.Tuple) else 2):
                continue
            for i in range(len(node.elts)):
                if (edit := site.without("missing_element", node, i)) is not None:
                    yield edit
        elif isinstance(node, ast.Dict) and len(node.keys) >= 2:
            for i, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
                if key is None or i == 0:
                    continue
                edit = site.balanced("missing_element", site.text.end(node.values[i - 1]), site.text.end(value))
                if edit is not None:
                    yield edit


def dropped(site: Site, operator: str, sign: type[ast.boolop]) -> Iterator[Edit]:
    """Takes one part of a condition away."""
    for node in site.nodes:
        if not isinstance(node, ast.BoolOp) or not isinstance(node.op, sign):
            continue
        for i in range(len(node.values)):
            if i > 0:
                edit = site.balanced(operator, site.text.end(node.values[i - 1]), site.text.end(node.values[i]))
            else:
                edit = site.balanced(operator, site.text.start(node.values[0]), site.text.start(node.values[1]))
            if edit is not None:
                yield edit


def condition_too_broad(site: Site) -> Iterator[Edit]:
    yield from dropped(site, "condition_too_broad", ast.And)


def condition_too_narrow(site: Site) -> Iterator[Edit]:
    yield from dropped(site, "condition_too_narrow", ast.Or)


def binary_operator(site: Site) -> Iterator[Edit]:
    for node in site.nodes:
        sides: list[tuple[ast.expr, ast.AST, ast.expr]] = []
        if isinstance(node, ast.BinOp):
            sides = [(node.left, node.op, node.right)]
        elif isinstance(node, ast.Compare):
            sides = list(zip([node.left, *node.comparators], node.ops, node.comparators, strict=False))
        elif isinstance(node, ast.BoolOp):
            sides = [(one, node.op, other) for one, other in zip(node.values, node.values[1:], strict=False)] if len(node.values) == 2 else []
        for left, sign, right in sides:
            if type(sign) not in SIGNS:
                continue
            said, *others = SIGNS[type(sign)]
            start = site.text.end(left)
            at = site.text.between(start, site.text.start(right)).find(said)
            if at >= 0:
                for other in others:
                    yield site.text.edit("binary_operator", start + at, start + at + len(said), other)


def unary_operator(site: Site) -> Iterator[Edit]:
    for node in site.nodes:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            edit = site.balanced("unary_operator", site.text.start(node), site.text.start(node.operand))
            if edit is not None:
                yield edit
        elif isinstance(node, ast.If | ast.While) and isinstance(node.test, ast.Name | ast.Attribute | ast.Call):
            start = site.text.start(node.test)
            yield site.text.edit("unary_operator", start, start, "not ")


OPERATORS = {
    "numeric_literal": numeric_literal,
    "boolean_literal": boolean_literal,
    "constant_type": constant_type,
    "missing_element": missing_element,
    "condition_too_broad": condition_too_broad,
    "condition_too_narrow": condition_too_narrow,
    "binary_operator": binary_operator,
    "unary_operator": unary_operator,
}
