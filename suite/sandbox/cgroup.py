"""A control group of its own for a sandbox, where one was delegated to this server: then the kernel itself holds memory and processes of the whole tree.

Delegated means version 2, with `memory` and `pids`, and a group of ours, or the one above, that holds no process itself and that we may write: systemd's
Delegate=yes with DelegateSubgroup= makes it so. Anywhere else the watcher looks instead.
Source: the kernel's Documentation/admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

NEEDED = frozenset({"memory", "pids"})
MOUNT, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
# Enters the group, then becomes the command: nothing of it ever runs outside.
ENTER = 'echo 0 > "$0/cgroup.procs" && exec "$@"'


def found(mount: Path = MOUNT, own: Path = OWN) -> Path | None:
    """Finds a group in which groups with limits can be made, None where nobody delegated one."""
    try:
        line = next(line for line in own.read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return None
    here = mount / line[3:].lstrip("/")
    return next((group for group in (here, here.parent) if group.is_relative_to(mount) and is_delegated(group)), None)


def is_delegated(group: Path) -> bool:
    """Tells whether limits can be set below a group, and sees to it that they can."""
    try:
        offered = set((group / "cgroup.controllers").read_text().split())
        control = group / "cgroup.subtree_control"
        if not offered >= NEEDED or not os.access(group, os.W_OK) or not os.access(control, os.W_OK) or not os.access(group / "cgroup.procs", os.W_OK):
            return False
        if not set(control.read_text().split()) >= NEEDED:
            if (group / "cgroup.procs").read_text().strip():
                return False  # a group with processes of its own has no limits below it
            control.write_text(" ".join(f"+{name}" for name in sorted(NEEDED)))
        return True
    except OSError:
        return False


@cache
def home() -> Path | None:
    """Gives the group that this server's sandboxes live in, looked for once a process."""
    return found()


@dataclass(frozen=True, slots=True)
class Group:
    """One sandbox's own group."""

    path: Path

    def entered(self, command: Sequence[str]) -> list[str]:
        return ["/bin/sh", "-c", ENTER, str(self.path), *command]

    def broke(self) -> str:
        """Names the limit at which the kernel ended something in it, "" for none."""
        with suppress(OSError, ValueError):
            events = dict(line.split() for line in (self.path / "memory.events").read_text().splitlines())
            if int(events.get("oom_kill", 0)) or int(events.get("oom_group_kill", 0)):
                return "memory"
        return ""

    def end(self) -> None:
        """Ends all that is in it; it is taken away once it is empty."""
        with suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")

    def remove(self) -> None:
        with suppress(OSError):
            self.path.rmdir()


def made(memory_bytes: int, processes: int, at: Path | None = None) -> Group | None:
    """Makes a group with limits, None where none can be had."""
    parent = at or home()
    if parent is None:
        return None
    path = parent / f"box-{secrets.token_hex(8)}"
    try:
        path.mkdir()
    except OSError:
        return None
    try:
        (path / "memory.max").write_text(str(memory_bytes))
        (path / "pids.max").write_text(str(processes))
        for name, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
            if (path / name).exists():
                (path / name).write_text(value)
    except OSError:
        with suppress(OSError):
            path.rmdir()
        return None
    return Group(path)
