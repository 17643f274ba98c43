"""Sums of verdicts by day, collection and model, kept in the transaction of each verdict: what records read, however many verdicts there are.

The rule of what counts is in `panels.records`. A call's weight is shared by its judges, so sums are in parts of a whole call that divides by up to
24 judges without a rest: what is taken out again is exactly what was put in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import orjson
from django.db import connection, transaction
from django.db.models import Sum, TextField
from django.db.models.functions import Cast

from panels import agreement
from panels.agreement import Sat, words_of
from panels.models import JudgedPanel, Seat, Verdict, VerdictJudge, VerdictTotal

# The least number that 1 to 24 divide.
WHOLE = 5_354_228_880
MEASURES = ("judged", "said", "useful", "wrong", "real", "false")
FIELDS = ("call", "judge", "collection", "model", "useful", "real", "false", "at")
DAY_S = 86_400

Total = tuple[str, str, int]
Judging = tuple[str, str, str]

PUT_TOTAL = (
    "INSERT INTO panels_verdicttotal (collection, model, day, judged, said, useful, wrong, real, false) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (collection, model, day) DO UPDATE SET"
    " judged = panels_verdicttotal.judged + excluded.judged, said = panels_verdicttotal.said + excluded.said,"
    " useful = panels_verdicttotal.useful + excluded.useful, wrong = panels_verdicttotal.wrong + excluded.wrong,"
    ' real = panels_verdicttotal.real + excluded.real, "false" = panels_verdicttotal."false" + excluded."false"'
).replace("real, false)", 'real, "false")')
PUT_JUDGE = (
    "INSERT INTO panels_verdictjudge (collection, model, judge, calls) VALUES (%s, %s, %s, %s)"
    " ON CONFLICT (collection, model, judge) DO UPDATE SET calls = panels_verdictjudge.calls + excluded.calls"
)


@dataclass(frozen=True, slots=True)
class Judged:
    """One current verdict, as much of it as a record needs. Shape: `real` and `false` are numbers of claims. Units: `day` since 1970-01-01."""

    call: str
    judge: str
    collection: str
    model: str
    useful: bool | None
    real: int
    false: int
    day: int = 0


def day_of(at: datetime) -> int:
    """The day of a time. UTC, whatever BENCH_TIME_ZONE says, so that a verdict is taken out where it was put in."""
    return int(at.timestamp() // DAY_S)


def number_of(day: date) -> int:
    return day.toordinal() - date(1970, 1, 1).toordinal()


def judged_of(verdict: Verdict) -> Judged:
    v = verdict
    return Judged(v.call, v.judge, v.collection, v.model, v.useful, len(v.real), len(v.false), day_of(v.at))


# ------------------------------------------------------------------ pure


def totals_of(verdicts: Iterable[Judged]) -> dict[Total, list[int]]:
    """Sums verdicts up by collection, model and day. Shape: the values are MEASURES, in parts of WHOLE."""
    by_call: dict[tuple[str, str, str], list[Judged]] = defaultdict(list)
    for verdict in verdicts:
        by_call[verdict.collection, verdict.model, verdict.call].append(verdict)
    found: dict[Total, list[int]] = {}
    for (collection, model, _), together in by_call.items():
        share = round(WHOLE / len(together))
        saying = sum(v.useful is not None for v in together)
        of_said = round(WHOLE / saying) if saying else 0
        for v in together:
            sums = found.setdefault((collection, model, v.day), [0] * len(MEASURES))
            one = (share, of_said * (v.useful is not None), of_said * bool(v.useful), share * (v.false > 0), share * v.real, share * v.false)
            for place, value in enumerate(one):
                sums[place] += value
    return found


def judges_of(verdicts: Iterable[Judged]) -> dict[Judging, int]:
    """Counts the calls that each judged."""
    found: dict[Judging, int] = defaultdict(int)
    for v in verdicts:
        found[v.collection, v.model, v.judge] += 1
    return found


# ------------------------------------------------------------------ in a verdict's transaction


def alone(panel: str) -> None:
    """Lets others who judge the same panel wait until this transaction ends: what a verdict changes depends on the others there."""
    if connection.vendor == "postgresql":  # SQLite has one writer
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"verdicts:{panel}"])


def enter(verdict: Verdict, before: Verdict | None, panel: str) -> None:
    """Puts a verdict that has just been kept into the sums, in the place of the one that it replaces. After `alone`, in the same transaction."""
    now = [judged_of(row) for row in Verdict.objects.filter(call=verdict.call, current=True)]
    was = [v for v in now if v.judge != verdict.judge]
    if before is not None:
        was.append(judged_of(before))
    totals, judges = totals_of(now), judges_of(now)
    for key, sums in totals_of(was).items():
        held = totals.setdefault(key, [0] * len(MEASURES))
        totals[key] = [a - b for a, b in zip(held, sums, strict=True)]
    for who, calls in judges_of(was).items():
        judges[who] = judges.get(who, 0) - calls
    with connection.cursor() as cursor:
        for key in sorted(totals):
            if any(totals[key]):
                cursor.execute(PUT_TOTAL, [*key, *totals[key]])
        for who in sorted(judges):
            if judges[who]:
                cursor.execute(PUT_JUDGE, [*who, judges[who]])
    enter_panel(panel)


def enter_panel(panel: str) -> None:
    """Works out anew who was found wrong in a panel. A call that has no seat, a direct one, is compared with nobody."""
    calls = list(Seat.objects.filter(panel=panel).values_list("call", flat=True))
    rows = list(Verdict.objects.filter(call__in=calls, current=True).order_by("id").values_list("id", "collection", "model", "false"))
    if rows:
        JudgedPanel.objects.update_or_create(panel=panel, defaults=panel_fields(rows))


def panel_fields(rows: Sequence[tuple[int, str, str, list[str]]]) -> dict[str, Any]:
    """What is kept of a panel's current verdicts. Shape: `rows` are id, collection, model and false claims, the newest last."""
    claims: dict[str, list[frozenset[str]]] = {}
    for _, _, model, false in rows:
        claims.setdefault(model, []).extend(words_of(claim) for claim in false)
    sat = agreement.compared(claims)
    wrong = {model: int(is_wrong) for model, is_wrong in sorted(sat.wrong.items())}
    return {"collection": rows[-1][1], "verdict": rows[-1][0], "models_judged": len(wrong), "wrong": wrong, "shared": sorted(map(list, sat.shared))}


