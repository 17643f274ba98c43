"""What pages say of limits: how much is left, in words, and the fields of the form that sets them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

COUNTED = ("requests", "tokens")
WINDOWS = ("minute", "day", "month")
PARALLEL = "parallel"
# Fields of the form: requests.minute … tokens.month, parallel.
FIELDS = (*(f"{counted}.{window}" for counted in COUNTED for window in WINDOWS), PARALLEL)
TITLES = {
    **{f"{counted}.{window}": f"{counted.capitalize()} a {window}" for counted in COUNTED for window in WINDOWS},
    PARALLEL: "Calls at once",
}

SHORT = {
    **{
        f"{counted}.{window}": f"{brief}/{unit}"
        for counted, brief in (("requests", "req"), ("tokens", "tok"))
        for window, unit in zip(WINDOWS, ("min", "day", "month"), strict=True)
    },
    PARALLEL: "at once",
}


@dataclass(frozen=True, slots=True)
class Left:
    """What may still be used of one limit. Shape: `scope` model or endpoint; `limit` None where only what is left is known here; `share` left of it, 0 to 1."""

    scope: str
    title: str
    short: str
    left: int
    limit: int | None
    share: float | None

    @property
    def is_low(self) -> bool:
        return self.left == 0 or (self.share is not None and self.share < 0.1)


def flat(limits: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Gives each limit by its field's name. Shape: as in the roster file; shadow limits are left out."""
    for counted in COUNTED:
        of = limits.get(counted)
        if isinstance(of, Mapping):
            for window in WINDOWS:
                if isinstance(of.get(window), int):
                    yield f"{counted}.{window}", of[window]
    if isinstance(limits.get(PARALLEL), int):
        yield PARALLEL, limits[PARALLEL]


def left_of(model: Mapping[str, Any]) -> list[Left]:
    """Gives what is left of a model's limits and of its endpoint's, the scarcest first. Shape: `model` as the API shows it."""
    own = dict(flat(model.get("limits") or {}))
    found = []
    for scope, limits in (("model", own), ("endpoint", dict[str, int]())):
        for name, left in flat((model.get("limits_left") or {}).get(scope) or {}):
            limit = limits.get(name)
            found.append(Left(scope, TITLES[name].lower(), SHORT[name], left, limit, left / limit if limit else None))
    return sorted(found, key=lambda one: (not one.is_low, one.share is None, one.share or 0.0))


def typed(given: Mapping[str, str], kept: Mapping[str, Any]) -> dict[str, Any]:
    """Makes limits of a form's fields; what the form does not show (shadow limits) stays as it is. What is no number goes on as text: the API says why not."""
    found: dict[str, Any] = {name: said for name, said in kept.items() if name not in (*COUNTED, PARALLEL)}
    for name in FIELDS:
        text = given.get(f"limits.{name}", "").strip().replace(",", "").replace(" ", "")
        if not text:
            continue
        value: int | str = int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else text
        counted, _, window = name.partition(".")
        if window:
            found.setdefault(counted, {})[window] = value
        else:
            found[counted] = value
    return found
