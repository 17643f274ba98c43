"""Outboxes: what a process has to tell the database, first as lines of a file of its own, so that no way to die loses them.

A process holds its file's `flock` while it lives. A file whose lock can be had belongs to the dead, and anyone drains it. A line is in the
kernel once `append` returns, which `kill -9` does not undo; a crash of the whole machine may.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from access.ids import new_id
from health.lines import Line, dumps, ended, has_work, loads, lost_lines

log = logging.getLogger(__name__)
ROTATE_BYTES = 1024 * 1024
BATCH_LINES = 500
READ_BYTES = 256 * 1024
REJECTED = "rejected.jsonl"


class Outbox:
    """One process's own file. Make it after the fork, in the process that writes.

    Units: a position counts the bytes ever appended; it goes on growing when the file is cut.
    """

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = folder / f"{name}-{new_id('box')}.jsonl"
        self._lock = threading.Lock()
        self._open: dict[str, Mapping[str, Any]] = {}
        self._base = 0  # position of the file's first byte
        self._size = 0
        self._work = 0  # position after the last line that a commit has something to do for
        self._done = 0  # position up to which all of that is committed
        self._fd = self._locked_file(b"")

    def _locked_file(self, content: bytes) -> int:
        """Puts a new file, locked already, in the old one's place: under its name it is never seen without the lock."""
        new = self.path.with_suffix(".new")
        while True:
            fd = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX)  # a drain may have it for the moment in which it deletes what it took for a dead process's
            if os.fstat(fd).st_nlink:
                break
            os.close(fd)
        try:
            if content and os.write(fd, content) != len(content):
                raise OSError("the disk is full")
            new.rename(self.path)
        except BaseException:
            os.close(fd)
            new.unlink(missing_ok=True)
            raise
        return fd

    # ------------------------------------------------------------------ the writing end

    def append(self, line: Line) -> int:
        """Writes one line and returns the position after it. Errors: OSError, and then nothing of it stays in the file."""
        data = dumps(line)
        with self._lock:
            # First, since a line that the disk has no room for is still committed from memory, and what it ends is over.
            for stub in line.get("begin", ()):
                self._open[stub["id"]] = stub
            for name in ended(line):
                self._open.pop(name, None)
            written = os.write(self._fd, data)
            if written != len(data):
                os.ftruncate(self._fd, self._size)
                raise OSError(f"{self.path} took {written} of {len(data)} bytes: the disk is full.")
            self._size += written
            position = self._base + self._size
            if has_work(line):
                self._work = position
            return position

    @property
    def position(self) -> int:
        """The position after the last line."""
        return self._base + self._size

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return self._size

    @property
    def in_flight(self) -> int:
        """How many calls have begun and not ended."""
        return len(self._open)

    def committed(self, position: int) -> None:
        """Drops what is in the database up to a position, once that is worth it."""
        with self._lock:
            self._done = max(self._done, position)
            if self._is_told():
                if self._size:
                    os.ftruncate(self._fd, 0)
                    self._base, self._size = self._base + self._size, 0
                return
            done = min(position, self.position) - self._base
            # Only when more goes than stays, or a long way back to the present after an outage would copy the rest again and again.
            if done > ROTATE_BYTES and done > self._size - done:
                self._rotate(done)

    def _is_told(self) -> bool:
        return self._done >= self._work and not self._open

    def _rotate(self, done: int) -> None:
        """Begins a new file with what is in flight and what is not committed yet."""
        rest = os.pread(self._fd, self._size - done, done)
        head = dumps({"begin": list(self._open.values())}) if self._open else b""
        try:
            fd = self._locked_file(head + rest)
        except OSError as error:
            log.warning("The outbox %s could not be begun anew and goes on growing: %s.", self.path.name, error.strerror or error)
            return
        os.close(self._fd)
        self._base += done - len(head)
        self._fd, self._size = fd, len(head) + len(rest)

    def read(self, position: int, limit: int = BATCH_LINES) -> list[tuple[int, Line]]:
        """Reads lines after a position, each with the position after it."""
        with self._lock:
            position = max(position, self._base)  # what has been cut off is committed
            offset = position - self._base
            data = os.pread(self._fd, READ_BYTES, offset)
            while b"\n" not in data and offset + len(data) < self._size:
                data = os.pread(self._fd, len(data) * 2, offset)
        found: list[tuple[int, Line]] = []
        for raw in data.splitlines(keepends=True)[:limit]:
            if not raw.endswith(b"\n"):
                break
            position += len(raw)
            found.append((position, loads(raw)))
        return found

    def close(self) -> None:
        """Gives the file up: gone when nothing is left to tell, else left for a drain."""
        with self._lock:
            if self._is_told():
                self.path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1  # a number that another file may have by then must not be written to


