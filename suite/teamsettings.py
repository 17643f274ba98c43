"""What a team may decide of how its runs go: the server's list, a type each, one row for what somebody set. What nobody set has its default.

SettingUnknown   a name that is not on the list
SettingRefused   a value that it cannot have, or one that looks like a secret
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from access import audit, preferences
from suite.models import Backend, TeamSetting
from wire.errors import redacted

LOCAL = "local-bwrap"
MOST_TRIALS, MOST_AT_ONCE, LONGEST_DAYS = 100, 64, 3650


class SettingUnknown(LookupError):
    code = "unknown_setting"


class SettingRefused(ValueError):
    """Shape: `code` is invalid or looks_like_secret; the message goes on from the setting's name."""

    def __init__(self, message: str, code: str = "invalid") -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Kind:
    """One setting that there is. Shape: `schema` as JSON Schema has it; `check` gives the value as it is kept, or raises ValueError, as in "must be …"."""

    name: str
    default: Any
    schema: Mapping[str, Any]
    check: Callable[[Any], Any]
    tells: str


def backend(given: Any) -> str:
    names = [LOCAL, *Backend.objects.exclude(name=LOCAL).order_by("name").values_list("name", flat=True)]
    if given not in names:
        raise ValueError(f"must be a backend of this server: {', '.join(names)}.")
    return str(given)


def one_of(*words: str) -> Callable[[Any], str]:
    def check(given: Any) -> str:
        if given not in words:
            raise ValueError(f"must be one of {', '.join(words)}.")
        return str(given)

    return check


KINDS = {
    kind.name: kind
    for kind in (
        Kind("default_compute", None, {"type": "string"}, backend, "Where a launch without compute runs. Unset: the backend that is marked as default."),
        Kind(
            "default_trials",
            1,
            {"type": "integer", "minimum": 1, "maximum": MOST_TRIALS},
            preferences.whole(1, MOST_TRIALS),
            "Trials a task where neither the launch nor the subset's recipe says any.",
        ),
        Kind(
            "default_concurrency",
            MOST_AT_ONCE,
            {"type": "integer", "minimum": 1, "maximum": MOST_AT_ONCE},
            preferences.whole(1, MOST_AT_ONCE),
            "The most samples of one run under way at once; what a connection takes may be less.",
        ),
        Kind(
            "default_visibility",
            "private",
            {"type": "string", "enum": ["private", "team"]},
            one_of("private", "team"),
            "Who may read a run whose launch does not say: its owner, or the team.",
        ),
        Kind(
            "default_gate_confidence",
            None,
            {"type": "number", "minimum": 0.5, "maximum": 0.999},
            preferences.number(0.5, 0.999),
            "The confidence of a gate that names none: it may then answer inconclusive. Unset: such a gate goes by the figure alone.",
        ),
        Kind(
            "gate_min_coverage",
            0.98,
            {"type": "number", "minimum": 0, "maximum": 1},
            preferences.number(0, 1),
            "The share of tasks that must have been scored before a gate passes.",
        ),
        Kind(
            "retention_days",
            None,
            {"type": "integer", "minimum": 1, "maximum": LONGEST_DAYS},
            preferences.whole(1, LONGEST_DAYS),
            "Days after a run's end for which its inputs, outputs and files are kept; scores and sums stay. Unset: for ever.",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Shown:
    """One setting as it stands for a team. Shape: `changed_at` and `changed_by` are empty for a default."""

    kind: Kind
    value: Any
    changed_at: datetime | None = None
    changed_by: str = ""


def value(team: str, name: str) -> Any:
    """Reads one setting as it stands for a team. One query."""
    row = TeamSetting.objects.filter(team=team, name=name).values_list("value", flat=True).first()
    return KINDS[name].default if row is None else row


def shown(team: str) -> list[Shown]:
    """Lists every setting, by name. One query."""
    rows = {row.name: row for row in TeamSetting.objects.filter(team=team, name__in=KINDS)}
    return [
        Shown(kind, row.value, row.changed_at, row.changed_by) if (row := rows.get(name)) else Shown(kind, kind.default) for name, kind in sorted(KINDS.items())
    ]


def find(team: str, name: str) -> Shown:
    """Errors: SettingUnknown."""
    if name not in KINDS:
        raise SettingUnknown(name)
    return next(one for one in shown(team) if one.kind.name == name)


def change(team: str, name: str, given: Any, actor: str) -> Shown:
    """Sets one, from the next launch on. Errors: SettingUnknown, SettingRefused."""
    before = find(team, name)
    if isinstance(given, str) and (redacted(given) != given or len(given) > 200):
        raise SettingRefused("looks like a secret, and settings can be read by everybody in the team. Keys belong to endpoints.", "looks_like_secret")
    try:
        kept = before.kind.check(given)
    except ValueError as error:
        raise SettingRefused(str(error)) from None
    with transaction.atomic():
        TeamSetting.objects.update_or_create(team=team, name=name, defaults={"value": kept, "changed_by": actor[:200], "changed_at": timezone.now()})
        audit.record(actor, "team_setting.change", target(team, name), audit.diff({"value": before.value}, {"value": kept}))
    return find(team, name)


def reset(team: str, name: str, actor: str) -> None:
    """Puts the default back. Errors: SettingUnknown."""
    before = find(team, name)
    with transaction.atomic():
        if TeamSetting.objects.filter(team=team, name=name).delete()[0]:
            audit.record(actor, "team_setting.change", target(team, name), audit.diff({"value": before.value}, {"value": before.kind.default}))


def target(team: str, name: str) -> str:
    return f"{team or 'no team'}: {name}"
