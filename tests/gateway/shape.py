"""The contract's shapes of a panel's reply, to the letter."""

from __future__ import annotations

import re
from typing import Any

PANEL_FIELDS = {"panel", "collection", "mode", "status", "seats", "cost_usd", "seconds"}
SEAT_FIELDS = {"call", "model", "seat", "status", "seconds", "ttft_seconds", "text", "finish_reason", "usage", "cost_usd", "tries", "error"}
USAGE_FIELDS = {"input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "estimated"}
TRY_FIELDS = {"model", "status", "code", "seconds", "cost_usd"}
SEATS = {"member", "explorer", "merger", "route", "direct", "shadow"}
SEAT_STATUSES = {"ok", "partial", "truncated", "error", "timeout", "rate_limited", "no_credit", "refused", "skipped", "cancelled", "lost"}
MONEY = re.compile(r"(0|[1-9]\d*)(\.\d*[1-9])?")


def is_id(kind: str, text: str) -> bool:
    return re.fullmatch(rf"{kind}_[0-9A-HJKMNP-TV-Z]{{26}}", text) is not None


def is_money(value: Any) -> bool:
    """An exact decimal text without exponent or trailing zeros, or nothing at all."""
    return value is None or (isinstance(value, str) and MONEY.fullmatch(value) is not None)


def check_bench(bench: dict[str, Any]) -> list[dict[str, Any]]:
    """Holds a `bench` field against the contract; gives its seats."""
    assert set(bench) >= PANEL_FIELDS, PANEL_FIELDS - set(bench)
    assert is_id("pan", bench["panel"])
    assert bench["status"] in ("complete", "degraded", "failed")
    assert is_money(bench["cost_usd"])
    assert isinstance(bench["seconds"], int | float)
    seats: list[dict[str, Any]] = bench["seats"]
    for seat in seats:
        assert set(seat) >= SEAT_FIELDS, SEAT_FIELDS - set(seat)
        assert is_id("call", seat["call"])
        assert seat["seat"] in SEATS
        assert seat["status"] in SEAT_STATUSES
        assert is_money(seat["cost_usd"])
        assert (seat["error"] is None) == (seat["status"] in ("ok", "truncated", "refused")) or seat["status"] in ("truncated", "refused")
        if seat["error"] is not None:
            assert set(seat["error"]) == {"code", "message"}
        if seat["usage"] is not None:
            assert set(seat["usage"]) == USAGE_FIELDS
        for one in seat["tries"]:
            assert set(one) >= TRY_FIELDS
            assert is_money(one["cost_usd"])
    assert len({s["call"] for s in seats}) == len(seats)
    return seats


def headings(text: str, seats: list[dict[str, Any]]) -> list[int]:
    """Where each seat's heading line stands in the text: the line that names its alias, kind and call id."""
    lines = text.split("\n")
    found = []
    for seat in seats:
        at = [n for n, line in enumerate(lines) if seat["call"] in line]
        assert len(at) == 1, f"call {seat['call']} stands in {len(at)} lines"
        assert seat["model"] in lines[at[0]]
        assert seat["seat"] in lines[at[0]].lower()
        found.append(at[0])
    return found
