"""How prompts begin: what a list shows of a panel, without reading prompts that may hold whole files."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from django.db.models import F, Value
from django.db.models.functions import Greatest, StrIndex, Substr

from panels.models import Panel

CHARACTERS = 160
# Of the kept JSON, from the first thing that a user says: escapes make characters longer.
READ = 1500
SAID = re.compile(r'"(?:content|text)":\s*"((?:[^"\\]|\\.)*)', re.DOTALL)
HALF_ESCAPE = re.compile(r"(?:\\u[0-9a-fA-F]{0,3}|\\)\Z|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z")


def of_panels(panels: Sequence[str]) -> dict[str, str]:
    """Reads the first words that a user says in each, white space as single spaces. Panels without a prompt are left out; "" where it begins otherwise."""
    start = Greatest(StrIndex(F("prompt"), Value('"user"')), Value(1))
    rows = Panel.objects.filter(pk__in=panels, prompt__isnull=False).values_list("pk", Substr("prompt", start, READ))
    return {panel: opening(piece or "") for panel, piece in rows}


def opening(piece: str) -> str:
    """Reads a text out of a piece of kept JSON that may end anywhere."""
    found = SAID.search(piece)
    if found is None:
        return ""
    try:
        text = str(json.loads(f'"{HALF_ESCAPE.sub("", found[1])}"', strict=False))
    except ValueError:
        return ""
    text = " ".join(text.split())
    return text if len(text) <= CHARACTERS else f"{text[: CHARACTERS - 1].rstrip()}…"
