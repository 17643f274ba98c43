"""What tests of probes share: an endpoint at the fake provider, its models, and a queue that is worked through at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from catalog.models import Endpoint, Model, Price
from health import errands, probes
from health.models import Attempt, Errand, ModelHealth, Probe
from tests.fake import FakeProvider

SLOT = datetime(2026, 11, 29, 4, 30, tzinfo=UTC)
DAYS = iter(range(1, 10_000))


def endpoint(fake: FakeProvider, name: str = "here", **more: Any) -> Endpoint:
    row, _ = Endpoint.objects.get_or_create(name=name, defaults={"kind": "openai", "base_url": fake.url, **more})
    return row


def model(fake: FakeProvider, alias: str, *answers: Any, at: Endpoint | None = None, **more: Any) -> Model:
    """A model with prices of half a dollar and of one and a half."""
    row = Model.objects.create(alias=alias, endpoint=at or endpoint(fake), served_name=more.pop("served_name", alias), **more)
    Price.objects.create(model=row, since="2020-01-01", input_usd_per_mtok="0.5", output_usd_per_mtok="1.5")
    if answers:
        fake.script(row.served_name, *answers)
    return row


def work() -> None:
    """Does what is due, until nothing is."""
    for _ in range(20):
        if not errands.work():
            return


def run_word() -> datetime:
    """One daily run, a day after the last."""
    slot = SLOT + timedelta(days=next(DAYS))
    probes.plan_word(slot, datetime.now(UTC))
    work()
    return slot


def hasten(**of: Any) -> None:
    """Lets what waits for its time come up now."""
    Errand.objects.filter(state=Errand.State.WAITING, **of).update(due_at=datetime.now(UTC) - timedelta(seconds=1))
    work()


def a_day_passes() -> None:
    """Moves all that was seen a day into the past."""
    for row in Probe.objects.all():
        Probe.objects.filter(pk=row.pk).update(at=row.at - timedelta(days=1))
    for call in Attempt.objects.all():
        Attempt.objects.filter(pk=call.pk).update(started_at=call.started_at - timedelta(days=1))


def health(alias: str) -> ModelHealth:
    return ModelHealth.objects.get(pk=alias)


def status_of(alias: str) -> str:
    return Model.objects.values_list("status", flat=True).get(alias=alias)


def outcome(kind: str, alias: str) -> dict[str, Any]:
    """What came of the newest errand of a kind."""
    return dict(Errand.objects.filter(kind=kind, subject=alias).order_by("-id")[0].outcome)
