"""What a sandbox's processes use together, read from /proc: for hosts where no control group can be had, which is most of them.

A process belongs to a sandbox if it lives in its PID namespace; who left its session or its parent does so too.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Used:
    """Units: `memory` bytes that are resident, shared ones counted for each; `files` in the folders that it may write, however large."""

    processes: int
    memory: int
    files: int = 0

    def __or__(self, other: Used) -> Used:
        """Gives the larger of each."""
        return Used(max(self.processes, other.processes), max(self.memory, other.memory), max(self.files, other.files))


def namespace_of(pid: int) -> str:
    """Names the PID namespace that a process lives in, "" where it is gone or not ours to look at."""
    try:
        return os.readlink(PROC / str(pid) / "ns" / "pid")
    except OSError:
        return ""


def init_of(bwrap: int) -> int | None:
    """Finds the first process of the namespace that a bubblewrap made: its child."""
    try:
        children = (PROC / str(bwrap) / "task" / str(bwrap) / "children").read_text().split()
    except OSError:
        return None
    own = namespace_of(bwrap)
    return next((int(pid) for pid in children if namespace_of(int(pid)) not in ("", own)), None)


def used(namespace: str) -> Used:
    """Sums up all processes of a namespace."""
    processes = memory = 0
    for name in os.listdir(PROC):
        if name.isdigit() and namespace_of(int(name)) == namespace:
            processes += 1
            try:
                with open(f"/proc/{name}/statm", "rb") as file:
                    memory += int(file.read().split()[1]) * PAGE
            except (OSError, IndexError, ValueError):
                continue
    return Used(processes, memory)


def files(first: int, folders: Sequence[str]) -> int:
    """Counts what lies in the folders of a namespace's first process: empty files fill no folder, but they fill the kernel."""
    found = 0
    for folder in folders:
        try:
            said = os.statvfs(f"/proc/{first}/root{folder}")
        except OSError:
            continue
        found += max(0, said.f_files - said.f_ffree)
    return found
