"""Prices by day: a change is a new row from today on, so that yesterday's calls keep yesterday's price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Protocol

from catalog import facts, roster
from catalog.models import Model, Price
from catalog.shape import ShapeError

# A row's column, and the roster price's field.
COLUMNS = {
    "input_usd_per_mtok": "input",
    "output_usd_per_mtok": "output",
    "cache_read_usd_per_mtok": "cache_read",
    "cache_write_usd_per_mtok": "cache_write",
}


class Row(Protocol):
    """One dated price, however it was read."""

    since: date
    source: str
    input_usd_per_mtok: Decimal | None
    output_usd_per_mtok: Decimal | None
    cache_read_usd_per_mtok: Decimal | None
    cache_write_usd_per_mtok: Decimal | None


def today() -> date:
    """Prices change at midnight UTC."""
    return datetime.now(UTC).date()


def set_prices(model_row: Model, given: Mapping[str, str | None], day: date, source: str = facts.HAND) -> dict[str, list[str | None]]:
    """Sets prices of one source from a day on; those not given stay as they were, null ones become unknown.

    Shape: `given` by fact name, decimal text; the answer tells what changed as [before, after], and is empty where nothing was written.
    Errors: ShapeError for a name or an amount that is none.
    """
    wanted = {name: None if said is None else Decimal(facts.price(said, name)) for name, said in given.items() if known(name)}
    row = Price.objects.filter(model=model_row, source=source, since__lte=day).order_by("-since").first()
    before = amounts(row) if row else dict.fromkeys(COLUMNS)
    after = {**before, **wanted}
    if before == after:
        return {}
    Price.objects.update_or_create(model=model_row, since=day, source=source, defaults=after)
    return {name: [text(before[name]), text(after[name])] for name in COLUMNS if before[name] != after[name]}


def known(name: str) -> bool:
    if name not in COLUMNS:
        raise ShapeError(name, "is no price.")
    return True


def prices_of(model_row: Model, source: str = facts.HAND, day: date | None = None) -> dict[str, str]:
    """Gives the prices of one source that hold on a day (today without one), by fact name, unknown ones left out."""
    row = Price.objects.filter(model=model_row, source=source, since__lte=day or today()).order_by("-since").first()
    return {name: said for name, amount in amounts(row).items() if (said := text(amount)) is not None} if row else {}


def amounts(row: Row) -> dict[str, Decimal | None]:
    return {name: getattr(row, name) for name in COLUMNS}


def text(amount: Decimal | None) -> str | None:
    return None if amount is None else facts.plain(amount)


def timeline(rows: Iterable[Row]) -> tuple[roster.Price, ...]:
    """Lays the sources over each other for every day on which one of them changes, newest first: a price set by hand wins, whatever its age.

    Other sources rank by their day.
    """
    rows = sorted(rows, key=lambda row: row.since)
    found = []
    for day in sorted({row.since for row in rows}, reverse=True):
        held: dict[str, Decimal | None] = {}
        newest = {row.source: row for row in rows if row.since <= day}.values()
        # Later in this order wins, field by field.
        for row in sorted(newest, key=lambda row: (row.source == facts.HAND, row.since)):
            held.update({COLUMNS[name]: amount for name, amount in amounts(row).items() if amount is not None})
        found.append(roster.Price(since=day, **held))
    return tuple(found)
