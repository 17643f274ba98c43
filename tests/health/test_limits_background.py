"""Who goes first, what only reports, and what limits that were learned hold: rules of meters and holds, and the rows that come of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from catalog import limits as limit_rules
from catalog import roster
from catalog.shape import ShapeError
from health import ledger
from health.database import Database
from health.holds import call_holds, shadow_holds
from health.learned import ShadowHits, shadow_hits
from health.limits import Admitted, Caps, Meter, Refused, admit, admit_background, decode, encode, settle, wanted
from health.models import Meter as MeterRow
from health.models import ShadowHit
from health.reserve import Ask, Denied, Hold, Permit, Request
from tests.health.conftest import ask, held, hold

NOON = 1_773_144_000_000


def used_up(caps: Caps, amount: int) -> Meter:
    answer = admit(Meter(), caps, amount, NOON)
    assert isinstance(answer, Admitted)
    return answer.meter


# ------------------------------------------------------------------ background calls

BACKGROUND = [
    # cap, used by others, amount, whether it may go
    (10, 8, 1, True),
    (10, 9, 1, False),
    (100, 89, 1, True),
    (100, 90, 1, False),
    (2, 0, 1, True),
    (2, 1, 1, False),
    (1, 0, 1, True),  # else it could never go
    (1, 1, 1, False),
    (1000, 0, 950, True),  # nothing else is there
    (1000, 1, 950, False),
]


@pytest.mark.parametrize(("cap", "used", "amount", "goes"), BACKGROUND)
@pytest.mark.parametrize("window", ["minute", "day", "month", "parallel"])
def test_background_calls_leave_the_last_of_a_window_to_others(window: str, cap: int, used: int, amount: int, goes: bool) -> None:
    more: dict[str, Any] = {window: cap}
    caps = Caps(**more)
    meter = used_up(caps, used) if used else Meter()
    answer = admit_background(meter, caps, amount, NOON + 1)
    assert isinstance(answer, Admitted) is goes
    if isinstance(answer, Refused):
        assert not answer.never
    if used + amount <= cap:
        assert isinstance(admit(meter, caps, amount, NOON + 1), Admitted)


def test_a_background_call_that_alone_exceeds_a_limit_can_never_go() -> None:
    answer = admit_background(Meter(), Caps(minute=100), 101, NOON)
    assert isinstance(answer, Refused)
    assert answer.never


def test_who_waits_goes_before_background_calls_until_a_second_after_its_turn() -> None:
    caps = Caps(minute=10)
    meter = wanted(used_up(caps, 5), 20.0, NOON)
    assert meter is not None
    assert wanted(meter, 20.0, NOON + 100) is None  # known already: nothing to write
    assert wanted(meter, 25.0, NOON + 100) is not None
    meter = decode(encode(meter))
    answer = admit_background(meter, caps, 1, NOON + 1000)
    assert answer == Refused("minute", 20.0)
    foreground = admit(meter, caps, 1, NOON + 1000)
    assert isinstance(foreground, Admitted)
    assert foreground.meter.wanted_ms == NOON + 21_000  # another may wait still
    assert settle(meter, ("minute",), 5, 1, NOON, NOON + 2000).wanted_ms == NOON + 21_000
    over = admit(meter, caps, 1, NOON + 21_000)
    assert isinstance(over, Admitted)
    assert over.meter.wanted_ms == 0
    assert isinstance(admit_background(meter, caps, 1, NOON + 21_000), Admitted)


def test_meters_of_before_are_read_and_those_that_nobody_waits_for_are_written_as_before() -> None:
    old = '[[[1773144000000,3]],["2026-03-10",3],null,1,"UTC"]'
    meter = decode(old)
    assert (meter.wanted_ms, meter.parallel) == (0, 1)
    assert encode(meter) == old


def reserved(*asks: Ask) -> list[Permit | Denied]:
    db = Database()
    try:
        (answer,) = ledger.transact(db, [], [Request(None, asks)])
        return list(answer.rest)
    finally:
        db.close()


@pytest.mark.usefixtures("tables")
def test_a_call_that_waits_marks_the_meter_for_all_hosts_and_one_that_gives_up_does_not() -> None:
    limit = hold("endpoint:1", "requests", 1, minute=2)
    assert all(isinstance(one, Permit) for one in reserved(ask("a", limit), ask("b", limit)))
    (denied,) = reserved(replace(ask("gives up", limit), patience_s=5.0))
    assert isinstance(denied, Denied)
    assert decode(MeterRow.objects.get().state).wanted_ms == 0
    (denied,) = reserved(replace(ask("waits", limit), patience_s=90.0))
    assert isinstance(denied, Denied)
    assert decode(MeterRow.objects.get().state).wanted_ms > datetime.now(UTC).timestamp() * 1000 + 55_000
    (denied,) = reserved(replace(ask("probe", hold("endpoint:1", "requests", 1, minute=100)), background=True))
    assert isinstance(denied, Denied)
    (later,) = reserved(ask("person", hold("endpoint:1", "requests", 1, minute=100)))
    assert isinstance(later, Permit)


@pytest.mark.usefixtures("tables")
def test_a_background_call_that_waits_marks_nothing() -> None:
    limit = hold("endpoint:1", "requests", 1, minute=1)
    reserved(ask("a", limit))
    reserved(replace(ask("probe", limit), background=True, patience_s=90.0))
    assert decode(MeterRow.objects.get().state).wanted_ms == 0


# ------------------------------------------------------------------ limits that only report


def shadowed(name: str, *shadow: Hold) -> Ask:
    return replace(ask(name), shadow=shadow)


@pytest.mark.usefixtures("tables")
def test_a_shadow_limit_refuses_nothing_and_counts_what_it_would_have_refused() -> None:
    requests = hold("shadow:endpoint:1", "requests", 1, minute=2)
    tokens = hold("shadow:endpoint:1", "tokens", 10, day=1000)
    answers = reserved(*[shadowed(str(n), requests, tokens) for n in range(5)])
    assert all(isinstance(one, Permit) for one in answers)
    today = datetime.now(UTC).date()
    assert shadow_hits(today) == [ShadowHits("endpoint:1", "requests", "minute", today, 3)]
    assert held("shadow:endpoint:1|requests", "minute") == 2
    assert held("shadow:endpoint:1|tokens", "day") == 20  # what is refused uses up nothing
    reserved(shadowed("more", requests))
    assert ShadowHit.objects.get().calls == 4
    assert shadow_hits(date(9999, 1, 1)) == []


@pytest.mark.usefixtures("tables")
def test_a_shadow_limits_meter_is_settled_to_the_truth(tmp_path: Any) -> None:
    reserved(shadowed("a", hold("shadow:model:1", "tokens", 500, day=1000), hold("shadow:model:1", "parallel", 1, parallel=3)))
    ledger.commit([{"settle": [{"permit": "a", "truth": {"shadow:model:1|tokens": 30, "shadow:model:1|parallel": 0}}]}], tmp_path)
    assert (held("shadow:model:1|tokens", "day"), held("shadow:model:1|parallel", "parallel")) == (30, 0)


def test_shadow_limits_are_written_like_limits() -> None:
    given = {"requests": {"minute": 3}, "shadow": {"requests": {"minute": 2, "day": None}, "tokens": {}, "parallel": 1}}
    assert limit_rules.checked(given) == {"requests": {"minute": 3}, "shadow": {"requests": {"minute": 2}, "parallel": 1}}
    assert limit_rules.checked({"shadow": {}}) == {}
    with pytest.raises(ShapeError, match=r"limits\.shadow\.requests\.minute"):
        limit_rules.checked({"shadow": {"requests": {"minute": 0}}})
    with pytest.raises(ShapeError):
        limit_rules.checked({"shadow": {"shadow": {}}})


# ------------------------------------------------------------------ what a call holds


def a_model(limits: Any = None, learned: Any = None, own: Any = None, base_url: str = "http://127.0.0.1/v1") -> roster.Model:
    endpoint = roster.Endpoint(3, "here", "openai", base_url, "", limits or {}, {}, learned or {})
    return roster.Model(7, "fast", endpoint, "fast", {}, {}, {}, False, False, "", (), own or {})


def windows(model: roster.Model, tokens: int = 100) -> dict[str, tuple[int, dict[str, int]]]:
    """By meter: the amount, and each window's cap."""
    found = {}
    for one in call_holds(model, tokens):
        caps = {w: cap for w in ("minute", "day", "month", "parallel") if (cap := getattr(one.caps, w)) is not None}
        found[one.meter] = (one.amount, caps)
    return found


