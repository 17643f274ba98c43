"""Who takes part in runs of probes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog import candidates
from catalog.load import load_models
from catalog.roster import Model
from health import probe_forms


@dataclass(frozen=True, slots=True)
class Roll:
    """Who is probed. Shape: `left_out` by reason (ad_hoc, retired, not_chat), aliases."""

    models: tuple[Model, ...]
    left_out: Mapping[str, tuple[str, ...]]


def roll() -> Roll:
    """Who takes part in runs: active models that answer in words and are not ad hoc."""
    taken: list[Model] = []
    left: dict[str, list[str]] = {"ad_hoc": [], "retired": [], "not_chat": []}
    silent = {kept.endpoint: frozenset(m.served_name for m in kept.models if not m.chat) for kept in candidates.every_kept()}
    for alias, model in sorted(load_models().items()):
        if model.retired:
            left["retired"].append(alias)
        elif model.ad_hoc:
            left["ad_hoc"].append(alias)
        elif not answers_in_words(model, silent.get(model.endpoint.name, frozenset())):
            left["not_chat"].append(alias)
        else:
            taken.append(model)
    return Roll(tuple(taken), {why: tuple(aliases) for why, aliases in left.items()})


def answers_in_words(model: Model, silent: frozenset[str]) -> bool:
    return probe_forms.is_chat(model.served_name, False if model.served_name in silent else None)
