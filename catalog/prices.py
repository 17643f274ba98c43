"""Prices by day: a change is a new row from today on, so that yesterday's calls keep yesterday's price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import groupby
from typing import Any, Protocol

from catalog import facts, roster
from catalog.models import Model, Price
from catalog.shape import ShapeError

# A row's column, and the roster price's field.
COLUMNS = {
    "input_usd_per_mtok": "input",
    "output_usd_per_mtok": "output",
    "cache_read_usd_per_mtok": "cache_read",
    "cache_write_usd_per_mtok": "cache_write",
    "reasoning_usd_per_mtok": "reasoning",
}
NAMES = (*COLUMNS, facts.TIERS)

# What no catalog is believed: the dearest model known costs 600, and a slip of a factor of a million must not reserve a fortune.
MOST_OF_A_CATALOG = Decimal(10_000)
MOST_TIMES = 100


class Row(Protocol):
    """One dated price, however it was read."""

    since: date
    source: str
    input_usd_per_mtok: Decimal | None
    output_usd_per_mtok: Decimal | None
    cache_read_usd_per_mtok: Decimal | None
    cache_write_usd_per_mtok: Decimal | None
    reasoning_usd_per_mtok: Decimal | None
    tiers: Any


def today() -> date:
    """Prices change at midnight UTC."""
    return datetime.now(UTC).date()


# ------------------------------------------------------------------ what is set


def set_prices(model_row: Model, given: Mapping[str, Any], day: date, source: str = facts.HAND) -> dict[str, list[Any]]:
    """Sets prices of one source from a day on; those not given stay as they were, null ones become unknown.

    Shape: `given` by fact name, decimal text and a list of tiers; the answer tells what changed as [before, after], and is empty where nothing was written.
    Errors: ShapeError for a name or an amount that is none.
    """
    wanted = {name: None if said is None else checked(name, said) for name, said in given.items() if known(name)}
    row = Price.objects.filter(model=model_row, source=source, since__lte=day).order_by("-since").first()
    before = amounts(row) if row else dict.fromkeys(NAMES)
    after = {**before, **wanted}
    if before == after:
        return {}
    write(model_row.pk, after, day, source)
    return {name: [text(before[name]), text(after[name])] for name in NAMES if before[name] != after[name]}


def write(model_id: int, after: Mapping[str, Any], day: date, source: str) -> None:
    """Makes or replaces a source's row of one day. Shape: `after` as `amounts` gives them."""
    Price.objects.update_or_create(model_id=model_id, since=day, source=source, defaults={**after, facts.TIERS: after[facts.TIERS] or []})


def checked(name: str, said: Any) -> Any:
    """Gives an amount as a Decimal, tiers as a list (None for an empty one). Errors: ShapeError."""
    return (facts.tiers(said, name) or None) if name == facts.TIERS else Decimal(facts.price(said, name))


def known(name: str) -> bool:
    if name not in NAMES:
        raise ShapeError(name, "is no price.")
    return True


def prices_of(model_row: Model, source: str = facts.HAND, day: date | None = None) -> dict[str, Any]:
    """Gives the prices of one source that hold on a day (today without one), by fact name, unknown ones left out."""
    row = Price.objects.filter(model=model_row, source=source, since__lte=day or today()).order_by("-since").first()
    return {name: said for name, amount in amounts(row).items() if (said := text(amount)) is not None} if row else {}


def amounts(row: Row) -> dict[str, Any]:
    """Gives a row's prices by fact name: Decimals, tiers as a list, None for what it does not say."""
    return {**{name: getattr(row, name) for name in COLUMNS}, facts.TIERS: row.tiers or None}


def text(amount: Any) -> Any:
    """Writes an amount as plain decimal text; None and tiers, which are text already, stay."""
    return facts.plain(amount) if isinstance(amount, Decimal) else amount


# ------------------------------------------------------------------ what holds


def timeline(rows: Iterable[Row]) -> tuple[roster.Price, ...]:
    """Lays the sources over each other for every day on which one of them changes, newest first: the order of `facts.rank`, whatever the age, field by field.

    Sources that are no catalog's of ours rank by their day.
    """
    held: dict[str, Row] = {}
    found = []
    for day, changed in groupby(sorted(rows, key=lambda row: row.since), key=lambda row: row.since):
        held |= {row.source: row for row in changed}
        found.append(laid_over(ranked(held.values()), day))
    return tuple(reversed(found))


def ranked(rows: Iterable[Row]) -> list[Row]:
    """Puts the rows of several sources into order, the most believed first."""
    return sorted(rows, key=lambda row: (facts.rank(row.source), -row.since.toordinal()))


