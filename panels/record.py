"""Keeps panels and seats: lines for the outbox on one side, raw SQL that commits them on the other.

Both sides must bear repetition, since a line may be committed by its own worker, by a look-up, and by whoever cleans up after a crash.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import orjson
from django.conf import settings
from django.db import connection

from panels.outcome import SeatResult
from panels.plan import Plan
from wire import transcript

RUNNING = "running"


def begun(plan: Plan, mode: str, dialect: str) -> dict[str, Any]:
    """The line that makes a panel visible while it runs."""
    keep = settings.KEEP_TEXT_DAYS > 0
    caller = plan.caller
    return {
        "panels": [
            {
                "id": plan.panel,
                "asked_at": plan.asked_at.isoformat(),
                "collection": plan.target.collection.name if plan.target.collection else "",
                "mode": mode,
                "status": RUNNING,
                "judge": caller.judge,
                "key_id": caller.key_id,
                "key_name": caller.key_name,
                "request": plan.request_id,
                "prompt": orjson.dumps(transcript.dump(plan.request.messages)).decode() if keep else None,
                "seed": plan.seed,
                "picked": {"draws": plan.picked.draws, "forced": plan.picked.forced} if plan.picked else None,
                "dialect": dialect,
            }
        ],
        "seats": [running_seat(plan.panel, s.call, s.position, s.place.alias, s.place.seat) for s in plan.seats],
    }


def fitting(plan: Plan, line: dict[str, Any]) -> dict[str, Any]:
    """Leaves the panel and its seats out of a line where only its calls are kept: who asked keeps the answers."""
    return line if plan.on_record else {key: items for key, items in line.items() if key not in ("panels", "seats")}


def running_seat(panel: str, call: str, position: int, model: str, seat: str) -> dict[str, Any]:
    return {"call": call, "panel": panel, "position": position, "model": model, "seat": seat, "status": RUNNING}


def seat_row(panel: str, result: SeatResult) -> dict[str, Any]:
    return {
        "call": result.call,
        "panel": panel,
        "position": result.position,
        "model": result.model,
        "seat": result.seat,
        "status": result.status,
        "code": result.code[:40],
        "message": result.message[:1000],
        "text": result.text if settings.KEEP_TEXT_DAYS > 0 else None,
        "finish_reason": result.finish_reason[:40],
        "seconds": round(result.seconds, 3),
        "ttft_seconds": None if result.ttft_s is None else round(result.ttft_s, 3),
    }


def ended(panel: str, status: str, seconds: float, merge_order: Sequence[str] | None = None) -> dict[str, Any]:
    return {"panels": [{"id": panel, "status": status, "seconds": round(seconds, 3), "merge_order": list(merge_order) if merge_order else None}]}


# ------------------------------------------------------------------ committing

PANEL_FIELDS = ("id", "asked_at", "collection", "mode", "status", "judge", "key_id", "key_name", "request", "prompt", "seed", "picked", "dialect")
SEAT_FIELDS = ("call", "panel", "position", "model", "seat", "status", "code", "message", "text", "finish_reason", "seconds", "ttft_seconds")
INSERT_PANEL = f"INSERT INTO panels_panel ({', '.join(PANEL_FIELDS)}) VALUES ({', '.join(['%s'] * len(PANEL_FIELDS))}) ON CONFLICT (id) DO NOTHING"  # noqa: S608
END_PANEL = "UPDATE panels_panel SET status = %s, seconds = %s, merge_order = %s WHERE id = %s"
SEAT_COLUMNS = ", ".join("panel_id" if f == "panel" else f for f in SEAT_FIELDS)
# What was running, or given up for lost, takes the truth; what has ended stays as it ended.
PUT_SEAT = (
    f"INSERT INTO panels_seat ({SEAT_COLUMNS}) VALUES ({', '.join(['%s'] * len(SEAT_FIELDS))}) ON CONFLICT (call) DO UPDATE SET "  # noqa: S608
    + ", ".join(f"{f} = excluded.{f}" for f in SEAT_FIELDS[5:])
    + " WHERE panels_seat.status IN ('running', 'lost') AND excluded.status <> 'running'"
)


def clean(value: Any) -> Any:
    """PostgreSQL holds no NUL in text; a model that writes one loses that character and nothing else."""
    return value.replace("\x00", "\ufffd") if isinstance(value, str) and "\x00" in value else value


def when(value: Any) -> Any:
    """Times as the database wants them: SQLite keeps UTC without its offset."""
    return connection.ops.adapt_datetimefield_value(value)


def commit_panels(cursor: Any, items: Sequence[dict[str, Any]]) -> None:
    for item in items:
        if "asked_at" in item:
            picked = orjson.dumps(item["picked"]).decode() if item.get("picked") else None
            row = {**item, "asked_at": when(datetime.fromisoformat(item["asked_at"])), "picked": picked}
            cursor.execute(INSERT_PANEL, [clean(row.get(f)) for f in PANEL_FIELDS])
        else:
            order = orjson.dumps(item["merge_order"]).decode() if item.get("merge_order") else None
            cursor.execute(END_PANEL, [item["status"], item.get("seconds"), order, item["id"]])


def commit_seats(cursor: Any, items: Sequence[dict[str, Any]]) -> None:
    blank = {"code": "", "message": "", "text": None, "finish_reason": "", "seconds": None, "ttft_seconds": None}
    cursor.executemany(PUT_SEAT, [[clean({**blank, **item}[f]) for f in SEAT_FIELDS] for item in items])


def commit_lost(cursor: Any, items: Sequence[dict[str, Any]]) -> None:
    """What a crash cut off: a seat that nobody will answer any more, a panel that nobody will end."""
    for item in items:
        if item["call"]:
            cursor.execute("UPDATE panels_seat SET status = 'lost' WHERE call = %s AND status = 'running'", [item["call"]])
        else:
            cursor.execute("UPDATE panels_seat SET status = 'lost' WHERE panel_id = %s AND status = 'running'", [item["panel"]])
            cursor.execute(LOSE_PANEL, [item["panel"]])


LOSE_PANEL = (
    "UPDATE panels_panel SET status = CASE WHEN EXISTS (SELECT 1 FROM panels_seat s WHERE s.panel_id = panels_panel.id"
    " AND s.status IN ('ok', 'truncated', 'partial')) THEN 'degraded' ELSE 'failed' END WHERE id = %s AND status = 'running'"
)
