"""What a name means at a place in a function: whether it is bound there, what kind of value it holds as far as the text tells, and how it is used."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from suite.review.functions import AnyFunction, Function

BUILT_IN = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__", "__annotations__", "__builtins__", "__spec__", "__package__", "__path__"}
OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# What calls of these give, whatever they are given.
GIVEN_BY = {
    "len": "int", "int": "int", "round": "int", "ord": "int", "hash": "int", "id": "int", "sum": "number", "abs": "number", "float": "float",
    "str": "str", "repr": "str", "chr": "str", "format": "str", "input": "str", "list": "list", "sorted": "list", "dict": "dict", "set": "set",
    "tuple": "tuple", "frozenset": "frozenset", "bool": "bool", "isinstance": "bool", "callable": "bool", "any": "bool", "all": "bool", "bytes": "bytes",
}  # fmt: skip
BY_METHOD = {
    **dict.fromkeys(("strip", "lstrip", "rstrip", "lower", "upper", "title", "join", "format", "replace", "removeprefix", "removesuffix", "casefold"), "str"),
    **dict.fromkeys(("split", "rsplit", "splitlines"), "list"),
    **dict.fromkeys(("startswith", "endswith", "isdigit", "isalpha", "is_dir", "is_file", "exists", "isidentifier", "isprintable"), "bool"),
    **dict.fromkeys(("find", "rfind", "index", "count"), "int"),
    **dict.fromkeys(("partition", "rpartition"), "tuple"),
}


@dataclass(slots=True)
class Module:
    """What a file defines: functions by name, methods by class, annotations of its classes' attributes, names of its top level."""

    tree: ast.Module
    functions: dict[str, AnyFunction] = field(default_factory=dict)
    methods: dict[str, dict[str, AnyFunction]] = field(default_factory=dict)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, tree: ast.Module) -> Module:
        found = cls(tree)
        for node in tree.body:
            if isinstance(node, AnyFunction):
                found.functions[node.name] = node
            elif isinstance(node, ast.ClassDef):
                found.methods[node.name] = {inner.name: inner for inner in node.body if isinstance(inner, AnyFunction)}
                found.attributes[node.name] = {
                    inner.target.id: ast.unparse(inner.annotation)
                    for inner in node.body
                    if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name)
                }
        found.names = {name for node in own_nodes(tree) for name in bound_by(node)}
        return found


def own_nodes(top: ast.AST) -> Iterator[ast.AST]:
    """Walks the nodes of a scope, and not into scopes inside it; those themselves are given."""
    waiting: list[ast.AST] = list(ast.iter_child_nodes(top))
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, OWN_SCOPE):
            waiting[:0] = list(ast.iter_child_nodes(node))
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            waiting.insert(0, node.generators[0].iter)  # evaluated outside of it