def test_without_any_limit_a_call_holds_nothing() -> None:
    assert call_holds(a_model(), 100) == ()
    assert shadow_holds(a_model({"requests": {"minute": 1}}), 100) == ()


def test_a_learned_limit_holds_where_nobody_set_one_window_by_window() -> None:
    model = a_model({"requests": {"minute": 5}}, {"requests": {"minute": 100, "day": 1000}, "parallel": 2}, {"tokens": {"minute": 6000}})
    assert windows(model) == {
        "endpoint:3|requests": (1, {"minute": 5, "day": 1000}),
        "endpoint:3|parallel": (1, {"parallel": 2}),
        "model:7|tokens": (100, {"minute": 6000}),
    }


def test_a_learned_limit_makes_no_call_impossible_and_one_that_was_set_does() -> None:
    assert windows(a_model(learned={"tokens": {"minute": 6000}}), 9000)["endpoint:3|tokens"] == (6000, {"minute": 6000})
    assert windows(a_model({"tokens": {"minute": 6000}}), 9000)["endpoint:3|tokens"] == (9000, {"minute": 6000})
    assert windows(a_model({"tokens": {"day": 8000}}, {"tokens": {"minute": 6000}}), 9000)["endpoint:3|tokens"] == (9000, {"minute": 6000, "day": 8000})


def test_a_day_ends_at_the_providers_own_midnight() -> None:
    (one,) = call_holds(a_model(learned={"requests": {"day": 20}}, base_url="https://generativelanguage.googleapis.com"), 10)
    assert one.caps.zone == "America/Los_Angeles"
