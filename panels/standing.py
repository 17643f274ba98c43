"""How a collection stands: its record, what that suggests, and what its seats amount to; and taking a suggestion up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from catalog import status
from panels import agreement, editing, records, suggestions
from panels.agreement import Errors, Independence
from panels.collections import Collection
from panels.models import Seat, Verdict
from panels.records import Record
from panels.suggestions import Suggestion

# What is compared: the latest judged calls. Older ones tell of models as they were.
MOST_CALLS = 5_000


@dataclass(frozen=True, slots=True)
class Standing:
    """Units: `half_life_days`, 0 where verdicts never age."""

    record: list[Record]
    half_life_days: float
    suggestions: list[Suggestion]
    independence: Independence


class NotSuggested(ValueError):
    """The record does not speak for this change, or no more."""

    code = "not_suggested"


def standing(collection: Collection, now: datetime) -> Standing:
    """Reads all of it. Six queries, however many models there are."""
    found = records.record_of(collection.name, now)
    suggested = suggestions.suggestions(found, collection.members, status.explorable())
    return Standing(found, records.half_life_days(), suggested, agreement.independence(errors(collection), collection.members, collection.seats))


def errors(collection: Collection) -> list[Errors]:
    """Reads the false claims of the members' judged seats; what several judges found in one seat stands together."""
    members = tuple(set(collection.members))
    judged = Verdict.objects.filter(collection=collection.name, current=True, model__in=members).order_by("-id")[:MOST_CALLS]
    claims: dict[str, list[str]] = defaultdict(list)
    models: dict[str, str] = {}
    for call, model, false in judged.values_list("call", "model", "false"):
        claims[call] += false
        models[call] = model
    panels = panels_of_calls(list(models))
    return [Errors(panels[call], model, tuple([agreement.words_of(c) for c in claims[call]])) for call, model in models.items() if call in panels]


def panels_of_calls(calls: Sequence[str], at_once: int = 5000) -> dict[str, str]:
    found: dict[str, str] = {}
    for start in range(0, len(calls), at_once):
        found.update(Seat.objects.filter(call__in=calls[start : start + at_once]).values_list("call", "panel_id"))
    return found


def take_up(name: str, kind: str, model: str, now: datetime, actor: str) -> Suggestion:
    """Does what the record suggests, if it still does: an explorer becomes the last member, or a member leaves. Recorded as the change that it is.

    Errors: UnknownCollection, NotSuggested.
    """
    with transaction.atomic():
        editing.locked(name)
        collection = editing.found(name)
        suggested = suggestions.suggestions(records.record_of(name, now), collection.members, status.explorable())
        one = next((s for s in suggested if (s.kind, s.model) == (kind, model)), None)
        if one is None:
            raise NotSuggested(f"The record of {name} does not suggest that any more. Look at it again.")
        members = [*collection.members, model] if kind == "promote" else [m for m in collection.members if m != model]
        editing.change(name, {"members": members}, actor)
    return one
