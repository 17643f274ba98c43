"""Strategies that bend good JSON: a wrong type, a missing field or a stray one, anywhere."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
    | st.sampled_from(["", "0", "function", "text", "data:image/png;base64,QUJD", "data:", "http://", "user", "error", "length", "[DONE]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "id", "name", "function", "content", "x"]), inner, max_size=3),
    max_leaves=8,
)


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from paths(inner, (*at, key))


def replaced(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    if not path:
        return junk
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = junk
    return value


@st.composite
def bent(draw: st.DrawFn, good: Any, most: int = 3) -> Any:
    """The good value with one to `most` of its parts replaced by junk."""
    for _ in range(draw(st.integers(1, most))):
        good = replaced(good, draw(st.sampled_from(list(paths(good)))), draw(JUNK))
    return good
