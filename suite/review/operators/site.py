"""A function with all that operators want to know of it, and which places in it are none for a fault."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from suite.review.edits import Edit, Text
from suite.review.functions import Function, is_docstring
from suite.review.scopes import Module, Scope

LOGS = frozenset({"log", "logger", "logging", "_log", "_logger", "LOG", "LOGGER", "warnings", "print"})


@dataclass(frozen=True, slots=True)
class Site:
    """Shape: `nodes` are those at which a fault may be, `barred` those at which none may."""

    text: Text
    function: Function
    module: Module
    scope: Scope
    nodes: tuple[ast.AST, ...]

    @classmethod
    def of(cls, text: Text, function: Function, module: Module) -> Site:
        return cls(text, function, module, Scope.of(function, module), tuple(open_nodes(function.node)))

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self.scope.parents.get(node)

    def calls(self) -> Iterator[ast.Call]:
        return (node for node in self.nodes if isinstance(node, ast.Call))

    def signature(self, call: ast.Call) -> ast.arguments | None:
        """Finds the parameters of what is called, where this file defines it. Those of a method come without `self`."""
        made = None
        match call.func:
            case ast.Name(id=name):
                made = self.module.functions.get(name) or self.module.methods.get(name, {}).get("__init__")
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name) if self.function.owner is not None:
                made = self.module.methods.get(self.function.owner.name, {}).get(name)
        if made is None:
            return None
        if made.args.args and made.args.args[0].arg in ("self", "cls"):
            return ast.arguments(
                made.args.posonlyargs, made.args.args[1:], made.args.vararg, made.args.kwonlyargs, made.args.kw_defaults, made.args.kwarg, made.args.defaults
            )
        return made.args

    def without(self, operator: str, call: ast.Call | ast.List | ast.Tuple | ast.Set, index: int) -> Edit | None:
        """Takes one of several parts with commas between away, with its comma."""
        parts: list[ast.expr | ast.keyword] = [*call.args, *call.keywords] if isinstance(call, ast.Call) else list(call.elts)
        parts.sort(key=self.text.start)
        if index > 0:
            return self.balanced(operator, self.text.end(parts[index - 1]), self.text.end(parts[index]))
        if len(parts) > 1:
            return self.balanced(operator, self.text.start(parts[0]), self.text.start(parts[1]))
        return self.balanced(operator, self.text.start(parts[0]), self.text.end(parts[0]))

    def balanced(self, operator: str, start: int, end: int, by: str = "") -> Edit | None:
        """Makes an edit of a stretch that holds whole brackets only."""
        was = self.text.between(start, end)
        if any(was.count(a) != was.count(b) for a, b in ("()", "[]", "{}")) or "#" in was:
            return None
        return self.text.edit(operator, start, end, by)


def open_nodes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """Walks the nodes of a body at which a fault may be planted: no signature, annotation, docstring, log line, assertion, message or formatted text."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if is_docstring(node) or isinstance(node, ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal):
            continue  # the places inside formatted texts are not told right before Python 3.12
        if isinstance(node, ast.Call) and is_log(node.func):
            continue
        if isinstance(node, ast.Raise):
            continue  # what is said when it is too late
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting += node.body if isinstance(node.body, list) else [node.body]
        elif isinstance(node, ast.AnnAssign):
            waiting += [one for one in (node.target, node.value) if one is not None]
        else:
            waiting += list(ast.iter_child_nodes(node))


def is_log(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        if node.attr in LOGS:
            return True
        node = node.value
    return isinstance(node, ast.Name) and node.id in LOGS
