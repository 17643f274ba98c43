"""The figures of `/metrics`, from a few cheap queries."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from datetime import datetime

from django.conf import settings
from django.db.models import Count, Sum
from django_q.brokers import get_broker

from health.models import Attempt, Permit, Rest

# Scrapers come every few seconds, often several; the day's rows need not be summed for each.
KEPT_S = 10.0
PICO = 1_000_000_000_000

_lock = threading.Lock()
_kept: tuple[float, str, str] = (0.0, "", "")


def text(now: datetime, outbox_bytes: int, heartbeat_age_s: float | None) -> str:
    """Shape: Prometheus text. Counters begin anew at midnight UTC, which Prometheus takes like a restart. Errors: DatabaseError."""
    lines: list[str] = []
    family(lines, "bench_info", "gauge", "The running version.", [({"version": settings.VERSION}, 1)])
    lines.append(calls_text(now).rstrip("\n"))
    family(lines, "bench_reserved_calls", "gauge", "Calls under way that hold a reservation.", [({}, Permit.objects.filter(expires_at__gt=now).count())])
    family(lines, "bench_resting", "gauge", "Endpoints and models that are left alone for now.", [({}, Rest.objects.filter(until__gt=now).count())])
    family(lines, "bench_outbox_bytes", "gauge", "Ledger lines that are not in the database yet.", [({}, outbox_bytes)])
    waiting = queue_waiting()
    family(lines, "bench_queue_waiting", "gauge", "Tasks that wait in the queue.", [] if waiting is None else [({}, waiting)])
    age = [] if heartbeat_age_s is None else [({}, round(heartbeat_age_s, 1))]
    family(lines, "bench_queue_heartbeat_age_seconds", "gauge", "Since a queue worker last finished a ring.", age)
    return "\n".join(lines) + "\n"


def calls_text(now: datetime) -> str:
    """Sums today's attempts, at most every few seconds a process."""
    global _kept
    day = now.date().isoformat()
    with _lock:
        at, of_day, kept = _kept
        if of_day == day and time.monotonic() - at < KEPT_S:
            return kept
        _kept = (time.monotonic(), day, sum_calls(now))
        return _kept[2]


def sum_calls(now: datetime) -> str:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    rows = list(
        Attempt.objects.filter(started_at__gte=midnight)
        .order_by()
        .values("endpoint", "model", "status")
        .annotate(
            calls=Count("pk"),
            ms=Sum("latency_ms"),
            inward=Sum("input_tokens"),
            outward=Sum("output_tokens"),
            cached=Sum("cache_read_tokens"),
            pusd=Sum("cost_pusd"),
        )
    )
    lines: list[str] = []

    def of(row: dict[str, object], **more: str) -> dict[str, object]:
        return {"endpoint": row["endpoint"], "model": row["model"], "status": row["status"], **more}

    family(lines, "bench_calls_total", "counter", "Upstream calls since midnight UTC.", [(of(r), r["calls"]) for r in rows])
    family(lines, "bench_call_seconds_total", "counter", "Seconds that these calls took.", [(of(r), r["ms"] / 1000) for r in rows])
    tokens = [(of(r, kind=kind), r[name]) for r in rows for kind, name in (("input", "inward"), ("output", "outward"), ("cache_read", "cached"))]
    family(lines, "bench_tokens_total", "counter", "Tokens of these calls; input includes cache reads.", tokens)
    family(
        lines,
        "bench_cost_usd_total",
        "counter",
        "Cost of these calls where the price is known.",
        [(of(r), r["pusd"] / PICO) for r in rows if r["pusd"] is not None],
    )
    return "\n".join(lines) + "\n"


def queue_waiting() -> int | None:
    """None where the broker is away: the other figures are still worth having."""
    try:
        return int(get_broker().queue_size() or 0)
    except Exception:
        return None


def family(lines: list[str], name: str, kind: str, about: str, samples: Iterable[tuple[dict[str, object], object]]) -> None:
    """Appends one metric with its samples."""
    lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    for labels, value in samples:
        inside = ",".join(f'{label}="{escaped(str(content))}"' for label, content in labels.items())
        lines.append(f"{name}{{{inside}}} {value}" if inside else f"{name} {value}")


def escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
