"""How a collection stands: its record, what that suggests, and what its seats amount to; and taking a suggestion up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from catalog import status
from panels import agreement, editing, records, suggestions, tally
from panels.agreement import Independence
from panels.collections import Collection
from panels.models import Seat
from panels.records import Record
from panels.suggestions import Suggestion

# What is compared: the latest panels in which two models or more were judged. Older ones tell of models as they were.
MOST_PANELS = 2_000


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
    """Reads all of it. Five queries, however many models and verdicts there are."""
    found = records.record_of(collection.name, now)
    suggested = suggestions.suggestions(found, collection.members, status.explorable())
    together = agreement.independence(tally.latest_panels(collection.name, MOST_PANELS), collection.members, collection.seats)
    return Standing(found, records.half_life_days(), suggested, together)


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
