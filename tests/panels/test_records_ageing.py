"""Verdicts that age, the comparison of two records, and what is read for a pick."""

from __future__ import annotations

from datetime import date, timedelta
from fractions import Fraction
from math import factorial

import pytest

from access import preferences
from access.models import AuditEntry
from health.models import DayTotal
from health.reliability import answered_since
from panels import evidence, records, tally
from panels.beta import better
from panels.models import Verdict, VerdictTotal
from panels.picking import Word
from panels.records import Record
from panels.tally import Judged
from tests.panels.conftest import NOW, make_panel

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("age", "half_life", "expected"),
    [(0, 60, 1), (60, 60, 0.5), (120, 60, 0.25), (30, 15, 0.25), (9000, 0, 1), (-5, 60, 1)],
)
def test_a_verdict_weighs_half_after_a_half_life(age, half_life, expected) -> None:
    assert records.weight(age, half_life) == pytest.approx(expected)


TODAY, HALF_LIFE = 20_000, 60.0


def judged(call: str, useful: bool | None, half_lives: float, judge: str = "ada", false: int = 0) -> Judged:
    return Judged(call, judge, "core", "mercury", useful, 0, false, TODAY - round(half_lives * HALF_LIFE))


def aged(*verdicts: Judged) -> list[Record]:
    return records.records(verdicts, TODAY, HALF_LIFE)


def test_a_record_says_what_was_counted_and_what_it_weighs() -> None:
    [found] = aged(judged("c1", True, 0), judged("c2", False, 1, false=1), judged("c3", True, 2), judged("c4", None, 1))
    assert (found.judged, found.weight) == (4, 2.25)
    assert (found.useful.yes, found.useful.of, found.useful.counted_yes, found.useful.counted) == (1.25, 1.75, 2, 3)
    assert found.useful.mean == pytest.approx(2.25 / 3.75)
    assert (found.confidently_wrong.yes, found.confidently_wrong.of, found.confidently_wrong.counted) == (0.5, 2.25, 4)


def test_judges_of_one_call_share_its_weight_each_by_their_own_verdicts_age() -> None:
    [found] = aged(judged("c1", True, 0), judged("c1", False, 1, judge="bob"))
    assert (found.useful.yes, found.useful.of, found.useful.counted_yes, found.useful.counted) == (0.5, 0.75, 0.5, 1)


def test_old_verdicts_widen_the_interval() -> None:
    [fresh] = aged(*[judged(f"c{n}", True, 0) for n in range(40)])
    [old] = aged(*[judged(f"c{n}", True, 4) for n in range(40)])
    assert old.useful.high - old.useful.low > fresh.useful.high - fresh.useful.low
    assert old.useful.mean < fresh.useful.mean


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((1, 1), (1, 1), 0.5),
        ((3, 1), (2, 1), 3 / 5),  # Beta(a, 1) against Beta(b, 1): a / (a + b)
        ((1, 1), (3, 9), 9 / 12),  # a flat one against any other: one less the other's mean
        ((1, 4), (4, 1), 1 / 70),  # 1 in C(8, 4)
        ((1, 9), (9, 1), 1 / 48620),  # 1 in C(18, 9)
        ((50, 50), (50, 50), 0.5),
    ],
)
def test_how_probable_it_is_that_one_is_better(one, other, expected) -> None:
    assert better(*one, *other) == pytest.approx(expected, abs=1e-6)
    assert better(*other, *one) == pytest.approx(1 - expected, abs=1e-6)


def beta_of_whole(a: int, b: int) -> Fraction:
    return Fraction(factorial(a - 1) * factorial(b - 1), factorial(a + b - 1))


@pytest.mark.parametrize(("one", "other"), [((9, 3), (4, 6)), ((31, 11), (21, 16)), ((2, 40), (3, 30)), ((800, 200), (780, 220)), ((1, 500), (2, 3))])
def test_for_whole_parameters_it_is_the_exact_sum(one, other) -> None:
    """Source: J. Cook, "Exact calculation of beta inequalities" (2005); in fractions, so without rounding."""
    (a, b), (c, d) = one, other
    exact = sum(beta_of_whole(c + i, b + d) / ((b + i) * beta_of_whole(1 + i, b) * beta_of_whole(c, d)) for i in range(a))
    assert better(a, b, c, d) == pytest.approx(float(exact), abs=1e-6)


# ------------------------------------------------------------------ from the database


def verdict(model: str, useful: bool | None, days: float = 0, collection: str = "core", judge: str = "ada", call: str = "") -> Verdict:
    call = call or make_panel({"model": model, "called": False}, collection=collection).seats.get().call
    made = Verdict.objects.create(call=call, judge=judge, model=model, collection=collection, useful=useful, at=NOW - days * DAY)
    tally.rebuild()
    return made


