"""A process for tests to kill: works on runs with the test's database and an outbox of its own, and dies at a point of their way."""
# ruff: noqa: E402 - the settings must know the database before anything of ours is imported

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchwarmers.settings")

import django
from django.conf import settings

DATABASE, HOME, POINT, COUNT = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
settings.DATABASES["default"]["NAME"] = DATABASE
settings.HOME, settings.OUTBOX_FOLDER = HOME, HOME / "outbox"
settings.OUTBOX_FOLDER.mkdir(parents=True, exist_ok=True)
# What a start costs is mostly the admin, which nothing here needs.
settings.INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "access", "catalog", "health", "panels", "suite"]
django.setup()

from health import ledger
from health.outbox import Outbox
from health.writer import Writer
from panels.single import Single
from suite.running import engine, holding, recording
from suite.running.coding import Coding
from suite.running.worker import Worker

seen = 0


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at_last() -> bool:
    """Whether this is the time of those that were told."""
    global seen
    seen += 1
    return seen == COUNT


def before(owner: Any, name: str, when: Callable[..., bool] = lambda *_, **__: True) -> None:
    """Dies instead of doing something, the last time of those that were told."""
    really = getattr(owner, name)

    def instead(*args: Any, **more: Any) -> Any:
        if when(*args, **more) and at_last():
            die()
        return really(*args, **more)

    setattr(owner, name, instead)


def after(owner: Any, name: str, when: Callable[..., bool] = lambda *_, **__: True) -> None:
    """Dies once something is done, the last time of those that were told."""
    really = getattr(owner, name)

    def instead(*args: Any, **more: Any) -> Any:
        found = really(*args, **more)
        if when(*args, **more) and at_last():
            die()
        return found

    setattr(owner, name, instead)


def holds(key: str) -> Callable[..., bool]:
    return lambda _, line: key in line


def tears(outbox: Outbox, line: Any) -> bool:
    """Writes half of a line, as a death in the middle of it leaves it."""
    if recording.SAMPLES not in line or not at_last():
        return False
    from health.lines import dumps

    data = dumps(line)
    os.write(outbox._fd, data[: len(data) // 2])
    die()
    return True


def in_commit(key: str) -> None:
    """Dies in the transaction, after what the lines' items say was done and before it is committed."""
    really = ledger.registered[key]

    def deadly(cursor: Any, items: Any) -> None:
        really(cursor, items)
        if at_last():
            die()

    ledger.registered[key] = deadly


def stuck() -> None:
    """Does what an expression without end does: nothing comes round any more, and no other thread of Python's does either."""
    engine.STUCK_S = 8.0  # its loop comes round each second

    def endless(*_: Any) -> None:
        ctypes.PyDLL(None).sleep(600)  # holds Python's lock

    Worker.grade = endless  # type: ignore[assignment,method-assign]


POINTS: dict[str, Callable[[], None]] = {
    "stuck": stuck,
    "never": lambda: None,
    "claimed": lambda: after(engine, "claim", lambda *_, **__: True),
    "begun": lambda: after(engine, "begin"),
    "asked": lambda: after(Single, "going_out"),
    "answered": lambda: before(Outbox, "append", holds(recording.SAMPLES)),
    "half_a_line": lambda: before(Outbox, "append", tears),
    "recorded": lambda: after(Outbox, "append", holds(recording.SAMPLES)),
    "in_the_transaction": lambda: in_commit(recording.SAMPLES),
    "not_truncated": lambda: before(Writer, "_committed"),
    "solved": lambda: after(Outbox, "append", holds(recording.ANSWERS)),
    "scoring": lambda: before(Coding, "score"),
    "scored": lambda: before(Outbox, "append", holds(recording.SAMPLES)),
    "ending": lambda: after(Outbox, "append", holds(recording.ENDS)),
    "in_the_end": lambda: in_commit(recording.ENDS),
    "ended": lambda: before(engine, "let_go"),
}

if __name__ == "__main__":
    # The lease of another folder's process, and the time that its own queue is given, are waited for in no test.
    holding.LEASE_S, holding.ELSEWHERE_S = float(os.environ.get("LEASE_S", holding.LEASE_S)), float(os.environ.get("ELSEWHERE_S", holding.ELSEWHERE_S))
    POINTS[POINT]()
    print(engine.work(), flush=True)
