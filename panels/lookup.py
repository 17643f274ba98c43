"""Finds a call or a panel by its id, wherever it is: among the seats, in the ledger, or still in a worker's outbox."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from access.caller import Caller
from health import ledger
from health.database import DatabaseAway
from panels.models import Seat
from wire.errors import CallerError

Found = TypeVar("Found")
# What `access.ids` makes. Nothing else can be in an outbox, so nothing else is looked for there.
OURS = re.compile(r"[a-z]{2,8}_[0-9A-HJKMNP-TV-Z]{26}")


@dataclass(frozen=True, slots=True)
class Call:
    """Whose answer a call was. Shape: `collection` is empty for direct calls."""

    call: str
    panel: str
    model: str
    collection: str


def call(call: str) -> Call | None:
    """Looks a call up; an unknown one may be a moment old, so what the workers have not yet written is written first."""
    return after_a_drain(lambda: _call(call), call)


def _call(call: str) -> Call | None:
    if seat := Seat.objects.filter(pk=call).select_related("panel").only("model", "panel__collection").first():
        return Call(call, seat.panel_id, seat.model, seat.panel.collection)
    if attempts := ledger.attempts_of_call(call):
        last = attempts[-1]  # the one that answered, or failed last
        return Call(call, last.panel, last.model, last.collection)
    return None


def caught_up(name: str) -> bool:
    """Commits what stands in outboxes under a name; tells whether that could be done."""
    try:
        ledger.catch_up(name)
    except DatabaseAway:
        return False
    return True


def after_a_drain(look: Callable[[], Found | None], name: str) -> Found | None:
    """Looks, and before it says that there is nothing, commits what stands in outboxes under this name and looks again.

    Errors: CallerError 503 where that cannot be done now, since a no would not be sure.
    """
    found = look()
    if found is None and OURS.fullmatch(name):
        try:
            ledger.catch_up(name)
        except DatabaseAway:
            raise CallerError("database_unavailable", "The database does not answer. Try again in a moment.", status=503, retry_after_s=5.0) from None
        # Also where nothing was caught: its own worker may have written it down between the first look and the reading of the outboxes.
        found = look()
    return found


def asked_by(caller: Caller) -> dict[str, object]:
    """Says which panels are a caller's own, as a filter: a key's are those it asked, a keyless caller's those asked without a key.

    A user's are those of the name, whichever key or page asked them.
    """
    if caller.kind == "key":
        return {"key_id": caller.key_id}
    if caller.kind == "loopback":
        return {"judge": caller.judge, "key_id": None}
    return {"judge": caller.judge}


def is_own(caller: Caller, judge: str, key_id: int | None) -> bool:
    """Tells the same of one panel."""
    if caller.kind == "key":
        return key_id == caller.key_id
    return judge == caller.judge and (caller.kind != "loopback" or key_id is None)
