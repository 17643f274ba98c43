"""Answers kept for a day under their own ids, for the formats whose clients go on from an id instead of sending the conversation again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection

from access.caller import Caller
from panels import lookup, plan
from panels.models import StoredResponse
from wire.dialects import Answer
from wire.errors import CallerError

if TYPE_CHECKING:
    from panels.gateway import Gateway
    from panels.turn import Turn

KEPT = timedelta(hours=24)
# How long a worker on another host may take to write down what it has just answered.
ELSEWHERE_S = 0.2
BATCH = 500


def keep(turn: Turn, answer: Answer) -> None:
    """Keeps an answer where its dialect and its caller want that: whoever has its last byte may refer to it."""
    longest = min(KEPT, timedelta(days=settings.KEEP_TEXT_DAYS))
    found = turn.dialect.to_keep(turn.request, answer) if longest else None
    if found is None:
        return
    name, kept = found
    now = datetime.now(UTC)
    collection = plan.resolve(turn.request.model, turn.snapshot).collection
    item = {
        "id": name,
        "panel": turn.panel,
        "judge": turn.caller.judge,
        "key_id": turn.caller.key_id,
        "collection": collection.name if collection else "",
        "model": turn.request.model[:200],  # with its mode behind it a collection's longest name is longer
        "kept": orjson.dumps(kept).decode(),
        "created_at": now.isoformat(),
        "expires_at": (now + longest).isoformat(),
    }
    turn.gateway.writer.record({"responses": [item]})


async def load(gateway: Gateway, caller: Caller, name: str) -> Any:
    """What is kept under an id for this caller, None where nothing is. Errors: CallerError 503 where that cannot be known now."""
    row = await _in_reader(gateway, lambda: _find(caller, name))
    if row is None and lookup.OURS.fullmatch(name):
        await asyncio.sleep(ELSEWHERE_S)
        row = await _in_reader(gateway, lambda: _find(caller, name))
    return None if row is None else orjson.loads(row.kept)


async def forget(gateway: Gateway, caller: Caller, name: str) -> bool:
    """Empties what is kept under an id for this caller; tells whether there was anything."""

    def work() -> bool:
        row = _find(caller, name)
        return row is not None and empty(pk=row.pk)

    return bool(await _in_reader(gateway, work))


def empty(**of: str) -> bool:
    """Takes contents away and leaves the rows until their day is over: a line of the outbox that is committed again must not bring them back."""
    return StoredResponse.objects.filter(**of).update(kept="") > 0


def _find(caller: Caller, name: str) -> StoredResponse | None:
    def look() -> StoredResponse | None:
        return StoredResponse.objects.filter(pk=name, expires_at__gt=datetime.now(UTC)).first()

    row = lookup.after_a_drain(look, name)
    return row if row is not None and row.kept and lookup.is_own(caller, row.judge, row.key_id) else None


async def _in_reader(gateway: Gateway, work: Callable[[], Any]) -> Any:
    try:
        return await asyncio.get_running_loop().run_in_executor(gateway.executor, work)
    except DatabaseError:
        text = "The database does not answer, so what is kept under that id cannot be read. Try again in a moment."
        raise CallerError("database_unavailable", text, status=503, retry_after_s=5.0) from None


# ------------------------------------------------------------------ committing and forgetting

FIELDS = ("id", "panel", "judge", "key_id", "collection", "model", "kept", "created_at", "expires_at")
PUT = f"INSERT INTO panels_storedresponse ({', '.join(FIELDS)}) VALUES ({', '.join(['%s'] * len(FIELDS))}) ON CONFLICT (id) DO NOTHING"  # noqa: S608


def commit_responses(cursor: Any, items: Sequence[dict[str, Any]]) -> None:
    adapt = connection.ops.adapt_datetimefield_value

    def value(item: dict[str, Any], name: str) -> Any:
        return adapt(datetime.fromisoformat(item[name])) if name.endswith("_at") else item[name]

    cursor.executemany(PUT, [[value(item, name) for name in FIELDS] for item in items])


def forget_expired(now: datetime) -> int:
    """Deletes what is past its day, in small transactions. Gives the number. A job."""
    forgotten = 0
    while names := list(StoredResponse.objects.filter(expires_at__lte=now).values_list("pk", flat=True)[:BATCH]):
        forgotten += StoredResponse.objects.filter(pk__in=names).delete()[0]
    return forgotten
