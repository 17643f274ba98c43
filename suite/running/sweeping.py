"""Many subjects through one thing: the same tasks, the same impl, one run each, launched together or not at all.

A subject that cannot be asked leaves its place with the reason; the others go. Where all cannot, nothing is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from access.caller import Caller
from suite import ids
from suite.api.problems import Problem, Unprocessable, Wrong, wrong
from suite.models import Sweep
from suite.running import launching
from suite.running.subjects import Subject

MOST = 50
OWN = ("name", "anchor", "models", "suts")
# Of a launch, what a sweep passes on to each of its runs. What it measures by may be the anchor's instead.
SHARED = (
    "benchmark", "subset", "impl", "subset_version", "only_failed", "task_ids", "driver", "compute", "limits", "constraints", "trials", "hints", "metadata",
    "tags", "source",
)  # fmt: skip
REPLAYED = ("subset_version", "only_failed", "task_ids")
FIELDS = (*OWN, *SHARED, "idempotency_key")


def create(caller: Caller, body: Mapping[str, Any]) -> Sweep:
    """Launches a run for each subject. Errors: Problem; Unprocessable `sweep_empty` where no subject can be asked."""
    asked = subjects_of(body)
    prepared = launching.prepare(caller, launch_of(body))
    found: list[tuple[Any, Subject | Problem]] = []
    for sut in asked:
        try:
            found.append((sut, launching.subject_of(prepared, sut)))
        except Problem as error:
            found.append((sut, error))
    refused = [refusal(sut, i, error) for i, (sut, error) in enumerate(found) if isinstance(error, Problem)]
    if len(refused) == len(found):
        wrongs = [Wrong(f"/models/{r['index']}", r["code"], r["detail"]) for r in refused]
        raise Unprocessable("sweep_empty", "None of the subjects can be asked, so nothing was launched.", wrongs)
    sweep = Sweep(
        id=ids.new_id("swp"),
        anchor=prepared.target.parent.pk if prepared.target.parent else "",
        launch={**{name: value for name, value in body.items() if name != "idempotency_key"}, "refused": refused},
        owner=caller.owner,
        team=caller.team,
        created_at=timezone.now(),
    )
    with transaction.atomic():
        sweep.save(force_insert=True)
        for _, subject in found:
            if isinstance(subject, Subject):
                launching.begun(caller, prepared, subject, sweep.pk)
    return sweep


def subjects_of(body: Mapping[str, Any]) -> list[Any]:
    """Reads whom a sweep tests: `models`, or `suts` as it is called elsewhere; each once. Errors: Unprocessable."""
    if body.get("models") is not None and body.get("suts") is not None:
        raise Unprocessable(
            "mode_conflict", "models and suts are two names of one field: give one.", [Wrong("/suts", "mode_conflict", "stands beside models.")]
        )
    name = "suts" if body.get("suts") is not None else "models"
    value = body.get(name)
    if not isinstance(value, list) or not 1 <= len(value) <= MOST:
        raise wrong(f"/{name}", f"must be a list of 1 to {MOST} subjects.", "missing" if value is None else "invalid")
    found: list[Any] = []
    for sut in value:
        if sut not in found:
            found.append(sut)
    return found


def launch_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Writes what the runs have in common as a launch: a replay of the anchor, or a pinned benchmark. Errors: Unprocessable."""
    anchor = body.get("anchor")
    shared = {name: body[name] for name in SHARED if body.get(name) is not None}
    if anchor is None:
        if extra := [name for name in REPLAYED if name in shared]:
            raise Unprocessable("mode_conflict", f"{', '.join(extra)} want an anchor to replay.", [Wrong(f"/{extra[0]}", "mode_conflict", "wants an anchor.")])
        return shared
    if clash := [name for name in ("benchmark", "subset", "impl") if name in shared]:
        wrongs = [Wrong(f"/{name}", "mode_conflict", "is the anchor's.") for name in clash]
        raise Unprocessable("mode_conflict", f"{', '.join(clash)} and anchor exclude each other: the anchor says what is measured by.", wrongs, fields=clash)
    replay = {"from_run": anchor, **{name: shared.pop(name) for name in REPLAYED if name in shared}}
    return {**shared, "replay": replay}


def refusal(sut: Any, index: int, error: Problem) -> dict[str, Any]:
    return {"index": index, "sut": sut, "code": error.code, "detail": str(error), **{name: error.more[name] for name in ("nearest",) if name in error.more}}
