"""Calls that somebody may stop: which run in this process, and the word to it from the others, a row that is looked at while calls run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db import Error as DatabaseError

from access.caller import Caller
from health import ledger
from health.lines import Row
from panels import lookup
from panels.models import Panel, Seat, Stop
from wire.errors import CallerError

if TYPE_CHECKING:
    from panels.gateway import Gateway

LOOK_S = 0.5
# A row is looked at for so long: who has not found what it names by then does not run it.
HEEDED_FOR = timedelta(seconds=30)
KEPT = timedelta(hours=1)
CODE = "cancelled"
WHY = "It was stopped on request."
# Tries after which no other follows.
ENDED_WELL = frozenset({"ok", "truncated", "partial", "cancelled", "lost"})


@dataclass(slots=True)
class Running:
    """One call under way in the task that runs it. `before` is how often that had been cancelled before the call began."""

    call: str
    panel: str
    judge: str
    key_id: int | None
    task: asyncio.Task[object]
    before: int
    stopped: bool = False

    def stop(self) -> None:
        if not self.stopped:
            self.stopped = True
            self.task.cancel()

    def was_stopped(self) -> bool:
        """Tells of a cancellation that was just caught whether it is this stop; cancelled twice, the caller has left as well. Asked once each."""
        return self.stopped and self.task.uncancel() <= self.before


class Stops:
    """One worker's calls under way."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.calls: dict[str, Running] = {}
        self.panels: dict[str, bool] = {}  # panels that are being served; true once one was stopped as a whole
        self.looking: asyncio.Task[None] | None = None
        self.heard: set[tuple[str, datetime]] = set()  # the words that were obeyed or refused

    def enter(self, call: str, panel: str, caller: Caller) -> Running:
        """Notes a call that the current task runs. `leave` ends it."""
        task = asyncio.current_task()
        assert task is not None
        mine = self.calls[call] = Running(call, panel, caller.judge, caller.key_id, task, task.cancelling())
        if self.looking is None:
            self.looking = asyncio.ensure_future(self.look())
        return mine

    def leave(self, call: str) -> None:
        self.calls.pop(call, None)

    @contextmanager
    def panel(self, panel: str) -> Iterator[None]:
        """Keeps in mind while a panel is served whether all of it was stopped: then nothing new begins in it."""
        self.panels[panel] = False
        try:
            yield
        finally:
            self.panels.pop(panel, None)

    def is_stopped(self, panel: str) -> bool:
        return self.panels.get(panel, False)

    def found(self, name: str) -> list[Running]:
        """The calls under way here that a call's or a panel's id names."""
        if one := self.calls.get(name):
            return [one]
        return [r for r in self.calls.values() if r.panel == name]

    def stop(self, name: str) -> None:
        if name in self.panels:
            self.panels[name] = True
        for one in self.found(name):
            one.stop()

    def close(self) -> None:
        if self.looking is not None:
            self.looking.cancel()

    async def look(self) -> None:
        """Looks, as long as calls run, for what other workers were told."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                await asyncio.sleep(LOOK_S)
                if not self.calls:
                    return
                try:
                    rows = await loop.run_in_executor(self.gateway.executor, told)
                except DatabaseError:
                    continue
                for row in rows:
                    if (row.name, row.at) not in self.heard and (running := self.found(row.name)):
                        self.heard.add((row.name, row.at))
                        allowed = may_stop(row.asker(), running[0].judge, running[0].key_id)
                        if allowed:
                            self.stop(row.name)
                        loop.run_in_executor(self.gateway.executor, answer, row.name, allowed)
                self.heard &= {(row.name, row.at) for row in rows}
        finally:
            self.looking = None


def may_stop(asker: Caller, judge: str, key_id: int | None) -> bool:
    """Who asked, or an operator."""
    return asker.may("operate") or lookup.is_own(asker, judge, key_id)


# ------------------------------------------------------------------ the rows; all of this runs in a reader's thread


def told() -> list[Stop]:
    return list(Stop.objects.filter(at__gt=datetime.now(UTC) - HEEDED_FOR))


def tell(name: str, asker: Caller) -> None:
    """Leaves word for whichever worker runs it."""
    now = datetime.now(UTC)
    Stop.objects.filter(at__lt=now - KEPT).delete()
    fields = {"at": now, "kind": asker.kind, "judge": asker.judge, "key_id": asker.key_id, "operates": asker.may("operate"), "heeded": None}
    Stop.objects.update_or_create(name=name, defaults=fields)


def answer(name: str, heeded: bool) -> None:
    try:
        Stop.objects.filter(name=name).update(heeded=heeded)
    except DatabaseError:
        pass  # it was stopped all the same; only who asked hears so later


def heeded(name: str) -> bool | None:
    """What the worker that runs it said; None while nobody has."""
    return Stop.objects.filter(name=name).values_list("heeded", flat=True).first()


@dataclass(frozen=True, slots=True)
class OnRecord:
    """What the database knows of something that is to be stopped. Neither `is_running` nor `is_over`: it cannot tell."""

    judge: str
    key_id: int | None
    is_running: bool
    is_over: bool


def call_on_record(call: str) -> OnRecord | None:
    """Reads a seat, else what the ledger has of a call: its failed tries stand there before its end, so they settle nothing."""
    return lookup.after_a_drain(lambda: _call(call), call)


def _call(call: str) -> OnRecord | None:
    seat = Seat.objects.filter(pk=call).select_related("panel").only("status", "panel__judge", "panel__key_id").first()
    if seat is not None:
        runs = seat.status == Seat.Status.RUNNING
        return OnRecord(seat.panel.judge, seat.panel.key_id, runs, not runs)
    return _tries(ledger.attempts_of_call(call))


def panel_on_record(panel: str) -> OnRecord | None:
    """Reads the same of a panel; one that is over may still have a seat that nobody waited for."""
    return lookup.after_a_drain(lambda: _panel(panel), panel)


def _panel(panel: str) -> OnRecord | None:
    row = Panel.objects.filter(pk=panel).only("status", "judge", "key_id").first()
    if row is not None:
        runs = row.status == Panel.Status.RUNNING or row.seats.filter(status=Seat.Status.RUNNING).exists()
        return OnRecord(row.judge, row.key_id, runs, not runs)
    return _tries(ledger.attempts_of_panel(panel))


def _tries(attempts: Sequence[Row]) -> OnRecord | None:
    if not attempts:
        return None
    return OnRecord(attempts[-1].judge, attempts[-1].key_id, False, attempts[-1].status in ENDED_WELL)


def forbidden() -> CallerError:
    return CallerError("not_allowed", "Somebody else asked this. Who asked may stop it, and operators.", status=403)


def stopped_error(seats: object = None) -> CallerError:
    """What a caller hears of whose request nothing is left."""
    return CallerError(CODE, "The request was stopped before there was an answer.", status=409, seats=seats)
