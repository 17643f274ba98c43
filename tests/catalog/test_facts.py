"""Facts: their types and bounds, and where each comes from."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from catalog import facts
from catalog.facts import Fact
from catalog.shape import ShapeError


def test_all_facts_of_the_contract_are_taken() -> None:
    given = {
        "context_window": 131072,
        "output_limit": 8192,
        "tools": True,
        "vision": False,
        "structured_output": True,
        "reasoning": False,
        "input_usd_per_mtok": "0.5",
        "output_usd_per_mtok": "1.5",
        "cache_read_usd_per_mtok": "0.05",
        "cache_write_usd_per_mtok": "0.625",
    }
    assert facts.checked(given) == given


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("0.5", "0.5"),
        ("0.50", "0.5"),
        (".5", "0.5"),
        ("0", "0"),
        (0, "0"),
        (0.1, "0.1"),
        (3, "3"),
        ("15", "15"),
        ("1000000", "1000000"),
        (1e-6, "0.000001"),
        ("0.0000004", "0"),
        (" 2.5 ", "2.5"),
        ("007.10", "7.1"),
    ],
)
def test_prices_are_kept_as_plain_decimals(written: Any, kept: str) -> None:
    assert facts.price(written, "p") == kept


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("context_window", 0),
        ("context_window", -1),
        ("context_window", "131072"),
        ("context_window", 1.5),
        ("context_window", True),
        ("context_window", 10**10),
        ("output_limit", []),
        ("tools", "yes"),
        ("tools", 1),
        ("vision", "true"),
        ("input_usd_per_mtok", "-1"),
        ("input_usd_per_mtok", "1e3"),
        ("input_usd_per_mtok", "free"),
        ("input_usd_per_mtok", "$1"),
        ("input_usd_per_mtok", "1,5"),
        ("input_usd_per_mtok", ""),
        ("input_usd_per_mtok", True),
        ("input_usd_per_mtok", float("nan")),
        ("input_usd_per_mtok", float("inf")),
        ("input_usd_per_mtok", "1000001"),
        ("input_usd_per_mtok", "１"),
        ("output_usd_per_mtok", {"amount": 1}),
        ("context_windw", 1),
    ],
)
def test_wrong_facts_name_the_field(name: str, value: Any) -> None:
    with pytest.raises(ShapeError) as caught:
        facts.checked({name: value})
    assert caught.value.field == f"facts.{name}"


def test_a_mistyped_fact_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(ShapeError, match=r"Did you mean context_window\?"):
        facts.checked({"contextwindow": 5})


def test_prices_are_parted_from_what_a_model_keeps() -> None:
    kept, prices = facts.split(facts.checked({"tools": True, "vision": None, "input_usd_per_mtok": 1, "output_usd_per_mtok": None}))
    assert kept == {"tools": True}
    assert prices == {"input_usd_per_mtok": "1", "output_usd_per_mtok": None}
    with pytest.raises(ShapeError, match="is a price"):
        facts.checked_without_prices({"input_usd_per_mtok": 1})


def test_what_was_set_by_hand_wins_over_the_list_and_each_says_where_it_is_from() -> None:
    by_hand, by_list = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 3, 4, tzinfo=UTC)
    found = facts.merged({"context_window": 1000, "tools": None, "odd": 1}, {"context_window": 2000, "tools": False, "vision": True}, by_hand, by_list)
    assert found == {
        "context_window": Fact(1000, "hand", by_hand),
        "tools": Fact(False, "endpoint list", by_list),
        "vision": Fact(True, "endpoint list", by_list),
    }
    assert facts.values(found) == {"context_window": 1000, "tools": False, "vision": True}
    assert facts.merged({}, {}) == {}
