"""Keeps a process's memory and descriptors from programs that it starts: a scorer may run what a model wrote, which must not find its result's word.

Source: prctl(2), PR_SET_DUMPABLE; ptrace(2), on who may look into /proc of another process.
"""

from __future__ import annotations

import ctypes

PR_SET_DUMPABLE = 4


def hide() -> None:
    """Errors: OSError where the kernel refuses: then nothing is run."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "The process cannot be kept from others.")
