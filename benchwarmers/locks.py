"""File locks of the data folder: one `serve` at a time, one migration at a time. The kernel lets go of them when their process ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SERVE_LOCK = "serve.lock"
MIGRATE_LOCK = "migrate.lock"


class Taken(Exception):
    """Somebody else holds the lock. Shape: `pid` of the holder, 0 where it did not say."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"held by process {pid}")
        self.pid = pid


def take(path: Path) -> int:
    """Takes the lock at once, or not. Shape: a descriptor that holds it until it is closed. Errors: Taken, OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        told = os.read(descriptor, 32).strip()
        os.close(descriptor)
        raise Taken(int(told) if told.isdigit() else 0) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


@contextmanager
def waiting_for(path: Path) -> Iterator[None]:
    """Holds the lock, waiting for it as long as it takes."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
