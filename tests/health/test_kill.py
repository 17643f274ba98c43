"""What `kill -9` leaves behind, at every point of a call's way: nothing is lost that a caller received, and nothing counts twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.utils import timezone

from health.models import Attempt, ModelUse, Permit
from health.outbox import REJECTED, files
from health.sweep import drain, sweep
from tests.health.conftest import Victim, assert_sums_are_those_of_the_ledger, held

Start = Callable[..., Victim]


def limited() -> tuple[int, int, int]:
    """Tokens of the minute and the day, calls under way."""
    return held("endpoint:1|tokens", "minute"), held("endpoint:1|tokens", "day"), held("endpoint:1|parallel", "parallel")


LOST, OK = "lost", "ok"
POINTS = [
    # point, what the drain makes of the call, what its tokens count as, permits left for the sweep
    ("reserved", None, 500, 1),
    ("begun", LOST, 500, 0),
    ("half_a_line", LOST, 500, 0),
    ("ended", OK, 42, 0),
    ("in_the_transaction", OK, 42, 0),
    ("not_truncated", OK, 42, 0),
    ("rotating", OK, 42, 0),
    ("rotated", OK, 42, 0),
    ("after_commit", OK, 42, 0),
]


@pytest.mark.parametrize(("point", "status", "tokens", "permits"), POINTS)
def test_a_call_killed_at_any_point_is_recorded_once(victim: Start, folder: Path, point: str, status: str | None, tokens: int, permits: int) -> None:
    assert victim("one_call", point).process.wait(60) == -9
    for _ in range(2):  # once more changes nothing
        drain(folder=folder)
        assert Attempt.objects.filter(pk="att-1").values_list("status", flat=True).first() == status
        assert limited() == (tokens, tokens, permits)
        assert Permit.objects.count() == permits
        assert files(folder) == []
    counted = {use.model: use.seats for use in ModelUse.objects.all()}
    assert counted == dict(Counter(Attempt.objects.values_list("model", flat=True)))
    if point in ("rotating", "rotated"):
        assert Attempt.objects.get(pk="att-2").status == LOST
        assert Attempt.objects.get(pk="att-3").status == OK
        assert Attempt.objects.filter(model="filler", status=OK).count() == 3000
    assert not (folder / REJECTED).exists()

    sweep(timezone.now() + timedelta(seconds=601), folder)
    found = Attempt.objects.get(pk="att-1")
    assert found.status == (status or LOST)
    assert found.estimated == (found.status == LOST)
    assert found.input_tokens + found.output_tokens == tokens
    assert not Permit.objects.exists()
    assert held("endpoint:1|parallel", "parallel") == 0
    assert held("endpoint:1|tokens", "day") == tokens
    assert_sums_are_those_of_the_ledger()


def test_everything_that_was_acknowledged_before_a_kill_is_in_the_ledger_once(victim: Start, folder: Path) -> None:
    told: list[Any] = []
    for calls in (5, 150, 700):
        one = victim("many_calls")
        assert one.process.stdout is not None
        for _ in range(calls):
            told.append(orjson.loads(one.process.stdout.readline()))
        one.process.kill()
        told += [orjson.loads(line) for line in one.process.communicate()[0].splitlines() if line.endswith('"')]
    drain(folder=folder)

    rows = dict(Attempt.objects.values_list("id", "status"))
    assert {rows.get(name) for name in told} == {OK}
    assert set(rows.values()) <= {OK, LOST}
    assert ModelUse.objects.get().seats == len(rows)
    # A call that was reserved and not begun is the sweep's.
    left = Permit.objects.count()
    assert held("endpoint:1|parallel", "parallel") == left
    sweep(timezone.now() + timedelta(seconds=601), folder)
    rows = dict(Attempt.objects.values_list("id", "status"))
    really = Counter(rows.values())
    assert held("endpoint:1|tokens", "month") == 3 * really[OK] + 10 * really[LOST]
    assert not Permit.objects.exists()
    assert files(folder) == []
    assert_sums_are_those_of_the_ledger()


def test_two_processes_that_hammer_one_meter_get_exactly_what_it_allows(victim: Start) -> None:
    both = [victim("hammer", "60"), victim("hammer", "60")]
    assert sum(one.said()[-1] for one in both) == 10
    assert held("endpoint:9|requests", "minute") == 10
