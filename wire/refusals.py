"""What an endpoint means by an answer that is not 2xx: whose fault, which code, how long to wait. Pure; a vendor's new wording is a line in a table.

Statuses alone mislead: vendors say "no credit" with 400, 402, 403 and 429, "too long" with 400, 413, 422, 429 and 500, "no such model" with 400, 404 and 410.
So words that leave no doubt come first, then the status.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wire import waits
from wire.errors import Fault, TimedOut, UpstreamError

LONGEST_MESSAGE = 300
LONGEST_READ = 65536


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one wording or status means."""

    fault: Fault
    code: str
    waits: bool = False


CONTEXT = Meaning(Fault.CALLER, "context_too_small")
CONTENT = Meaning(Fault.CALLER, "content_policy")
WRONG = Meaning(Fault.CALLER, "invalid_request")
TOO_LARGE = Meaning(Fault.CALLER, "body_too_large")
BAD_KEY = Meaning(Fault.KEY, "upstream_error")
NO_CREDIT = Meaning(Fault.KEY, "no_credit", waits=True)
LIMITED = Meaning(Fault.KEY, "rate_limit_exceeded", waits=True)
NO_MODEL = Meaning(Fault.MODEL, "upstream_error")
OVERLOADED = Meaning(Fault.MODEL, "upstream_overloaded", waits=True)
SLOW = Meaning(Fault.SERVER, "upstream_timeout")
BROKEN = Meaning(Fault.SERVER, "upstream_error")


def words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# Which statuses a wording is believed with, the wording (in the message, the code or the type), what it means. The first that fits wins.
WORDINGS: tuple[tuple[frozenset[int], re.Pattern[str], Meaning], ...] = (
    # A request larger than the whole minute's limit: no wait helps, another model may.
    (frozenset({429}), words(r"request too large .{0,200}must be reduced|reduce the length of the (?:messages|prompt)"), CONTEXT),
    (
        frozenset({400, 404, 413, 422, 500}),
        words(
            r"context[_ -]?(?:length|window|size)|exceed_context|max(?:imum)? (?:context|prompt|input) (?:length|size|tokens)"
            r"|(?:prompt|input|conversation|messages?)(?: \w+){0,3} (?:is|are|was) too (?:long|large)|\btoo many (?:input |prompt )?tokens"
            r"|(?:prompt|input|messages?|conversation|token count|tokens)\b[^.]{0,60}\bexceeds? (?:the |its |this )?(?:\w+[ '’-]+){0,4}?"
            r"(?:limit|max|length|context)"
            r"|(?:prompt|input) (?:is|has|of) [\d,]+ tokens\b[^.]{0,40}\b(?:limit|max)"
            r"|range of input length should be|reduce the length of|tokens_limit_reached|max size: \d+ tokens|model_max_prompt_tokens"
        ),
        CONTEXT,
    ),
    (
        frozenset({400, 402, 403, 429}),
        words(
            r"\blimit: 0\b|insufficient[_ ](?:quota|balance|credits?|funds)|credit balance is too low|out of credits?|not enough credits?|no credits?\b"
            r"|used all available credits|spending limit|budget has been exceeded|budget_exceeded|purchase (?:more )?credits|depleted your"
            r"|reached your specified api usage limits|account (?:is )?(?:in arrears|overdue)|\barrearage\b"
        ),
        NO_CREDIT,
    ),
    (
        frozenset({400}),
        words(
            r"(?:incorrect|invalid|wrong|missing) api[ _-]?key|api[ _-]?key (?:not valid|expired|not found|is (?:invalid|missing))"
            r"|api_key_invalid|invalid_api_key"
        ),
        BAD_KEY,
    ),
    (
        frozenset({400, 403, 422}),
        words(
            r"content[_ -]?(?:policy|filter|management|moderation)|responsible ?ai|policy violation|violat\w+ .{0,60}\bpolic|flagged"
            r"|safety (?:system|filter|settings)|prohibited_content|data_inspection_failed"
        ),
        CONTENT,
    ),
    (frozenset({403}), words(r"\bpolicy\b|\bpolicies\b|\bcontent\b|moderation"), CONTENT),
    (
        frozenset({400, 403, 422}),
        words(
            r"model_(?:not_found|decommissioned|not_supported)|model\b[^.]{0,80}\b(?:does not exist|not found|has been decommissioned|is not supported by any)"
            r"|invalid model name|unknown model|no such model|not a valid model"
        ),
        NO_MODEL,
    ),
)  # fmt: skip

