"""The wrong call: another function, an argument too few or too many, a call that is missing around a value or at its end."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suite.review.edits import Edit
from suite.review.operators.names import named
from suite.review.operators.site import Site
from suite.review.scopes import BUILT_IN

# Functions that are taken for each other, of one shape each.
SIBLINGS = (
    ("min", "max"), ("any", "all"), ("sorted", "list"), ("floor", "ceil"), ("int", "round"), ("startswith", "endswith"), ("lstrip", "rstrip", "strip"),
    ("find", "rfind"), ("index", "rindex"), ("split", "rsplit"), ("partition", "rpartition"), ("removeprefix", "removesuffix"), ("lower", "upper"),
    ("append", "extend"), ("keys", "values"), ("update", "setdefault"), ("isdigit", "isdecimal", "isalnum"), ("union", "intersection", "difference"),
    ("issubset", "issuperset"), ("match", "search", "fullmatch"), ("popleft", "pop"), ("add", "discard"), ("insert", "setdefault"), ("loads", "load"),
    ("first", "last"), ("start", "end"), ("islice", "takewhile"), ("filter", "exclude"), ("setdefault", "get"),
)  # fmt: skip
WRAPPERS = frozenset({"int", "str", "float", "list", "sorted", "tuple", "set", "dict", "abs", "round", "bool", "frozenset", "reversed", "bytes", "max", "min"})
# Methods whose value can stand for what they were called on.
ENDINGS = frozenset({
    "strip", "lstrip", "rstrip", "lower", "upper", "casefold", "title", "copy", "removeprefix", "removesuffix", "replace", "resolve", "absolute",
    "expanduser", "date", "astimezone", "items", "keys", "values", "splitlines", "split", "sort", "format", "order_by", "distinct", "exclude", "filter",
})  # fmt: skip
# Arguments that a call goes without, by what is called: how many it must keep.
OPTIONAL = {
    "get": 1, "getattr": 2, "split": 1, "rsplit": 1, "range": 1, "enumerate": 1, "sum": 1, "round": 1, "next": 1, "pop": 1, "strip": 0, "lstrip": 0,
    "rstrip": 0, "int": 1, "setdefault": 1, "max": 2, "min": 2, "zip": 1, "sorted": 1, "replace": 2, "startswith": 1, "endswith": 1, "find": 1, "index": 1,
    "isinstance": 2, "join": 1, "dict": 0, "splitlines": 0, "encode": 0, "decode": 0,
}  # fmt: skip
# Arguments that somebody adds where none should be: what is called, how many there are, what comes behind them.
ADDED = {
    ("range", 1): ("1, ", ""), ("enumerate", 1): ("", ", 1"), ("sum", 1): ("", ", 1"), ("sorted", 1): ("", ", reverse=True"), ("round", 1): ("", ", 1"),
    ("split", 1): ("", ", 1"), ("rsplit", 1): ("", ", 1"), ("pop", 0): ("", "0"), ("replace", 2): ("", ", 1"), ("get", 1): ("", ", 0"),
    ("splitlines", 0): ("", "keepends=True"), ("split", 0): ("", '" "'), ("strip", 0): ("", '" "'), ("zip", 2): ("", ", strict=True"),
    ("lstrip", 0): ("", '" "'), ("rstrip", 0): ("", '"\\n"'), ("index", 1): ("", ", 1"), ("find", 1): ("", ", 1"), ("sort", 0): ("", "reverse=True"),
    ("reversed", 1): ("", ""), ("startswith", 1): ("", ", 1"), ("int", 1): ("", ", 8"),
}  # fmt: skip


def name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else call.func.attr if isinstance(call.func, ast.Attribute) else ""


def wrong_function(site: Site) -> Iterator[Edit]:
    for call in site.calls():
        name = name_of(call)
        others = {other for group in SIBLINGS if name in group for other in group if other != name}
        if isinstance(call.func, ast.Name):
            for other in sorted(others | twins(site, name)):
                if other in site.module.names or other in BUILT_IN:
                    yield site.text.replace("wrong_function", call.func, other)
        elif isinstance(call.func, ast.Attribute):
            if isinstance(call.func.value, ast.Name) and call.func.value.id == "self" and site.function.owner is not None:
                others |= alike(site.module.methods.get(site.function.owner.name, {}), name) - {site.function.node.name}
                others &= set(site.module.methods.get(site.function.owner.name, {}))
            for other in sorted(others):
                yield named(site, "wrong_function", call.func, other)


def twins(site: Site, name: str) -> set[str]:
    """Lists the functions of the same file that take and give what one does."""
    return alike(site.module.functions, name) - {site.function.node.name}


def alike(made: dict[str, ast.FunctionDef | ast.AsyncFunctionDef], name: str) -> set[str]:
    mine = made.get(name)
    if mine is None:
        return set()
    return {other for other, node in made.items() if other != name and shape(node) == shape(mine) and not other.startswith("__")}


def shape(node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, ...]:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    kinds = [ast.unparse(one.annotation) if one.annotation else "" for one in arguments]
    return (type(node).__name__, *kinds, str(len(node.args.defaults)), ast.unparse(node.returns) if node.returns else "")


def missing_argument(site: Site) -> Iterator[Edit]:
    for call in site.calls():
        count, name = len(call.args), name_of(call)
        for i in range(len(call.keywords)):
            if call.keywords[i].arg is not None and (edit := site.without("missing_argument", call, count + i)) is not None:
                yield edit
        known = site.signature(call)
        keeps = len(known.posonlyargs) + len(known.args) - len(known.defaults) if known is not None else OPTIONAL.get(name, 99)
        can_go = count > max(0, keeps) and not call.keywords and not isinstance(call.args[-1], ast.Starred)
        if can_go and (edit := site.without("missing_argument", call, count - 1)) is not None:
            yield edit


def extra_argument(site: Site) -> Iterator[Edit]:
    for call in site.calls():
        added = ADDED.get((name_of(call), len(call.args)))
        if added and not call.keywords and not any(isinstance(one, ast.Starred) for one in call.args):
            before, behind = added
            end = site.text.end(call) - 1
            if site.text.between(end, end + 1) != ")":
                continue
            if before:
                start = site.text.start(call.args[0])
                yield site.text.edit("extra_argument", start, start, before)
            elif behind:
                yield site.text.edit("extra_argument", end, end, behind)


def missing_wrapping_call(site: Site) -> Iterator[Edit]:
    for call in site.calls():
        if len(call.args) != 1 or call.keywords or isinstance(call.args[0], ast.Starred | ast.GeneratorExp) or not isinstance(call.func, ast.Name):
            continue
        known = site.module.functions.get(call.func.id)
        gives_the_same = known is not None and len(known.args.args) == 1 and known.returns is not None and known.args.args[0].annotation is not None
        if gives_the_same and known is not None:
            gives_the_same = ast.unparse(known.returns or ast.Constant(0)) == ast.unparse(known.args.args[0].annotation or ast.Constant(1))
        if call.func.id in WRAPPERS or gives_the_same:
            argument = call.args[0]
            is_loose = isinstance(argument, ast.BinOp | ast.BoolOp | ast.Compare | ast.IfExp | ast.UnaryOp | ast.Lambda | ast.NamedExpr | ast.Await)
            if is_loose and not isinstance(site.parent(call), ast.Assign | ast.Return | ast.Call | ast.AnnAssign):
                continue
            yield site.text.replace("missing_wrapping_call", call, site.text.of(argument))


def missing_method_call(site: Site) -> Iterator[Edit]:
    for call in site.calls():
        if isinstance(call.func, ast.Attribute) and call.func.attr in ENDINGS and not isinstance(site.parent(call), ast.Expr):
            edit = site.balanced("missing_method_call", site.text.end(call.func.value), site.text.end(call))
            if edit is not None:
                yield edit


def keyword_argument(site: Site) -> Iterator[Edit]:
    for call in site.calls():
        known = site.signature(call)
        if known is None:
            continue
        parameters = {one.arg: ast.unparse(one.annotation) if one.annotation else "" for one in [*known.args, *known.kwonlyargs]}
        given = {one.arg for one in call.keywords} | set(list(parameters)[: len(call.args)])
        for one in call.keywords:
            for other, kind in parameters.items():
                if one.arg in parameters and other not in given and kind == parameters[one.arg]:
                    start = site.text.start(one)
                    yield site.text.edit("keyword_argument", start, start + len(one.arg.encode()), other)


def swapped_arguments(site: Site) -> Iterator[Edit]:
    for call in site.calls():
        known = site.signature(call)
        kinds = [ast.unparse(one.annotation) if one.annotation else "" for one in known.args] if known is not None else []
        for i, (one, other) in enumerate(zip(call.args, call.args[1:], strict=False)):
            if isinstance(one, ast.Starred) or isinstance(other, ast.Starred):
                continue
            same = i + 1 < len(kinds) and kinds[i] and kinds[i] == kinds[i + 1]
            if not same and isinstance(one, ast.Name) and isinstance(other, ast.Name):
                same = one.id != other.id and site.scope.are_alike(one.id, other.id)
            if same:
                start, end = site.text.start(one), site.text.end(other)
                middle = site.text.between(site.text.end(one), site.text.start(other))
                yield site.text.edit("swapped_arguments", start, end, f"{site.text.of(other)}{middle}{site.text.of(one)}")


OPERATORS = {
    "wrong_function": wrong_function,
    "missing_argument": missing_argument,
    "extra_argument": extra_argument,
    "missing_wrapping_call": missing_wrapping_call,
    "missing_method_call": missing_method_call,
    "keyword_argument": keyword_argument,
    "swapped_arguments": swapped_arguments,
}
