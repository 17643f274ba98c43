"""What the suite's forms have in common: what was typed, as the API takes it, and what the API found wrong with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

from panels.pages.door import Refused

MOST_SHOWN = 50


def wrongs(refused: Refused) -> list[dict[str, str]]:
    """Lists each thing that the API found wrong: where, and what."""
    body = refused.body if isinstance(refused.body, Mapping) else {}
    return [{"pointer": one["pointer"], "message": one["message"]} for one in body.get("errors", [])][:MOST_SHOWN]


def refusal(refused: Refused, **fields: str) -> dict[str, Any]:
    """What a form needs to show a refusal. Shape: `wrong` is by field; `fields` names those that the form calls otherwise than the API."""
    wrong: dict[str, str] = {}
    for one in wrongs(refused):
        name = one["pointer"].strip("/").replace("/", ".")
        at = fields.get(name.replace(".", "_"), name.partition(".")[0])
        wrong.setdefault(at, one["message"])
    return {"refused": refused, "wrong": wrong, "wrongs": wrongs(refused)}


def amount(said: str) -> float | str | None:
    """Reads a number; empty is None. What is none goes on as it was typed: the API says what is wrong with it."""
    text = said.strip()
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def labels(said: str) -> list[str]:
    """Reads short texts with commas between."""
    return [part for one in said.split(",") if (part := one.strip())]


def as_json(said: str, field: str) -> Any:
    """Reads JSON that somebody typed; empty is None. Errors: Refused."""
    if not said.strip():
        return None
    try:
        return json.loads(said)
    except ValueError as error:
        message = f"This is no JSON: {error}"
        raise Refused(422, "invalid_json", message, field, {"errors": [{"pointer": f"/{field}", "message": message}]}) from None


def uploaded(request: HttpRequest, name: str, most: int) -> str:
    """Reads a file as text, "" where none was chosen. Errors: Refused."""
    file = request.FILES.get(name)
    if file is None or not file.size:
        return ""
    if file.size > most:
        raise Refused(413, "body_too_large", f"The file is larger than {most // 1024 // 1024} MiB.", name)
    try:
        return str(file.read(), "utf-8-sig")
    except UnicodeDecodeError:
        raise Refused(422, "invalid_file", "The file is no text in UTF-8.", name) from None