STATUSES: dict[int, Meaning] = {
    400: WRONG,
    401: BAD_KEY,
    402: NO_CREDIT,
    403: BAD_KEY,
    404: NO_MODEL,
    408: SLOW,
    410: NO_MODEL,
    413: TOO_LARGE,
    422: WRONG,
    429: LIMITED,
    498: OVERLOADED,  # Groq's flex tier out of capacity
    503: OVERLOADED,
    504: SLOW,
    524: SLOW,  # Cloudflare in front of a slow origin
    529: OVERLOADED,
}

# Words of a limit that is the one model's: what else the key may ask is not concerned.
ABOUT_MODEL = words(
    r"limit reached for (?:(?:the )?model\b|\S{1,200} in organization)|\bspecific to this model\b|\bmodel_rate_limit\b|per ?model\b|UserByModel|\band model \S"
    r"|rate-limited upstream"  # OpenRouter: a pool that all its users share
)

# Where a body's words stand, the most telling first.
MESSAGE_PATHS: tuple[tuple[str | int, ...], ...] = (
    ("error", "message"),
    ("error", "detail"),
    ("error",),
    ("message",),
    ("detail",),
    ("detail", 0, "msg"),
    ("errors", 0, "message"),
    ("errors", 0),
    ("error_msg",),
    ("msg",),
    ("title",),
)
CODE_PATHS: tuple[tuple[str | int, ...], ...] = (
    ("error", "code"),
    ("error", "type"),
    ("error", "status"),
    ("error", "innererror", "code"),
    ("code",),
    ("type",),
    ("error", "metadata", "provider_error_code"),
)
# A hub's own words say nothing; its provider's stand here.
RAW_PATH = ("error", "metadata", "raw")
HTML = re.compile(rb"\s*(?:<!doctype|<html|<head|<body|<\?xml)", re.IGNORECASE)


def meaning(status: int, text: str) -> Meaning:
    """Tells what a status with a text (message, code and type together) means."""
    for statuses, wording, found in WORDINGS:
        if status in statuses and wording.search(text):
            return found
    return STATUSES.get(status, BROKEN)


def read(status: int, headers: Mapping[str, str], body: bytes, now_s: float) -> UpstreamError:
    """Reads an answer that is not 2xx.

    Shape: the message is the endpoint's own, folded to one line of at most 300 characters, not yet redacted.
    Units: `now_s` Unix seconds, which resets given as times are measured from.
    """
    body = body[:LONGEST_READ]
    if is_html(headers, body):
        # A page's markup is full of words; none of them is the API's.
        found, message, parsed, text = STATUSES.get(status, BROKEN), "answered with HTML", None, ""
    else:
        text = body.decode("utf-8", "replace")
        parsed = as_json(text)
        message = message_of(parsed, text)
        codes = " ".join(str(said) for path in CODE_PATHS if isinstance(said := at(parsed, path), str | int))
        found = meaning(status, f"{message[:2000]} {codes}")
    if 300 <= status < 400:
        message = "answered with a redirect, which is not followed; check the base URL"
    kind = TimedOut if found.code == TimedOut.code else UpstreamError
    error = kind(
        folded(message) or "answered without a text",
        code=found.code,
        http_status=status,
        fault=found.fault,
        retry_after_s=waits.asked(headers, parsed, f"{message}\n{text}", now_s) if found.waits else None,
    )
    error.about_model = status == 429 and found.fault is Fault.KEY and ABOUT_MODEL.search(text[: waits.LONGEST_TEXT]) is not None
    return error


def is_html(headers: Mapping[str, str], body: bytes) -> bool:
    content_type = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    return HTML.match(body.removeprefix(b"\xef\xbb\xbf")) is not None or "text/html" in content_type.lower()


def as_json(text: str) -> Any:
    """The JSON of a body, also of one that is wrapped as a server-sent event; None where there is none."""
    bare = text.strip().removeprefix("\ufeff")
    if "data:" in bare[:200] and not bare.startswith(("{", "[")):
        bare = next((line[5:].strip() for line in bare.splitlines() if line.startswith("data:")), bare)
    try:
        return json.loads(bare)
    except (ValueError, RecursionError):
        return None


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and len(value) > step else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value


def message_of(parsed: Any, text: str) -> str:
    """An error's words. A bare JSON list holds one error (Google); a body without JSON is its own message."""
    body = parsed[0] if isinstance(parsed, list) and parsed else parsed
    said = next((said for path in MESSAGE_PATHS if isinstance(said := at(body, path), str) and said.strip()), "")
    if isinstance(raw := at(body, RAW_PATH), str) and raw.strip():
        said = f"{said}: {raw}" if said else raw
    if said:
        return said
    return text if parsed is None else ""


def folded(text: str) -> str:
    """One line of at most 300 characters, without anything that cannot be printed."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text[: LONGEST_MESSAGE * 8]).split())
    return line if len(line) <= LONGEST_MESSAGE else line[: LONGEST_MESSAGE - 1] + "…"
