"""Verdicts that arrive at once, on a real database with real transactions."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from panels import verdicts
from panels.models import Verdict
from tests.panels.conftest import NOW, make_panel

pytestmark = pytest.mark.django_db(transaction=True)

PARALLEL = 6


def all_at_once(judges: list[str], call: str) -> list[verdicts.VerdictValue | Exception]:
    ready = threading.Barrier(len(judges))
    found: list[verdicts.VerdictValue | Exception] = []

    def judge(name: str) -> None:
        try:
            ready.wait(timeout=30)
            found.append(verdicts.record_verdict(name, call, True, "", [], [], NOW))
        except Exception as error:
            found.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=judge, args=(name,)) for name in judges]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_parallel_verdicts_of_one_judge_leave_one_current_and_one_chain() -> None:
    call = make_panel().seats.get().call
    found = all_at_once(["ada"] * PARALLEL, call)
    assert [error for error in found if isinstance(error, Exception)] == []
    rows = list(Verdict.objects.order_by("id"))
    assert len(rows) == PARALLEL
    assert sum(row.current for row in rows) == 1
    # Each but the first replaces another one, and the one that nobody replaced is the current one.
    replaced = {row.replaces_id for row in rows}
    assert len(replaced) == PARALLEL
    assert [row.pk for row in rows if row.pk not in replaced] == [row.pk for row in rows if row.current]


def test_parallel_verdicts_of_different_judges_all_stay() -> None:
    call = make_panel().seats.get().call
    found = all_at_once([f"judge-{i}" for i in range(PARALLEL)], call)
    assert [error for error in found if isinstance(error, Exception)] == []
    assert Verdict.objects.filter(current=True, replaces=None).count() == PARALLEL
