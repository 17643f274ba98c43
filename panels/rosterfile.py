"""Roster files: loads one into the database, all or nothing and twice the same, and writes the database's roster as one, without secrets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import yaml
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from access import audit
from catalog import facts, layering, names, prices
from catalog.models import Endpoint, Model
from catalog.shape import nearest
from panels import roster_shape, roster_text
from panels.models import Collection, Member
from panels.roster_shape import Given
from panels.roster_text import Problem, RosterError

ACTOR = "roster load"
PLACES = {"members": Member.Place.MEMBER, "mergers": Member.Place.MERGER}
ENDPOINT_FIELDS = ("kind", "base_url", "provider", "key_env", "limits", "quirks")
MODEL_FIELDS = ("served_name", "limits", "quirks", "ad_hoc")
COLLECTION_FIELDS = tuple(name for name in roster_shape.COLLECTION if name not in ("name", *PLACES))


@dataclass(frozen=True, slots=True)
class Change:
    """One object that a file adds or changes. Shape: `changes` is field: [before, after], of an added object only what is not the default."""

    noun: str
    name: str
    is_new: bool
    changes: Mapping[str, list[Any]] = field(default_factory=dict)


# ------------------------------------------------------------------ load


def load(text: str, actor: str = ACTOR, dry_run: bool = False) -> list[Change]:
    """Applies a roster file's text, and gives what was changed; with `dry_run` what would be. What the file does not mention stays as it is.

    Errors: RosterError, and then nothing was changed.
    """
    given = roster_shape.read(roster_text.read(text))
    try:
        with transaction.atomic():
            changes = apply(given, actor)
            if dry_run:
                transaction.set_rollback(True)
    except IntegrityError:
        raise RosterError([Problem(0, "", "Somebody else changed the roster at the same time. Load the file again.")]) from None
    return changes


def apply(given: Mapping[str, list[Given]], actor: str) -> list[Change]:
    endpoints = {row.name: row for row in Endpoint.objects.select_for_update()}
    models = {row.alias: row for row in Model.objects.select_for_update().select_related("endpoint")}
    collections = {row.name: row for row in Collection.objects.select_for_update()}
    check_references(given, endpoints, models, collections)
    found: list[Change | None] = []
    problems: list[Problem] = []
    for one in given["endpoints"]:
        found.append(attempt(one, problems, partial(set_endpoint, one, endpoints, actor)))
    for one in given["models"]:
        found.append(attempt(one, problems, partial(set_model, one, endpoints, models, actor)))
    seats = seats_of(collections.values())
    for one in given["collections"]:
        found.append(attempt(one, problems, partial(set_collection, one, models, collections, seats, actor)))
    if problems:
        raise RosterError(problems)
    changes = [change for change in found if change is not None]
    if any(change.noun in ("endpoint", "model") for change in changes):
        layering.apply_offers(timezone.now())
    return changes


def attempt(given: Given, problems: list[Problem], change: Callable[[], Change | None]) -> Change | None:
    """Does one change; what a row's own rules refuse becomes a problem with the line of its field."""
    try:
        return change()
    except ValidationError as error:
        by_field = error.message_dict if hasattr(error, "error_dict") else {"": error.messages}
        for name, messages in by_field.items():
            said = " ".join(messages)
            problems.append(given.problem(name, said if said.startswith(name) else f"{name}: {said}"))
        return None


def check_references(
    given: Mapping[str, list[Given]], endpoints: Mapping[str, Endpoint], models: Mapping[str, Model], collections: Mapping[str, Collection]
) -> None:
    """Errors: RosterError for every endpoint or alias that is in neither the file nor the database, and every name that differs from a row's in case only."""
    problems: list[Problem] = []
    known: dict[str, set[str]] = {}
    for section, rows in (("endpoints", endpoints), ("models", models), ("collections", collections)):
        known[section] = {*rows, *(one.name for one in given[section])}
        named_by = roster_shape.SECTIONS[section].named_by
        folded = {names.folded(name): name for name in rows}
        for one in given[section]:
            other = folded.get(names.folded(one.name), one.name)
            if other != one.name:
                problems.append(one.problem(named_by, f'{named_by} differs from the existing "{other}" in case only. Write it the same way.'))
    for one in given["models"]:
        if one.values["endpoint"] not in known["endpoints"]:
            said = one.values["endpoint"]
            problems.append(one.problem("endpoint", f'endpoint names "{said}", which is neither here nor in the roster.{nearest(said, known["endpoints"])}'))
    for one in given["collections"]:
        for place in PLACES:
            for index, alias in enumerate(one.values.get(place, ())):
                if alias not in known["models"]:
                    said = f'{place}[{index}] names the model "{alias}", which is neither here nor in the roster.{nearest(alias, known["models"])}'
                    problems.append(one.problem(f"{place}[{index}]", said))
    if problems:
        raise RosterError(problems)


def set_endpoint(given: Given, rows: dict[str, Endpoint], actor: str) -> Change | None:
    row = rows.get(given.name)
    is_new = row is None
    row = row or Endpoint(name=given.name)
    before = {} if is_new else plain_fields(row, ENDPOINT_FIELDS)
    assign(row, given, ENDPOINT_FIELDS)
    return finish(given, row, is_new, audit.diff(before, plain_fields(row, ENDPOINT_FIELDS)), rows, actor)


