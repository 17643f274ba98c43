"""One file per hub that tells more of its models than the plain list does: how it is recognised, which door it keeps that in, how the answer reads.

A file here holds one `HUB`, a subclass of `Hub`; it is found by walking the folder. A server whose plain list tells all (OpenRouter, Groq) needs no file:
its fields are lines in `catalog/model_lists.py`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from catalog.base_urls import VERSION_PART
from catalog.providers import Listed

# What stands before or in place of a version part, and is none of the server's own folders.
DOORS = ("api", "openai", "ollama", "chat", "completions", "messages", "responses", "generate", "tags", "models")


class Ask(Protocol):
    """The way to the server. Errors of both: catalog.web.WebError, whatever the reason."""

    def get(self, url: str, quick: bool = False) -> Any:
        """Gives the JSON behind an address; text that is no JSON as text."""

    def post(self, url: str, body: Mapping[str, Any]) -> Any:
        """Gives the JSON that a read-only question answers."""

    def each(self, asked: Sequence[Callable[[], Any]]) -> list[Any]:
        """Runs several questions, a few at a time; None for each that failed."""


@dataclass(frozen=True, slots=True)
class Plain:
    """The plain list as it came. Shape: `headers` in lower case; `body` of the first page, None where there is no plain list."""

    base_url: str
    headers: Mapping[str, str]
    body: Any
    models: tuple[Listed, ...]

    @property
    def host(self) -> str:
        return (urlsplit(self.base_url).hostname or "").lower()

    def entries(self) -> list[Mapping[str, Any]]:
        found = self.body.get("data") if isinstance(self.body, Mapping) else self.body
        return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []

    def owned_by(self, owner: str) -> bool:
        return any(one.get("owned_by") == owner for one in self.entries())


class Hub:
    """One hub. Its `name` is its file's. Pure, but for `more`, which asks through what it is given."""

    name: str
    title: str
    order = 50  # of the questions that tell hubs apart, lower ones are asked first

    def shows(self, plain: Plain) -> bool:
        """Whether the plain list alone gives it away."""
        return False

    def probe(self, root: str) -> str | None:
        """The address whose answer gives it away; None where only the plain list does."""
        return None

    def is_it(self, answer: Any) -> bool:
        """Whether the answer of `probe` is this hub's."""
        return False

    def more(self, root: str, ask: Ask, plain: Plain) -> list[Listed]:
        """Reads what it tells beyond the plain list. Errors: WebError, or ValueError for what is no list: the plain one stays then."""
        return []


@cache
def every() -> tuple[Hub, ...]:
    """All hubs, in the order in which they are asked after."""
    found = [importlib.import_module(f"{__name__}.{m.name}").HUB for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")]
    return tuple(sorted(found, key=lambda hub: (hub.order, hub.name)))


def get(name: str) -> Hub | None:
    return next((hub for hub in every() if hub.name == name), None)


@cache
def root(base_url: str) -> str:
    """Where the server itself begins: the base URL without version part, call, or the door for one format."""
    parts = urlsplit(base_url.strip())
    segments = [segment for segment in parts.path.split("/") if segment]
    if (version := next((n for n, segment in enumerate(segments) if VERSION_PART.fullmatch(segment)), None)) is not None:
        segments = segments[:version]
    while segments and segments[-1] in DOORS:
        segments.pop()
    return urlunsplit((parts.scheme, parts.netloc, "/".join(["", *segments]), "", ""))
