"""How a subset is run, besides its grader: `{"run_timeout": 900, "trials": 3, "passes": true, "impl": "imp_…"}`."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from access.caller import Caller
from suite import ids
from suite.api.problems import Unprocessable, Wrong, wrong
from suite.models import Impl
from suite.seeing import may_read_impl

# What each is, with its bounds. Units: run_timeout seconds of one stage of a scorer.
NUMBERS = {"run_timeout": (1, 3600), "trials": (1, 100)}
FLAGS = ("passes",)
# The code that grades it where no impl is named: one that was made for another subset, perhaps.
IMPL = "impl"


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
        elif name == IMPL:
            if not isinstance(said, str) or not ids.read(said, "imp"):
                wrongs.append(Wrong(f"{at}/{name}", "invalid", "must be an impl's id."))
        else:
            wrongs.append(Wrong(f"{at}/{name}", "unknown_field", f"There are {', '.join([*NUMBERS, *FLAGS, IMPL])}."))
    if wrongs:
        raise Unprocessable(wrongs[0].code, f"{wrongs[0].pointer} {wrongs[0].message}", wrongs)
    return dict(value)


def look_at_impl(caller: Caller, recipe: Mapping[str, Any], at: str) -> None:
    """Looks whether the impl that a recipe names is there for its caller. Errors: Unprocessable."""
    if IMPL not in recipe:
        return
    row = Impl.objects.select_related("benchmark").filter(pk=ids.read(recipe[IMPL], "imp"), deleted_at=None).first()
    if row is None or not may_read_impl(caller, row):
        raise Unprocessable("impl_unknown", f"There is no impl {recipe[IMPL][:80]} that you may see.", [Wrong(at, "impl_unknown", "is none.")])
