"""Makes, changes and deletes endpoints and models from values that were checked field by field; every write is in the audit trail.

UnknownEndpoint, UnknownModel   nothing of this name
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

from django.db import transaction
from django.utils import timezone

from access import audit
from catalog import endpoint_keys, facts, layering, names, prices, status
from catalog.models import Endpoint, Model
from catalog.shape import ShapeError


class UnknownEndpoint(LookupError):
    code = "not_found"


class UnknownModel(LookupError):
    code = "not_found"


# ------------------------------------------------------------------ endpoints


def make_endpoint(given: Mapping[str, Any], key: str, actor: str, is_admin: bool = False) -> None:
    """Adds an endpoint. Errors: ShapeError, access.secrets.UnusableKey; KeyAtStake where a variable's key would go there and no admin says so."""
    with transaction.atomic():
        names.check_unique(given["name"], Endpoint.objects.values_list("name", flat=True), "name")
        row = Endpoint(**given)
        endpoint_keys.set_key(row, key)
        if not is_admin and endpoint_keys.is_at_stake(None, row):
            raise endpoint_keys.KeyAtStake(endpoint_keys.AT_STAKE)
        row.save()
        audit.record(actor, "endpoint.add", row.name, audit.diff({}, {**given, "key": row.key_sealed}, secret_fields=("key",)))


def change_endpoint(name: str, given: Mapping[str, Any], key: str | None, actor: str, is_admin: bool = False) -> None:
    """Changes what is given and leaves the rest; a key replaces the stored one, an empty one forgets it.

    Errors: UnknownEndpoint, ShapeError, access.secrets.UnusableKey; KeyAtStake where a key would go elsewhere and no admin says so.
    """
    with transaction.atomic():
        row = _endpoint(name)
        was = copy(row)
        refuse_renaming("name", name, given)
        before = {field: getattr(row, field) for field in given} | {"key": row.key_sealed}
        for field, value in given.items():
            setattr(row, field, value)
        if key is not None:
            endpoint_keys.set_key(row, key)
        if not is_admin and endpoint_keys.is_at_stake(was, row):
            raise endpoint_keys.KeyAtStake(endpoint_keys.AT_STAKE)
        # Encrypting the same key again gives another text: a key that was sent counts as a change.
        changes = audit.diff(before, {**given, "key": row.key_sealed}, secret_fields=("key",))
        if changes:
            row.save(update_fields=[*given, "key_sealed"])
            if "base_url" in changes or "provider" in changes:
                layering.apply_offers(timezone.now(), row.models.values_list("pk", flat=True))
            audit.record(actor, "endpoint.change", row.name, changes)


def delete_endpoint(name: str, actor: str) -> None:
    """Errors: UnknownEndpoint; Django's ProtectedError while models are served there."""
    with transaction.atomic():
        row = _endpoint(name)
        before = {"kind": row.kind, "base_url": row.base_url, "limits": row.limits, "quirks": row.quirks, "key": row.key_sealed}
        row.delete()
        audit.record(actor, "endpoint.delete", name, audit.diff(before, {}, secret_fields=("key",)))


def _endpoint(name: str) -> Endpoint:
    row = Endpoint.objects.select_for_update().filter(name=name).first() if "\0" not in name else None
    if row is None:
        raise UnknownEndpoint(name)
    return row


# ------------------------------------------------------------------ models


def make_model(given: Mapping[str, Any], actor: str) -> None:
    """Adds a model; prices among its facts hold from today on. Errors: ShapeError."""
    kept_facts, priced = facts.split(given.get("facts", {}))
    with transaction.atomic():
        names.check_unique(given["alias"], Model.objects.values_list("alias", flat=True), "alias")
        row = Model(**{**given, "endpoint": _endpoint_of(given["endpoint"]), "facts": kept_facts})
        row.facts_at = timezone.now() if kept_facts else None
        row.save()
        layering.apply_offers(timezone.now(), [row.pk])
        changes = audit.diff({}, {**given, "facts": kept_facts}) | prices.set_prices(row, priced, prices.today())
        audit.record(actor, "model.add", row.alias, changes)


def change_model(alias: str, given: Mapping[str, Any], actor: str) -> None:
    """Changes what is given and leaves the rest. Of facts, too: a null takes one back that was set by hand; prices hold from today on.

    Errors: UnknownModel, ShapeError.
    """
    with transaction.atomic():
        row = _model(alias)
        refuse_renaming("alias", alias, given)
        kept, priced = dict(given), dict[str, str | None]()
        if "facts" in kept:
            _, priced = facts.split(kept["facts"])
            kept["facts"], _ = facts.split({**row.facts, **kept["facts"]})
        before = {field: row.endpoint.name if field == "endpoint" else getattr(row, field) for field in kept}
        changes = audit.diff(before, kept)
        if "facts" in changes:
            kept["facts_at"] = timezone.now()
        if "endpoint" in changes or "served_name" in changes:
            # What the list told was told of another model.
            kept |= {"listed_facts": {}, "listed_at": None}
            prices.set_prices(row, dict.fromkeys(prices.COLUMNS), prices.today(), facts.LISTED)
        if "endpoint" in kept:
            kept["endpoint"] = _endpoint_of(kept["endpoint"])
        if changes:
            for field, value in kept.items():
                setattr(row, field, value)
            row.save(update_fields=list(kept))
            if "listed_facts" in kept:
                layering.apply_offers(timezone.now(), [row.pk])
        changes |= prices.set_prices(row, priced, prices.today())
        if changes:
            audit.record(actor, "model.change", row.alias, changes)


def delete_model(alias: str, actor: str) -> None:
    """Takes a model off the bench; its calls and verdicts stay on record. Errors: UnknownModel; ProtectedError while a collection seats it."""
    with transaction.atomic():
        row = _model(alias)
        before = {"endpoint": row.endpoint.name, "served_name": row.served_name, "facts": row.facts, "limits": row.limits, "quirks": row.quirks}
        row.delete()
        audit.record(actor, "model.delete", alias, audit.diff(before, {}))


def _model(alias: str) -> Model:
    row = Model.objects.select_for_update(of=("self",)).select_related("endpoint").filter(alias=alias).first() if "\0" not in alias else None
    if row is None:
        raise UnknownModel(alias)
    return row


def retire_model(alias: str, reason: str, actor: str) -> None:
    """Errors: UnknownModel, catalog.status.StatusError."""
    with transaction.atomic():
        status.retire(_model(alias), reason, actor)


def restore_model(alias: str, reason: str, actor: str) -> None:
    """Errors: UnknownModel, catalog.status.StatusError."""
    with transaction.atomic():
        status.restore(_model(alias), reason, actor)


def ids_of_models(aliases: Iterable[str]) -> dict[str, int]:
    """Finds models by alias, those that there are."""
    return dict(Model.objects.filter(alias__in=[alias for alias in aliases if "\0" not in alias]).values_list("alias", "pk"))


def _endpoint_of(name: str) -> Endpoint:
    try:
        return _endpoint(name)
    except UnknownEndpoint:
        raise ShapeError("endpoint", f'names no endpoint: "{name[:60]}". Add the endpoint first.') from None


def refuse_renaming(field: str, name: str, given: Mapping[str, Any]) -> None:
    """The ledger, verdicts and keys hold names as text; a name that changed here alone would cut a record in two."""
    if given.get(field, name) != name:
        raise ShapeError(field, "cannot be changed here. Make a new one and retire this one.")
