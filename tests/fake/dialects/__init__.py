"""What the fake provider speaks: one file a wire format, found by walking this folder. Each holds one `DIALECT`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache
from typing import Any

from tests.fake.script import Call, Said


class FakeDialect:
    """The provider's side of one wire format."""

    name: str
    stream_type = "text/event-stream"

    def asks(self, method: str, path: str) -> bool:
        """Whether a request is a question to a model in this format."""
        raise NotImplementedError

    def model_of(self, call: Call) -> str:
        return str((call.json or {}).get("model", "")) if isinstance(call.json, dict) else ""

    def wants_stream(self, call: Call) -> bool:
        return isinstance(call.json, dict) and call.json.get("stream") is True

    def body(self, said: Said, call: Call) -> Any:
        """A whole answer."""
        raise NotImplementedError

    def stream(self, said: Said, call: Call) -> Sequence[bytes]:
        """The same as a stream, one write an item."""
        raise NotImplementedError

    def error(self, status: int, message: str, code: str) -> Any:
        raise NotImplementedError

    def model_list(self, path: str, models: Sequence[str]) -> Any | None:
        """The answer to a request for what is served; None where the path asks no such thing."""
        return None


@cache
def every() -> tuple[FakeDialect, ...]:
    found = [importlib.import_module(f"{__name__}.{m.name}").DIALECT for m in pkgutil.iter_modules(__path__)]
    return tuple(sorted(found, key=lambda d: d.name))


def get(name: str) -> FakeDialect:
    return next(d for d in every() if d.name == name)
