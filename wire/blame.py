"""Whose fault an endpoint's refusal is: from its status and from what its text says, since many say the one and mean the other."""

from __future__ import annotations

import re

from wire.errors import Fault, UpstreamError

# How vendors say that a prompt is too long. New ones are a line here.
CONTEXT_WORDS = re.compile(
    r"(?i)context[_ ]length|maximum context|context window|context size|prompt is too long|too many (?:input )?tokens|input is too long"
    r"|exceeds? (?:the )?(?:model'?s? )?(?:max(?:imum)? )?(?:context|token limit|input token)|reduce the length|input token count"
    r"|prompt (?:is|has|of) \d+ tokens|longer than the model"
)
POLICY_WORDS = re.compile(r"(?i)\b(?:policy|polic(?:y|ies) violation|content[_ ]filter|content management|moderation|safety|flagged|unsafe|harm)")
CREDIT_WORDS = re.compile(r"(?i)insufficient[_ ](?:credit|balance|funds|quota)|out of credits?|no credits?|payment required|billing")
OVERLOAD_WORDS = re.compile(r"(?i)overloaded|at capacity|capacity exceeded|server is busy")


def blame(status: int | None, text: str) -> tuple[str, Fault]:
    """The contract's code and the fault for an endpoint's status (None: said nowhere) and words.

    Source: the status meanings that OpenAI, Anthropic and Google publish agree on these.
    """
    if (status in (400, 404, 413, 422) or status is None) and CONTEXT_WORDS.search(text):
        return "context_too_small", Fault.CALLER
    if status == 413:
        return "body_too_large", Fault.CALLER
    if status in (400, 422):
        return "invalid_request", Fault.CALLER
    if status == 402 or (status in (403, 429) and CREDIT_WORDS.search(text)):
        return "no_credit", Fault.KEY
    if status == 401:
        return "upstream_error", Fault.KEY
    if status == 403:
        return ("content_policy", Fault.CALLER) if POLICY_WORDS.search(text) else ("upstream_error", Fault.KEY)
    if status == 404:
        return "upstream_error", Fault.MODEL
    if status == 429:
        return "rate_limit_exceeded", Fault.KEY
    if status in (503, 529) or OVERLOAD_WORDS.search(text):
        return "upstream_overloaded", Fault.MODEL
    if status in (408, 504, 524):
        return "upstream_timeout", Fault.SERVER
    return "upstream_error", Fault.SERVER


def upstream_error(status: int | None, text: str, retry_after_s: float | None = None) -> UpstreamError:
    """An UpstreamError of the right code and fault. `text` is not yet redacted."""
    code, fault = blame(status, text)
    return UpstreamError(" ".join(text.split())[:300], code=code, http_status=status, fault=fault, retry_after_s=retry_after_s)
