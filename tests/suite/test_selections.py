"""Which rows a run asks, when they are more than a database takes in one statement."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone

from suite.models import Row, Run
from suite.running import holding, launching, selection
from tests.fake import FakeProvider
from tests.suite.durably import OWNER, Hosts

ROWS, VALUES = 1000, 700
APART = [n for n in range(ROWS) if n % 10]


@pytest.fixture
def hosts(transactional_db: None, tmp_path: Path, fake: FakeProvider) -> Iterator[Hosts]:
    found = Hosts(tmp_path, fake)
    yield found
    found.close()


@pytest.fixture
def narrow(hosts: Hosts) -> Iterator[Run]:
    """A run that has ended without a result, and from there on a database that takes few values in a statement, as SQLite may be built."""
    run = hosts.sums(ROWS)
    Run.objects.filter(pk=run.pk).update(status="failed", finished_at=timezone.now())
    raw = connection.connection
    before = raw.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, VALUES) if connection.vendor == "sqlite" else 0
    yield run
    if connection.vendor == "sqlite":
        raw.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, before)


def test_thousands_of_rows_that_stand_apart_are_selected_frozen_and_known_again(narrow: Run) -> None:
    digests = list(Row.objects.filter(subset=narrow.subset).order_by("position").values_list("digest", flat=True))
    failed = launching.launch(OWNER, {"replay": {"from_run": narrow.pk, "only_failed": True}})
    named = launching.launch(OWNER, {"replay": {"from_run": narrow.pk, "task_ids": [f"t{n}" for n in reversed(APART)]}})
    for run, positions in ((failed, range(ROWS)), (named, APART)):
        assert (run.total, run.selection["positions"]) == (len(positions), list(positions))
        assert run.selection["digest"] == hashlib.sha256(b"".join(bytes.fromhex(digests[n]) for n in positions)).hexdigest()
        assert selection.digest_again(run) == run.selection["digest"]
        assert len(list(holding.left(holding.load(run.pk)))) == len(positions)
    Run.objects.filter(pk=named.pk).update(status="failed", finished_at=timezone.now())
    for again in ({"only_failed": True}, {}):
        assert launching.launch(OWNER, {"replay": {"from_run": named.pk, **again}}).selection["positions"] == APART
