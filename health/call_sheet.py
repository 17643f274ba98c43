"""The ledger's rows as people read them elsewhere: in lists and in sheets. No text of prompt or answer stands there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from access.sheets import Money, Sheet
from health.costs import usd_text
from health.lines import Row

FIELDS = (
    *("id", "call", "panel", "request", "started_at", "purpose", "seat", "collection", "judge", "team", "key", "endpoint", "model", "served_name"),
    *("status", "http_status", "code", "error", "finish_reason", "seconds", "ttft_seconds"),
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "estimated", "cost_usd"),
)


def sheet(rows: Iterable[Row]) -> Sheet:
    """Gives rows as a CSV file, made while it is read."""
    return Sheet("calls", FIELDS, ([Money(said) if name == "cost_usd" else said for name, said in as_fields(row).items()] for row in rows))


def as_fields(row: Row) -> dict[str, Any]:
    """One row by FIELDS, in their order."""
    return {
        "id": row.id,
        "call": row.call,
        "panel": row.panel,
        "request": row.request or None,
        "started_at": row.started_at,
        "purpose": row.purpose,
        "seat": row.seat,
        "collection": row.collection or None,
        "judge": row.judge,
        "team": row.team or None,
        "key": row.key_name or None,
        "endpoint": row.endpoint,
        "model": row.model,
        "served_name": row.served_name,
        "status": row.status,
        "http_status": row.http_status,
        "code": row.code or None,
        "error": row.error or None,
        "finish_reason": row.finish_reason or None,
        "seconds": row.latency_ms / 1000,
        "ttft_seconds": None if row.ttft_ms is None else row.ttft_ms / 1000,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
        "cache_read_tokens": row.cache_read_tokens,
        "cache_write_tokens": row.cache_write_tokens,
        "reasoning_tokens": row.reasoning_tokens,
        "estimated": row.estimated,
        "cost_usd": usd_text(row.cost_pusd),
    }
