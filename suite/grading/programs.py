"""Finding the program in what a model wrote: complete fenced blocks by the rules of Markdown, else the lines that are Python. Pure; nothing is run.

Which block     the last one that defines all that is wanted of it; where none does alone, all blocks that define something, one after another,
                so that a later version of a function holds. A block that only shows how to use it is none of them.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Collection
from dataclasses import dataclass

FENCE = re.compile(r"^(?P<indent>[ \t>]*)(?:[-*+]\s+|\d+[.)]\s+)?(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$")
LANGUAGES = frozenset({"", "python", "py", "python3", "py3", "python2", "ipython", "pycon3", "sage"})
BEGINS = re.compile(r"(?:async def|def|class|import|from)\s|@\w|[A-Za-z_]\w*\s*=[^=]")
# Words without a fence are a program if they define something, or hold one of these: a lone name parses too.
STATEMENTS = (ast.Import, ast.ImportFrom, ast.Call, ast.If, ast.For, ast.Return)
LONGEST = 400_000
TRIES = 200


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    text: str
    is_closed: bool = True


def blocks(text: str) -> list[Block]:
    """Gives the fenced blocks of a text. A fence ends at one of its own sign that is no shorter and says nothing; an indented one may end at any depth."""
    found: list[Block] = []
    opened: re.Match[str] | None = None
    inside: list[str] = []
    for line in text.splitlines():
        match = FENCE.match(line)
        if opened is None:
            if match:
                opened, inside = match, []
        elif match and match["mark"][0] == opened["mark"][0] and len(match["mark"]) >= len(opened["mark"]) and not match["info"].strip():
            found.append(block(opened, inside, True))
            opened = None
        else:
            inside.append(line)
    if opened is not None:
        found.append(block(opened, inside, False))
    return found


def block(opened: re.Match[str], inside: list[str], is_closed: bool) -> Block:
    indent = opened["indent"]
    if ">" in indent:
        inside = [re.sub(r"^[ \t]*>[ \t]?", "", line) for line in inside]
    words = opened["info"].strip().lower().split()
    language = words[0].strip("{}.") if words else ""
    return Block(language, textwrap.dedent("\n".join(inside)) + "\n", is_closed)


def parsed(code: str) -> ast.Module | None:
    """Parses a program, None where it is none."""
    if len(code) > LONGEST:
        return None
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def defined(tree: ast.Module) -> set[str]:
    """Names what a program defines at its top level."""
    found: set[str] = set()
    for node in ast.walk(tree) if len(tree.body) == 1 and isinstance(tree.body[0], ast.If | ast.Try) else tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return found


def used(tests: str) -> set[str]:
    """Names that tests use and do not make themselves: what they may want of a candidate."""
    tree = parsed(tests)
    if tree is None:
        return set()
    loaded = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    made = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    made |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    made |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    for imported in ast.walk(tree):
        if isinstance(imported, ast.ImportFrom) and imported.module in ("candidate", "solution"):
            loaded |= {alias.name for alias in imported.names}
    return loaded - made


def program(text: str, wanted: Collection[str] = ()) -> str | None:
    """Gives the program of an answer, None where there is none. Shape: `wanted` are names that somebody will ask of it; not all need be its own."""
    there = blocks(text)
    closed = [b for b in there if b.is_closed] or there
    chosen = [b.text for b in closed if b.language in LANGUAGES]
    if not chosen:
        if closed:
            return None  # blocks, but of another language
        return bare(text)
    trees = [(code, tree) for code in chosen if (tree := parsed(code)) is not None]
    defining = [(code, names) for code, tree in trees if (names := defined(tree))]
    if not defining:
        return trees[-1][0] if trees else chosen[-1]
    needed = set(wanted) & set().union(*(names for _, names in defining))
    for code, names in reversed(defining):
        if needed <= names:
            return code
    return "\n".join(code for code, _ in defining)


def bare(text: str) -> str | None:
    """Finds a program that stands in a text without fences: all of it, or the longest stretch from a line that begins one."""
    if not text.strip():
        return None
    whole = textwrap.dedent(text)
    tree = parsed(whole)
    if tree is not None and (defined(tree) or any(isinstance(node, STATEMENTS) for node in ast.walk(tree))):
        return whole
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if BEGINS.match(line)]
    tries = 0
    for start in starts[:20]:
        for end in range(len(lines), start, -1):
            if (tries := tries + 1) > TRIES:
                return None
            code = "\n".join(lines[start:end]) + "\n"
            tree = parsed(code)
            if tree is not None and defined(tree):
                return code
    return None


def completed(prompt: str, code: str, entry_point: str) -> str:
    """Gives a program that holds its entry point, where the answer only goes on from a prompt that begins one."""
    tree = parsed(code)
    if not entry_point or (tree is not None and entry_point in defined(tree)):
        return code
    for body in (textwrap.indent(textwrap.dedent(code), "    "), code):
        joined = f"{prompt.rstrip()}\n{body}"
        tree = parsed(joined)
        if tree is not None and entry_point in defined(tree):
            return joined
    return code
