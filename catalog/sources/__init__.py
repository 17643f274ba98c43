"""One file per public catalog of models: where it is, and how what it says reads.

A file here holds one `SOURCE`, a subclass of `Source`; it is found by walking the folder. Pure: it reads, it fetches nothing (`catalog.reading` does).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any


@dataclass(frozen=True, slots=True)
class Offered:
    """One model as a catalog says that one provider serves it.

    Shape: `facts` by the roster's fact names without prices, `prices` by its price names as decimal text and `tiers`, `limits` as a roster file has them;
    `about` is what else there is: released, updated, knowledge, open_weights, family, status, output, rank, notes, unpriced (why it has no price a token).
    """

    provider: str
    served_name: str
    title: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    prices: Mapping[str, Any] = field(default_factory=dict)
    free: bool = False
    own_app: bool = False
    limits: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Provided:
    """One provider as a catalog tells it. `kind` is the roster's word, empty where no kind of ours speaks to it."""

    provider: str
    title: str = ""
    base_url: str = ""
    kind: str = ""
    key_env: str = ""
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """One entry that was left out, or a part of it, and why. `value` is what it said, where a later reading may want to compare."""

    entry: str
    reason: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class Catalog:
    """What one reading says. `version` is the catalog's own word for it."""

    offers: tuple[Offered, ...]
    providers: tuple[Provided, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    version: str = ""


class Source:
    """One public catalog. `rank`: of two that tell of the same model at the same provider the lower one is believed."""

    name: str
    title: str
    url: str
    rank: int
    # What a much grown catalog could still have; beyond it, it is something else.
    limit_bytes: int

    def read(self, body: Any) -> Catalog:
        """Reads one page. Errors: ValueError where it is not this catalog; a single bad entry is skipped."""
        raise NotImplementedError

    def next_page(self, body: Any) -> str | None:
        """The address of the next page, relative or whole; None where this was the last."""
        return None


@cache
def every() -> tuple[Source, ...]:
    """All catalogs, the most believed first."""
    found = [importlib.import_module(f"{__name__}.{m.name}").SOURCE for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")]
    return tuple(sorted(found, key=lambda source: (source.rank, source.name)))


@cache
def ranks() -> Mapping[str, int]:
    """The place of each in that order, from 0."""
    return {source.name: place for place, source in enumerate(every())}


def get(name: str) -> Source:
    """Errors: KeyError for a name that no file stands for."""
    return {source.name: source for source in every()}[name]
