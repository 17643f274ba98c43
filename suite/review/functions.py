"""Functions as they stand in a file: their lines, their text, and a form without names by which the same function is known again."""

from __future__ import annotations

import ast
import hashlib
import io
import re
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

FEWEST_LINES, MOST_LINES = 8, 200
AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef
# What shows a value to people, or is a test, is no place for a fault that anybody would look for.
SHOWN = frozenset({"__repr__", "__str__", "__format__", "__rich__", "__rich_repr__", "__doc__"})
NOT_PRODUCT = re.compile(
    r"(^|/)(tests?|testing|migrations|docs?|examples?|benchmarks?|vendor|third_party|node_modules|build|dist)(/|$)|(^|/)(test_[^/]*|[^/]*_test|conftest|setup)\.py$"
)


@dataclass(frozen=True, slots=True)
class Function:
    """One function or method, not one inside another. Shape: `first` to `last` are its lines in the file, from 1, with its decorators."""

    path: str
    name: str
    node: AnyFunction = field(compare=False, repr=False)
    first: int
    last: int
    owner: ast.ClassDef | None = field(default=None, compare=False, repr=False)


def parsed(source: str) -> ast.Module | None:
    """Parses a file; None for what is no Python of this version, or warns that it will be none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError, Warning):
        return None


def of(path: str, tree: ast.Module) -> Iterator[Function]:
    """Finds the functions of a file and the methods of its classes."""

    def walk(body: list[ast.stmt], before: str, owner: ast.ClassDef | None) -> Iterator[Function]:
        for node in body:
            if isinstance(node, AnyFunction):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                yield Function(path, f"{before}{node.name}", node, first, node.end_lineno or node.lineno, owner)
            elif isinstance(node, ast.ClassDef):
                yield from walk(node.body, f"{before}{node.name}.", node)

    return walk(tree.body, "", None)


def is_product(path: str) -> bool:
    """Tells whether a file is code that a reviewer would see as the product's."""
    return path.endswith(".py") and not NOT_PRODUCT.search(path)


def is_worth(function: Function) -> bool:
    """Tells whether a function is of a size to look through, and none that only shows something."""
    if function.node.name in SHOWN or function.node.name.startswith("test"):
        return False
    return FEWEST_LINES <= function.last - function.first + 1 <= MOST_LINES and not is_bare(function.node)


def is_bare(node: AnyFunction) -> bool:
    """Tells whether a function does nothing: a docstring, `...`, `pass`, one raise."""
    body = [one for one in node.body if not is_docstring(one)]
    return all(isinstance(one, ast.Pass | ast.Raise) or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)) for one in body)


def is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def window(source: str, first: int, last: int) -> str:
    """Gives lines of a file as they stand there."""
    return "\n".join(source.split("\n")[first - 1 : last]) + "\n"


class Nameless(ast.NodeTransformer):
    """Puts numbers for the names that a function gives, and leaves its words out."""

    def __init__(self) -> None:
        self.numbers: dict[str, str] = {}

    def number(self, name: str) -> str:
        return self.numbers.setdefault(name, f"v{len(self.numbers)}")

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(self.number(node.arg))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self.numbers.get(node.id, node.id) if isinstance(node.ctx, ast.Load) else self.number(node.id), node.ctx)


def digest(node: AnyFunction) -> str:
    """Makes one digest of what a function does: without its name, its words and its formatting, and with numbers for what it names itself."""
    copy = ast.parse(ast.unparse(node)).body[0]
    assert isinstance(copy, AnyFunction)
    for inner in ast.walk(copy):
        if isinstance(inner, AnyFunction | ast.ClassDef) and inner.body and is_docstring(inner.body[0]):
            inner.body = inner.body[1:] or [ast.Pass()]
        if isinstance(inner, AnyFunction):
            inner.returns = None
    copy.name, copy.decorator_list = "f", []
    return hashlib.sha256(ast.dump(Nameless().visit(copy)).encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Words:
    """What is said in a window beside the code. Shape: comments by line, from 1 in the window, and docstrings as one text."""

    comments: dict[int, str]
    docstrings: str

    @property
    def all(self) -> str:
        return "\n".join([*self.comments.values(), self.docstrings])


def words(text: str) -> Words:
    """Reads comments and docstrings of a window."""
    comments: dict[int, str] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(dedented(text)).readline):
            if token.type == tokenize.COMMENT:
                comments[token.start[0]] = token.string
    except (tokenize.TokenError, SyntaxError):
        pass  # what came before it counts
    tree = parsed(dedented(text))
    said = [ast.get_docstring(node, clean=False) or "" for node in ast.walk(tree) if isinstance(node, AnyFunction | ast.ClassDef)] if tree else []
    return Words(comments, "\n".join(said))


def dedented(text: str) -> str:
    """Takes away the first line's indentation from all lines, as far as they have it: a method alone does not parse."""
    indent = len(text) - len(text.lstrip(" \t"))
    start = text[:indent].rpartition("\n")[2]
    return "".join([line.removeprefix(start) for line in text.splitlines(keepends=True)]) if start else text
