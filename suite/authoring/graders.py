"""A subset's grader as its author writes it: `{"kind": "math", "decimal": ","}`, or without a kind, each row by its own."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from suite.api.problems import Unprocessable, Wrong, wrong
from suite.grading import every
from suite.grading.contract import RowError

FIELDS = ("kind", "pass_threshold", "decimal", "ignore_case", "tolerance", "timeout", "memory_mb", "judge", "rubric", "choices", "reduce")


def read(value: Any) -> dict[str, Any] | None:
    """Reads a grader; None for none. Errors: Unprocessable."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise wrong("/grader", 'must be an object such as {"kind": "math"}.')
    if unknown := [name for name in value if name not in FIELDS]:
        wrongs = [Wrong(f"/grader/{name}", "unknown_field", "There is no such field.") for name in unknown]
        raise Unprocessable("unknown_field", f"A grader has {', '.join(FIELDS)}.", wrongs)
    kind = value.get("kind")
    if kind is not None and (not isinstance(kind, str) or kind not in every()):
        raise Unprocessable(
            "grader_unknown",
            f"There is no built-in grader {str(kind)[:40]}. There are: {', '.join(every())}.",
            [Wrong("/grader/kind", "grader_unknown", "is none.")],
        )
    threshold = value.get("pass_threshold", 1.0)
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not isfinite(threshold) or not 0 < threshold <= 1:
        raise wrong("/grader/pass_threshold", "must be a number above 0 and at most 1.")
    if value.get("decimal", "") not in ("", ".", ","):
        raise wrong("/grader/decimal", 'must be "." or ",".')
    if not isinstance(value.get("ignore_case", True), bool):
        raise wrong("/grader/ignore_case", "must be true or false.")
    tolerance = value.get("tolerance", 1e-9)
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not isfinite(tolerance) or not 0 <= tolerance < 1:
        raise wrong("/grader/tolerance", "must be a number from 0 to 1.")
    if kind is not None:
        try:
            every()[kind].look_at(value)
        except RowError as error:
            raise wrong(f"/grader{error.pointer}", str(error)) from None
    return dict(value)
