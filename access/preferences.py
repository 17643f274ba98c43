"""Settings that people change while the server runs: rooms register what there is, one row holds what was changed, everybody else gets the default.

PreferenceError   an unknown name, or a value that it cannot have
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from access import audit
from access.models import Preference


class PreferenceError(ValueError):
    code = "invalid_request"

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name} {message}")
        self.name, self.message = name, message


@dataclass(frozen=True, slots=True)
class Kind:
    """One setting that there is. Shape: `check` gives the value as it is kept, or raises ValueError that says what is wrong, as in "must be …"."""

    name: str
    default: Any
    check: Callable[[Any], Any]
    tells: str


@dataclass(frozen=True, slots=True)
class Shown:
    """One setting as it stands. Shape: `changed_at` and `changed_by` are empty for a default."""

    name: str
    value: Any
    default: Any
    tells: str
    changed_at: datetime | None
    changed_by: str


registered: dict[str, Kind] = {}


def register(name: str, default: Any, check: Callable[[Any], Any], tells: str) -> None:
    """Adds a setting, in an app's `ready`. Shape: `name` is room.thing, as in records.half_life_days."""
    registered[name] = Kind(name, default, check, tells)


def value(name: str) -> Any:
    """Reads one setting as it stands. One query. Errors: KeyError for a name that nobody registered."""
    default = registered[name].default
    row = Preference.objects.filter(name=name).values_list("value", flat=True).first()
    return default if row is None else row


def shown() -> list[Shown]:
    """Lists every setting, by name. One query."""
    rows = {row.name: row for row in Preference.objects.all()}
    found = []
    for name, kind in sorted(registered.items()):
        row = rows.get(name)
        found.append(Shown(name, row.value if row else kind.default, kind.default, kind.tells, row.changed_at if row else None, row.changed_by if row else ""))
    return found


def change(name: str, given: Any, actor: str) -> Shown:
    """Sets one, or, with None, puts the default back. Errors: PreferenceError."""
    kind = registered.get(name)
    if kind is None:
        raise PreferenceError(name, "is no setting. GET /bench/settings lists those there are.")
    with transaction.atomic():
        before = value(name)
        if given is None:
            Preference.objects.filter(name=name).delete()
            after = kind.default
        else:
            try:
                after = kind.check(given)
            except ValueError as error:
                raise PreferenceError(name, str(error)) from None
            Preference.objects.update_or_create(name=name, defaults={"value": after, "changed_by": actor[:200]})
        if before != after:
            audit.record(actor, "setting.change", name, audit.diff({"value": before}, {"value": after}))
    return next(one for one in shown() if one.name == name)


# ------------------------------------------------------------------ what values may be


def truth(given: Any) -> bool:
    if not isinstance(given, bool):
        raise ValueError("must be true or false.")
    return given


def whole(low: int, high: int) -> Callable[[Any], int]:
    def check(given: Any) -> int:
        if isinstance(given, bool) or not isinstance(given, int) or not low <= given <= high:
            raise ValueError(f"must be a whole number from {low} to {high}.")
        return given

    return check


def number(low: float, high: float) -> Callable[[Any], float]:
    def check(given: Any) -> float:
        if isinstance(given, bool) or not isinstance(given, int | float) or not low <= given <= high:
            raise ValueError(f"must be a number from {low:g} to {high:g}.")
        return float(given)

    return check