def owners(rows: Sequence[Row]) -> dict[str, Row]:
    """Tells whose word holds for each price: the first source that names it, be it in a tier only.

    A price set by hand so holds for long prompts, too: another source's tier would else undo it there.
    """
    found: dict[str, Row] = {}
    for row in rows:
        named = {name for name in COLUMNS if getattr(row, name) is not None}
        for tier in row.tiers or ():
            named |= tier.keys() & COLUMNS.keys()
        for name in named:
            found.setdefault(name, row)
    return found


def laid_over(rows: Sequence[Row], day: date) -> roster.Price:
    """Makes one price of what sources say on a day, the most believed first."""
    whose = owners(rows)
    base = {name: getattr(row, name) for name, row in whose.items()}
    marks = sorted({tier[facts.ABOVE] for name, row in whose.items() for tier in row.tiers or () if name in tier})
    found = []
    for mark in marks:
        passed = {name: [t[name] for t in row.tiers or () if t[facts.ABOVE] <= mark and name in t] for name, row in whose.items()}
        found.append(roster.Tier(mark, **{COLUMNS[name]: Decimal(said[-1]) if (said := passed[name]) else base[name] for name in whose}))
    return roster.Price(since=day, **{COLUMNS[name]: amount for name, amount in base.items()}, tiers=tuple(found))


def facts_on(rows: Iterable[Row], day: date) -> dict[str, facts.Fact]:
    """Gives the prices of a day as facts, each with its source and since when that source says so."""
    told: dict[str, list[Row]] = {}
    for row in sorted((row for row in rows if row.since <= day), key=lambda row: row.since, reverse=True):
        told.setdefault(row.source, []).append(row)
    newest = ranked(said[0] for said in told.values())
    whose = owners(newest)
    found: dict[str, facts.Fact] = {}
    for name in COLUMNS:
        if (owner := whose.get(name)) is not None and (amount := getattr(owner, name)) is not None:
            found[name] = facts.Fact(text(amount), owner.source, since(told[owner.source], name))
    # Of each tier only what is that source's to say.
    for row in newest:
        kept = [{n: v for n, v in tier.items() if n == facts.ABOVE or whose.get(n) is row} for tier in row.tiers or ()]
        if kept := [tier for tier in kept if len(tier) > 1]:
            found[facts.TIERS] = facts.Fact(kept, row.source, since(told[row.source], facts.TIERS))
            break
    return found


def since(rows: Sequence[Row], name: str) -> datetime:
    """Tells from which day on a source's rows, newest first, say what the newest says."""
    first = rows[0]
    for row in rows:
        if getattr(row, name) != getattr(rows[0], name):
            break
        first = row
    return datetime.combine(first.since, time(), UTC)


# ------------------------------------------------------------------ what is believed


@dataclass(frozen=True, slots=True)
class Odd:
    """Why a catalog's price for an offer is not believed. `amount` is what may turn out to be true all the same, empty where it cannot."""

    reason: str
    amount: str = ""


def disbelieved(said: Mapping[str, Any], before: Mapping[str, Any]) -> Odd | None:
    """Tells why a catalog's prices for one offer are not taken over, None where they are.

    Shape: prices by fact name as decimal text and tiers, `before` what the same offer last said.
    """
    for name, amount in every_amount(said):
        if amount > MOST_OF_A_CATALOG:
            return Odd(f"{name} of {facts.plain(amount)} USD per million tokens is more than any model costs ({MOST_OF_A_CATALOG:,}).")
    for name in COLUMNS:
        new, old = Decimal(said.get(name) or 0), Decimal(before.get(name) or 0)
        # What became free, or no longer is, says so with a nought: that is news, and no slip of the point.
        if new and old and not 1 <= MOST_TIMES * new / old <= MOST_TIMES**2:
            moved = "rose" if new > old else "fell"
            return Odd(f"{name} {moved} from {facts.plain(old)} to {facts.plain(new)} USD per million tokens, over {MOST_TIMES} times.", f"{name} {new}")
    return None


def every_amount(said: Mapping[str, Any]) -> Iterable[tuple[str, Decimal]]:
    for name in COLUMNS:
        if said.get(name) is not None:
            yield name, Decimal(said[name])
    for tier in said.get(facts.TIERS) or ():
        for name in COLUMNS:
            if tier.get(name) is not None:
                yield f"{name} above {tier[facts.ABOVE]} tokens", Decimal(tier[name])
