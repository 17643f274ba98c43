from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from access.models import Key, KeyUse
from health import ledger
from health.database import Database, DatabaseAway
from health.lines import COLUMNS, LENGTHS, Line, dumps
from health.models import Alert, Allowance, Attempt, ModelUse, Permit, Rest
from health.outbox import REJECTED, Outbox
from panels.models import Panel, Pin, Seat, StoredResponse
from tests.health.conftest import ask, assert_sums_are_those_of_the_ledger, held, hold, row

pytestmark = pytest.mark.usefixtures("tables")


def reserve(*asks: Any) -> Any:
    db = Database()
    try:
        return ledger.transact(db, [], [ledger.Request(None, asks)])[0]
    finally:
        db.close()


def test_a_line_becomes_rows_that_read_back_as_they_were(folder: Path) -> None:
    written = row("a", started_at="2026-03-10T12:00:00.123456+00:00", key_id=7, cost_pusd=None, ttft_ms=None, estimated=True, error="ü😀")
    ledger.commit([{"attempts": [written]}], folder)
    (read,) = ledger.attempts_of_panel("pan-a")
    assert {name: getattr(read, name) for name in COLUMNS} == {**written, "started_at": datetime(2026, 3, 10, 12, 0, 0, 123456, UTC)}
    assert ledger.attempts_of_call("call-a") == (read,)
    assert ledger.call_exists("call-a")
    assert not ledger.call_exists("call-b")


@pytest.mark.parametrize("text", ["2026-03-10T12:00:00+00:00", "2026-03-10T13:00:00.5+01:00", "2026-03-10T12:00:00Z"])
def test_a_rows_time_is_kept_whatever_its_form(folder: Path, text: str) -> None:
    ledger.commit([{"attempts": [row("a", started_at=text)]}], folder)
    assert Attempt.objects.get().started_at == datetime.fromisoformat(text)
    assert Attempt.objects.filter(started_at__gte=datetime(2026, 3, 10, 12, tzinfo=UTC), started_at__lt=datetime(2026, 3, 10, 12, 1, tzinfo=UTC)).exists()


def test_a_line_that_is_committed_again_counts_nothing_again(folder: Path) -> None:
    reserve(ask("a", hold("endpoint:1", "tokens", 500, minute=1000), hold("endpoint:1", "parallel", 1, parallel=2)))
    lines: list[Line] = [{"attempts": [row("a"), row("b")], "settle": [{"permit": "a", "truth": {"endpoint:1|tokens": 120}}]}]
    for _ in range(3):
        ledger.commit(lines, folder)
    ledger.commit([*lines, *lines], folder)
    assert Attempt.objects.count() == 2
    assert ModelUse.objects.get().seats == 2
    assert held("endpoint:1|tokens", "minute") == 120
    assert held("endpoint:1|parallel", "parallel") == 0


@pytest.mark.parametrize(
    ("purpose", "seat", "counts"),
    [
        ("panel", "member", 1),
        ("panel", "explorer", 1),
        ("merged", "member", 1),
        ("merged", "merger", 0),
        ("route", "route", 1),
        ("route", "shadow", 0),
        ("direct", "direct", 1),
        ("shadow", "shadow", 0),
        ("probe", "direct", 0),
        ("suite", "member", 0),
    ],
)
def test_only_seats_that_callers_asked_for_count_as_use(folder: Path, purpose: str, seat: str, counts: int) -> None:
    ledger.commit([{"attempts": [row(purpose=purpose, seat=seat)]}], folder)
    assert sum(use.seats for use in ModelUse.objects.all()) == counts


def test_a_models_last_use_is_its_latest_whatever_order_rows_come_in(folder: Path) -> None:
    early, late = "2026-03-10T12:00:00+00:00", "2026-03-10T12:00:00.250000+00:00"
    ledger.commit([{"attempts": [row(started_at=late), row(started_at=early)]}], folder)
    ledger.commit([{"attempts": [row(started_at=early)]}, {"attempts": [row(model="other", started_at=early)]}], folder)
    assert ledger.uses_of_models() == {"fast": (3, datetime.fromisoformat(late)), "other": (1, datetime.fromisoformat(early))}


