"""What a refusal's words and fields tell of limits. Pure tables; a new wording is a line in one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from wire.limit_headers import CONCURRENT, NO_LIMIT, OF_SECONDS, REQUESTS, TOKENS, UNITS, WINDOWS, Told, joined, told
from wire.refusals import LONGEST_READ, as_json, is_html, message_of
from wire.waits import LONGEST_TEXT, walk

# A refusal with any other status tells of limits in its headers at most.
STATUSES = frozenset({402, 403, 413, 429})
COUNT = r"(?:\d[\d,]{0,18})?\d"
WINDOW = r"(?P<window>second|sec|minute|min|hour|day|week|month)\b"
COUNTED = r"(?P<unit>requests|queries|calls|tokens)"
WAY = r"(?:(?P<direction>input|output) )?"


def words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# The wording, whose groups say what they can; what it says besides: unit, window, and whether nothing is left.
WORDINGS: tuple[tuple[re.Pattern[str], str, str, bool], ...] = (
    # OpenAI, Groq: "on tokens per min (TPM): Limit 10000, Used 8554, Requested 3082"
    (words(rf"\bon {WAY}{COUNTED} per {WINDOW}(?: \(\w{{2,6}}\))?[:.] Limit:? (?P<limit>{COUNT})(?:, Used (?P<used>{COUNT}))?"), "", "", False),
    (words(rf"\bof (?P<limit>{COUNT}) {WAY}{COUNTED} per {WINDOW}"), "", "", False),  # Anthropic
    (words(rf"\brate limit for this model is (?P<limit>{COUNT}) {COUNTED} per {WINDOW}"), "", "", False),  # Together
    (words(rf"\b{COUNTED} per {WINDOW} limit exceeded"), "", "", True),  # Cerebras
    (words(r"\bfree-models-per-(?P<window>min|day)\b"), REQUESTS, "", True),  # OpenRouter
    (words(rf"\b{COUNTED} per {WINDOW} \(actual/limit\): (?P<used>{COUNT})/(?P<limit>{COUNT})"), "", "", False),  # xAI
    (words(rf"\blimited to (?P<limit>{COUNT}) (?:API )?{COUNTED} ?(?:/|per) ?{WINDOW}"), "", "", True),  # Cohere
    (words(rf"\brate limit of (?P<limit>{COUNT}) per (?P<seconds>\d{{1,9}})s exceeded for (?P<subject>\w{{1,60}})"), REQUESTS, "", True),  # GitHub Models
    (words(r"\b(?P<window>monthly) included credits"), "credits", "", True),  # Hugging Face
    (words(rf"\b(?P<window>daily|monthly) free allocation of (?P<limit>{COUNT}) (?P<unit>neurons)"), "", "", True),  # Cloudflare
    (words(rf"\b(?P<used>{COUNT}) requests already queued \(max: (?P<limit>{COUNT})\)"), CONCURRENT, "", False),  # Pollinations
    (words(rf"\bcurrent rpm: (?P<used>{COUNT}), rpm limit: (?P<limit>{COUNT})"), REQUESTS, "minute", False),  # LiteLLM
    (words(rf"\bcurrent tpm: (?P<used>{COUNT}), tpm limit: (?P<limit>{COUNT})"), TOKENS, "minute", False),
    (words(rf"\bcurrent max_parallel_requests: (?P<used>{COUNT}), max_parallel_requests: (?P<limit>{COUNT})"), CONCURRENT, "", False),
    (words(r"\bmaximum number of (?P<unit>tokens|requests) allowed within a given time"), "", "", True),  # Llama API
    (
        words(rf"\b(?:limit of|limited to|max(?:imum)?(?: of)?) (?P<limit>{COUNT}) (?:concurrent|parallel|simultaneous) (?:requests|calls)"),
        CONCURRENT,
        "",
        True,
    ),
    # Google: "Quota exceeded for metric: …/generate_content_free_tier_requests, limit: 20"
    (words(rf"\bquota exceeded for metric: \S{{0,120}}?_(?P<metric>requests|input_token_count|token_count)\b,?\s+limit: (?P<limit>{COUNT})"), "", "", True),
)
METRICS: Mapping[str, tuple[str, str]] = {"requests": (REQUESTS, ""), "input_token_count": (TOKENS, "input"), "token_count": (TOKENS, "")}
QUOTA_WINDOW = re.compile(r"Per(Second|Minute|Hour|Day|Week|Month)")
SHARED_POOL = "limit_source"  # OpenRouter: whose limit it is, where it is not this key's


def in_refusal(status: int, headers: Mapping[str, str], body: bytes, base_url: str, now_s: float) -> tuple[Told, ...]:
    """Reads every limit that an answer that is not 2xx tells of: headers first, then the headers that its body repeats, its fields, its words."""
    found = told(headers, base_url, now_s)
    body = body[:LONGEST_READ]
    if status not in STATUSES or is_html(headers, body):
        return found
    text = body.decode("utf-8", "replace")
    parsed = as_json(text)
    named = list(walk(parsed))
    if any(name == SHARED_POOL for name, _ in named):
        return found
    for name, value in named:
        if name == "headers" and isinstance(value, Mapping):
            repeated = {k.lower(): v for k, v in value.items() if isinstance(k, str) and isinstance(v, str)}
            found = joined(found, told(repeated, base_url, now_s))
    said = [*in_violations(named), *in_words(message_of(parsed, text)[:LONGEST_TEXT])]
    return joined(joined(found, said[:1]), said[1:])


def in_violations(named: list[tuple[str, Any]]) -> Iterator[Told]:
    """Google's QuotaFailure: "GenerateRequestsPerDayPerProjectPerModel-FreeTier" with a quotaValue."""
    for name, value in named:
        if name != "violations" or not isinstance(value, list):
            continue
        for one in value[:20]:
            quota = str(one.get("quotaId") or one.get("quotaMetric") or "") if isinstance(one, Mapping) else ""
            if not quota:
                continue
            limit = count(str(one.get("quotaValue", "")))
            if limit is not None and limit >= NO_LIMIT:
                continue
            window = QUOTA_WINDOW.search(quota)
            unit = TOKENS if "token" in quota.lower() else REQUESTS
            direction = "input" if unit == TOKENS and "input" in quota.lower() else ""
            yield Told(unit, window[1].lower() if window else None, limit, 0, None, direction, "refusal")


def in_words(text: str) -> Iterator[Told]:
    for wording, unit, window, is_spent in WORDINGS:
        for match in wording.finditer(text):
            said = match.groupdict()
            limit, used = count(said.get("limit")), count(said.get("used"))
            if limit is not None and limit >= NO_LIMIT:
                continue
            named, direction = METRICS.get(said.get("metric") or "", UNITS.get((said.get("unit") or "").lower(), (said.get("unit") or unit, "")))
            if "concurrent" in (subject := (said.get("subject") or "").lower()):
                named = CONCURRENT
            elif "token" in subject:
                named = TOKENS
            span = WINDOWS.get((said.get("window") or window).lower()) or OF_SECONDS.get(int(said.get("seconds") or 0))
            remaining = 0 if is_spent else max(limit - used, 0) if limit is not None and used is not None else None
            yield Told(named, span, limit, remaining, None, (said.get("direction") or direction).lower(), "refusal")


def count(text: str | None) -> int | None:
    bare = (text or "").replace(",", "").strip()
    return int(bare) if bare.isascii() and bare.isdecimal() and len(bare) < 21 else None
