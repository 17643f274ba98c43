"""What the server answers: dicts whose fields are attributes as well, all the way down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Object(dict[str, Any]):
    """A JSON object. `run.id` and `run["id"]` are the same; a field that is called like a method of dict is read with brackets."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{self.get('object') or 'This object'} has no field {name}. It has: {', '.join(self) or 'none'}.") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]


def wrapped(value: Any) -> Any:
    """Makes every dict in a JSON value an Object."""
    if isinstance(value, dict):
        return Object({name: wrapped(inner) for name, inner in value.items()})
    if isinstance(value, list):
        return [wrapped(inner) for inner in value]
    return value


def id_of(thing: str | Mapping[str, Any]) -> str:
    """Gives the id of what is named by it, or of the object itself."""
    return thing if isinstance(thing, str) else str(thing["id"])


def given(**fields: Any) -> dict[str, Any]:
    """Gives the fields that were said: None means not said."""
    return {name: value for name, value in fields.items() if value is not None}