# ------------------------------------------------------------------ the reading end


@dataclass(frozen=True, slots=True)
class Drained:
    """What became of dead processes' files."""

    files: int = 0
    lines: int = 0
    lost: int = 0


def read_uncommitted(folder: Path, naming: str = "") -> Iterator[Line]:
    """Reads from every outbox, the living's too, the lines that may not be in the database yet; only those that hold a name, where one is given."""
    wanted = naming.encode()
    for path in files(folder):
        try:
            with path.open("rb") as file:
                for raw in file:
                    if wanted in raw and raw.endswith(b"\n"):
                        try:
                            line = loads(raw)
                        except ValueError:
                            continue  # a drain sets it aside
                        if has_work(line):
                            yield line
        except FileNotFoundError:
            continue


def drain_dead(folder: Path, commit: Callable[[Sequence[Line]], None]) -> Drained:
    """Commits what dead processes left: their lines, then a loss for each call that has no end. Errors: those of `commit`; the file then stays."""
    count = lines = lost = 0
    for path in files(folder, "*.new"):
        if (fd := lock_of_the_dead(path)) is not None:
            path.unlink(missing_ok=True)  # died while making it, before anything relied on it
            os.close(fd)
    for path in files(folder):
        fd = lock_of_the_dead(path)
        if fd is None:
            continue
        with os.fdopen(fd, "rb") as file:
            some, gone = drain(file, folder, commit)
            path.unlink(missing_ok=True)
        count, lines, lost = count + 1, lines + some, lost + gone
    return Drained(count, lines, lost)


def drain(file: Iterator[bytes], folder: Path, commit: Callable[[Sequence[Line]], None]) -> tuple[int, int]:
    """Commits one dead process's file; returns how many lines it had to tell and how many calls were lost."""
    begun: dict[str, Mapping[str, Any]] = {}
    batch: list[Line] = []
    count = 0
    for raw in file:
        # A last line without its end was cut off by the death: its caller never had the last byte.
        if not raw.endswith(b"\n") or not (line := parsed(raw, folder)):
            continue
        for stub in line.get("begin", ()):
            begun[stub["id"]] = stub
        for name in ended(line):
            begun.pop(name, None)
        if has_work(line):
            batch.append(line)
            count += 1
        if len(batch) >= BATCH_LINES:
            commit(batch)
            batch = []
    if batch:
        commit(batch)
    calls, wholes = lost_lines(begun.values(), process_known=True)
    for found in (calls, wholes):
        for start in range(0, len(found), BATCH_LINES):
            commit(found[start : start + BATCH_LINES])
    return count, len(calls)


def files(folder: Path, pattern: str = "*.jsonl") -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if path.name != REJECTED)


def lock_of_the_dead(path: Path) -> int | None:
    """Opens a file and takes its lock; None where its process lives or another drain has it."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A living process may have put a new file in its place between the two steps above; a drain may have deleted it.
        if os.fstat(fd).st_ino == path.stat().st_ino:
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(fd)
    return None


def parsed(raw: bytes, folder: Path) -> Line | None:
    """Reads a whole line; one that is none is set aside."""
    try:
        return loads(raw)
    except ValueError:
        set_aside(folder, raw, "it is no JSON object of lists")
        return None


def set_aside(folder: Path, raw: bytes, reason: str, names: Sequence[str] = ()) -> None:
    """Keeps a line that cannot be committed, for a person to look at."""
    fd = os.open(folder / REJECTED, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, raw if raw.endswith(b"\n") else raw + b"\n")
    finally:
        os.close(fd)
    log.error("A line of the outbox was set aside in %s: %s. It names %s.", folder / REJECTED, reason, ", ".join(names) or "no call")
