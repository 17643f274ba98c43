"""What panels came to lately: how many a collection was asked, and the mean cost and time of its newest ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count

from health import sums
from health.costs import usd_text
from panels.models import Panel

DAYS = 30
# Of how many panels the means are. Enough for a mean, few enough to add up.
LATEST = 20
# A list looks at so many of the newest, whichever collections they were asked of: two queries, however many collections there are.
LOOKED_AT = 400
MODES = ("panel", "merged")


@dataclass(frozen=True, slots=True)
class Recent:
    """One collection's. Shape: `panels` of the last `days`; the means are of the newest `of` panels, None where there is none. Units: `cost_usd` exact
    text, of the panels all of whose calls had a price."""

    days: int = DAYS
    panels: int = 0
    of: int = 0
    cost_usd: str | None = None
    seconds: float | None = None


def of_collections(names: Sequence[str], now: datetime) -> dict[str, Recent]:
    """Reads it for some collections. Three queries."""
    asked = Panel.objects.filter(mode__in=MODES, collection__in=names)
    counted: dict[str, int] = dict(asked.filter(asked_at__gte=now - timedelta(days=DAYS)).order_by().values_list("collection").annotate(n=Count("pk")))
    latest: dict[str, list[tuple[str, float | None]]] = {name: [] for name in names}
    over = asked.exclude(status=Panel.Status.RUNNING).order_by("-asked_at").values_list("collection", "pk", "seconds")
    for name, pk, seconds in over[: LATEST if len(names) == 1 else LOOKED_AT]:
        if len(latest[name]) < LATEST:
            latest[name].append((pk, seconds))
    costs = sums.costs_of_panels([pk for found in latest.values() for pk, _ in found])
    return {name: mean(counted.get(name, 0), latest[name], costs) for name in names}


def mean(panels: int, latest: Sequence[tuple[str, float | None]], costs: dict[str, int | None]) -> Recent:
    known = [cost for pk, _ in latest if (cost := costs.get(pk)) is not None]
    times = [seconds for _, seconds in latest if seconds is not None]
    return Recent(
        panels=panels,
        of=len(latest),
        cost_usd=usd_text(round(sum(known) / len(known))) if known else None,
        seconds=sum(times) / len(times) if times else None,
    )
