"""Functions that no test runs, called with made-up arguments: where the original and the changed one answer differently, the change is no equivalent."""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from suite.review import verifying
from suite.review.edits import Edit, Text
from suite.review.functions import Function
from suite.review.repository import Place
from suite.review.scopes import shortened

CALLS = 24
# Values to try, by what a parameter is said to be.
VALUES: Mapping[str, tuple[str, ...]] = {
    "int": ("0", "1", "2", "3", "7", "10", "-1", "100", "1000"), "float": ("0.0", "0.5", "1.0", "2.5", "-1.5", "10.0"),
    "str": ("''", "'a'", "'abc'", "'Hello World'", "'1, 2, 3'", "'a-b_c.d'", "' x '", "'line one\\nline two'", "'12'"),
    "bool": ("True", "False"), "bytes": ("b''", "b'abc'", "b'a\\nb'"),
    "list": ("[]", "[1]", "[1, 2, 3]", "['a', 'b']", "[3, 1, 2, 2]"), "list[int]": ("[]", "[1]", "[1, 2, 3]", "[3, 1, 2, 2]", "[5, -1]"),
    "list[str]": ("[]", "['a']", "['a', 'b', 'a']", "['x y', 'z']"), "list[float]": ("[]", "[1.0]", "[1.0, 2.5, 0.5]"),
    "dict": ("{}", "{'a': 1}", "{'a': 1, 'b': 2}"), "dict[str, int]": ("{}", "{'a': 1}", "{'a': 3, 'b': 1}"), "dict[str, str]": ("{}", "{'a': 'x'}"),
    "tuple": ("()", "(1, 2)", "('a', 'b')"), "set": ("{1, 2}", "{'a'}"), "set[str]": ("{'a'}", "{'a', 'b'}"), "None": ("None",),
    "": ("0", "1", "5", "'abc'", "''", "[1, 2, 3]", "None", "True", "{'a': 1}"),
}  # fmt: skip
READS_AS = {"Sequence": "list", "Iterable": "list", "Collection": "list", "Mapping": "dict", "Iterator": "list", "object": "", "Any": "", "number": "float"}


@dataclass(frozen=True, slots=True)
class Shown:
    """How many of the calls that say something give another answer."""

    calls: int
    different: int

    @property
    def share(self) -> float:
        return self.different / self.calls


def can_call(tree: ast.Module, function: Function) -> bool:
    """Tells whether arguments can be made up: a plain function of the top level whose parameters are of kinds that can be written down."""
    node = function.node
    if (
        function.owner is not None
        or isinstance(node, ast.AsyncFunctionDef)
        or node.decorator_list
        or node.args.vararg
        or node.args.kwarg
        or node.args.posonlyargs
    ):
        return False
    if any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(node)):
        return False
    return bool(pools(node))


def pools(node: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, tuple[str, ...]]:
    """Gives values to try for each parameter; {} where there are none for one of them."""
    found: dict[str, tuple[str, ...]] = {}
    for one in [*node.args.args, *node.args.kwonlyargs]:
        values = values_for(ast.unparse(one.annotation) if one.annotation else "")
        if not values:
            return {}
        found[one.arg] = values
    return found


def values_for(annotation: str) -> tuple[str, ...]:
    found: tuple[str, ...] = ()
    for part in shortened(annotation).split(" | ") if annotation else [""]:
        head, bracket, inner = part.partition("[")
        name = f"{READS_AS.get(head, head)}{bracket}{inner}"
        known = VALUES.get(name) or VALUES.get(name.partition("[")[0] if "Any" in inner or "object" in inner else name) or ()
        found += known
    return (*found, "None") if found and "None" in annotation else found


def arguments(function: Function, chance: random.Random, examples: Sequence[str] = (), most: int = CALLS) -> list[dict[str, str]]:
    """Makes up calls, after those that tests made."""
    calls: list[dict[str, str]] = [json.loads(text)[0] for text in examples]
    values = pools(function.node)
    for _ in range(most * 3 if values else 0):
        if len(calls) >= most:
            break
        call = {name: chance.choice(choices) for name, choices in values.items()}
        if call not in calls:
            calls.append(call)
    return calls[:most]


def module_of(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").removeprefix("src/").replace("/", ".")


def prove(place: Place, tree: Path, path: str, text: Text, function: Function, edit: Edit, controls: Sequence[Edit], chance: random.Random) -> Shown | None:
    """Calls the original, the changed and the control. None unless the changed one differs, by an answer and not by each call, and the control never."""
    if not can_call(ast.parse(text.source), function):
        return None
    plan = {
        "variants": [
            {"id": "original", "files": {path: text.source}},
            {"id": "changed", "files": {path: text.applied(edit)}},
            {"id": "control", "files": {path: text.applied(*controls)}},
        ],
        "module": module_of(path),
        "function": function.name,
        "calls": arguments(function, chance),
        "paths": verifying.source_folders(tree),
    }
    try:
        said = {line["id"]: line for line in verifying.asked(place, tree, verifying.CALLER, plan, 240)}
    except verifying.NoTests:
        return None
    if any("answers" not in said.get(name, {}) for name in ("original", "changed", "control")):
        return None
    original, changed, control = (said[name] for name in ("original", "changed", "control"))
    if control["answers"] != original["answers"]:
        return None
    telling = [
        (before, after)
        for before, again, after, after_again in zip(original["answers"], original["again"], changed["answers"], changed["again"], strict=True)
        if before and before == again and after == after_again and before.startswith("=")
    ]
    different = sum(before != after for before, after in telling)
    answered = any(before != after and after.startswith("=") for before, after in telling)
    return Shown(len(telling), different) if answered and 2 * different <= len(telling) else None
