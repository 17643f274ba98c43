"""What is known of a model: set by hand, over what the endpoint's own list tells, over what public catalogs say; each fact with its source."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from catalog import sources
from catalog.shape import ShapeError, kind_of, known_names, mapping, truth, whole

HAND = "hand"
LISTED = "endpoint list"

# Prices of long prompts, and what a tier calls the size that it begins behind.
TIERS = "tiers"
ABOVE = "above_tokens"

MOST_TOKENS = 1_000_000_000
MOST_USD_PER_MTOK = Decimal("1000000")
PRICE_PLACES = Decimal("0.000001")
MOST_TIERS = 20
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


AMOUNT_FIELDS: dict[str, Field] = {
    "input_usd_per_mtok": Field(price, "US dollars per million input tokens"),
    "output_usd_per_mtok": Field(price, "US dollars per million output tokens"),
    "cache_read_usd_per_mtok": Field(price, "US dollars per million input tokens read from a cache"),
    "cache_write_usd_per_mtok": Field(price, "US dollars per million input tokens written to a cache"),
    "reasoning_usd_per_mtok": Field(price, "US dollars per million tokens of thinking, where they cost something else than other output"),
}


def tiers(value: Any, field: str) -> list[dict[str, Any]]:
    """Gives the prices of long prompts, the shortest first.

    Shape: [{"above_tokens": 200000, "input_usd_per_mtok": "2.5"}]; a price that a tier does not name stays as it is below it.
    """
    if not isinstance(value, list | tuple):
        raise ShapeError(field, f"must be a list of tiers, not {kind_of(value)}.")
    if len(value) > MOST_TIERS:
        raise ShapeError(field, f"must hold at most {MOST_TIERS} tiers, not {len(value)}.")
    found: list[dict[str, Any]] = []
    for index, one in enumerate(value):
        path = f"{field}[{index}]"
        tier = mapping(one, path)
        known_names(tier, (ABOVE, *AMOUNT_FIELDS), path)
        if tier.get(ABOVE) is None:
            raise ShapeError(f"{path}.{ABOVE}", "is missing: from how many input tokens on does it hold?")
        amounts = {name: price(tier[name], f"{path}.{name}") for name in AMOUNT_FIELDS if tier.get(name) is not None}
        if not amounts:
            raise ShapeError(path, "names no price.")
        found.append({ABOVE: tokens(tier[ABOVE], f"{path}.{ABOVE}"), **amounts})
    found.sort(key=lambda tier: tier[ABOVE])
    if len({tier[ABOVE] for tier in found}) < len(found):
        raise ShapeError(field, f"holds two tiers with the same {ABOVE}.")
    return found


PRICE_FIELDS: dict[str, Field] = {
    **AMOUNT_FIELDS,
    TIERS: Field(tiers, "other prices for calls with more input than so many tokens; the last tier passed holds for the whole call"),
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


def split(facts: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parts checked facts into those a model keeps and the prices, which are dated rows of their own. Null facts fall away, null prices stay."""
    kept = {name: said for name, said in facts.items() if name not in PRICE_FIELDS and said is not None}
    return kept, {name: said for name, said in facts.items() if name in PRICE_FIELDS}


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact and where it comes from. `since` is when that source last said so, None where nobody noted it."""

    value: Any
    source: str
    since: datetime | None


def rank(source: str) -> int:
    """Tells how much a source is believed, the lowest most: by hand, the endpoint's own list, then public catalogs in their order."""
    if source in (HAND, LISTED):
        return (HAND, LISTED).index(source)
    ranks = sources.ranks()
    return 2 + ranks.get(source, len(ranks))


def merged(
    hand: Mapping[str, Any],
    listed: Mapping[str, Any],
    hand_since: datetime | None = None,
    listed_since: datetime | None = None,
    catalogs: Mapping[str, Any] | None = None,
) -> dict[str, Fact]:
    """Lays facts set by hand over listed ones over those of catalogs, in the order of FACT_FIELDS; names that are no facts are left out.

    Shape: `catalogs` as a model's row keeps them: source by source {"facts": {…}, "since": {fact: time}}.
    """
    told = [(name, catalogs[name]) for name in sources.ranks() if name in catalogs] if catalogs else []
    found: dict[str, Fact] = {}
    for name in FACT_FIELDS:
        if hand.get(name) is not None:
            found[name] = Fact(hand[name], HAND, hand_since)
        elif listed.get(name) is not None:
            found[name] = Fact(listed[name], LISTED, listed_since)
        else:
            for source, said in told:
                if said["facts"].get(name) is not None:
                    found[name] = Fact(said["facts"][name], source, moment(said["since"].get(name)))
                    break
    return found


def moment(said: str | None) -> datetime | None:
    return datetime.fromisoformat(said) if said else None


def values(found: Mapping[str, Fact]) -> dict[str, Any]:
    return {name: fact.value for name, fact in found.items()}
