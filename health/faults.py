"""Whose fault a background call's failure was, told from its ledger row alone, so that live calls and probes are judged by one rule. Pure.

ok        the model answered, be it cut short or refusing
failed    model       the endpoint says that it has no such model
          server      no good answer: 5xx, a time-out, an empty answer, garbage
          connection  nothing behind the address answers as an API
unknown   key         the endpoint refuses the key, or credit is used up: nothing is known of the model
          limit       a limit was met
          request     it refuses this very request, which another form may please
          lost        the process died under the call
"""

from __future__ import annotations

import re
from dataclasses import dataclass

OK, FAILED, UNKNOWN = "ok", "failed", "unknown"
MODEL, SERVER, CONNECTION, KEY, LIMIT, REQUEST, LOST = "model", "server", "connection", "key", "limit", "request", "lost"

ANSWERED = ("ok", "truncated", "refused", "partial")
# A bare 404 may as well be a base URL that leads nowhere: only words about a model blame the model.
ABOUT_A_MODEL = re.compile(r"\bmodels?\b|model_|\bdeployment|decommission|deprecat|retired|end[- ]of[- ]life|no endpoints found", re.IGNORECASE)
ABOUT_A_KEY = re.compile(r"api[ _-]?key|authenticat|unauthori[sz]ed", re.IGNORECASE)
A_PAGE = re.compile(r"\bHTML\b|\bredirect\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a call says of its model. Shape: `outcome` ok, failed or unknown; `fault` is empty for ok."""

    outcome: str
    fault: str = ""


def judged(status: str, http_status: int | None, code: str, message: str) -> Judged:
    """Judges one call by its ledger row's fields."""
    if status in ANSWERED:
        return Judged(OK)
    if status in ("lost", "cancelled"):
        return Judged(UNKNOWN, LOST)
    if status == "rate_limited" or code == "rate_limit_exceeded" or http_status == 429:
        return Judged(UNKNOWN, KEY if status == "no_credit" else LIMIT)
    if status == "no_credit" or http_status in (401, 402, 403):
        names_the_model = http_status == 403 and code != "content_policy" and re.search(r"model_(?:not_found|decommissioned)", message, re.IGNORECASE)
        return Judged(FAILED, MODEL) if names_the_model else Judged(UNKNOWN, KEY)
    if http_status in (404, 410):
        return Judged(FAILED, MODEL if ABOUT_A_MODEL.search(message) and not A_PAGE.search(message) else SERVER)
    if http_status is not None and 300 <= http_status < 400:
        return Judged(FAILED, CONNECTION)
    if http_status in (400, 413, 422) or code in ("invalid_request", "unfit", "context_too_small", "content_policy", "body_too_large"):
        return judged_refusal(code, message)
    if code == "upstream_garbage" and A_PAGE.search(message):
        return Judged(FAILED, CONNECTION)
    if http_status is None and code == "upstream_error":
        return Judged(FAILED, CONNECTION)
    return Judged(FAILED, SERVER)


def judged_refusal(code: str, message: str) -> Judged:
    """Of a 400 most are about the request; `wire.refusals` gives those about a key or a missing model the code upstream_error."""
    if code != "upstream_error":
        return Judged(UNKNOWN, REQUEST)
    if ABOUT_A_KEY.search(message):
        return Judged(UNKNOWN, KEY)
    return Judged(FAILED, MODEL) if ABOUT_A_MODEL.search(message) else Judged(UNKNOWN, REQUEST)