@pytest.mark.django_db
def test_a_pick_reads_aged_answers_by_model() -> None:
    verdict("mercury", True)
    two = verdict("mercury", True, 60)
    verdict("mercury", False, 60, judge="bob", call=two.call)
    verdict("venus", None)
    verdict("venus", False, 120)
    verdict("mars", True, 9999)
    verdict("mercury", False, collection="other")
    found = records.usefulness("core", NOW, 60)
    assert found == {"mercury": pytest.approx((1.25, 1.5)), "venus": pytest.approx((0, 0.25))}
    assert records.usefulness("core", NOW, 0) == {"mercury": pytest.approx((1.5, 2)), "venus": pytest.approx((0, 1)), "mars": pytest.approx((1, 1))}


@pytest.mark.django_db
@pytest.mark.parametrize("half_life", [0.5, 7, 60, 365.25, 3650])
def test_the_database_weighs_as_the_rule_does(half_life) -> None:
    ages = [0, 1, 2, 3, 17, 59, 60, 61, 400, 1000, 2401, 5000, 19_999, 20_001]
    for age in ages:
        VerdictTotal.objects.create(collection="core", model=f"{age}", day=tally.day_of(NOW) - age, judged=tally.WHOLE, said=tally.WHOLE, useful=tally.WHOLE)
    VerdictTotal.objects.create(collection="core", model="tomorrow", day=tally.day_of(NOW) + 1, judged=tally.WHOLE)
    found = records.sums(("model",), NOW, half_life)
    assert found["tomorrow",].weight_judged == 1
    for age in ages:
        least = min(age, 20_000)
        assert found[f"{age}",].weight_useful == pytest.approx(records.weight(least, half_life), abs=1e-9)


@pytest.mark.django_db
def test_beliefs_are_verdicts_here_over_what_is_known_from_elsewhere(monkeypatch) -> None:
    monkeypatch.setattr(records, "score_readers", [])
    asked = []

    def suite(collection, aliases):
        asked.append((collection, list(aliases)))
        return {"mars": Word(1.0, 50)}

    assert not evidence.read_beliefs("core", ["mercury", "venus", "mars"], NOW).of
    verdict("venus", True, collection="other")
    records.register_scores(suite)
    assert not evidence.read_beliefs("core", ["mercury", "venus", "mars"], NOW).of, "before any verdict in the collection the order given decides"
    verdict("mercury", False)
    DayTotal.objects.create(day=NOW.date(), model="mercury", endpoint="e", status="ok", calls=40, failed=0)
    found = evidence.read_beliefs("core", ["mercury", "venus", "mars"], NOW).of
    assert {alias: (b.a, b.b) for alias, b in found.items()} == {"mercury": (1.5, 2), "venus": (2, 1), "mars": (4, 1)}
    assert asked == [("core", ["mercury", "venus", "mars"])]


@pytest.mark.django_db
def test_health_is_read_from_the_days_totals() -> None:
    for day, calls, failed in ((date(2026, 11, 1), 100, 100), (date(2026, 11, 28), 10, 1), (date(2026, 11, 29), 10, 4)):
        DayTotal.objects.create(day=day, model="mercury", endpoint="e", status="ok", calls=calls, failed=failed)
    assert answered_since(["mercury", "venus"], date(2026, 11, 20)) == {"mercury": (15, 20)}


@pytest.mark.django_db
def test_who_sat_last_is_read_newest_first_without_who_was_skipped() -> None:
    def panel(minutes: int, *seats: dict, **fields) -> str:
        return make_panel(*seats, collection="core", asked_at=NOW + timedelta(minutes=minutes), **fields).pk

    panel(1, {"model": "a"}, {"model": "b", "status": "skipped"})
    panel(3, {"model": "b"}, {"model": "x", "seat": "explorer"}, mode="merged")
    last = panel(5, {"model": "c", "status": "skipped"})
    panel(4, {"model": "z", "seat": "route"}, mode="route")
    make_panel({"model": "y"}, collection="other", asked_at=NOW + timedelta(minutes=9))
    found = evidence.read_last_panels("core", 10)
    by_time = sorted(found.values(), key=lambda sat: sat.at, reverse=True)
    assert [set(sat.aliases) for sat in by_time] == [set(), {"b"}, {"a"}]
    assert by_time[0].at == NOW + timedelta(minutes=5)
    assert list(evidence.read_last_panels("core", 1)) == [last]


@pytest.mark.django_db
def test_an_admin_sets_the_half_life_and_the_trail_says_who() -> None:
    verdict("mercury", True, 30)
    assert records.half_life_days() == 60
    preferences.change(records.HALF_LIFE, 30, "ada")
    assert [r.useful.of for r in records.record_of("core", NOW)] == [0.5]
    preferences.change(records.HALF_LIFE, 0, "ada")
    assert [r.useful.of for r in records.record_of("core", NOW)] == [1.0]
    assert AuditEntry.objects.filter(action="setting.change", target=records.HALF_LIFE).count() == 2
    with pytest.raises(preferences.PreferenceError, match=r"number from 0 to 3650"):
        preferences.change(records.HALF_LIFE, -1, "ada")
