"""Pending panels with what a judge needs to judge them: the prompt and the answers that wait."""

from __future__ import annotations

from typing import Any

from access.pages import Page
from panels.models import Panel, Seat
from panels.prompt_text import messages_of
from panels.verdicts import Pending

# Texts may be large, and nobody judges more in one go.
MOST = 50


def with_texts(page: Page[Pending]) -> Page[dict[str, Any]]:
    """Adds to pending panels their prompts and texts; None where they are kept no longer. The caller may see them: whose they are was settled before."""
    prompts = dict(Panel.objects.filter(pk__in=[p.panel for p in page.data]).values_list("pk", "prompt"))
    calls = [seat.call for p in page.data for seat in p.seats]
    told = {row["call"]: row for row in Seat.objects.filter(pk__in=calls).values("call", "seat", "status", "text", "finish_reason")}

    def shown(panel: Pending) -> dict[str, Any]:
        seats = [{"call": s.call, "model": s.model, **{f: told[s.call][f] or None for f in ("seat", "status", "text", "finish_reason")}} for s in panel.seats]
        prompt = messages_of(prompts.get(panel.panel)) or None
        return {"panel": panel.panel, "asked_at": panel.asked_at, "collection": panel.collection, "seats": seats, "prompt": prompt}

    return page.mapped(shown)