def test_a_keys_use_is_noted_once_a_minute(folder: Path) -> None:
    key = Key.objects.create(name="bot", digest="d", hint="h")
    noon = datetime(2026, 3, 10, 12, tzinfo=UTC)

    def use(after_s: int) -> datetime:
        ledger.commit([{"attempts": [row(key_id=key.pk, started_at=(noon + timedelta(seconds=after_s)).isoformat())]}], folder)
        return KeyUse.objects.get().last_used_at

    assert use(0) == noon
    assert use(30) == noon
    assert use(61) == noon + timedelta(seconds=61)
    ledger.key_minutes.clear()  # another process
    assert use(90) == noon + timedelta(seconds=61)


def test_a_row_of_a_key_that_is_gone_is_kept(folder: Path) -> None:
    ledger.commit([{"attempts": [row("a", key_id=123456)]}], folder)
    assert Attempt.objects.get().key_id == 123456
    assert not KeyUse.objects.exists()


def test_a_row_of_an_older_version_has_what_it_did_not_know_yet_empty(folder: Path) -> None:
    old = {k: v for k, v in row("a").items() if k not in ("reasoning_tokens", "finish_reason", "cost_pusd")}
    ledger.commit([{"attempts": [{**old, "forgotten_field": 1}]}], folder)
    found = Attempt.objects.get()
    assert (found.reasoning_tokens, found.finish_reason, found.cost_pusd) == (0, "", None)


def test_an_end_takes_the_place_of_a_loss_and_counts_no_seat_again(folder: Path) -> None:
    ledger.commit([{"attempts": [row("a", status="lost", estimated=True)]}], folder)
    ledger.commit([{"attempts": [row("a", output_tokens=77)]}], folder)
    ledger.commit([{"attempts": [row("a", status="lost", estimated=True)]}], folder)
    found = Attempt.objects.get()
    assert (found.status, found.output_tokens, found.estimated) == ("ok", 77, False)
    assert ModelUse.objects.get().seats == 1


