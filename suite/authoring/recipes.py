"""How a subset is run, besides its grader: `{"run_timeout": 900, "trials": 3, "passes": true}`."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from suite.api.problems import Unprocessable, Wrong, wrong

# What each is, with its bounds. Units: run_timeout seconds of one stage of a scorer.
NUMBERS = {"run_timeout": (1, 3600), "trials": (1, 100)}
FLAGS = ("passes",)


def read(value: Any, at: str) -> dict[str, Any]:
    """Reads a recipe, or a part of one. Errors: Unprocessable naming each value that is none."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise wrong(at, "must be an object.")
    wrongs = []
    for name, said in value.items():
        if name in NUMBERS:
            least, most = NUMBERS[name]
            is_number = not isinstance(said, bool) and isinstance(said, int | float) and isfinite(said) and least <= said <= most
            if not is_number or (name == "trials" and said != int(said)):
                wrongs.append(Wrong(f"{at}/{name}", "invalid", f"must be a number from {least} to {most}."))
        elif name in FLAGS:
            if not isinstance(said, bool):
                wrongs.append(Wrong(f"{at}/{name}", "invalid", "must be true or false."))
        else:
            wrongs.append(Wrong(f"{at}/{name}", "unknown_field", f"There are {', '.join([*NUMBERS, *FLAGS])}."))
    if wrongs:
        raise Unprocessable(wrongs[0].code, f"{wrongs[0].pointer} {wrongs[0].message}", wrongs)
    return dict(value)
