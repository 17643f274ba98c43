"""How values of the rooms stand in JSON: times in UTC with a Z, money as exact decimal text, frozen values by their fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any


def to_json(value: Any) -> Any:
    """Gives what a JSON renderer can write. A float is rounded to 6 places: more would only look exact."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, Decimal):
        return decimal_text(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): to_json(said) for name, said in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(said) for said in value]
    if names := fields_of(type(value)):
        return {name: to_json(getattr(value, name)) for name in names}
    raise TypeError(f"{type(value).__name__} has no JSON form.")


_fields: dict[type, tuple[str, ...]] = {}


def fields_of(kind: type) -> tuple[str, ...]:
    """The fields of a frozen value's class, none of any other: asked for once, since a list of models asks it thousands of times."""
    if kind not in _fields:
        _fields[kind] = tuple([field.name for field in fields(kind)]) if is_dataclass(kind) else ()
    return _fields[kind]


def decimal_text(amount: Decimal) -> str:
    """Writes an amount without exponent or trailing zeros."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