def test_a_bad_line_is_set_aside_and_keeps_no_other_back(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    lines: list[Line] = [{"attempts": [row(f"good-{n}")]} for n in range(20)]
    bad: Line = {"attempts": [row("bad", cost_pusd=2**63, error="a secret prompt")]}
    lines.insert(7, bad)
    ledger.commit(lines, folder)
    assert Attempt.objects.count() == 20
    assert (folder / REJECTED).read_bytes() == dumps(bad)
    assert "bad" in caplog.text
    assert "secret" not in caplog.text


def test_texts_that_the_database_refuses_are_made_to_fit(folder: Path) -> None:
    ledger.commit([{"attempts": [row("a", error="x" * 2000 + "\0", code="c" * 99, served_name="m\0")]}], folder)
    found = Attempt.objects.get()
    assert found.error.startswith("x" * 500)
    assert not (folder / REJECTED).exists()


def test_halves_of_surrogate_pairs_lose_no_row(folder: Path) -> None:
    ledger.commit([{"attempts": [row("a", error="bro\ud800ken")]}], folder)
    assert Attempt.objects.get().error == "bro\ufffdken"


def test_other_rooms_items_are_in_the_same_transaction(folder: Path) -> None:
    def insert(cursor: Any, items: Any) -> None:
        cursor.executemany("INSERT INTO health_heartbeat (name, at) VALUES (%s, '2026-03-10 12:00:00')", [[item] for item in items])

    def seen(cursor: Any, items: Any) -> None:
        cursor.execute("SELECT COUNT(*) FROM health_attempt WHERE id = %s", ["a"])
        counts.append(cursor.fetchone()[0])

    counts: list[int] = []
    ledger.register("beats", insert)
    ledger.register("looks", seen)
    try:
        ledger.commit([{"beats": ["x"], "attempts": [row("a")], "looks": [1]}, {"beats": ["y"]}], folder)
        assert counts == [1]
        # The name is taken: that falls, and nothing else of its line; the other line stands.
        ledger.commit([{"beats": ["x"], "attempts": [row("b")], "looks": [2]}, {"attempts": [row("c")]}], folder)
        assert counts == [1, 1]
    finally:
        del ledger.registered["beats"], ledger.registered["looks"], ledger.lengths["beats"], ledger.lengths["looks"]
    assert set(Attempt.objects.values_list("id", flat=True)) == {"a", "b", "c"}
    assert orjson.loads((folder / REJECTED).read_bytes()) == {"beats": ["x"]}
    assert_sums_are_those_of_the_ledger()


LONG = "n" * 5000
NOW_TEXT = "2026-03-10T12:00:00+00:00"
# One item of every key that lines have, each text far too long for its column and with what PostgreSQL takes in no text.
TOO_LONG: dict[str, dict[str, Any]] = {
    "alerts": {"kind": LONG, "subject": LONG, "once": LONG, "message": LONG, "at": NOW_TEXT},
    "rests": {"scope": LONG, "kind": LONG, "step": 1, "reason": f"NUL \0 {LONG}", "until": NOW_TEXT, "since": NOW_TEXT},
    "allowances": {
        "scope": LONG,
        "measure": LONG,
        "window": LONG,
        "direction": LONG,
        "limit": 1,
        "remaining": 1,
        "resets_at": NOW_TEXT,
        "told_at": NOW_TEXT,
    },
    "panels": {
        "id": "pan_1",
        "asked_at": NOW_TEXT,
        "collection": LONG,
        "mode": LONG,
        "status": LONG,
        "judge": LONG,
        "key_id": None,
        "key_name": LONG,
        "request": LONG,
        "prompt": LONG,
        "seed": 1,
        "picked": None,
        "dialect": LONG,
    },
    "seats": {
        "call": "call_1",
        "panel": "pan_1",
        "position": 0,
        "model": LONG,
        "seat": LONG,
        "status": LONG,
        "code": LONG,
        "message": LONG,
        "text": f"NUL \0 {LONG}",
        "finish_reason": LONG,
    },
    "pins": {"digest": LONG, "kind": LONG, "model": LONG, "payload": LONG, "used_at": NOW_TEXT},
    "responses": {
        "id": "resp_1",
        "panel": LONG,
        "judge": LONG,
        "key_id": None,
        "collection": LONG,
        "model": LONG,
        "kept": LONG,
        "created_at": NOW_TEXT,
        "expires_at": NOW_TEXT,
    },
}


@pytest.mark.parametrize("key", TOO_LONG)
def test_texts_that_are_too_long_lose_neither_their_item_nor_the_call_beside_it(folder: Path, key: str) -> None:
    tables = {"alerts": Alert, "rests": Rest, "allowances": Allowance, "panels": Panel, "seats": Seat, "pins": Pin, "responses": StoredResponse}
    line: dict[str, Any] = {"attempts": [row("a", error=LONG, finish_reason=LONG)], key: [TOO_LONG[key]]}
    if key == "seats":
        line = {"panels": [TOO_LONG["panels"]], **line}
    ledger.commit([line, {"attempts": [row("b")]}], folder)
    assert set(Attempt.objects.values_list("id", flat=True)) == {"a", "b"}
    assert tables[key].objects.count() == 1
    assert not (folder / REJECTED).exists()


def test_every_key_that_lines_have_knows_its_columns_or_has_no_texts_of_others() -> None:
    """`lost` holds ids, `learned` what `wire` reads into words of its own."""
    assert {key for key in ledger.registered if not ledger.lengths[key] and not key.startswith("suite_")} == {"lost", "learned"}


def test_lengths_are_those_of_the_ledgers_columns() -> None:
    assert dict(ledger.columns_of(Attempt)) == LENGTHS


@pytest.mark.parametrize("key", ["begin", "attempts", "settle", "over"])
def test_the_ledgers_own_keys_cannot_be_taken(key: str) -> None:
    with pytest.raises(ValueError, match="ledger's own"):
        ledger.register(key, lambda cursor, items: None)


def test_keys_that_nobody_registered_are_passed_over(folder: Path) -> None:
    ledger.commit([{"attempts": [row("a")], "of_a_later_version": [{"x": 1}]}], folder)
    assert Attempt.objects.count() == 1


def test_a_look_up_commits_what_a_living_process_has_only_in_its_outbox(folder: Path) -> None:
    box = Outbox(folder, "worker-9")
    box.append({"attempts": [row("a")]})
    box.append({"attempts": [row("b")]})
    assert ledger.catch_up("call-b", folder) == 1
    assert ledger.call_exists("call-b")
    assert not ledger.call_exists("call-a")
    assert ledger.catch_up(folder=folder) == 2
    assert Attempt.objects.count() == 2
    assert ModelUse.objects.get().seats == 2
    box.close()


def test_a_look_up_sets_nothing_aside(folder: Path) -> None:
    box = Outbox(folder, "worker-9")
    box.append({"attempts": [row("a", cost_pusd=2**63)]})
    ledger.catch_up("call-a", folder)
    assert not (folder / REJECTED).exists()
    box.close()


def test_without_tables_lines_wait(folder: Path, django_db_blocker: Any) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE health_attempt RENAME TO health_attempt_away")
    try:
        with pytest.raises(DatabaseAway):
            ledger.commit([{"attempts": [row("a")]}], folder)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE health_attempt_away RENAME TO health_attempt")
    assert not (folder / REJECTED).exists()
    ledger.commit([{"attempts": [row("a")]}], folder)
    assert Attempt.objects.count() == 1


# ------------------------------------------------------------------ settling


def limited(name: str = "a") -> Any:
    return ask(
        name,
        hold("key:1", "requests", 1, minute=10),
        hold("key:1", "tokens", 500, minute=1000, day=1000),
        hold("key:1", "pusd", 900, month=1000, zone="Asia/Tokyo"),
        hold("key:1", "parallel", 1, parallel=1),
    )


def meters() -> tuple[int, ...]:
    return (
        held("key:1|requests", "minute"),
        held("key:1|tokens", "minute"),
        held("key:1|tokens", "day"),
        held("key:1|pusd", "month"),
        held("key:1|parallel", "parallel"),
    )


@pytest.mark.parametrize(
    ("settle", "left"),
    [
        ({}, (1, 500, 500, 900, 0)),
        ({"truth": {}}, (1, 500, 500, 900, 0)),
        ({"truth": {"key:1|tokens": 42, "key:1|pusd": 7}}, (1, 42, 42, 7, 0)),
        ({"truth": {"key:1|tokens": 4200, "key:1|pusd": 7000}}, (1, 4200, 4200, 7000, 0)),
        ({"truth": {"key:1|tokens": 0, "key:1|pusd": 0, "key:1|requests": 0}}, (0, 0, 0, 0, 0)),
        ({"unused": True}, (0, 0, 0, 0, 0)),
        ({"panel": "pan-7"}, (1, 240, 240, 2000, 0)),
        ({"panel": "pan-8"}, (1, 500, 500, 900, 0)),
        ({"panel": "pan-8", "unused": True}, (0, 0, 0, 0, 0)),
    ],
)
def test_a_settlement_leaves_the_truth_in_the_meters(folder: Path, settle: Any, left: tuple[int, ...]) -> None:
    reserve(limited())
    assert meters() == (1, 500, 500, 900, 1)
    ledger.commit([{"attempts": [row("x", panel="pan-7"), row("y", panel="pan-7")], "settle": [{"permit": "a", **settle}]}], folder)
    assert meters() == left
    assert not Permit.objects.exists()


def test_a_settlement_of_a_permit_that_is_gone_changes_nothing(folder: Path) -> None:
    reserve(limited())
    for _ in range(2):
        ledger.commit([{"settle": [{"permit": "a", "truth": {"key:1|tokens": 40}}, {"permit": "never-was"}]}], folder)
    assert meters() == (1, 40, 40, 900, 0)
