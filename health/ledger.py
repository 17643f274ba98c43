"""The ledger: outbox lines become rows, once. Everything that counts follows from the rows that were new, in the same transaction.

Lines may be committed by anyone and again: a row that is there stays as it is, a permit that is gone settles nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import orjson
from django.conf import settings
from django.db.backends.utils import CursorWrapper
from django.db.models import CharField, Model

from health import rollups
from health.database import Database, DatabaseAway, Insert
from health.history import attempts_of_call, attempts_of_panel, call_exists, cost_of_request, meters, uses_of_models
from health.lines import ABSENT, COLUMNS, LENGTHS, OPENING, Line, dumps, fitted, names_of, parts_of
from health.outbox import BATCH_LINES, read_uncommitted, set_aside
from health.reserve import Request, Reserved, as_column, work_off

__all__ = [
    "attempts_of_call", "attempts_of_panel", "call_exists", "catch_up", "commit", "cost_of_request", "meters", "register", "transact", "uses_of_models",
]  # fmt: skip

log = logging.getLogger(__name__)

CommitItems = Callable[[CursorWrapper, Sequence[Any]], None]
# What other rooms commit, by key of a line, in the order of registration. Filled when the apps are ready.
registered: dict[str, CommitItems] = {}
# How long the texts of their items may be, by key of a line and column.
lengths: dict[str, Mapping[str, int]] = {"attempts": LENGTHS}

# Which rows seat a model: explorers go where nobody sat for longest, and neither a probe nor a shadow is a seat that anyone asked for.
SEATING_PURPOSES = frozenset({"panel", "merged", "route", "direct"})
SEATING_SEATS = frozenset({"member", "explorer", "route", "direct"})

values = itemgetter(*COLUMNS)
STARTED = COLUMNS.index("started_at")
NAMES = ", ".join(COLUMNS)
INSERT_ONE = f"INSERT INTO health_attempt ({NAMES}) VALUES ({', '.join(['%s'] * len(COLUMNS))}) ON CONFLICT (id) DO NOTHING RETURNING id"  # noqa: S608
# One parameter for any number of rows, so that the statement is prepared once.
INSERT_JSON = (
    f"INSERT INTO health_attempt ({NAMES}) SELECT {NAMES} FROM json_populate_recordset(NULL::health_attempt, %s::json)"  # noqa: S608
    " ON CONFLICT (id) DO NOTHING RETURNING id"
)
PUT_USE = Insert(
    "health_modeluse",
    {"model": "text", "seats": "bigint", "last_seated_at": "timestamptz"},
    "ON CONFLICT (model) DO UPDATE SET seats = health_modeluse.seats + excluded.seats,"
    " last_seated_at = CASE WHEN excluded.last_seated_at > health_modeluse.last_seated_at THEN excluded.last_seated_at ELSE health_modeluse.last_seated_at END",
)
KEY_USED = (
    "INSERT INTO access_keyuse (key_id, last_used_at) SELECT id, {at} FROM access_key WHERE id = %s"
    " ON CONFLICT (key_id) DO UPDATE SET last_used_at = excluded.last_used_at WHERE access_keyuse.last_used_at < {before}"
)
# When this process last wrote that a key is used: minutes since 1970.
key_minutes: dict[int, int] = {}


def register(key: str, commit_items: CommitItems, table: type[Model] | None = None) -> None:
    """Adds a key that lines may have. Its function runs in the lines' transaction with all their items of that key, and maybe with the same ones again.

    The ledger's rows of the same lines are there by then. Shape: texts of an item that are too long for the table's column of the same name are cut.
    Errors: whatever it raises sets the line's items of that key aside, and those only, but for the database's being away.
    """
    if key in OPENING or key in ("attempts", "settle"):
        raise ValueError(f"{key} is the ledger's own.")
    registered[key] = commit_items
    lengths[key] = columns_of(table) if table else {}


def columns_of(table: type[Model]) -> Mapping[str, int]:
    return {f.name: f.max_length for f in table._meta.concrete_fields if isinstance(f, CharField) and f.max_length}


# ------------------------------------------------------------------ one transaction


def transact(db: Database, lines: Sequence[Line], requests: Sequence[Request] = ()) -> list[Reserved]:
    """Commits lines, then answers reservations, in one transaction. Errors: DatabaseAway; anything else means that a line or a request is bad."""
    return db.transaction(lambda db: apply(db, lines, requests))


def apply(db: Database, lines: Sequence[Line], requests: Sequence[Request]) -> list[Reserved]:
    rows: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        for row in line.get("attempts", ()):
            rows.setdefault(row["id"], row)
    new, corrected = insert(db, [rows[name] for name in sorted(rows)]) if rows else ([], [])
    answers = work_off(db, [settle for line in lines for settle in line.get("settle", ())], requests)
    if new:
        count_seats(db, new)
        note_keys(db, new)
    if new or corrected:
        rollups.put(db, new, corrected)
    for key, commit_items in registered.items():
        if items := [item for line in lines for item in line.get(key, ())]:
            with db.django_cursor() as cursor:
                commit_items(cursor, items)
    return answers


def insert(db: Database, rows: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], list[tuple[Mapping[str, Any], Mapping[str, Any]]]]:
    """Inserts rows that are not there yet.

    Shape: the rows that were new; and losses whose end came after all, each with the row that took its place, which counts as no other call.
    """
    try:
        ready = [values(row) for row in rows]
    except KeyError:
        rows = [{**ABSENT, **row} for row in rows]
        ready = [values(row) for row in rows]
    if db.is_postgresql:
        there = {name for (name,) in db.all(INSERT_JSON, [orjson.dumps(rows).decode()])}
    else:
        there = set()
        for row in ready:
            started_at = row[STARTED]
            if db.all(INSERT_ONE, (*row[:STARTED], sqlite_time(started_at), *row[STARTED + 1 :])):
                there.add(row[0])
    if len(there) == len(rows):
        return list(rows), []
    corrected = []
    for row in rows:
        if row["id"] not in there and row["status"] != "lost" and (loss := replace_loss(db, row)):
            corrected.append((loss, row))
    return [row for row in rows if row["id"] in there], corrected


def replace_loss(db: Database, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """A call was taken for lost and came back: its host was cut off, or the database was away for longer than its permit held.

    Shape: the row as it was; None where it is no loss.
    """
    lock = " FOR UPDATE" if db.is_postgresql else ""
    found = db.all(f"SELECT {NAMES} FROM health_attempt WHERE id = %s AND status = 'lost'{lock}", [row["id"]])  # noqa: S608
    if not found:
        return None
    loss = dict(zip(COLUMNS, found[0], strict=True))
    at = loss["started_at"]
    loss["started_at"] = at if isinstance(at, datetime) and at.tzinfo else datetime.fromisoformat(str(at)).replace(tzinfo=UTC)
    names = COLUMNS[1:]
    query = f"UPDATE health_attempt SET {', '.join(f'{name} = %s' for name in names)} WHERE id = %s AND status = 'lost'"  # noqa: S608
    db.run(query, [*(as_column(db, moment(row[name])) if name == "started_at" else row[name] for name in names), row["id"]])
    return loss


def count_seats(db: Database, rows: Sequence[Mapping[str, Any]]) -> None:
    """Counts who was seated, and when last."""
    seats: dict[str, tuple[int, Any]] = {}
    for row in rows:
        if row["purpose"] in SEATING_PURPOSES and row["seat"] in SEATING_SEATS:
            count, last = seats.get(row["model"], (0, ""))
            seats[row["model"]] = (count + 1, max(last, row["started_at"]))
    if seats:
        db.put(PUT_USE, [(model, count, as_column(db, moment(last))) for model, (count, last) in sorted(seats.items())])


def note_keys(db: Database, rows: Sequence[Mapping[str, Any]]) -> None:
    """Notes that keys are used, each once a minute. A key that is gone by now is passed over."""
    used: dict[int, datetime] = {}
    for row in rows:
        if (key := row["key_id"]) is not None and key not in used:
            at = moment(row["started_at"])
            if key_minutes.get(key) != (minute := int(at.timestamp()) // 60):
                key_minutes[key] = minute
                used[key] = at
    for key, at in sorted(used.items()):
        query = KEY_USED.format(at="%s::timestamptz", before="%s::timestamptz") if db.is_postgresql else KEY_USED.format(at="%s", before="%s")
        db.run(query, [as_column(db, at), key, as_column(db, at - timedelta(minutes=1))])


def sqlite_time(text: str) -> str:
    """Turns ISO text into a time as Django keeps it in SQLite."""
    if text.endswith("+00:00"):
        return f"{text[:10]} {text[11:-6]}"
    return str(moment(text).replace(tzinfo=None))


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


# ------------------------------------------------------------------ for everyone but the writer


def commit(lines: Sequence[Line], folder: Path | None = None, db: Database | None = None) -> None:
    """Commits lines; what of one cannot be committed is set aside in the folder and keeps no other back, nor the rest of its own line.

    Errors: DatabaseAway, and then some of the lines may be committed and some not: commit all of them again.
    """
    folder = folder or Path(settings.OUTBOX_FOLDER)

    def refuse(line: Line, reason: str) -> None:
        set_aside(folder, dumps(line), reason, names_of([line]))

    own = db or Database()
    try:
        halve(own, lines, refuse)
    finally:
        if db is None:
            own.close()


def halve(db: Database, lines: Sequence[Line], refuse: Callable[[Line, str], None]) -> None:
    """Looks for the bad line by halves."""
    try:
        transact(db, lines)
        return
    except DatabaseAway:
        raise
    except Exception as error:
        if not db.is_ready():
            raise DatabaseAway("The database is not ready: its tables are missing, or it takes no writes. Run `manage.py migrate`.") from error
        reason = f"{type(error).__name__} in the database" if len(lines) == 1 else ""
    if len(lines) > 1:
        half = len(lines) // 2
        halve(db, lines[:half], refuse)
        halve(db, lines[half:], refuse)
        return
    line = fitted(lines[0], lengths)
    try:
        transact(db, [line])
        log.warning("A line of the outbox was shortened to fit the ledger. It names %s.", ", ".join(names_of(lines)))
        return
    except DatabaseAway:
        raise
    except Exception:
        parts = parts_of(line)
    if len(parts) < 2:
        refuse(lines[0], reason)
        return
    # A call that went out and cost money stays in the books, whatever is wrong with what else its line says.
    for part in parts:
        try:
            transact(db, [part])
        except DatabaseAway:
            raise
        except Exception:
            refuse({key: lines[0][key] for key in part}, reason)


def catch_up(naming: str = "", folder: Path | None = None) -> int:
    """Commits what this host's processes have written and not committed yet, before a look-up says that something is unknown.

    Shape: only lines that hold `naming` somewhere; returns how many there were. Errors: DatabaseAway.
    """
    db = Database()
    count = 0
    lines = read_uncommitted(folder or Path(settings.OUTBOX_FOLDER), naming)
    try:
        while batch := list(islice(lines, BATCH_LINES)):
            # What cannot be committed here, perhaps for want of a line before it, is its own writer's or a drain's to set aside.
            halve(db, batch, lambda line, reason: None)
            count += len(batch)
    finally:
        db.close()
    return count
