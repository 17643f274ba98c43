"""A panel on record that is asked again: its prompt, the name it was asked by, and who sat there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from access.caller import Caller
from health import ledger
from panels import lookup
from panels.models import Panel, Seat
from panels.plan import PREFIX
from panels.prompt_text import messages_of
from wire.errors import CallerError

ENDINGS: Mapping[str, str] = {"panel": "", "merged": ":merged", "route": ":route"}
# Who sat because the panel's own rules said so, and not because others had answered.
SAT = ("member", "explorer")


@dataclass(frozen=True, slots=True)
class Asked:
    """Shape: `messages` as `wire.transcript` keeps them, None where they are kept no longer; `seats` are aliases in their order, empty outside panels."""

    messages: list[dict[str, Any]] | None
    model: str
    seats: tuple[str, ...]


def asked(panel_id: str, caller: Caller) -> Asked:
    """Reads what a panel on record was asked. Asks the database. Errors: CallerError 403 for somebody else's, 404."""
    row = lookup.after_a_drain(lambda: Panel.objects.filter(pk=panel_id).first(), panel_id) if panel_id.isprintable() else None
    if row is None:
        if panel_id.isprintable() and ledger.attempts_of_panel(panel_id):
            raise CallerError("not_found", f"The texts of panel {panel_id} were never kept, so it cannot be asked again.", status=404, field="bench.again")
        raise CallerError("not_found", f"There is no panel {panel_id[:200]} on record.", status=404, field="bench.again")
    if not caller.may("operate") and not lookup.is_own(caller, row.judge, row.key_id):
        raise CallerError(
            "not_allowed", "This panel was asked by somebody else. Its prompt is open to who asked it and to operators.", status=403, field="bench.again"
        )
    seats = list(Seat.objects.filter(panel=row).order_by("position", "call").values_list("model", "seat"))
    is_panel = row.mode in ("panel", "merged")
    first = next((model for model, _ in seats), "")
    name = f"{PREFIX}{row.collection}{ENDINGS[row.mode]}" if row.collection and row.mode in ENDINGS else first
    return Asked(messages_of(row.prompt) or None, name, tuple([model for model, seat in seats if seat in SAT]) if is_panel else ())
