"""Edits that change nothing of what a function does: a local gets another name, two statements that do not know of each other change places.

A control has one where it can, or whatever looks edited would be the faulty one.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise

from suite.review.edits import Edit, Text
from suite.review.functions import Function, parsed, window, words
from suite.review.scopes import OWN_SCOPE, Module, Scope

# What people call things of a kind.
NAMES = {
    "str": ("text", "line", "word", "label", "said"), "int": ("count", "number", "amount", "place"), "list": ("rows", "items", "entries", "parts"),
    "dict": ("mapping", "table", "fields", "known"), "set": ("names", "seen", "members"), "bool": ("is_so", "flag", "is_set"), "tuple": ("pair", "both"),
    "": ("value", "current", "result", "entry", "piece", "given", "one"),
}  # fmt: skip
PLAIN = (ast.Name, ast.Constant, ast.BinOp, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.IfExp, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Attribute)
INERT = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)


def edits(text: Text, function: Function, module: Module, seed: random.Random) -> list[Edit]:
    """Chooses neutral edits for a function: [] where none is possible that is sure to change nothing."""
    ways = [list(renamings(text, function, module, seed)), list(swaps(text, function))]
    seed.shuffle(ways)
    for way in ways:
        if way:
            chosen = seed.choice(way)
            if is_whole(text, chosen, function):
                return chosen
    return []


def renamings(text: Text, function: Function, module: Module, seed: random.Random) -> Iterator[list[Edit]]:
    """Finds locals that can have another name: read and bound in this scope alone, and nowhere in words or formatted text."""
    scope = Scope.of(function, module)
    said = words(window(text.source, function.first, function.last)).all
    everywhere = {node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name)} | {
        node.arg for node in ast.walk(module.tree) if isinstance(node, ast.arg | ast.keyword) and node.arg
    }
    inner = {
        node.id
        for top in ast.walk(function.node)
        if isinstance(top, (*OWN_SCOPE, ast.JoinedStr)) and top is not function.node
        for node in ast.walk(top)
        if isinstance(node, ast.Name)
    }
    other_ways = {name for node in ast.walk(function.node) for name in bound_otherwise(node)}
    for name in sorted(scope.local - set(scope.parameters) - inner - other_ways):
        places = [node for node in ast.walk(function.node) if isinstance(node, ast.Name) and node.id == name]
        if len(places) < 2 or name in said or name.startswith("_"):
            continue
        free = [new for new in NAMES.get(scope.kinds.get(name, ""), NAMES[""]) if new not in everywhere and new not in module.names]
        if free:
            new = seed.choice(free)
            yield [text.edit("rename_local", text.start(node), text.end(node), new) for node in places]


def bound_otherwise(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    if isinstance(node, ast.Global | ast.Nonlocal):
        return list(node.names)
    name = node.name if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) else None
    return [name] if name else []


def swaps(text: Text, function: Function) -> Iterator[list[Edit]]:
    """Finds neighbours that do not know of each other: assignments on one line each, of what nothing is called for."""
    for top in ast.walk(function.node):
        for body in (getattr(top, part, None) for part in ("body", "orelse", "finalbody")):
            if isinstance(body, list):
                for one, other in pairwise(body):
                    if are_strangers(one, other):
                        first, second = text.of(one), text.of(other)
                        yield [
                            text.edit("reorder", text.start(one), text.end(one), second),
                            text.edit("reorder", text.start(other), text.end(other), first),
                        ]


def are_strangers(one: ast.stmt, other: ast.stmt) -> bool:
    if not (is_plain(one) and is_plain(other)) or one.lineno + 1 != other.lineno or one.col_offset != other.col_offset:
        return False
    writes, reads = zip(*[(written(node), read(node)) for node in (one, other)], strict=True)
    return not (writes[0] & (writes[1] | reads[1]) or writes[1] & reads[0])


def is_plain(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Assign) or node.lineno != node.end_lineno or not all(isinstance(target, ast.Name) for target in node.targets):
        return False
    return all(isinstance(inner, (*PLAIN, *INERT)) for inner in ast.walk(node.value)) and not any(
        isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Call) for inner in ast.walk(node.value)
    )


def written(node: ast.stmt) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)}


def read(node: ast.stmt) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)}


def is_whole(text: Text, chosen: Sequence[Edit], function: Function) -> bool:
    """Tells whether the file still parses and keeps its lines."""
    after = text.applied(*chosen)
    return parsed(after) is not None and after.count("\n") == text.source.count("\n")
