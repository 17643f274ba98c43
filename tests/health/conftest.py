"""What the tests of `health` share: tables that threads and other processes see too, a writer, and a row to write."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import pytest
import pytest_asyncio
from django.conf import settings
from django.db import connection

from access.ids import new_id
from health import ledger, rollups
from health.limits import Caps, decode, used
from health.models import Attempt, DayTotal, Meter, PartTotal
from health.outbox import Outbox
from health.reserve import Ask, Hold
from health.writer import Writer
from tests.warm import Forked


@pytest.fixture
def tables(transactional_db: None) -> None:
    """Real tables without a transaction around them, emptied after each test."""
    ledger.key_minutes.clear()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "outbox"
    found.mkdir()
    return found


@pytest_asyncio.fixture
async def writer(tables: None, folder: Path) -> AsyncIterator[Writer]:
    one = Writer(Outbox(folder, "test"))
    yield one
    await one.stop()


@pytest.fixture
def items() -> Iterator[dict[str, list[Any]]]:
    """Registers the line key "things" for one test and keeps what was committed of it."""
    kept: dict[str, list[Any]] = {"things": []}
    ledger.register("things", lambda cursor, some: kept["things"].extend(some))
    yield kept
    del ledger.registered["things"]


Row = dict[str, Any]


def row(name: str | None = None, **more: Any) -> Row:
    """A ledger row as a line has it."""
    name = name or new_id("att")
    return {
        "id": name,
        "call": f"call-{name}"[:40],
        "panel": f"pan-{name}"[:40],
        "request": "",
        "purpose": "panel",
        "seat": "member",
        "collection": "core",
        "judge": "local",
        "key_id": None,
        "key_name": "",
        "team": "",
        "endpoint": "groq",
        "model": "fast",
        "served_name": "fast-1",
        "started_at": datetime.now(UTC).isoformat(),
        "latency_ms": 12,
        "ttft_ms": 3,
        "status": "ok",
        "http_status": 200,
        "code": "",
        "error": "",
        "finish_reason": "stop",
        "input_tokens": 100,
        "output_tokens": 20,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "reasoning_tokens": 0,
        "estimated": False,
        "cost_pusd": 1_000,
        **more,
    }


def ask(name: str, *holds: Hold, expires_s: float = 600, stub: Any = None) -> Ask:
    return Ask(name, holds, datetime.now(UTC) + timedelta(seconds=expires_s), stub or row(name))


def hold(scope: str, measure: str, amount: int = 1, **caps: Any) -> Hold:
    return Hold(scope, measure, amount, Caps(**caps))


def held(meter: str, window: str) -> int:
    """What a meter's row holds of a window now."""
    state = Meter.objects.filter(pk=meter).values_list("state", flat=True).first()
    return used(decode(state or ""), int(datetime.now(UTC).timestamp() * 1000))[window]


def assert_sums_are_those_of_the_ledger() -> None:
    """Sums every row of the ledger in Python, and finds the same in both tables of totals."""
    rollups.fold()
    days: dict[tuple[Any, ...], list[int]] = {}
    parts: dict[tuple[Any, ...], list[int]] = {}
    zone = ZoneInfo(settings.BENCH_TIME_ZONE)
    for a in Attempt.objects.all():
        tokens = (a.input_tokens, a.output_tokens, a.cache_read_tokens, a.cache_write_tokens, a.reasoning_tokens)
        failed = a.status not in ("ok", "truncated", "cancelled")
        one = (1, int(failed), int(a.estimated), int(a.cost_pusd is None), *tokens, a.latency_ms, a.cost_pusd or 0)
        day = a.started_at.astimezone(zone).date()
        names = {
            "model": a.model,
            "endpoint": a.endpoint,
            "key": a.key_name,
            "collection": a.collection,
            "purpose": a.purpose,
            "judge": a.judge,
            "team": a.team,
        }
        if a.key_id:
            names["key_id"] = str(a.key_id)
        keys = [(grain, part, period, name) for part, name in names.items() for grain, period in (("day", f"{day}"), ("month", f"{day:%Y-%m}"))]
        for sums, key in ((days, (day, a.endpoint, a.model, a.status)), *((parts, key) for key in keys)):
            held = sums.setdefault(key, [0] * len(one))
            held[:] = [x + y for x, y in zip(held, one, strict=True)]
    for sums, table, named in ((days, DayTotal, rollups.DAY_KEY), (parts, PartTotal, rollups.PART_KEY)):
        kept = {row[: len(named)]: list(row[len(named) :]) for row in table.objects.values_list(*named, *rollups.MEASURES)}
        assert {name: held for name, held in kept.items() if any(held)} == sums


async def looked(look: Callable[..., Any], *arguments: Any) -> Any:
    """Looks into the database from a test that runs on the event loop."""

    def work() -> Any:
        try:
            return look(*arguments)
        finally:
            connection.close()

    return await asyncio.to_thread(work)


class Victim:
    """Another process that shares database and outbox, does one thing of `victim.py`, and may be killed."""

    def __init__(self, folder: Path, *what: str) -> None:
        self.process = Forked(str(connection.settings_dict["NAME"]), "tests.health.victim", "main", str(folder), *what)

    def said(self) -> list[Any]:
        """Waits for its end and reads what it said, a JSON value a line."""
        out, _ = self.process.communicate()
        return [orjson.loads(line) for line in out.splitlines() if line.endswith(("]", "}", '"')) or line.isdigit()]


@pytest.fixture
def victim(tables: None, folder: Path) -> Iterator[Callable[..., Victim]]:
    """Starts other processes; none outlives its test."""
    started: list[Victim] = []

    def start(*what: str) -> Victim:
        started.append(Victim(folder, *what))
        return started[-1]

    yield start
    for one in started:
        one.process.close()
