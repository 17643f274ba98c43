"""Mistakes that people make, as edits: each operator finds where in a function it could be made. Found by walking the folder.

How often each is made: C. Richter, H. Wehrheim, TSSB-3M: Mining single statement bugs at massive scale, MSR 2022 (1.44 million fixes of one statement).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from suite.review.edits import Edit
from suite.review.operators.site import Site

Operator = Callable[[Site], Iterator[Edit]]

# Of a hundred fixes of one statement, so many undo this mistake.
WEIGHTS: Mapping[str, float] = {
    "wrong_identifier": 16.4, "wrong_operand": 12.1, "missing_argument": 10.4, "wrong_function": 9.3, "missing_wrapping_call": 8.1, "wrong_attribute": 7.2,
    "numeric_literal": 6.7, "condition_too_broad": 4.7, "missing_method_call": 4.2, "missing_element": 4.0, "extra_argument": 3.5, "boolean_literal": 2.6,
    "missing_attribute_access": 2.2, "binary_operator": 2.0, "wrong_receiver": 1.7, "condition_too_narrow": 1.5, "keyword_argument": 1.4,
    "unary_operator": 1.0, "swapped_arguments": 0.6, "constant_type": 0.4,
}  # fmt: skip


@cache
def every() -> Mapping[str, Operator]:
    """Lists the operators by name."""
    found: dict[str, Operator] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        found |= getattr(importlib.import_module(f"{__name__}.{module}"), "OPERATORS", {})
    return {name: found[name] for name in WEIGHTS}