def latest_panels(collection: str, most: int) -> list[Sat]:
    """Reads the panels of a collection in which two models or more were judged, the newest verdict first. One query, by an index."""
    rows = JudgedPanel.objects.filter(collection=collection, models_judged__gt=1).order_by("-verdict")
    texts = rows.values_list(Cast("wrong", TextField()), Cast("shared", TextField()))[:most]
    # A few forms come again and again: each is read once.
    found: dict[tuple[str, str], Sat] = {}
    for said in texts:
        if said not in found:
            found[said] = Sat(orjson.loads(said[0]), frozenset((one, other) for one, other in orjson.loads(said[1])))
    return [found[said] for said in texts]


def newest() -> tuple[int, str] | None:
    """Names the newest verdict: while it is the same, so are the sums. One query. Shape: its id, and its call, since what was rolled back frees its id."""
    return Verdict.objects.order_by("-id").values_list("id", "call").first()


def days_of_model(alias: str, since: date, until: date) -> dict[int, tuple[float, float]]:
    """Reads how many answers were found useful on each day, and how many not. Shape: by `number_of` a day of UTC, its first and last included. One query."""
    rows = VerdictTotal.objects.filter(model=alias, day__gte=number_of(since), day__lte=number_of(until)).order_by().values_list("day")
    return {day: (int(yes) / WHOLE, (int(said) - int(yes)) / WHOLE) for day, yes, said in rows.annotate(yes=Sum("useful"), of=Sum("said"))}


# ------------------------------------------------------------------ made anew


def rebuild() -> int:
    """Sums all current verdicts anew, in one transaction; returns how many there are."""
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("LOCK TABLE panels_verdict, panels_verdicttotal, panels_verdictjudge, panels_judgedpanel IN SHARE ROW EXCLUSIVE MODE")
        for table in (VerdictTotal, VerdictJudge, JudgedPanel):
            table.objects.all().delete()
        verdicts: list[Judged] = []
        said: dict[str, list[tuple[int, str, str, list[str]]]] = defaultdict(list)
        for row in Verdict.objects.filter(current=True).order_by("id").iterator(chunk_size=2000):
            verdicts.append(judged_of(row))
            said[row.call].append((row.pk, row.collection, row.model, row.false))
        totals = [VerdictTotal(**dict(zip(("collection", "model", "day", *MEASURES), (*key, *s), strict=True))) for key, s in totals_of(verdicts).items()]
        VerdictTotal.objects.bulk_create(totals, batch_size=500)
        judges = [VerdictJudge(collection=c, model=m, judge=j, calls=calls) for (c, m, j), calls in judges_of(verdicts).items()]
        VerdictJudge.objects.bulk_create(judges, batch_size=500)
        JudgedPanel.objects.bulk_create(judged_panels(said), batch_size=500)
    return len(verdicts)


def judged_panels(said: Mapping[str, list[tuple[int, str, str, list[str]]]], at_once: int = 5000) -> list[JudgedPanel]:
    of_panel: dict[str, list[tuple[int, str, str, list[str]]]] = defaultdict(list)
    calls = list(said)
    for start in range(0, len(calls), at_once):
        for call, panel in Seat.objects.filter(call__in=calls[start : start + at_once]).values_list("call", "panel_id"):
            of_panel[panel] += said[call]
    return [JudgedPanel(panel=panel, **panel_fields(sorted(rows, key=lambda row: row[0]))) for panel, rows in of_panel.items()]
