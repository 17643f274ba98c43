"""What a call cost, in whole trillionths of a US dollar, so that sums are exact."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from catalog.roster import Price
from wire.conversation import Usage

PUSD_PER_USD = 10**12
# A price of one US dollar per million tokens is a million trillionths a token.
PUSD_PER_USD_PER_MTOK = 10**6


def cost_pusd(usage: Usage, price: Price | None) -> int | None:
    """Prices a call's tokens. None where a price that is needed is unknown, never 0.

    Units: trillionths of a US dollar.
    """
    if price is None:
        return None
    read, write = usage.cache_read, usage.cache_write
    parts = (
        (max(usage.input - read - write, 0), price.input),
        (read, price.input if price.cache_read is None else price.cache_read),
        (write, price.input if price.cache_write is None else price.cache_write),
        (usage.output, price.output),
    )
    total = Decimal(0)
    for tokens, usd_per_mtok in parts:
        if tokens:
            if usd_per_mtok is None:
                return None
            total += tokens * usd_per_mtok
    # Prices have six decimals at most in the database, so that nothing is rounded; a finer one is, at the thirteenth decimal.
    return int((total * PUSD_PER_USD_PER_MTOK).to_integral_value(ROUND_HALF_UP))


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
