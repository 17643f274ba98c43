"""Onboarding: models on their way onto the bench, one at a time per connection, as rows that outlive whatever does the work.

    start ─▶ a batch, a row a model, an errand a row ─▶ onboarding_stages does a stage after the other, each kept when it is over

OnboardError      a request that cannot be taken; `field` names what is wrong
UnknownBatch      no batch of this id
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Count, Q, Sum
from django.utils import timezone

from access import audit
from access.ids import new_id
from access.pages import Page, keyset
from catalog import adding, candidates, listing, names
from catalog.editing import UnknownEndpoint
from catalog.shape import ShapeError
from health import errands, estimates
from health.models import Batch, Onboarding
from health.roll import answers_in_words

ERRAND = "onboard"
PRIORITY = 30
MOST = 500
# What each mode goes through, the lowest mode first.
MODES: dict[str, tuple[str, ...]] = {
    "quick_ad_hoc": ("register",),
    "quick": ("register", "check"),
    "full": ("register", "check", "speed", "suite"),
}
OPEN = (Onboarding.State.WAITING, Onboarding.State.RUNNING)


class OnboardError(ValueError):
    code = "invalid_request"

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field} {message}")
        self.field = field


class UnknownBatch(LookupError):
    code = "not_found"


@dataclass(frozen=True, slots=True)
class ModelShown:
    """One model of a batch.

    Shape: `stage` is what it is at, or was; `stages` what came of each that is over; `log` lines of {at, said}. Units: `cost_pusd` of calls with a known
    price, `unpriced` counts the others.
    """

    served_name: str
    alias: str
    mode: str
    state: str
    stage: str
    stages: Mapping[str, Any]
    message: str
    log: Sequence[Mapping[str, str]]
    cost_pusd: int
    unpriced: int
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class BatchShown:
    """One batch. Shape: `state` is waiting, running, done (all of them), failed (some did) or cancelled; `progress` the share of stages that are over."""

    id: str
    endpoint: str
    mode: str
    by: str
    made_at: datetime
    cancelled_at: datetime | None
    state: str
    counts: Mapping[str, int]
    progress: float
    cost_pusd: int
    unpriced: int
    models: tuple[ModelShown, ...] = ()


@dataclass(frozen=True, slots=True)
class Started:
    """What became of a request. Shape: `batch` is None where nothing was new; `open` names the batch in which each other model is under way now, `done`
    the one that has brought it as far as was asked for.
    """

    batch: str | None
    models: int
    open: Mapping[str, str]
    done: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Expected:
    """What onboarding will spend. Units: `cost_pusd` of models whose price is known, None where none is; `unpriced` counts the others."""

    models: int
    calls: int
    cost_pusd: int | None
    unpriced: int


# ------------------------------------------------------------------ asking for it


def checked(endpoint: str, served_names: Any, mode: Any) -> list[str]:
    """Gives the names, each once. Errors: OnboardError, UnknownEndpoint."""
    if mode not in MODES:
        raise OnboardError("mode", f"must be one of {', '.join(reversed(MODES))}.")
    if not isinstance(served_names, list) or not served_names:
        raise OnboardError("served_names", "must be a list with at least one name, as the endpoint knows its models.")
    if len(served_names) > MOST:
        raise OnboardError("served_names", f"must hold at most {MOST} names, not {len(served_names)}. Send several requests.")
    if not isinstance(endpoint, str):
        raise OnboardError("endpoint", "must be an endpoint's name.")
    for place, name in enumerate(served_names):
        try:
            names.check_served_name(name)
        except ShapeError as error:
            raise OnboardError(f"served_names[{place}]", str(error).removeprefix("served_name ")) from None
    if "\0" in endpoint or listing.endpoint(endpoint) is None:
        raise UnknownEndpoint(endpoint)
    return list(dict.fromkeys(served_names))


def start(endpoint: str, served_names: Any, mode: Any, actor: str) -> Started:
    """Queues models for onboarding. One that is under way, or was brought as far before, is not queued again. Errors: OnboardError, UnknownEndpoint."""
    wanted = checked(endpoint, served_names, mode)
    now = timezone.now()
    with transaction.atomic():
        batch = Batch.objects.create(id=new_id("onb"), endpoint=endpoint, mode=mode, by=actor[:200], made_at=now)
        rows = [Onboarding(batch=batch, position=n, endpoint=endpoint, served_name=name, mode=mode) for n, name in enumerate(wanted)]
        # Of several requests at once the table lets one have each model.
        Onboarding.objects.bulk_create(rows, ignore_conflicts=True)
        mine = {row.served_name: row for row in Onboarding.objects.filter(batch=batch)}
        under_way = batches_of(endpoint, [name for name in wanted if name not in mine], Q(state__in=OPEN))
        # Looked at last: what was under way until a moment ago is over by now and seen here.
        done = batches_of(endpoint, list(mine), Q(state=Onboarding.State.DONE, mode__in=as_far(mode)))
        done = {name: found for name, found in done.items() if name in adding.in_play(endpoint, done)}
        Onboarding.objects.filter(batch=batch, served_name__in=list(done)).delete()
        begun = [row for name, row in mine.items() if name not in done]
        if begun:
            errands.queue([new_errand(row, batch.id) for row in begun])
            audit.record(actor, "onboarding.start", batch.id, {"endpoint": [None, endpoint], "mode": [None, mode], "models": [None, len(begun)]})
        else:
            batch.delete()
    if begun:
        errands.ring()
    return Started(batch.id if begun else None, len(begun), under_way, done)


def new_errand(row: Onboarding, batch: str) -> errands.New:
    return errands.New(
        once=f"{ERRAND}:{row.pk}",
        kind=ERRAND,
        subject=row.served_name,
        endpoint=row.endpoint,
        batch=batch,
        details={"onboarding": row.pk},
        priority=PRIORITY,
    )


def as_far(mode: str) -> list[str]:
    """The modes that go at least as far."""
    modes = list(MODES)
    return modes[modes.index(mode) :]


def batches_of(endpoint: str, served_names: Sequence[str], which: Q) -> dict[str, str]:
    """The first batch of each model, of those that are meant."""
    rows = Onboarding.objects.filter(which, endpoint=endpoint, served_name__in=list(served_names)).order_by("-batch__made_at")
    return dict(rows.values_list("served_name", "batch_id"))


def expected(endpoint: str, served_names: Any, mode: Any) -> Expected:
    """Reckons what onboarding would spend; asks and writes nothing. Errors: OnboardError, UnknownEndpoint."""
    wanted = checked(endpoint, served_names, mode)
    kinds = [kind for stage, kind in (("check", "word"), ("speed", "perf")) if stage in MODES[mode]]
    if not kinds:
        return Expected(len(wanted), 0, 0, 0)
    silent = candidates.not_chat(endpoint)
    models = [m for m in adding.as_models(endpoint, wanted) if answers_in_words(m, silent)]  # nobody else is asked anything
    found = [estimates.estimate(kind, models) for kind in kinds]
    costs = [[m.cost_pusd for m in each] for each in zip(*(f.models for f in found), strict=True)]
    known = [sum(c for c in of_model if c is not None) for of_model in costs if None not in of_model]
    return Expected(len(wanted), sum(m.calls for f in found for m in f.models), sum(known) if known else None, len(costs) - len(known))


def cancel(batch_id: str, actor: str) -> int:
    """Ends a batch: what waits never begins, what runs ends at its next step. Gives how many models it held back. Errors: UnknownBatch."""
    with transaction.atomic():
        batch = Batch.objects.select_for_update().filter(pk=batch_id).first()
        if batch is None:
            raise UnknownBatch(batch_id)
        now = timezone.now()
        errands.cancel(kind=ERRAND, batch=batch_id)
        count = Onboarding.objects.filter(batch=batch, state__in=OPEN).update(
            state=Onboarding.State.CANCELLED, finished_at=now, message=f"Cancelled by {actor[:200]}."
        )
        if count:
            Batch.objects.filter(pk=batch_id).update(cancelled_at=now)
            audit.record(actor, "onboarding.cancel", batch_id, {"models": [count, 0]})
    return count


# ------------------------------------------------------------------ looking at it


def shown(batch_id: str) -> BatchShown:
    """Shows one batch with its models. Errors: UnknownBatch."""
    batch = Batch.objects.filter(pk=batch_id).first() if "\0" not in batch_id else None
    if batch is None:
        raise UnknownBatch(batch_id)
    rows = list(Onboarding.objects.filter(batch=batch).order_by("position"))
    counts = {state: sum(r.state == state for r in rows) for state in Onboarding.State.values}
    return batch_shown(batch, counts, sum(r.cost_pusd for r in rows), sum(r.unpriced for r in rows), rows)


def batches(limit: int, page_token: str) -> Page[BatchShown]:
    """Lists batches, the newest first, without their models. Two queries."""
    page = keyset(Batch.objects.all(), ("made_at", "id"), limit, page_token, newest_first=True)
    counts = {state: Count("pk", filter=Q(state=state)) for state in Onboarding.State.values}
    found = Onboarding.objects.filter(batch__in=[b.pk for b in page.data]).order_by().values("batch")
    sums = {row["batch"]: row for row in found.annotate(**counts, cost=Sum("cost_pusd"), without=Sum("unpriced"))}

    def view(batch: Batch) -> BatchShown:
        row: dict[str, Any] = dict(sums.get(batch.pk, {}))
        return batch_shown(batch, {state: row.get(state, 0) for state in counts}, int(row.get("cost") or 0), int(row.get("without") or 0), None)

    return page.mapped(view)


def batch_shown(batch: Batch, counts: Mapping[str, int], cost_pusd: int, unpriced: int, rows: Iterable[Onboarding] | None) -> BatchShown:
    total = sum(counts.values())
    ended = total - counts["waiting"] - counts["running"]
    steps = len(MODES.get(batch.mode, ("register",)))
    models = tuple(model_shown(row) for row in rows or ())
    parts = ended if rows is None else sum(1.0 if m.finished_at else len(m.stages) / steps for m in models)
    return BatchShown(
        batch.pk,
        batch.endpoint,
        batch.mode,
        batch.by,
        batch.made_at,
        batch.cancelled_at,
        state_of(counts),
        counts,
        round(parts / total, 3) if total else 1.0,
        cost_pusd,
        unpriced,
        models,
    )


def state_of(counts: Mapping[str, int]) -> str:
    """A batch in one word."""
    if counts["running"] or (counts["waiting"] and any(n for state, n in counts.items() if state != "waiting")):
        return "running"
    return next((state for state in ("waiting", "failed", "cancelled") if counts[state]), "done")


def model_shown(row: Onboarding) -> ModelShown:
    return ModelShown(
        row.served_name,
        row.alias,
        row.mode,
        row.state,
        row.stage,
        row.stages_done,
        row.message,
        row.log,
        row.cost_pusd,
        row.unpriced,
        row.started_at,
        row.finished_at,
    )