def set_model(given: Given, endpoints: Mapping[str, Endpoint], rows: dict[str, Model], actor: str) -> Change | None:
    row = rows.get(given.name)
    is_new = row is None
    row = row or Model(alias=given.name)
    before = {} if is_new else model_fields(row)
    kept, amounts = facts.split(given.values.get("facts", {}))
    assign(row, given, MODEL_FIELDS)
    row.endpoint = endpoints[given.values["endpoint"]]
    if "facts" in given.values:
        row.facts = kept
    changes = audit.diff(before, model_fields(row))
    if not is_new and ("endpoint" in changes or "served_name" in changes):
        # What the list told was told of another model.
        row.listed_facts, row.listed_at = {}, None
        prices.set_prices(row, dict.fromkeys(prices.COLUMNS), prices.today(), facts.LISTED)
    if is_new or changes:
        row.full_clean()
        row.save()
        rows[row.alias] = row
    changes |= prices.set_prices(row, amounts, prices.today())
    return written(given, is_new, changes, actor)


def set_collection(
    given: Given, models: Mapping[str, Model], rows: dict[str, Collection], seats: Mapping[tuple[str, str], list[str]], actor: str
) -> Change | None:
    row = rows.get(given.name)
    is_new = row is None
    row = row or Collection(name=given.name)
    before = {} if is_new else plain_fields(row, COLLECTION_FIELDS)
    assign(row, given, COLLECTION_FIELDS)
    changes = audit.diff(before, plain_fields(row, COLLECTION_FIELDS))
    if is_new or changes:
        row.full_clean()
        row.save()
        rows[row.name] = row
    for name, place in PLACES.items():
        held = seats.get((row.name, place), [])
        if name not in given.values or given.values[name] == held:
            continue
        Member.objects.filter(collection=row, place=place).delete()
        Member.objects.bulk_create(
            Member(collection=row, model=models[alias], place=place, position=position) for position, alias in enumerate(given.values[name])
        )
        changes[name] = [held, given.values[name]]
    return written(given, is_new, changes, actor)


def finish(given: Given, row: Any, is_new: bool, changes: dict[str, list[Any]], rows: dict[str, Any], actor: str) -> Change | None:
    if is_new or changes:
        row.full_clean()
        row.save()
        rows[given.name] = row
    return written(given, is_new, changes, actor)


def written(given: Given, is_new: bool, changes: dict[str, list[Any]], actor: str) -> Change | None:
    """Puts a change into the audit trail, and gives it; None where there is none."""
    if is_new:
        fields = roster_shape.SECTIONS[f"{given.noun}s"].fields
        changes = {name: [None, after] for name, (_, after) in changes.items() if name not in fields or after != fields[name].default}
    elif not changes:
        return None
    audit.record(actor, f"{given.noun}.{'add' if is_new else 'change'}", given.name, changes)
    return Change(given.noun, given.name, is_new, changes)


def assign(row: Any, given: Given, fields: Iterable[str]) -> None:
    for name in fields:
        if name in given.values:
            setattr(row, name, given.values[name])


def plain_fields(row: Any, fields: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in fields}


def model_fields(row: Model) -> dict[str, Any]:
    return {"endpoint": row.endpoint.name, **plain_fields(row, MODEL_FIELDS), "facts": row.facts}


def seats_of(rows: Iterable[Collection]) -> dict[tuple[str, str], list[str]]:
    """Aliases by collection and place, in order."""
    found: dict[tuple[str, str], list[str]] = {}
    places = Member.objects.filter(collection__in=list(rows)).order_by("position", "id")
    for collection, place, alias in places.values_list("collection__name", "place", "model__alias"):
        found.setdefault((collection, place), []).append(alias)
    return found


# ------------------------------------------------------------------ dump


def dump() -> dict[str, list[dict[str, Any]]]:
    """Gives the roster in the file's shape: no key, no default, and of prices those set by hand that hold today."""
    collections = list(Collection.objects.order_by("name"))
    seats = seats_of(collections)
    return {
        "endpoints": [shortened("endpoints", {"name": row.name, **plain_fields(row, ENDPOINT_FIELDS)}) for row in Endpoint.objects.order_by("name")],
        "models": [
            shortened("models", {"alias": row.alias, **model_fields(row), "facts": {**row.facts, **prices.prices_of(row)}})
            for row in Model.objects.select_related("endpoint").order_by("alias")
        ],
        "collections": [
            shortened(
                "collections",
                {"name": row.name, **plain_fields(row, COLLECTION_FIELDS), **{name: seats.get((row.name, place), []) for name, place in PLACES.items()}},
            )
            for row in collections
        ],
    }


def shortened(section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves defaults out, in the order of the section's fields."""
    fields = roster_shape.SECTIONS[section].fields
    return {name: values[name] for name in fields if fields[name].required or values[name] != fields[name].default}


class RosterDumper(yaml.SafeDumper):
    """Quotes whatever either reading of YAML would take for something else than text."""


for tag, form, firsts in roster_text.WORD_FORMS:
    RosterDumper.add_implicit_resolver(tag, form, firsts)


def dump_yaml() -> str:
    stored = Endpoint.objects.exclude(key_sealed="").order_by("name").values_list("name", flat=True)
    head = "# Keys are not in this file. "
    head += f"Stored here, to be set again elsewhere: {', '.join(stored)}.\n" if stored else "None is stored here.\n"
    return head + yaml.dump(dump(), Dumper=RosterDumper, sort_keys=False, allow_unicode=True, width=140, default_flow_style=None)


def dump_json() -> str:
    return json.dumps(dump(), indent=1, ensure_ascii=False) + "\n"
