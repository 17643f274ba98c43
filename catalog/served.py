"""What an endpoint serves: asked of the endpoint itself, tested, and added to the roster."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from access import audit
from catalog import endpoint_keys, facts, layering, names, prices, providers, web
from catalog.asking import Found, Server, plain_list, with_hub
from catalog.models import Endpoint, Model
from catalog.providers import Listed
from catalog.shape import ShapeError
from wire.errors import Fault, UpstreamError


@dataclass(frozen=True, slots=True)
class Tested:
    """How a connection test went. Units: `latency_ms` until the list was read; `models` is how many it lists."""

    ok: bool
    message: str
    latency_ms: int
    models: int


def ask(endpoint_row: Endpoint, hub: str = "") -> Found:
    """Asks an endpoint what it serves. `hub`: what it was found to be before. Errors: as `list_served`."""
    provider = providers.get(endpoint_row.kind)
    if local := provider.local():
        return Found(tuple(provider.read_models(local.models())))
    key = endpoint_keys.key_of(endpoint_row)
    server = Server(provider.headers(key))

    def refused(fetched: web.Fetched) -> web.WebError:
        return refusal(provider.read_error(fetched.status, fetched.headers, fetched.body), fetched, bool(key))

    plain, is_whole = plain_list(provider, endpoint_row.base_url, server, refused)
    return with_hub(plain, is_whole, server, hub)


def list_served(endpoint_row: Endpoint) -> list[Listed]:
    """Asks an endpoint what it serves. Errors: web.WebError, endpoint_keys.KeyUnreadable; KeyError for a kind that there is not."""
    return list(ask(endpoint_row).models)


def refusal(error: UpstreamError, fetched: web.Fetched, has_key: bool) -> web.WebError:
    """Words an endpoint's refusal without its own words: what stands at the address need not be a model API at all."""
    status = fetched.status
    if error.code == "no_credit":
        said = f"it has no credit left for this key ({status})."
    elif error.code == "rate_limit_exceeded":
        wait = f" for {error.retry_after_s:.0f} s" if error.retry_after_s else ""
        said = f"it asks to be left alone{wait} ({status})."
    elif error.fault == Fault.KEY:
        said = f"it refused the key ({status}). Check the key, or the variable that holds it." if has_key else f"it wants a key ({status}), and has none."
    elif status in (404, 405):
        said = f"it has no model list there (got {fetched.media_type}, status {status}). Check the base URL."
    else:
        said = f"it did not answer with its models (got {fetched.media_type}, status {status})."
    return web.WebError("refused", said, status)


def test_connection(endpoint_row: Endpoint) -> Tested:
    """Asks for the model list once, and says in one sentence how that went. Never raises for what the endpoint does."""
    began = time.monotonic()
    try:
        listed = list_served(endpoint_row)
    except endpoint_keys.KeyUnreadable as error:
        return Tested(False, str(error), 0, 0)
    except (web.WebError, KeyError) as error:
        said = f"there is no kind {endpoint_row.kind}." if isinstance(error, KeyError) else str(error)
        return Tested(False, f"Endpoint {endpoint_row.name}: {said}", round((time.monotonic() - began) * 1000), 0)
    latency_ms = round((time.monotonic() - began) * 1000)
    count = f"{len(listed)} model{'' if len(listed) == 1 else 's'}"
    return Tested(True, f"Endpoint {endpoint_row.name} answers and lists {count}.", latency_ms, len(listed))


def add_models(endpoint_row: Endpoint, served_names: Iterable[str], actor: str, listed: Iterable[Listed] | None = None) -> list[Model]:
    """Adds models that an endpoint serves, each under its served name as alias, and gives the new rows; what is there already stays as it is.

    Shape: `listed` is what list_served gave, if it was just asked; else it is asked now, and models are added without facts where it does not answer.
    Errors: ShapeError for a name that cannot be one.
    """
    wanted = [names.check_served_name(name) for name in dict.fromkeys(served_names)]
    if listed is None:
        try:
            listed = list_served(endpoint_row)
        except (web.WebError, endpoint_keys.KeyUnreadable):
            listed = []
    told = {one.served_name: one.facts for one in listed}
    with transaction.atomic():
        # Whoever adds the same models at the same time waits here, and then finds them.
        Endpoint.objects.select_for_update().get(pk=endpoint_row.pk)
        there = set(Model.objects.filter(endpoint=endpoint_row).values_list("served_name", flat=True))
        taken = {names.folded(alias) for alias in Model.objects.values_list("alias", flat=True)}
        made = [add(endpoint_row, name, told.get(name), taken, actor) for name in wanted if name not in there]
        if made and layering.apply_offers(timezone.now(), [row.pk for row in made]).models:
            for row in made:
                row.refresh_from_db(fields=["catalog_facts"])
        return made


def add(endpoint_row: Endpoint, served_name: str, told: Mapping[str, Any] | None, taken: set[str], actor: str) -> Model:
    alias = free_alias(served_name, endpoint_row.name, taken)
    taken.add(names.folded(alias))
    kept, amounts = facts.split(told or {})
    row = Model(endpoint=endpoint_row, alias=alias, served_name=served_name, listed_facts=kept, listed_at=None if told is None else timezone.now())
    row.full_clean()
    row.save()
    prices.set_prices(row, amounts, prices.today(), facts.LISTED)
    audit.record(actor, "model.add", alias, audit.diff({}, {"endpoint": endpoint_row.name, "served_name": served_name, "listed_facts": dict(told or {})}))
    return row


def free_alias(served_name: str, endpoint_name: str, taken: set[str]) -> str:
    """Finds an alias close to the served name: itself, then with its endpoint, then numbered. `taken` holds folded names."""
    stem = served_name
    if names.folded(stem).startswith(names.COLLECTION_PREFIX):
        stem = "bench-" + stem[len(names.COLLECTION_PREFIX) :]
    number = 1
    while True:
        suffix = "" if number == 1 else f"@{endpoint_name[:100]}" if number == 2 else f"@{endpoint_name[:100]}-{number - 1}"
        alias = stem[: names.LONGEST - len(suffix)].rstrip() + suffix
        try:
            if names.folded(names.check_alias(alias)) not in taken:
                return alias
        except ShapeError:  # cut behind a joiner, which stands only inside a name
            stem = stem[:-1]
            continue
        number += 1
