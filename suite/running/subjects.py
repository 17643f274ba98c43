"""Whom a run tests: a model by its alias, one that an endpoint serves without being on the bench, or a collection in a mode.

sut_unknown   none of these; the nearest names go with it
sut_retired   a retired model, unless it is asked for in spite of that
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from catalog.roster import Model
from panels.plan import PREFIX
from panels.snapshot import Snapshot
from suite.api.problems import Conflict, Unprocessable, Wrong

MODES = ("panel", "merged", "route")
FIELDS = ("model", "provider", "collection", "mode", "params", "retired_too")


@dataclass(frozen=True, slots=True)
class Subject:
    """Shape: `asked_as` is the name that a request names; `name` what people call it; `params` go into every request; `retired_too` asks a retired one."""

    kind: str  # model, served or collection
    name: str
    asked_as: str
    provider: str = ""
    mode: str = ""
    params: Mapping[str, Any] | None = None
    served_name: str = ""
    retired_too: bool = False

    def said(self) -> dict[str, Any]:
        return {
            **({"retired_too": True} if self.retired_too else {}),
            "kind": self.kind,
            "model": self.name,
            "asked_as": self.asked_as,
            "provider": self.provider,
            "mode": self.mode,
            "params": dict(self.params or {}),
            "served_name": self.served_name,
        }

    @classmethod
    def kept(cls, sut: Mapping[str, Any]) -> Subject:
        return cls(
            sut["kind"],
            sut["model"],
            sut["asked_as"],
            sut.get("provider", ""),
            sut.get("mode", ""),
            sut.get("params") or None,
            sut.get("served_name", ""),
            sut.get("retired_too") is True,
        )


def kept_one(sut: Mapping[str, Any], snapshot: Snapshot) -> Subject:
    """Finds a parent's subject once more, as it stands now. Errors: Unprocessable where it is there no longer, Conflict where it is retired."""
    subject = Subject.kept(sut)
    if subject.kind == "model":
        found = resolve({"model": subject.name, "retired_too": subject.retired_too}, snapshot)
        return replace(found, params=subject.params)
    if subject.kind == "collection":
        return replace(collection(subject.asked_as.removeprefix(PREFIX).partition(":")[0], subject.mode, snapshot), params=subject.params)
    return subject


def resolve(sut: Any, snapshot: Snapshot) -> Subject:
    """Finds a subject. Shape: "alias", "served@endpoint", "bench/<collection>[:mode]", or an object with those parts. Errors: Unprocessable, Conflict."""
    if isinstance(sut, str):
        sut = {"model": sut}
    if not isinstance(sut, Mapping):
        raise unknown("", "sut must be a name, or an object with model and provider.", snapshot)
    if wrongs := [Wrong(f"/sut/{name}", "unknown_field", "There is no such field.") for name in sut if name not in FIELDS]:
        raise Unprocessable("unknown_field", f"sut has {', '.join(FIELDS)}.", wrongs)
    params = sut.get("params")
    if params is not None and not isinstance(params, Mapping):
        raise Unprocessable("invalid_request", "sut.params must be an object.", [Wrong("/sut/params", "invalid", "must be an object.")])
    if sut.get("collection") is not None:
        return replace(collection(str(sut["collection"]), str(sut.get("mode") or "merged"), snapshot), params=params)
    name, provider = sut.get("model"), sut.get("provider") or ""
    if not isinstance(name, str) or not name or not isinstance(provider, str):
        raise unknown("", "sut.model must be a name.", snapshot)
    if name in snapshot.models and provider in ("", snapshot.models[name].endpoint.name):
        return replace(of_model(snapshot.models[name], sut.get("retired_too") is True), params=params)
    if name.startswith(PREFIX) and not provider:
        bare, _, mode = name.removeprefix(PREFIX).partition(":")
        return replace(collection(bare, mode or str(sut.get("mode") or "panel"), snapshot), params=params)
    if not provider and "@" in name:
        name, _, provider = name.rpartition("@")
    return replace(served(name, provider, snapshot, sut.get("retired_too") is True), params=params)


def of_model(model: Model, retired_too: bool) -> Subject:
    """Errors: Conflict for a retired one that is not asked for in spite of that."""
    if model.retired and not retired_too:
        raise Conflict(
            "sut_retired", f"{model.alias} is retired ({model.status_reason or 'no reason given'}). With sut.retired_too it is tested in spite of that."
        )
    return Subject("model", model.alias, model.alias, model.endpoint.name, served_name=model.served_name, retired_too=model.retired)


def collection(name: str, mode: str, snapshot: Snapshot) -> Subject:
    if name not in snapshot.collections:
        raise unknown(name, f"There is no collection {name[:100]}.", snapshot)
    if mode not in MODES:
        raise Unprocessable("sut_unknown", f"A collection has the modes {', '.join(MODES)}, not {mode[:40]}.", [Wrong("/sut/mode", "invalid", "is no mode.")])
    suffix = "" if mode == "panel" else f":{mode}"
    return Subject("collection", f"{PREFIX}{name}{suffix}", f"{PREFIX}{name}{suffix}", mode=mode)


def served(name: str, provider: str, snapshot: Snapshot, retired_too: bool = False) -> Subject:
    """Finds what an endpoint serves: a model of the bench by its served name, one that plays before a retired one, else one that runs without joining."""
    there = [m for m in snapshot.models.values() if m.endpoint.name == provider]
    if named := sorted((m for m in there if name in (m.served_name, m.alias)), key=lambda m: m.retired):
        return of_model(named[0], retired_too)
    if not there:
        raise unknown(
            name if not provider else f"{name}@{provider}",
            f"There is no endpoint {provider[:100]} with models." if provider else f"There is no model {name[:100]}.",
            snapshot,
        )
    return Subject("served", f"{name}@{provider}", f"{name}@{provider}", provider, served_name=name)


def seated(subject: Subject, snapshot: Snapshot) -> Snapshot:
    """Gives a snapshot in which the subject can be asked: a served model gets a seat that only this run knows, a retired one plays in this run alone."""
    if subject.retired_too and (old := snapshot.models.get(subject.asked_as)) is not None:
        return replace(snapshot, models={**snapshot.models, old.alias: replace(old, retired=False)})
    if subject.kind != "served":
        return snapshot
    host = next((m.endpoint for m in snapshot.models.values() if m.endpoint.name == subject.provider), None)
    if host is None:
        raise unknown(subject.name, f"There is no endpoint {subject.provider} any more.", snapshot)
    guest = Model(0, subject.asked_as, host, subject.served_name, {}, {}, {}, True, False, "", ())
    return replace(snapshot, models={**snapshot.models, subject.asked_as: guest})


def connection_of(subject: Subject) -> str:
    """Names the connection that a subject's calls share; a collection has one of its own, since its members' differ."""
    return subject.asked_as if subject.kind == "collection" else f"endpoint:{subject.provider}"


def unknown(name: str, message: str, snapshot: Snapshot) -> Unprocessable:
    names = [*snapshot.models, *(f"{PREFIX}{c}" for c in snapshot.collections)]
    by_fold = {n.casefold(): n for n in names}
    near = [by_fold[n] for n in difflib.get_close_matches(name.casefold(), list(by_fold), n=5, cutoff=0.5)] if name else []
    hint = f" Perhaps {', '.join(near)}." if near else ""
    return Unprocessable("sut_unknown", f"{message}{hint}", [Wrong("/sut", "sut_unknown", message)], nearest=near)
