"""What is known of how models are, as frozen values: the newest good answer, suspicion, speed, drift; and the probes that say so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from access.pages import Page, keyset
from health import drift
from health.models import ModelHealth, Probe


@dataclass(frozen=True, slots=True)
class Condition:
    """How one model is.

    Shape: `speed` by kind (short, long), each {"ttft_ms", "tokens_per_s", "of", "at"}; `drift` without the answers' texts, None where no night was asked
    for; `form` what it was found to accept.
    """

    last_ok_at: datetime | None = None
    last_failed_at: datetime | None = None
    suspect_since: datetime | None = None
    reason: str = ""
    unlisted_since: datetime | None = None
    speed: Mapping[str, Any] = field(default_factory=dict)
    drift: Mapping[str, Any] | None = None
    form: Mapping[str, Any] = field(default_factory=dict)


UNKNOWN = Condition()


def conditions(aliases: Iterable[str]) -> dict[str, Condition]:
    """Reads how models are, those of which something is known. One query."""
    return {
        row.model: Condition(
            row.last_ok_at,
            row.last_failed_at,
            row.suspect_since,
            row.suspect_reason,
            row.unlisted_since,
            row.speed,
            drift.shown(row.drift),
            row.probe_form,
        )
        for row in ModelHealth.objects.filter(pk__in=list(aliases))
    }


def speeds(aliases: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """Reads how fast models are, by kind as in Condition. One query."""
    return dict(ModelHealth.objects.filter(pk__in=list(aliases)).values_list("model", "speed"))


@dataclass(frozen=True, slots=True)
class ProbeView:
    """One probe. Units: `cost_pusd` trillionths of a US dollar, None where the price is unknown."""

    attempt: str
    model: str
    endpoint: str
    kind: str
    prompt: str
    at: datetime
    outcome: str
    fault: str
    status: str
    http_status: int | None
    code: str
    message: str
    latency_ms: int | None
    ttft_ms: int | None
    output_tokens: int
    tokens_per_s: float | None
    cost_pusd: int | None
    seen: Mapping[str, Any]


def probes(limit: int, page_token: str, model: str = "", kind: str = "") -> Page[ProbeView]:
    """Lists probes, newest first, of one model or kind where one is named. One query."""
    found = Probe.objects.defer("answer")
    if model:
        found = found.filter(model=model) if "\0" not in model else found.none()
    if kind:
        found = found.filter(kind=kind)
    return keyset(found, ("at", "id"), limit, page_token, newest_first=True).mapped(view)


def view(row: Probe) -> ProbeView:
    return ProbeView(
        row.attempt,
        row.model,
        row.endpoint,
        row.kind,
        row.prompt,
        row.at,
        row.outcome,
        row.fault,
        row.status,
        row.http_status,
        row.code,
        row.message,
        row.latency_ms,
        row.ttft_ms,
        row.output_tokens,
        row.tokens_per_s,
        row.cost_pusd,
        row.seen,
    )
