"""Where scorers and model code run: what an admin set up, and this machine's own sandbox, which is always on the list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from suite import teamsettings
from suite.models import Backend
from suite.running import codehosts
from suite.sandbox import box
from suite.teamsettings import LOCAL

# Kinds of backend that this server can use.
KINDS = (LOCAL,)
# What a backend's settings may set of its sandboxes, and the most of each. Units: by name.
CAPS = {"memory_mb": 1024 * 1024, "disk_mb": 1024 * 1024, "processes": 4096, "output_bytes": 64 * 1024 * 1024}


@dataclass(frozen=True, slots=True)
class Shown:
    """One backend. Shape: `is_default` for the team that asks; `hint` says what is missing where it is not available."""

    name: str
    kind: str
    is_default: bool
    available: bool
    hint: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    object: str = "backend"


def default_for(team: str) -> str:
    """Names the backend of a launch that names none: the team's, else the one that an admin marked, else this machine's."""
    names = dict(Backend.objects.values_list("name", "is_default"))
    chosen = teamsettings.value(team, "default_compute")
    if chosen and (chosen == LOCAL or chosen in names):
        return str(chosen)
    return next((name for name, is_default in names.items() if is_default), LOCAL)


def every(team: str) -> list[Shown]:
    """Lists all of them by name."""
    rows = {row.name: row for row in Backend.objects.all()}
    rows.setdefault(LOCAL, Backend(name=LOCAL, kind=LOCAL))
    default = default_for(team)
    return [Shown(row.name, row.kind, row.name == default, not (hint := trouble(row.kind)), hint, row.settings) for _, row in sorted(rows.items())]


def trouble(kind: str) -> str:
    """Says why nothing can run there, "" where it can."""
    return codehosts.trouble() if kind in KINDS else f"This server does not know backends of the kind {kind[:40]}."


def caps_of(name: str) -> dict[str, int]:
    """Gives what a backend's settings set of its sandboxes, by the fields of `box.Limits`."""
    row = Backend.objects.filter(name=name).values_list("settings", flat=True).first()
    return {cap: value for cap, value in (row or {}).items() if cap in CAPS and type(value) is int}


def check(settings: object) -> dict[str, int]:
    """Checks a backend's settings as an admin wrote them. Errors: ValueError."""
    if not isinstance(settings, Mapping):
        raise ValueError('It must be an object such as {"memory_mb": 1024}.')
    for cap, value in settings.items():
        if cap not in CAPS:
            raise ValueError(f"There is no {str(cap)[:40]}. There are: {', '.join(CAPS)}.")
        if type(value) is not int or not 1 <= value <= CAPS[cap]:
            raise ValueError(f"{cap} must be a whole number from 1 to {CAPS[cap]}.")
    return dict(settings)


def defaults() -> dict[str, int]:
    """What holds where a backend says nothing."""
    return {cap: value for cap, value in asdict(box.Limits()).items() if cap in CAPS}
