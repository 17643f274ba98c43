"""Reads what a person sent as JSON into checked fields, and makes, changes and deletes collections; every write is in the audit trail.

UnknownCollection   no collection of this name
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.db import transaction

from access import audit
from access.pages import Page, sliced
from catalog import names
from catalog.editing import ids_of_models, refuse_renaming
from catalog.shape import ShapeError
from panels.collections import Collection, load_collections
from panels.models import Collection as Row
from panels.models import Member
from panels.roster_shape import SECTIONS

PLACES = {"members": Member.Place.MEMBER, "mergers": Member.Place.MERGER}
FIELDS = tuple(SECTIONS["collections"].fields)


class UnknownCollection(LookupError):
    code = "not_found"


def read(section: str, given: Mapping[str, Any], making: bool) -> dict[str, Any]:
    """Checks fields by the roster file's own rules; a null means the default. Errors: ShapeError for the first that is wrong or, in making, missing."""
    fields = SECTIONS[section].fields
    found: dict[str, Any] = {}
    for name, field in fields.items():
        said = given.get(name)
        if said is not None:
            found[name] = field.read(said, name)
        elif field.required and (making or name in given):
            raise ShapeError(name, "is missing.")
        elif name in given:
            found[name] = field.default
    return found


def make(given: Mapping[str, Any], actor: str) -> Collection:
    """Adds a collection. Errors: ShapeError."""
    kept = read("collections", given, making=True)
    with transaction.atomic():
        names.check_unique(kept["name"], Row.objects.values_list("name", flat=True), "name")
        places = model_ids(kept)
        row = Row.objects.create(**{field: said for field, said in kept.items() if field not in PLACES})
        seat(row, places)
        audit.record(actor, "collection.add", row.name, audit.diff({}, kept))
        return found(row.name)


def change(name: str, given: Mapping[str, Any], actor: str) -> Collection:
    """Changes what is given and leaves the rest; a list of members or mergers is replaced whole. Errors: UnknownCollection, ShapeError."""
    kept = read("collections", given, making=False)
    with transaction.atomic():
        row = locked(name)
        refuse_renaming("name", name, kept)
        before = found(name)
        changes = audit.diff({field: listed(getattr(before, field)) for field in kept}, kept)
        if changes:
            seat(row, model_ids({field: kept[field] for field in changes if field in PLACES}))
            own = [field for field in changes if field not in PLACES]
            for field in own:
                setattr(row, field, kept[field])
            row.save(update_fields=own)
            audit.record(actor, "collection.change", name, changes)
        return found(name)


def delete(name: str, actor: str) -> None:
    """Deletes a collection; its panels and verdicts stay on record under its name. Errors: UnknownCollection."""
    with transaction.atomic():
        row = locked(name)
        before = found(name)
        row.delete()
        audit.record(actor, "collection.delete", name, audit.diff({field: listed(getattr(before, field)) for field in FIELDS}, {}))


def page(limit: int, page_token: str, may_see: Callable[[str], bool] | None = None) -> Page[Collection]:
    """Lists collections by name, those that somebody may see. Two queries."""
    seen = [found for found in load_collections().values() if may_see is None or may_see(found.name)]
    return sliced(seen, lambda collection: (collection.name,), limit, page_token)


def found(name: str) -> Collection:
    """Errors: UnknownCollection."""
    if (collection := load_collections().get(name)) is None:
        raise UnknownCollection(name)
    return collection


def locked(name: str) -> Row:
    row = Row.objects.select_for_update().filter(name=name).first() if "\0" not in name else None
    if row is None:
        raise UnknownCollection(name)
    return row


def listed(value: Any) -> Any:
    """Tuples and lists are one thing in JSON, so they are no change."""
    return list(value) if isinstance(value, tuple) else value


def model_ids(kept: Mapping[str, Any]) -> dict[str, list[int]]:
    """Finds the models of the lists. Errors: ShapeError naming the place whose alias is none."""
    lists = {field: kept[field] for field in PLACES if field in kept}
    if not lists:
        return {}
    known = ids_of_models({alias for wanted in lists.values() for alias in wanted})
    for field, wanted in lists.items():
        for i, alias in enumerate(wanted):
            if alias not in known:
                raise ShapeError(f"{field}[{i}]", f'names no model: "{alias[:60]}". Add the model first; aliases are matched with case.')
    return {field: [known[alias] for alias in wanted] for field, wanted in lists.items()}


def seat(row: Row, places: Mapping[str, list[int]]) -> None:
    """Seats models in the order given, in place of those who sat there."""
    for field, ids in places.items():
        Member.objects.filter(collection=row, place=PLACES[field]).delete()
        Member.objects.bulk_create(Member(collection=row, model_id=pk, place=PLACES[field], position=i) for i, pk in enumerate(ids))
