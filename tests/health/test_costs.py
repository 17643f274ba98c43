from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.roster import Price
from health.costs import cost_pusd, pusd, usd_text
from wire.conversation import Usage


def price(*usd: str | None) -> Price:
    return Price(date(2026, 1, 1), *[None if one is None else Decimal(one) for one in usd])


@pytest.mark.parametrize(
    ("usage", "at", "cost"),
    [
        (Usage(input=2000, cache_read=500), price("3", "15", "0.3"), "0.00465"),
        (Usage(input=2000, cache_read=500, cache_write=300), price("3", "15", "0.3", "3.75"), "0.004875"),
        (Usage(input=2000, cache_read=500, cache_write=300), price("3", "15"), "0.006"),
        (Usage(input=800, output=240, reasoning=200), price("0.5", "1.5"), "0.00076"),
        (Usage(input=1), price("0.000001", None), "0.000000000001"),
        (Usage(), price("3", "15"), "0"),
        (Usage(input=1_000_000_000), price("1000", None), "1000000"),
        (Usage(input=10, output=5), price("0", "0"), "0"),
        # More cached than there was input at all: some providers count so. What is cached is paid for, nothing is negative.
        (Usage(input=100, cache_read=500), price("3", "15", "0.3"), "0.00015"),
    ],
)
def test_a_call_costs_exactly_what_its_tokens_cost(usage: Usage, at: Price, cost: str) -> None:
    assert usd_text(cost_pusd(usage, at)) == cost


@pytest.mark.parametrize(
    ("usage", "at"),
    [
        (Usage(input=1), None),
        (Usage(), None),
        (Usage(input=1), price(None, "1")),
        (Usage(input=1, output=1), price("1", None)),
        (Usage(input=5, cache_read=5), price(None, "1")),
    ],
)
def test_an_unknown_price_that_is_needed_makes_the_cost_unknown(usage: Usage, at: Price | None) -> None:
    assert cost_pusd(usage, at) is None
    assert usd_text(None) is None


def test_an_unknown_price_that_is_not_needed_does_not_matter() -> None:
    assert cost_pusd(Usage(input=5, cache_read=5), price(None, None, "1")) == 5_000_000


@given(st.integers(min_value=-(10**24), max_value=10**24))
def test_a_cost_as_text_is_exact_and_plain(amount: int) -> None:
    text = usd_text(amount)
    assert text is not None
    assert pusd(Decimal(text)) == amount
    assert "E" not in text.upper()
    assert "." not in text or not text.endswith(("0", "."))


@given(st.lists(st.integers(min_value=0, max_value=10**7), min_size=1, max_size=20), st.decimals("0", "10000", places=6))
def test_many_small_calls_cost_what_one_large_call_costs(tokens: list[int], usd: Decimal) -> None:
    at = Price(date(2026, 1, 1), usd, usd)
    assert sum(cost_pusd(Usage(input=one), at) or 0 for one in tokens) == cost_pusd(Usage(input=sum(tokens)), at)