def bound_by(node: ast.AST) -> Iterator[str]:
    """Names what one node binds in its scope."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield (alias.asname or alias.name).partition(".")[0]
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name


def parents_of(top: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(top) for child in ast.iter_child_nodes(node)}


@dataclass(slots=True)
class Scope:
    """One function's names. Shape: `kinds` is what is known of a name's values, "" for nothing; `uses` says in which ways it is used."""

    function: Function
    module: Module
    parents: dict[ast.AST, ast.AST]
    parameters: dict[str, str]
    local: set[str]
    kinds: dict[str, str]
    uses: dict[str, set[str]]
    loads: dict[str, list[ast.Name]]

    @classmethod
    def of(cls, function: Function, module: Module) -> Scope:
        node = function.node
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        parameters = {one.arg: shortened(ast.unparse(one.annotation)) if one.annotation else "" for one in arguments}
        for star, kind in ((node.args.vararg, "tuple"), (node.args.kwarg, "dict")):
            if star is not None:
                parameters[star.arg] = kind
        parents = parents_of(node)
        local = {name for inner in own_nodes(node) for name in bound_by(inner)}
        loads: dict[str, list[ast.Name]] = {}
        uses: dict[str, set[str]] = {}
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
                loads.setdefault(inner.id, []).append(inner)
                uses.setdefault(inner.id, set()).add(way(inner, parents))
        found = cls(function, module, parents, parameters, local, dict(parameters), uses, loads)
        for inner in own_nodes(node):
            found.learn(inner)
        return found

    def learn(self, node: ast.AST) -> None:
        """Takes what one statement tells of the kind of a name; two that differ tell nothing."""
        told: list[tuple[str, str]] = []
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            told = [(node.targets[0].id, self.kind_of(node.value))]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            told = [(node.target.id, shortened(ast.unparse(node.annotation)))]
        elif isinstance(node, ast.NamedExpr) and isinstance(node.target, ast.Name):
            told = [(node.target.id, self.kind_of(node.value))]
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name):
            first = node.target.elts[0] if isinstance(node.target, ast.Tuple) and node.iter.func.id == "enumerate" else node.target
            if isinstance(first, ast.Name) and node.iter.func.id in ("range", "enumerate"):
                told = [(first.id, "int")]
        for name, kind in told:
            if name in self.kinds and self.kinds[name] != kind:
                self.kinds[name] = self.kinds[name] if name in self.parameters and self.kinds[name] else ""
            else:
                self.kinds[name] = kind

    def kind_of(self, node: ast.AST) -> str:
        """Tells what kind of value an expression has, as far as its text says; "" where it does not."""
        match node:
            case ast.Constant():
                return "" if node.value is None or node.value is ... else type(node.value).__name__
            case ast.JoinedStr():
                return "str"
            case ast.List() | ast.ListComp():
                return "list"
            case ast.Dict() | ast.DictComp():
                return "dict"
            case ast.Set() | ast.SetComp():
                return "set"
            case ast.Tuple():
                return "tuple"
            case ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return "bool"
            case ast.Name():
                return self.kinds.get(node.id, "")
            case ast.Call(func=ast.Name(id=name)):
                made = self.module.functions.get(name)
                if made is not None:
                    return shortened(ast.unparse(made.returns)) if made.returns else ""
                return name if name in self.module.methods else GIVEN_BY.get(name, "")
            case ast.Call(func=ast.Attribute(attr=name)):
                return BY_METHOD.get(name, "")
            case ast.BinOp(left=left, right=right):
                kinds = {self.kind_of(left), self.kind_of(right)}
                return kinds.pop() if len(kinds) == 1 else ""
            case _:
                return ""

    def are_alike(self, one: str, other: str) -> bool:
        """Tells whether two names may stand for each other: of one kind, or of none that is known and used in the same ways."""
        first, second = self.kinds.get(one, ""), self.kinds.get(other, "")
        if first and second:
            return first == second
        if first or second:
            return False
        shared = self.uses.get(one, set()) & self.uses.get(other, set()) - {"value"}
        return bool(shared)

    def is_bound_at(self, name: str, place: ast.AST) -> bool:
        """Tells whether a local name is sure to have a value at a place: a parameter, or bound by a statement that every way to the place passes."""
        if name in self.parameters:
            return True
        if name not in self.local:
            return False
        node: ast.AST = place
        while node is not self.function.node:
            parent = self.parents.get(node)
            if parent is None:
                return False
            if isinstance(parent, ast.For | ast.AsyncFor) and node in parent.body and name in names_in(parent.target):
                return True
            if isinstance(parent, ast.With | ast.AsyncWith) and any(item.optional_vars and name in names_in(item.optional_vars) for item in parent.items):
                return node in parent.body
            if isinstance(parent, OWN_SCOPE) and parent is not self.function.node:
                return False  # another scope's names are another matter
            for body in (getattr(parent, part, None) for part in ("body", "orelse", "finalbody", "handlers")):
                if isinstance(body, list) and node in body:
                    for earlier in body[: body.index(node)]:
                        if name in surely_bound(earlier):
                            return True
            node = parent
        return False

    def rivals(self, name: ast.Name) -> list[str]:
        """Lists the names that could stand in place of one, and are used elsewhere in the function."""
        found = []
        for other in sorted({*self.parameters, *self.local} - {name.id, "self", "cls", "_"}):
            if self.loads.get(other) and self.are_alike(name.id, other) and self.is_bound_at(other, name):
                found.append(other)
        return found


def surely_bound(node: ast.stmt) -> set[str]:
    """Names what a statement binds whichever way it goes."""
    match node:
        case ast.Assign():
            return {name for target in node.targets for name in names_in(target)}
        case ast.AnnAssign() if node.value is not None:
            return names_in(node.target)
        case ast.With() | ast.AsyncWith():
            return {name for item in node.items if item.optional_vars for name in names_in(item.optional_vars)}
        case ast.Import() | ast.ImportFrom():
            return set(bound_by(node))
        case _:
            return set()


def names_in(target: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def way(node: ast.Name, parents: dict[ast.AST, ast.AST]) -> str:
    """Says in which way a name is used at one place."""
    match parents.get(node):
        case ast.Attribute(attr=attr):
            return f".{attr}"
        case ast.Subscript(value=value) if value is node:
            return "subscripted"
        case ast.Call(func=called) if called is node:
            return "called"
        case ast.BinOp() | ast.UnaryOp(op=ast.USub()):
            return "reckoned"
        case ast.For(iter=iterated) | ast.comprehension(iter=iterated) if iterated is node:
            return "walked"
        case ast.Compare(ops=ops) if any(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in ops):
            return "ordered"
        case _:
            return "value"


def shortened(annotation: str) -> str:
    """Leaves None and quotes out of an annotation."""
    parts = [part.strip() for part in annotation.strip("'\"").split("|")]
    return " | ".join(part for part in parts if part != "None")


# ------------------------------------------------------------------ what a linter would say


def findings(source: str, tree: ast.Module) -> frozenset[str]:
    """Lists what a linter would find: names that are nowhere bound, imports, locals and parameters that nothing reads, comparisons that are always the same.

    A planted fault must not add or take away one, or a linter would find it.
    """
    found: set[str] = set()
    top = symtable.symtable(source, "module", "exec")
    known = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()} | BUILT_IN
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)} | exported(tree)
    for symbol in top.get_symbols():
        if symbol.is_imported() and symbol.get_name() not in read:
            found.add(f"import {symbol.get_name()} is not used")

    def walk(table: symtable.SymbolTable, path: str) -> None:
        for symbol in table.get_symbols():
            name = symbol.get_name()
            if symbol.is_referenced() and symbol.is_global() and name not in known:
                found.add(f"{path}: {name} is nowhere bound")
            if table.get_type() == "function" and not symbol.is_referenced() and (symbol.is_local() or symbol.is_parameter()) and name != "_":
                found.add(f"{path}: {name} is not used")
        for inner in table.get_children():
            walk(inner, f"{path}.{inner.get_name()}")

    walk(top, "")
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and ast.dump(node.left) == ast.dump(node.comparators[0]):
            found.add(f"line {node.lineno}: compares a value with itself")
        if isinstance(node, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops) and is_literal(node.comparators[0]):
            found.add(f"line {node.lineno}: is, with a literal")
        if isinstance(node, ast.BoolOp) and len({ast.dump(value) for value in node.values}) < len(node.values):
            found.add(f"line {node.lineno}: says the same twice")
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == ast.unparse(node.value) for target in node.targets):
            found.add(f"line {node.lineno}: assigns a name to itself")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Div | ast.FloorDiv | ast.Mod) and ast.dump(node.left) == ast.dump(node.right):
            found.add(f"line {node.lineno}: reckons a value with itself")
        if isinstance(node, ast.Call) and len({ast.dump(one) for one in node.args}) < len(node.args) and not all(map(is_literal, node.args)):
            found.add(f"line {node.lineno}: hands over the same twice")
        if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Call | ast.Await | ast.Yield | ast.YieldFrom | ast.Constant):
            found.add(f"line {node.lineno}: has no effect")
        if isinstance(node, ast.IfExp) and ast.dump(node.body) == ast.dump(node.orelse):
            found.add(f"line {node.lineno}: both ways are one")
    return frozenset(found)


def is_literal(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and not isinstance(node.value, bool) and node.value is not None and node.value is not ...


def exported(tree: ast.Module) -> set[str]:
    """Reads the names that __all__ holds."""
    found: Any = next((n.value for n in tree.body if isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in n.targets)), None)
    listed = found.elts if isinstance(found, ast.List | ast.Tuple) else []
    return {one.value for one in listed if isinstance(one, ast.Constant) and isinstance(one.value, str)}
