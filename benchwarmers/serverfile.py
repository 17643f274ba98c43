"""`server.json` in the data folder: where the running server is found, and whether it is stopping. Written by `serve` alone."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from benchwarmers.processes import pid_is_alive

NAME = "server.json"


@dataclass(frozen=True, slots=True)
class RunningServer:
    """Shape: `url` is where programs on this machine reach it; `stopping` since it was told to stop."""

    url: str
    pid: int
    version: str
    stopping: bool = False


def write(home: Path, server: RunningServer) -> None:
    """Writes the file whole or not at all, readable by its owner only."""
    beside = home / f".{NAME}.{os.getpid()}"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(server), file)
        file.write("\n")
    beside.replace(home / NAME)


def read(home: Path) -> RunningServer | None:
    """Reads what the running server wrote; None without one, or where its process is gone."""
    try:
        told = json.loads((home / NAME).read_text(encoding="utf-8"))
        server = RunningServer(str(told["url"]), int(told["pid"]), str(told["version"]), bool(told.get("stopping", False)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return server if pid_is_alive(server.pid) else None


def remove(home: Path, pid: int) -> None:
    """Removes the file, unless another server has written it since."""
    server = read(home)
    if server is None or server.pid == pid:
        (home / NAME).unlink(missing_ok=True)
