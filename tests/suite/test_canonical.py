"""One text for equal values, and ids that hold what they stand for."""

from __future__ import annotations

from typing import Any

import pytest

from suite import canonical, ids


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"b": 1, "a": [True, None, "x"]}, '{"a":[true,null,"x"],"b":1}'),
        (1.0, "1"),
        (-0.0, "0"),
        (0.000001, "0.000001"),
        (1e-7, "1e-7"),
        (1.5e-7, "1.5e-7"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.25e300, "1.25e+300"),
        (333333333.33333329, "333333333.3333333"),
        ('\u20ac$\u000f\n"\\/', '"\u20ac$\\u000f\\n\\"\\\\/"'),
        ("\ud835", '"\\ud835"'),
        ({"\ufb33": 1, "\U0001f600": 2, "\u20ac": 3}, '{"\u20ac":3,"\U0001f600":2,"\ufb33":1}'),
        (2**60, "1152921504606846976"),
    ],
)
def test_a_value_has_one_text(value: Any, said: str) -> None:
    assert canonical.canonical(value) == said


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_what_is_no_number_has_none(value: Any) -> None:
    with pytest.raises(ValueError, match="no JSON"):
        canonical.canonical(value)


def test_the_order_of_keys_is_nothing_and_that_of_lists_is() -> None:
    assert canonical.digest({"a": 1, "b": [1, 2]}) == canonical.digest({"b": [1.0, 2], "a": 1})
    assert canonical.digest([1, 2]) != canonical.digest([2, 1])


def test_what_is_kept_is_ascii_and_comes_back() -> None:
    import json

    value = {"x": "\x00\ud835\u202e\U0001f600"}
    assert canonical.kept(value).isascii()
    assert json.loads(canonical.kept(value)) == value


def test_a_bare_uuid_is_the_same_id() -> None:
    made = ids.new_id("run")
    assert ids.read(made, "run") == made
    assert ids.read(made, "bm") == ""
    assert ids.read("not an id", "run") == ""
    found = ids.read("00000000-0000-0000-0000-0000000000ff", "run")
    assert found == "run_" + "0" * 24 + "7Z"


def test_the_same_content_has_the_same_id() -> None:
    one = ids.content_id("imp", canonical.digest("x"))
    assert one == ids.content_id("imp", canonical.digest("x"))
    assert one != ids.content_id("imp", canonical.digest("y"))
    assert len(one) == 30
