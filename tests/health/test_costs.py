from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.roster import Price, Tier
from health.costs import cost_pusd, most_pusd, pusd, usd_text
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
        # A call that used nothing, refused for a limit for example: no price is needed.
        (Usage(), None, "0"),
        (Usage(), price(None, None), "0"),
        # More cached than there was input at all: some providers count so. What is cached is paid for, nothing is negative.
        (Usage(input=100, cache_read=500), price("3", "15", "0.3"), "0.00015"),
    ],
)
def test_a_call_costs_exactly_what_its_tokens_cost(usage: Usage, at: Price | None, cost: str) -> None:
    assert usd_text(cost_pusd(usage, at)) == cost


@pytest.mark.parametrize(
    ("usage", "at"),
    [
        (Usage(input=1), None),
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


def tiered(*tiers: Tier) -> Price:
    return Price(date(2026, 1, 1), Decimal(2), Decimal(10), Decimal("0.2"), None, None, tiers)


LONG = Tier(200_000, Decimal(4), Decimal(15), Decimal("0.4"))
LONGER = Tier(400_000, Decimal(8), Decimal(30), None, None, Decimal(40))


@pytest.mark.parametrize(
    ("usage", "at", "cost"),
    [
        (Usage(input=200_000, output=1000), tiered(LONG), "0.41"),
        (Usage(input=200_001, output=1000), tiered(LONG), "0.815004"),
        # The tier holds for the whole call, cached input too, and the cached part counts towards its size.
        (Usage(input=300_000, output=0, cache_read=200_000), tiered(LONG), "0.48"),
        (Usage(input=400_000, output=0), tiered(LONG, LONGER), "1.6"),
        (Usage(input=400_001, output=1000, reasoning=400), tiered(LONG, LONGER), "3.234008"),
        # What the last tier does not know costs what its other input does.
        (Usage(input=500_000, cache_read=500_000), tiered(LONG, LONGER), "4"),
    ],
)
def test_the_last_tier_that_the_input_passes_holds_for_the_whole_call(usage: Usage, at: Price, cost: str) -> None:
    assert usd_text(cost_pusd(usage, at)) == cost


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(output=1000), "0.01"),
        (Usage(output=1000, reasoning=400), "0.022"),
        (Usage(output=1000, reasoning=1000), "0.04"),
        # Some providers count more thinking than there was output: nothing is paid for twice.
        (Usage(output=1000, reasoning=5000), "0.04"),
    ],
)
def test_thinking_costs_its_own_price_and_is_a_part_of_the_output(usage: Usage, cost: str) -> None:
    assert usd_text(cost_pusd(usage, Price(date(2026, 1, 1), None, Decimal(10), reasoning=Decimal(40)))) == cost


def test_an_output_price_that_is_unknown_does_not_matter_where_all_is_thinking() -> None:
    assert cost_pusd(Usage(output=5, reasoning=5), Price(date(2026, 1, 1), reasoning=Decimal(1))) == 5_000_000
    assert cost_pusd(Usage(output=5, reasoning=4), Price(date(2026, 1, 1), reasoning=Decimal(1))) is None


@pytest.mark.parametrize(("reasoning", "cost"), [(None, "0.01"), ("40", "0.04"), ("1", "0.01")])
def test_a_reservation_counts_on_the_dearer_kind_of_output(reasoning: str | None, cost: str) -> None:
    at = Price(date(2026, 1, 1), None, Decimal(10), reasoning=None if reasoning is None else Decimal(reasoning))
    assert usd_text(most_pusd(Usage(output=1000), at)) == cost
