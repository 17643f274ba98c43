"""What the kernel says of running processes: CPU time, memory, who descends from whom; and what this machine is."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Process:
    """Shape: `cpu_s` is its own user and system time and that of its children which have ended and were waited for."""

    pid: int
    parent: int
    name: str
    cpu_s: float


def read_process(pid: int) -> Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
    return Process(pid, int(rest[1]), name, sum(int(n) for n in rest[11:15]) / TICKS_A_SECOND)


def processes() -> dict[int, Process]:
    found = (read_process(int(entry)) for entry in os.listdir("/proc") if entry.isdigit())
    return {p.pid: p for p in found if p is not None}


def tree(root: int) -> list[Process]:
    """A process and all that descend from it, parents first."""
    all_of_them = processes()
    children: dict[int, list[Process]] = {}
    for process in all_of_them.values():
        children.setdefault(process.parent, []).append(process)
    found, waiting = [], [all_of_them[root]] if root in all_of_them else []
    while waiting:
        process = waiting.pop(0)
        found.append(process)
        waiting += children.get(process.pid, [])
    return found


def cpu_s(root: int) -> float:
    """CPU seconds of a whole process tree so far."""
    return sum(p.cpu_s for p in tree(root))


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def pss_mb(pid: int) -> float:
    """Proportional set size: memory shared by n processes counts one n-th in each. 0 for a process that is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)


def threads(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def describe() -> dict[str, str]:
    """The machine in a few words, for the head of a table."""
    try:
        cpu = next(line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        cpu = platform.processor() or platform.machine()
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": cpu,
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory_gb:.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "loop_ms": f"{loop_ms():.0f}",
    }


def loop_ms() -> float:
    """CPU milliseconds of a million turns of a plain Python loop: what figures of two machines can be divided by."""
    best = float("inf")
    for _ in range(3):
        begun, total = time.process_time(), 0
        for number in range(1_000_000):
            total += number * number % 7
        best = min(best, (time.process_time() - begun) * 1000)
    return best


def revision(folder: Path) -> str:
    """The git revision, with a + where files differ from it."""
    try:
        head = subprocess.run(["git", "-C", str(folder), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        dirty = subprocess.run(["git", "-C", str(folder), "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if dirty else "")
