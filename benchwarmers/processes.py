"""Ties processes together, so that none outlives the one that answers for it."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
WANTED_OPEN_FILES = 65_536
# What a stopping web process has to write down the calls that it cut, after open streams had their own time; then it is killed.
CLOSING_S = 25

# Loaded before any fork: the child of a fork may only call what is already in memory.
LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def end_with_parent(number: signal.Signals, parent: int) -> None:
    """Has the kernel (Linux) or a watching thread (elsewhere) signal this process once `parent`, its parent now, has ended."""
    if LIBC is not None:
        LIBC.prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:  # it ended before the kernel was told
            os.kill(os.getpid(), number)
        return
    if threading.current_thread() is threading.main_thread():
        threading.Thread(target=_watch_parent, args=(number, parent), name="parent-watch", daemon=True).start()


def _watch_parent(number: signal.Signals, parent: int) -> None:
    pause = threading.Event()
    while os.getppid() == parent:
        pause.wait(1.0)
    os.kill(os.getpid(), number)


def before_exec(number: signal.Signals) -> Callable[[], None] | None:
    """Makes what a new child runs between fork and exec: on Linux the parent-death signal survives the exec, elsewhere nothing does."""
    if LIBC is None:
        return None
    parent = os.getpid()
    return lambda: end_with_parent(number, parent)


def tie_forks(number: signal.Signals) -> None:
    """Gives every process that this one or its children fork from now on the same bond to its own parent."""
    os.register_at_fork(after_in_child=lambda: end_with_parent(number, os.getppid()))


def adopt_orphans() -> None:
    """Makes grandchildren whose parent died this process's children (Linux), so that it can wait for them and none stays a zombie."""
    if LIBC is not None:
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def signal_group(group: int, number: signal.Signals) -> bool:
    """Signals a whole process group. False: nobody is left in it."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # macOS says so of a group of which only zombies are left
        return False
    return True


def signal_one(pid: int, number: signal.Signals) -> bool:
    """Signals one process. False: it is gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def group_is_alive(group: int) -> bool:
    """Tells whether any process of the group is left."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def pid_is_alive(pid: int) -> bool:
    """Tells whether a process has this id, whoever owns it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def raise_open_file_limit() -> int:
    """Raises the limit of open files as far as it may be: every stream needs two. Units: files, now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_OPEN_FILES if hard == resource.RLIM_INFINITY else min(WANTED_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError):
            return soft
        return wanted
    return soft
