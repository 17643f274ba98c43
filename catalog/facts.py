"""What is known of a model: facts set by hand over facts that the endpoint's own list tells, each with its source."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from catalog.shape import ShapeError, kind_of, known_names, mapping, truth, whole

HAND = "hand"
LISTED = "endpoint list"

MOST_TOKENS = 1_000_000_000
MOST_USD_PER_MTOK = Decimal("1000000")
PRICE_PLACES = Decimal("0.000001")
PRICE_FORM = re.compile(r"[0-9]{1,12}(\.[0-9]{1,18})?|\.[0-9]{1,18}")


def tokens(value: Any, field: str) -> int:
    return whole(value, field, 1, MOST_TOKENS)


def price(value: Any, field: str) -> str:
    """Gives a price as plain decimal text.

    Units: US dollars per million tokens, to a millionth of a dollar.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise ShapeError(field, f"must be a price like 0.5, not {kind_of(value)}.")
    text = value.strip() if isinstance(value, str) else plain(Decimal(str(value))) if Decimal(str(value)).is_finite() else str(value)
    if not PRICE_FORM.fullmatch(text):
        raise ShapeError(field, f'must be a price like "0.5", in US dollars per million tokens, not {kind_of(value)}.')
    amount = Decimal(text)
    if amount > MOST_USD_PER_MTOK:
        raise ShapeError(field, f"must be at most {MOST_USD_PER_MTOK:,} US dollars per million tokens.")
    try:
        return plain(amount.quantize(PRICE_PLACES))
    except InvalidOperation:  # pragma: no cover  # the form and the bound leave no such number
        raise ShapeError(field, "has too many digits.") from None


def plain(amount: Decimal) -> str:
    """Writes an amount without exponent or trailing zeros."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True, slots=True)
class Field:
    """One fact: how it is checked, and what an admin should know of it."""

    check: Callable[[Any, str], Any]
    tells: str


PRICE_FIELDS: dict[str, Field] = {
    "input_usd_per_mtok": Field(price, "US dollars per million input tokens"),
    "output_usd_per_mtok": Field(price, "US dollars per million output tokens"),
    "cache_read_usd_per_mtok": Field(price, "US dollars per million input tokens read from a cache"),
    "cache_write_usd_per_mtok": Field(price, "US dollars per million input tokens written to a cache"),
}
FACT_FIELDS: dict[str, Field] = {
    "context_window": Field(tokens, "tokens of prompt and answer together"),
    "output_limit": Field(tokens, "tokens of one answer at most"),
    "tools": Field(truth, "whether it calls tools"),
    "vision": Field(truth, "whether it sees images"),
    "audio": Field(truth, "whether it hears audio"),
    "files": Field(truth, "whether it reads documents, such as PDF"),
    "structured_output": Field(truth, "whether it keeps to a JSON schema"),
    "reasoning": Field(truth, "whether it thinks before it answers"),
    **PRICE_FIELDS,
}


def checked(value: Any, field: str = "facts") -> dict[str, Any]:
    """Gives the facts, prices as decimal text. A null stays: it takes back what was set by hand.

    Errors: ShapeError that names the field.
    """
    facts = mapping(value, field)
    known_names(facts, FACT_FIELDS, field)
    return {name: None if said is None else FACT_FIELDS[name].check(said, f"{field}.{name}") for name, said in facts.items()}


def checked_without_prices(value: Any, field: str = "facts") -> dict[str, Any]:
    """Gives the facts that a model's row keeps. Errors: ShapeError, also for a price, which is a dated row of its own."""
    kept, amounts = split(checked(value, field))
    for name in amounts:
        raise ShapeError(f"{field}.{name}", "is a price, which is kept by day, apart from the facts.")
    return kept


def split(facts: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str | None]]:
    """Parts checked facts into those a model keeps and the prices, which are dated rows of their own. Null facts fall away, null prices stay."""
    kept = {name: said for name, said in facts.items() if name not in PRICE_FIELDS and said is not None}
    return kept, {name: said for name, said in facts.items() if name in PRICE_FIELDS}


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact and where it comes from. `since` is when that source last said so, None where nobody noted it."""

    value: Any
    source: str
    since: datetime | None


def merged(hand: Mapping[str, Any], listed: Mapping[str, Any], hand_since: datetime | None = None, listed_since: datetime | None = None) -> dict[str, Fact]:
    """Lays facts set by hand over listed ones, in the order of FACT_FIELDS; names that are no facts are left out."""
    found: dict[str, Fact] = {}
    for name in FACT_FIELDS:
        if hand.get(name) is not None:
            found[name] = Fact(hand[name], HAND, hand_since)
        elif listed.get(name) is not None:
            found[name] = Fact(listed[name], LISTED, listed_since)
    return found


def values(found: Mapping[str, Fact]) -> dict[str, Any]:
    return {name: fact.value for name, fact in found.items()}
