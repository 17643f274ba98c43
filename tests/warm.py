"""Processes that tests may kill, forked from a warm one: Python, Django and our rooms are loaded once a run instead of once a process."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import tempfile
from collections.abc import Mapping
from multiprocessing import reduction
from pathlib import Path
from typing import IO, Any

# The warm one is no child of a fork of ours: tests have threads, which a fork of theirs would not survive.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.warmed"])


class Forked:
    """One such process, with as much of `subprocess.Popen` as tests need. `main` is a function of `module` that the process calls.

    Shape: `database` is the test's own; `returncode` is negative where a signal ended it.
    """

    def __init__(self, database: str, module: str, main: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        reads, writes = os.pipe()
        self.stdout: IO[str] = os.fdopen(reads, encoding="utf-8")
        name = tempfile.mkstemp(prefix="forked-")
        os.close(name[0])
        self.stderr = Path(name[1])
        given = (_Writes(writes), str(self.stderr), dict(environment or {}), database, module, main, arguments)
        self.process = CONTEXT.Process(target=begin, args=given)
        self.process.start()
        os.close(writes)

    @property
    def pid(self) -> int:
        assert self.process.pid
        return self.process.pid

    @property
    def returncode(self) -> int | None:
        return self.process.exitcode

    def kill(self) -> None:
        self.process.kill()

    def wait(self, timeout: float | None = None) -> int | None:
        self.process.join(timeout)
        return self.process.exitcode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Waits for its end; gives what it wrote to stdout and to stderr."""
        said = self.stdout.read()
        self.wait(timeout)
        complained = self.stderr.read_text(encoding="utf-8", errors="replace")
        self.close()
        return said, complained

    def close(self) -> None:
        """Ends it, and forgets what it said."""
        self.kill()
        self.wait()
        self.stdout.close()
        self.stderr.unlink(missing_ok=True)


class _Writes:
    """A descriptor on its way into another process."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (reduction.DupFd(self.fd),)


def _arrived(found: Any) -> int:
    return int(found.detach())


def begin(out: int, err: str, environment: Mapping[str, str], database: str, module: str, main: str, arguments: tuple[str, ...]) -> None:
    """What the new process does first."""
    os.dup2(out, 1)
    os.close(out)
    os.dup2(os.open(err, os.O_WRONLY | os.O_APPEND), 2)
    os.environ.update(environment)
    from django.db import connections

    import tests.warmed  # noqa: F401 - there already, unless the warm process could not load it

    connections["default"].settings_dict["NAME"] = database
    getattr(importlib.import_module(module), main)(*arguments)
