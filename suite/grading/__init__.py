"""From what a model said to what it counts as. One file in `kinds` per kind of task, found by walking the folder.

Pure, but for kinds that run code: those say so by `needs_sandbox`, and the run hands them one.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from suite.grading import kinds
from suite.grading.contract import Kind


@cache
def every() -> dict[str, Kind]:
    """Gives every kind by its name."""
    found: dict[str, Kind] = {}
    for module in pkgutil.iter_modules(kinds.__path__):
        kind: Kind = import_module(f"suite.grading.kinds.{module.name}").KIND
        found[kind.name] = kind
    return found
