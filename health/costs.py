"""What a call cost, in whole trillionths of a US dollar, so that sums are exact."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal

from catalog.roster import Price, Tier
from wire.conversation import Usage

PUSD_PER_USD = 10**12
# A price of one US dollar per million tokens is a million trillionths a token.
PUSD_PER_USD_PER_MTOK = 10**6


def cost_pusd(usage: Usage, price: Price | None) -> int | None:
    """Prices a call's tokens: the last tier that its input passes holds for all of them. None where a price that is needed is unknown, never 0.

    A call that used nothing, one that was refused for a limit for example, cost nothing whatever the prices are. Units: trillionths of a US dollar.
    """
    if price is None:
        return None if any((usage.input, usage.output, usage.cache_read, usage.cache_write)) else 0
    at: Price | Tier = price
    for tier in price.tiers:
        if usage.input <= tier.above_tokens:
            break
        at = tier
    read, write = usage.cache_read, usage.cache_write
    # Thinking is a part of the output, and some providers count more of it than there was output.
    thought = 0 if at.reasoning is None else min(usage.reasoning, usage.output)
    parts = (
        (max(usage.input - read - write, 0), at.input),
        (read, at.input if at.cache_read is None else at.cache_read),
        (write, at.input if at.cache_write is None else at.cache_write),
        (usage.output - thought, at.output),
        (thought, at.reasoning),
    )
    total = Decimal(0)
    for tokens, usd_per_mtok in parts:
        if tokens:
            if usd_per_mtok is None:
                return None
            total += tokens * usd_per_mtok
    # Prices have six decimals at most in the database, so that nothing is rounded; a finer one is, at the thirteenth decimal.
    return int((total * PUSD_PER_USD_PER_MTOK).to_integral_value(ROUND_HALF_UP))


def most_pusd(usage: Usage, price: Price | None) -> int | None:
    """Prices what a call may come to at most, where how much of its output will be thinking is not known yet. Units: as cost_pusd."""
    told, thought = cost_pusd(replace(usage, reasoning=0), price), cost_pusd(replace(usage, reasoning=usage.output), price)
    return None if told is None or thought is None else max(told, thought)


def pusd(usd: Decimal) -> int:
    """Turns US dollars into trillionths, for caps."""
    return int((usd * PUSD_PER_USD).to_integral_value(ROUND_HALF_UP))


def usd_text(amount_pusd: int | None) -> str | None:
    """Writes an amount as an exact decimal of US dollars, without exponent or trailing zeros: "0.00132", "0"."""
    if amount_pusd is None:
        return None
    whole, rest = divmod(abs(amount_pusd), PUSD_PER_USD)
    sign = "-" if amount_pusd < 0 else ""
    return f"{sign}{whole}.{rest:012d}".rstrip("0").rstrip(".")
