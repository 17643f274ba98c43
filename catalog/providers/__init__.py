"""One file per kind of provider: how its address is built, how a call is signed, how its models are listed, how its errors read.

A file here holds one `PROVIDER`, a subclass of `Provider`; it is found by walking the folder, and no other file compares its `kind`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from wire.errors import UpstreamError


@dataclass(frozen=True, slots=True)
class Listed:
    """One model as an endpoint's own list tells it.

    Shape: `facts` holds only what the list says, by the roster's fact names; `chat` is false for what answers no prompt with text (embeddings, images, speech).
    """

    served_name: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    chat: bool = True


class Local(Protocol):
    """Another way than the network to a kind of provider: `post` as `catalog.upstream.Upstream.post`, `models` the body of a model list."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, idle_s: float | None) -> Any: ...
    def models(self) -> Any: ...


class Provider:
    """What is particular to one kind of provider. Pure: it builds and reads, it sends nothing.

    `kind` is the roster's word, `dialect` the wire format (a file of `wire/dialects`) that it speaks.
    """

    kind: str
    title: str
    dialect: str
    # What it wants of every request, as quirks; an endpoint's and a model's own win.
    demands: Mapping[str, Any] = {}

    def chat_url(self, base_url: str, served_name: str, stream: bool) -> str:
        """The address that one call is posted to. `base_url` may or may not hold the API's version part."""
        raise NotImplementedError

    def count_url(self, base_url: str, served_name: str) -> str | None:
        """The address that counts a request's tokens; None where the API has none."""
        return None

    def local(self) -> Local | None:
        """The way to models that live in this process; None for all that have an address."""
        return None

    def models_url(self, base_url: str) -> str:
        """The address that lists what is served."""
        raise NotImplementedError

    def next_page(self, url: str, body: Any) -> str | None:
        """The address of the list's next page, from the answer behind `url`; None after the last."""
        return None

    def headers(self, key: str) -> dict[str, str]:
        """What signs a call. `key` may be empty."""
        raise NotImplementedError

    def read_models(self, body: Any) -> list[Listed]:
        """Reads the answer of `models_url`. Errors: ValueError where it is no model list."""
        raise NotImplementedError

    def read_error(self, status: int, headers: Mapping[str, str], body: bytes) -> UpstreamError:
        """Reads an answer that is not 2xx: whose fault it is, and how long to wait. Messages are not yet redacted."""
        raise NotImplementedError


@cache
def every() -> tuple[Provider, ...]:
    """All kinds, by name."""
    found = [importlib.import_module(f"{__name__}.{m.name}").PROVIDER for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")]
    return tuple(sorted([p for p in found if p is not None], key=lambda p: p.kind))  # None: what it needs is not installed


@cache
def get(kind: str) -> Provider:
    """Errors: KeyError for a kind that no file stands for."""
    return {p.kind: p for p in every()}[kind]
