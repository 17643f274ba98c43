"""The database goes away and comes back: calls with limits are refused at once, nothing that happened meanwhile is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from django.db import connection

from health import calls, database
from health.models import Attempt, ModelUse, Permit
from health.outbox import Outbox, drain_dead, read_uncommitted
from health.reserve import Reserved
from health.sweep import drain
from health.writer import DatabaseAway, Writer
from tests.health.conftest import ask, held, hold, looked, row
from tests.health.outage import Cable, Lock

ONE = hold("e", "parallel", 1, parallel=1000)


@pytest.fixture
def outage(tables: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cable | Lock]:
    """Between every writer of the test and the database."""
    settings = connection.settings_dict
    made: Cable | Lock
    if connection.vendor == "postgresql":
        made = Cable(settings["HOST"], int(settings["PORT"] or 5432))
        of_the_writer = database.Database.__init__

        def through_the_cable(self: database.Database) -> None:
            of_the_writer(self)
            self._wrapper.settings_dict |= {"HOST": "127.0.0.1", "PORT": str(made.port)}

        monkeypatch.setattr(database.Database, "__init__", through_the_cable)
    else:
        made = Lock(str(settings["NAME"]))
        monkeypatch.setattr(database, "LOCK_TIMEOUT_S", 0.1)
    yield made
    made.close()


@pytest_asyncio.fixture
async def writer(outage: Cable | Lock, folder: Path) -> AsyncIterator[Writer]:
    one = Writer(Outbox(folder, "test"), keep_bytes=50_000)
    yield one
    await one.stop()


async def reserved(writer: Writer, name: str) -> Reserved:
    """Reserves as soon as the writer has found the database again."""
    while True:
        try:
            return await writer.reserve(None, [ask(name, ONE)])
        except DatabaseAway:
            await asyncio.sleep(0.02)


async def test_calls_with_limits_are_refused_and_what_happens_is_kept_until_it_is_back(writer: Writer, outage: Cable | Lock, folder: Path) -> None:
    await writer.reserve(None, [ask("before", ONE)])
    outage.begin()
    with pytest.raises(DatabaseAway):
        await writer.reserve(None, [ask("refused", ONE)])
    assert writer.state().is_away
    with pytest.raises(DatabaseAway):
        await writer.reserve(None, [ask("refused too", ONE)])
    for number in range(400):
        writer.record({"begin": [row(f"a{number}")]})
        writer.record({"attempts": [row(f"a{number}")]})
    writer.record({"attempts": [row("before")], "settle": [{"permit": "before"}]})
    assert not await writer.flush(0.3)
    assert writer.state().is_behind
    assert sum(1 for _ in read_uncommitted(folder)) == 401
    assert len(writer._lines) < 200  # the rest is in the file only

    outage.end()
    assert await writer.flush(60)
    assert await looked(Attempt.objects.count) == 401
    assert (await looked(ModelUse.objects.get)).seats == 401
    assert not writer.state().is_away
    assert writer.outbox.size == 0
    await reserved(writer, "after")
    assert {permit.pk for permit in await looked(list, Permit.objects.all())} == {"after"}
    assert await looked(held, "e|parallel", "parallel") == 1


async def test_it_is_found_again_without_anyone_asking(writer: Writer, outage: Cable | Lock) -> None:
    await writer.reserve(None, [ask("before", ONE)])
    outage.begin()
    with pytest.raises(DatabaseAway):
        await writer.reserve(None, [ask("refused", ONE)])
    outage.end()
    while writer.state().is_away:  # noqa: ASYNC110 - the writer's thread has no event to tell it by
        await asyncio.sleep(0.02)
    await writer.reserve(None, [ask("after", ONE)])


async def test_a_worker_may_start_while_it_is_away(outage: Cable | Lock, folder: Path) -> None:
    outage.begin()
    writer = Writer(Outbox(folder, "late"))
    writer.record({"attempts": [row("a")]})
    with pytest.raises(DatabaseAway):
        await writer.reserve(None, [ask("refused", ONE)])
    outage.end()
    assert await writer.flush(60)
    await writer.stop()
    assert await looked(Attempt.objects.count) == 1


async def test_a_worker_that_ends_while_it_is_away_leaves_its_outbox_to_a_drain(outage: Cable | Lock, folder: Path) -> None:
    writer = Writer(Outbox(folder, "ends"))
    outage.begin()
    writer.record({"attempts": [row("a")]})
    await writer.stop()
    outage.end()
    kept: list[Any] = []
    assert drain_dead(folder, kept.extend).files == 1
    assert [line["attempts"][0]["id"] for line in kept] == ["a"]


# ------------------------------------------------------------------ PostgreSQL's own ways to go


def postgresql_only() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no connection that could break")


async def test_a_connection_that_died_while_idle_is_replaced_and_nobody_notices(writer: Writer, outage: Cable | Lock) -> None:
    postgresql_only()
    await writer.reserve(None, [ask("a", ONE)])

    def terminate() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")

    await looked(terminate)
    await writer.reserve(None, [ask("b", ONE)])
    await looked(terminate)
    writer.record({"attempts": [row("c")]})
    assert await writer.flush()
    assert not writer.state().is_away


@pytest.mark.parametrize("reaches", [False, True])
async def test_a_commit_of_which_nobody_knows_whether_it_happened_leaves_nothing_twice(writer: Writer, outage: Cable | Lock, reaches: bool) -> None:
    postgresql_only()
    assert isinstance(outage, Cable)
    outage.cut_at, outage.reaches = b"COMMIT", reaches
    writer.record({"attempts": [row("a")]})
    with pytest.raises(DatabaseAway):
        await writer.reserve(None, [ask("unsure", ONE)])
    assert await looked(Permit.objects.count) == int(reaches)
    outage.end()
    assert await writer.flush(60)
    assert await looked(Permit.objects.count) == 0
    assert await looked(held, "e|parallel", "parallel") == 0
    assert (await looked(ModelUse.objects.get)).seats == 1


async def test_a_transaction_that_lost_a_deadlock_is_tried_again(writer: Writer, outage: Cable | Lock) -> None:
    postgresql_only()
    from health import ledger

    tries: list[int] = []

    def lose_once(cursor: Any, items: Any) -> None:
        tries.append(1)
        if len(tries) == 1:
            cursor.execute("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40P01'; END $$")

    ledger.register("loses", lose_once)
    try:
        writer.record({"loses": [1], "attempts": [row("a")]})
        assert await writer.flush()
    finally:
        del ledger.registered["loses"]
    assert len(tries) == 2
    assert await looked(Attempt.objects.count) == 1


def test_a_background_calls_row_waits_in_an_outbox_for_the_database(outage: Cable | Lock, folder: Path, settings: Any) -> None:
    settings.OUTBOX_FOLDER = folder
    outage.begin()
    calls.record({"attempts": [row("att-1")]}, database.Database())
    outage.end()
    assert not Attempt.objects.exists()
    drain(folder=folder)
    drain(folder=folder)
    assert list(Attempt.objects.values_list("pk", "status")) == [("att-1", "ok")]
    assert not list(folder.glob("*.jsonl"))
