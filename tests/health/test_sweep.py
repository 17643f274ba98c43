from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from health import ledger
from health.database import Database
from health.models import Attempt, Meter, Permit
from health.outbox import Outbox
from health.sweep import sweep
from tests.health.conftest import ask, held, hold, row

pytestmark = pytest.mark.usefixtures("tables")


def reserve(*asks: Any) -> None:
    db = Database()
    try:
        ledger.transact(db, [], [ledger.Request(None, asks)])
    finally:
        db.close()


def whole(name: str) -> Any:
    holds = [
        hold("key:1", "tokens", 900, month=10_000),
        hold("key:1", "pusd", 50_000, month=10**9),
        hold("key:1", "requests", 1, day=10),
        hold("key:1", "parallel", 1, parallel=5),
    ]
    return ask(name, *holds, stub={"id": name, "panel": name})


def key() -> tuple[int, ...]:
    return held("key:1|tokens", "month"), held("key:1|pusd", "month"), held("key:1|requests", "day"), held("key:1|parallel", "parallel")


def test_a_permit_past_its_time_becomes_a_lost_call_and_frees_what_it_held(folder: Path) -> None:
    reserve(
        ask("late", hold("e", "tokens", 70, day=100), hold("e", "parallel", 1, parallel=9), expires_s=-1, stub=row("late", input_tokens=60, output_tokens=10)),
        ask("running", hold("e", "tokens", 5, day=100), hold("e", "parallel", 1, parallel=9)),
    )
    assert sweep(timezone.now(), folder) == 1
    found = Attempt.objects.get()
    assert (found.pk, found.status, found.estimated, found.input_tokens) == ("late", "lost", True, 60)
    assert held("e|tokens", "day") == 75
    assert held("e|parallel", "parallel") == 1
    assert list(Permit.objects.values_list("id", flat=True)) == ["running"]
    assert sweep(timezone.now(), folder) == 0


def test_a_whole_requests_permit_is_settled_to_what_its_panel_used(folder: Path) -> None:
    reserve(whole("pan-1"))
    ledger.commit([{"attempts": [row("x", panel="pan-1"), row("y", panel="pan-1", cost_pusd=None)]}], folder)
    sweep(timezone.now() + timedelta(seconds=601), folder)
    assert key() == (240, 1_000, 1, 0)


def test_a_seat_that_expires_with_its_request_counts_for_the_request(folder: Path) -> None:
    stub = row("seat", panel="pan-1", input_tokens=100, output_tokens=11, cost_pusd=9)
    reserve(whole("pan-1"), ask("seat", hold("e", "requests", 1, minute=9), stub=stub))
    sweep(timezone.now() + timedelta(seconds=601), folder)
    assert key() == (111, 9, 1, 0)
    assert Attempt.objects.get().status == "lost"


def test_a_request_of_which_nothing_is_known_counts_as_reserved(folder: Path) -> None:
    reserve(whole("pan-1"))
    sweep(timezone.now() + timedelta(seconds=601), folder)
    assert key() == (900, 50_000, 1, 0)


def test_an_end_that_still_waits_in_an_outbox_wins_over_an_expiry(folder: Path) -> None:
    reserve(ask("a", hold("e", "tokens", 70, day=100), expires_s=-1))
    box = Outbox(folder, "worker-0")
    box.append({"attempts": [row("a")], "settle": [{"permit": "a", "truth": {"e|tokens": 12}}]})
    sweep(timezone.now(), folder)
    assert Attempt.objects.get().status == "ok"
    assert held("e|tokens", "day") == 12
    box.close()


def test_a_permit_that_nothing_can_be_made_of_is_let_go(folder: Path) -> None:
    reserve(
        ask("no-stub", hold("e", "parallel", 1, parallel=9), expires_s=-1, stub={"nothing": 1}),
        ask("bad-row", hold("e", "parallel", 1, parallel=9), expires_s=-1, stub=row("bad-row", cost_pusd=2**63)),
    )
    Permit.objects.create(id="broken", expires_at=timezone.now() - timedelta(seconds=1), holds="[0, []]", attempt="")
    assert sweep(timezone.now(), folder) == 3
    assert not Permit.objects.exists()
    assert held("e|parallel", "parallel") == 0


def test_meters_with_nothing_left_are_deleted(folder: Path) -> None:
    reserve(ask("a", hold("minute", "requests", 1, minute=9), hold("day", "requests", 1, day=9), hold("parallel", "parallel", 1, parallel=9)))
    ledger.commit([{"settle": [{"permit": "a", "unused": True}]}], folder)
    reserve(ask("b", hold("day", "requests", 1, day=9)))
    sweep(timezone.now(), folder)
    assert list(Meter.objects.values_list("scope", flat=True)) == ["day|requests"]


def test_more_permits_than_fit_in_one_batch_are_all_swept(folder: Path) -> None:
    reserve(*[ask(f"a{n}", hold("e", "parallel", 1, parallel=10**6), expires_s=-1) for n in range(1201)])
    assert sweep(timezone.now(), folder) == 1201
    assert Attempt.objects.filter(status="lost").count() == 1201
    assert held("e|parallel", "parallel") == 0
