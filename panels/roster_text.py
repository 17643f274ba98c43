"""A roster file's text, YAML or JSON, as plain values that remember their lines. Pure.

RosterError   the file is wrong; it names every line and field that is
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

LARGEST_CHARS = 10_000_000
# Anchors can make a short file long: so many values at most, wherever they come from.
MOST_VALUES = 500_000
DEEPEST = 20
LONGEST_NUMBER = 60

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. Shape: `line` counts from 1, 0 where it is the file as a whole; `where` names the object, "model fast"."""

    line: int
    where: str
    message: str

    def __str__(self) -> str:
        place = ", ".join(part for part in (f"line {self.line}" if self.line else "", self.where) if part)
        return f"{place}: {self.message}" if place else self.message


class RosterError(Exception):
    """A roster file that cannot be loaded. Nothing was changed."""

    code = "invalid_roster"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line))
        super().__init__("\n".join(str(problem) for problem in self.problems))


@dataclass(frozen=True, slots=True)
class Marked:
    """One value and its line. Shape: objects hold Marked values by name, lists hold Marked values, all else is plain. A named value's line is its name's."""

    value: Any
    line: int

    def plain(self) -> Any:
        if isinstance(self.value, dict):
            return {name: one.plain() for name, one in self.value.items()}
        if isinstance(self.value, list):
            return [one.plain() for one in self.value]
        return self.value

    def line_of(self, path: str) -> int:
        """The line of the deepest part of a dotted path that is there."""
        here = self
        for index, name in re.findall(r"\[(\d{1,9})\]|([^.\[\]]+)", path):
            inner = here.value.get(name) if isinstance(here.value, dict) else None
            if index and isinstance(here.value, list):
                inner = dict(enumerate(here.value)).get(int(index))
            if inner is None:
                break
            here = inner
        return here.line


class RosterLoader(Loader):  # type: ignore[misc]
    """YAML 1.2's reading of bare words, which JSON's is part of: only true and false are truths, 1:30 and 0755 and 2024-10-21 are texts."""

    yaml_implicit_resolvers: dict[str, Any] = {}


WORD_FORMS = (
    ("tag:yaml.org,2002:null", re.compile(r"(?:~|null|Null|NULL|)\Z"), [*"~nN", ""]),
    ("tag:yaml.org,2002:bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF")),
    ("tag:yaml.org,2002:int", re.compile(r"-?(?:0|[1-9][0-9]*)\Z"), list("-0123456789")),
    ("tag:yaml.org,2002:float", re.compile(r"-?(?:0|[1-9][0-9]*)?(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|(?<=[0-9])[eE][-+]?[0-9]+)\Z"), list("-.0123456789")),
)
for tag, form, firsts in WORD_FORMS:
    RosterLoader.add_implicit_resolver(tag, form, firsts)


def read(text: str) -> Marked:
    """Reads a file's text. Errors: RosterError."""
    if len(text) > LARGEST_CHARS:
        raise RosterError([Problem(0, "", f"The file has more than {LARGEST_CHARS:,} characters.")])
    loader = RosterLoader(as_yaml(text.removeprefix("\ufeff")))
    try:
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = (error.problem or "it cannot be read").strip()
        raise RosterError([Problem(mark.line + 1 if mark else 0, "", f"The file is neither YAML nor JSON: {said}.")]) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise RosterError([Problem(line, "", "The file holds a character that YAML does not allow.")]) from None
    except yaml.YAMLError:
        raise RosterError([Problem(0, "", "The file is neither YAML nor JSON.")]) from None
    except RecursionError:
        raise RosterError([Problem(0, "", f"The file is nested more than {DEEPEST} deep.")]) from None
    finally:
        loader.dispose()
    if node is None:
        raise RosterError([Problem(0, "", "The file is empty.")])
    return Reading().value_of(node, node.start_mark.line + 1, 0)


def as_yaml(text: str) -> str:
    """Writes what JSON allows and YAML does not another way, line for line: tabs between values, and characters written as two halves."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    # A string of valid JSON holds no bare tab.
    return re.sub(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\.", joined, text.replace("\t", " "))


def joined(match: re.Match[str]) -> str:
    return str(json.loads(f'"{match[0]}"')) if len(match[0]) == 12 else match[0]


class Reading:
    """One reading: counts values, so that a file of anchors within anchors ends."""

    def __init__(self) -> None:
        self.values = 0

    def value_of(self, node: Any, line: int, depth: int) -> Marked:
        self.values += 1
        if self.values > MOST_VALUES:
            raise RosterError([Problem(line, "", f"The file holds more than {MOST_VALUES:,} values.")])
        if depth > DEEPEST:
            raise RosterError([Problem(line, "", f"The file is nested more than {DEEPEST} deep.")])
        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        if isinstance(node, yaml.MappingNode) and kind == "map":
            return Marked(dict(self.pairs(node, depth)), line)
        if isinstance(node, yaml.SequenceNode) and kind == "seq":
            return Marked([self.value_of(one, one.start_mark.line + 1, depth + 1) for one in node.value], line)
        if isinstance(node, yaml.ScalarNode) and kind in SCALARS:
            if kind in ("int", "float") and len(node.value) > LONGEST_NUMBER:
                raise RosterError([Problem(line, "", "A number there has too many digits.")])
            try:
                return Marked(SCALARS[kind](node.value), line)
            except ValueError:
                pass
        raise RosterError([Problem(line, "", f"A value is marked as {node.tag}, which a roster file does not know.")])

    def pairs(self, node: Any, depth: int) -> Iterator[tuple[str, Marked]]:
        seen: set[str] = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise RosterError([Problem(line, "", "A name there is no plain text.")])
            if key.value in seen:
                raise RosterError([Problem(line, "", f'"{key.value[:60]}" stands twice in one object.')])
            seen.add(key.value)
            yield key.value, self.value_of(value, line, depth + 1)


SCALARS: dict[str, Any] = {
    "null": lambda text: None,
    "bool": lambda text: text.lower() == "true",
    "int": int,
    "float": float,
    "str": str,
}
