"""Which panels on record a list shows: by what they were, by what became of them, and by words of their prompts."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet

from access.caller import Caller
from access.pages import Page, keyset, token
from panels import lookup
from panels.models import Panel, Seat, Verdict
from panels.prompt_text import plain_of

# Prompts are texts without an index: so many of the newest panels are looked through.
LOOKED_THROUGH = 5_000
# Units: seconds. Where prompts hold many images, so many take their time.
LOOKED_FOR_S = 5.0
ORDER = ("asked_at", "id")
FEW = 500
AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Filters:
    """What a list is asked for; what is empty asks for nothing. Shape: `verdict` is none or some, `until` the first moment that is too late."""

    collection: str = ""
    mode: str = ""
    status: str = ""
    judge: str = ""
    model: str = ""
    verdict: str = ""
    since: datetime | None = None
    until: datetime | None = None
    find: tuple[str, ...] = ()


def rows_of(filters: Filters, whose: Caller | None) -> QuerySet[Panel]:
    """Panels that a list shows, words of prompts left aside: a caller's own, or with None everybody's."""
    rows = Panel.objects.all()
    if whose is not None:
        rows = rows.filter(**lookup.asked_by(whose))
    equal = {name: value for name in ("collection", "mode", "status", "judge") if (value := getattr(filters, name))}
    rows = rows.filter(**equal)
    if filters.since:
        rows = rows.filter(asked_at__gte=filters.since)
    if filters.until:
        rows = rows.filter(asked_at__lt=filters.until)
    if filters.model:
        seats = Seat.objects.filter(model=filters.model)
        few = list(seats.order_by().values_list("panel", flat=True)[: FEW + 1])
        # Of a model that sat everywhere a page is soon found; for one that hardly sat every panel there is would be asked.
        rows = rows.filter(pk__in=few) if len(few) <= FEW else rows.filter(Exists(seats.filter(panel=OuterRef("pk"))))
    if filters.verdict == "some":
        # Few have a verdict: they are gathered once, where each panel would be asked until a page of them is found.
        rows = rows.filter(pk__in=Seat.objects.filter(call__in=Verdict.objects.filter(current=True).values("call")).values("panel"))
    elif filters.verdict:
        rows = rows.filter(~Exists(Seat.objects.filter(panel=OuterRef("pk")).filter(Exists(Verdict.objects.filter(call=OuterRef("call"), current=True)))))
    return rows


def page_of(filters: Filters, whose: Caller | None, limit: int, page_token: str) -> tuple[Page[Panel], bool]:
    """Reads one page, newest first. Shape: the rows without their prompts, and whether older ones were left out of a search for words."""
    rows = rows_of(filters, whose)
    if not filters.find:
        return keyset(rows.defer("prompt"), ORDER, limit, page_token, newest_first=True), False
    bounds = list(rows.order_by("-asked_at", "-id").values_list("asked_at", flat=True)[LOOKED_THROUGH - 1 : LOOKED_THROUGH + 1])
    is_cut_off = len(bounds) > 1
    if is_cut_off:
        rows = rows.filter(asked_at__gte=bounds[0])
    page, is_whole = found_in(rows, filters.find, limit, page_token)
    return page, is_cut_off or not is_whole


def found_in(rows: QuerySet[Panel], words: Sequence[str], limit: int, page_token: str) -> tuple[Page[Panel], bool]:
    """Reads a page of those in whose prompts all words stand; once it has taken too long, as far as it came, with a token that goes on from there.

    The database sorts out most. What the bytes of an image happen to spell is no word, so each is read; one at a time, for it may be large.
    """
    likely = rows.filter(prompt__isnull=False).defer("prompt")
    for word in words:
        likely = likely.filter(likely_to_hold(word))
    wanted = [word.casefold() for word in words]
    found: list[Panel] = []
    until = time.monotonic() + LOOKED_FOR_S
    while True:
        page = keyset(likely, ORDER, AT_ONCE, page_token, newest_first=True)
        for row in page.data:
            said = plain_of(Panel.objects.filter(pk=row.pk).values_list("prompt", flat=True).first()).casefold()
            if all(word in said for word in wanted):
                if len(found) == limit:
                    return Page(found, token([found[-1].asked_at, found[-1].pk])), True
                found.append(row)
            if time.monotonic() > until:
                return Page(found, token([row.asked_at, row.pk])), False
        if page.next is None:
            return Page(found, None), True
        page_token = page.next


def likely_to_hold(word: str) -> Q:
    """What the database can tell of a word in a prompt as it is kept, which is JSON. SQLite knows upper and lower case of ASCII only: other letters that have
    both are left out of what it is asked.
    """
    parts = "".join([c if c.isascii() or c.lower() == c.upper() else " " for c in word]).split()
    return Q(*[Q(prompt__icontains=json.dumps(part, ensure_ascii=False)[1:-1]) for part in parts])
