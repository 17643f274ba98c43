"""What the command remembers between calls, a file for each profile: the run launched last, and which commands were begun anew.

Several shells share it: it is read and written under a lock.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from benchwright.cli.session import Session
from benchwright.profiles import cache_folder

LAST = "@last"
KEPT_S = 24 * 3600


def file_of(session: Session) -> Path:
    return cache_folder() / f"{session.profile_name}.json"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keeps other shells out. Where the system has no such locks, or the folder none, it goes without."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(path.with_suffix(".lock"), "a", encoding="utf-8") as file:
        with suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def changed(session: Session, part: str, name: str, value: Any) -> None:
    """Keeps one thing; what is older than a day of the commands that were begun anew goes."""
    path = file_of(session)
    try:
        with locked(path):
            kept = read(path)
            kept.setdefault(part, {})[name] = value
            fresh = kept.get("fresh", {})
            kept["fresh"] = {k: v for k, v in fresh.items() if isinstance(v, dict) and v.get("at", 0) > time.time() - KEPT_S}
            descriptor, temporary = tempfile.mkstemp(dir=path.parent)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(kept, file)
            os.replace(temporary, path)
    except OSError as error:
        click.echo(f"benchwright: {path} cannot be written ({type(error).__name__}): @last stays as it was.", err=True)


def launched(session: Session, run: str) -> None:
    """Remembers the run that @last stands for, of each server its own."""
    changed(session, "last", session.bw.base_url, run)


def run_of(session: Session, name: str) -> str:
    """Gives the run that a name means. Errors: UsageError for @last where nothing was launched."""
    if name != LAST:
        return name
    found = read(file_of(session)).get("last", {}).get(session.bw.base_url)
    if not isinstance(found, str):
        raise click.UsageError(f"There is no @last yet: nothing was launched from here at {session.bw.base_url} (profile {session.profile_name}).")
    return found


def begun_anew(session: Session, digest: str) -> str:
    """Gives the mark of a command that was begun anew within the last day, "" for one that was not."""
    found = read(file_of(session)).get("fresh", {}).get(digest)
    return str(found["mark"]) if isinstance(found, dict) and found.get("at", 0) > time.time() - KEPT_S and found.get("mark") else ""
