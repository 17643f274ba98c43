"""Who sits on a panel: members in order, then explorers, the models that have gone unused longest. Pure rules."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from catalog import providers
from catalog.roster import Model
from health.probe_forms import is_chat
from health.resting import Resting
from panels import picking
from panels.collections import Collection
from panels.picking import Beliefs, Pick
from wire import dialects
from wire.conversation import Request

OUTPUT_UNKNOWN = 4096
NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Why a model cannot take a turn. `code` is one of context_too_small, no_vision, no_image_urls, no_audio, resting, retired, unknown."""

    code: str
    message: str
    until: datetime | None = None
    kind: str = ""  # of a rest: limit, key or overload


@dataclass(frozen=True, slots=True)
class Place:
    """One seat before it is asked: `hindrance` set means it is skipped, with that reason."""

    alias: str
    model: Model | None
    seat: str
    hindrance: Hindrance | None = None


def resting(model: Model, rest: Resting) -> Hindrance:
    return Hindrance("resting", f"{model.alias} rests until {rest.until:%Y-%m-%d %H:%M:%S} UTC: {rest.reason}", rest.until, rest.kind)


def hindrance(model: Model, request: Request, tokens: int, rest: Resting | None) -> Hindrance | None:
    """Why a model cannot take a request, None where it can. What is not known of a model hinders nothing, but vision must be known.

    Units: `tokens` estimated input.
    """
    if model.retired:
        return Hindrance("retired", f"{model.alias} is retired{': ' + model.status_reason if model.status_reason else ''}.")
    if rest:
        return resting(model, rest)
    window = model.context_window
    # Agents ask for far more output than they use (32,000 tokens as a rule): what they may have is no more than the model gives, and a quarter of its window.
    wanted = tokens + min(request.output_limit or 0, model.output_limit or OUTPUT_UNKNOWN, (window or 0) // 4)
    if window is not None and wanted > window:
        return Hindrance("context_too_small", f"{model.alias} holds {window} tokens; this takes about {wanted}.")
    if request.has_images and not model.facts.get("vision"):
        return Hindrance("no_vision", f"{model.alias} cannot see images.")
    if request.has_image_urls and not dialects.get(providers.get(model.endpoint.kind).dialect).takes_image_urls:
        return Hindrance("no_image_urls", f"{model.alias} takes images by their bytes only; this one came as an address, and nothing is fetched here.")
    if request.has_audio and not model.facts.get("audio"):
        return Hindrance("no_audio", f"{model.alias} is not known to take audio; the fact audio says that it does.")
    if request.has_files and model.facts.get("files") is False:
        return Hindrance("no_audio", f"{model.alias} takes no files.")
    return None


def seats(
    collection: Collection,
    models: Mapping[str, Model],
    last_seated: Mapping[str, datetime],
    seed: int,
    check: Callable[[Model], Hindrance | None],
    besides: Sequence[str] = (),
    sits: Pick | None = None,
    may_explore: Callable[[Model], bool] = lambda model: True,
) -> list[Place]:
    """Members in order, all or those picked, and then those seated besides, each with what hinders it; then explorers that nothing hinders."""
    places = []
    members = collection.members if sits is None else [collection.members[i] for i in sits.seated]
    for alias in (*members, *(a for a in besides if a not in collection.members)):
        model = models.get(alias)
        places.append(Place(alias, model, "member", check(model) if model else Hindrance("unknown", f"{alias} is not on the roster.")))
    places += [Place(m.alias, m, "explorer") for m in explorers(collection, filter(may_explore, models.values()), last_seated, seed, check, besides)]
    return places


def sits_in_part(collection: Collection) -> bool:
    """Tells whether a collection seats fewer than all its members."""
    return collection.seats is not None and collection.seats < len(collection.members)


def pick(
    collection: Collection,
    models: Mapping[str, Model],
    beliefs: Beliefs,
    waited: Mapping[str, int],
    seed: int,
    check: Callable[[Model], Hindrance | None],
    wanted: Sequence[str] = (),
) -> Pick | None:
    """Picks the members that sit, None where all do: by the record, or the first in order that can; who was asked for by name sits in any case."""
    if not sits_in_part(collection):
        return None
    assert collection.seats is not None
    able = {alias for alias in collection.members if (model := models.get(alias)) and check(model) is None}
    if collection.picking != "record":
        beliefs, waited = picking.NOTHING, {}
    return picking.picked(collection.members, able, collection.seats, beliefs, waited, seed, wanted)


def explorers(
    collection: Collection,
    models: Iterable[Model],
    last_seated: Mapping[str, datetime],
    seed: int,
    check: Callable[[Model], Hindrance | None],
    besides: Sequence[str] = (),
) -> list[Model]:
    """The models that do not sit anyway and have gone unused longest; ties in an order that the seed decides."""
    if not collection.explorers:
        return []
    # Embeddings, images and speech answer no panel, and would take the seat each time, since they never sat.
    able = (m for m in models if not m.ad_hoc and is_chat(m.served_name) and check(m) is None)
    bench = sorted((m for m in able if m.alias not in collection.members and m.alias not in besides), key=lambda m: m.alias)
    random.Random(seed).shuffle(bench)
    bench.sort(key=lambda m: last_seated.get(m.alias, NEVER))  # stable: the shuffle decides among equals
    return bench[: collection.explorers]
