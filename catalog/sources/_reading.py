"""What reading any catalog takes: texts, sizes and prices from values that nobody vouches for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from decimal import Decimal, InvalidOperation
from typing import Any

from catalog import facts

# Beyond any currency: written out, 1e400000 would fill a page.
MOST_AMOUNT = Decimal(10**15)
# Many times what all catalogs hold together: each entry beyond becomes objects and rows, which would fill this server, not tell more.
MOST_ENTRIES = 100_000
LONGEST_TEXT = 300
LONGEST_NOTE = 1000
# Why a model's figures are no prices a token.
NO_TOKENS_OUT = "It answers with {}, so its price is not one of text tokens."
NO_TOKENS_IN = "It reads only {}, so its price is not one of text tokens."


def text(value: Any, longest: int = LONGEST_TEXT) -> str:
    """Gives one line of printable text, cut; empty for what is no text."""
    if not isinstance(value, str):
        return ""
    if not value.isprintable():
        value = "".join(char if char.isprintable() else " " for char in value)
    return " ".join(value.split())[:longest]


def name(value: Any, longest: int = LONGEST_TEXT) -> str:
    """Gives a name as it must be said to a provider. Errors: ValueError where it could be none: nothing is cut, since another name is another model."""
    if not isinstance(value, str) or not value.strip() or value != value.strip():
        raise ValueError("It has no name.")
    if len(value) > longest or not value.isprintable():
        raise ValueError(f"Its name has over {longest} characters, or some that do not print.")
    return value


def check_count(*lists: Sized) -> None:
    """Errors: ValueError where a catalog holds more than any does."""
    if sum(map(len, lists)) > MOST_ENTRIES:
        raise ValueError(f"it holds more than {MOST_ENTRIES:,} entries.")


def objects(value: Any) -> Iterable[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def texts(value: Any) -> list[str]:
    return [text(one, 40) for one in value if isinstance(one, str)][:20] if isinstance(value, list) else []


def size(value: Any) -> int | None:
    """Gives a number of tokens; 0 and nonsense are how catalogs say that they do not know."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= facts.MOST_TOKENS else None


def truth(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def known(values: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves out what is not known."""
    return {name: value for name, value in values.items() if value is not None and value != "" and value != [] and value != {}}


def amount(value: Any) -> Decimal | None:
    """Gives a figure as it stands there, None where there is none. Errors: ValueError for what is no amount, a negative one too."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError("A price of it is no number.")
    try:
        found = Decimal(str(value).strip())
    except InvalidOperation:
        raise ValueError("A price of it is no number.") from None
    if not found.is_finite() or found > MOST_AMOUNT:
        raise ValueError("A price of it is no number.")
    if found < 0:
        raise ValueError("Its price varies (a negative one is given).")
    return found


def price(usd_per_mtok: Decimal | None) -> str | None:
    """Writes an amount as the roster does; one that is too large for it stays, so that whoever judges amounts sees it."""
    if usd_per_mtok is None:
        return None
    rounded = usd_per_mtok.quantize(facts.PRICE_PLACES) if usd_per_mtok < facts.MOST_USD_PER_MTOK else usd_per_mtok
    return facts.plain(rounded)


def unpriced(reads: Iterable[str], writes: Iterable[str]) -> str:
    """Tells why figures of a model that reads or writes no text are no prices a token; empty where they are."""
    reads, writes = list(reads), list(writes)
    if writes and "text" not in writes:
        return NO_TOKENS_OUT.format(" and ".join(writes))
    if reads and "text" not in reads:
        return NO_TOKENS_IN.format(" and ".join(reads))
    return ""
