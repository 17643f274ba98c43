"""Rows that somebody pasted or uploaded: one JSON object a line, or one list of them."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest

from panels.pages.door import Refused
from suite.pages.forms import uploaded

MOST_BYTES = 64 * 1024 * 1024
# So many go in one request; more go as lines.
AT_ONCE = 1000


def given(request: HttpRequest, name: str = "rows") -> list[Any]:
    """Reads rows from the file of a form, else from its text. Errors: Refused naming each line that is no JSON."""
    text = (uploaded(request, "file", MOST_BYTES) or request.POST.get(name, "")).strip()
    if text.startswith("["):
        try:
            whole = json.loads(text, parse_constant=constant)
        except (ValueError, RecursionError) as error:
            raise refused([{"pointer": "", "message": f"This is no JSON: {error}"}]) from None
        return list(whole)
    found, wrong = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                found.append(json.loads(line, parse_constant=constant))
            except (ValueError, RecursionError) as error:
                wrong.append({"pointer": f"line {number}", "message": str(error)})
    if wrong:
        raise refused(wrong)
    return found


def refused(wrong: list[dict[str, str]]) -> Refused:
    return Refused(422, "invalid_rows", f"{wrong[0]['pointer'] or 'The rows'}: {wrong[0]['message']}. No row was taken.", "rows", {"errors": wrong})


def constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON.")


def lines(rows: list[Any]) -> bytes:
    """Writes rows one a line, in ASCII: half a character stays what it is."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
