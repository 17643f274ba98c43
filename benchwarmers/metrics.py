"""The figures of `/metrics`, from a few cheap queries."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from datetime import datetime

from django.conf import settings

from health import alerts, figures, pulse
from health.figures import DaySum

# Scrapers come every few seconds, often several; the day's rows need not be summed for each.
KEPT_S = 10.0
PICO = 1_000_000_000_000

Sample = tuple[Mapping[str, object], object]


class Kept:
    """The day's sums, made at most every few seconds a process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.at = 0.0
        self.day = ""
        self.sums: list[DaySum] = []

    def read(self, now: datetime) -> list[DaySum]:
        with self.lock:
            if self.day != now.date().isoformat() or time.monotonic() - self.at > KEPT_S:
                self.sums = figures.of_day(now)
                self.day, self.at = now.date().isoformat(), time.monotonic()
            return self.sums


kept = Kept()


def text(now: datetime) -> str:
    """Shape: Prometheus text. Counters begin anew at midnight in BENCH_TIME_ZONE, which Prometheus takes like a restart. Errors: DatabaseError."""
    sums = kept.read(now)
    queue, outbox, age_s = pulse.queue(now), pulse.outboxes(), figures.heartbeat_age_s(now)
    tokens = [
        ({**of(s), "kind": kind}, count)
        for s in sums
        for kind, count in (("input", s.input_tokens), ("output", s.output_tokens), ("cache_read", s.cache_read_tokens))
    ]
    families = [
        family("bench_info", "gauge", "The running version.", [({"version": settings.VERSION}, 1)]),
        family("bench_calls_total", "counter", "Upstream calls since midnight in BENCH_TIME_ZONE.", [(of(s), s.calls) for s in sums]),
        family("bench_call_seconds_total", "counter", "Seconds that these calls took.", [(of(s), s.latency_ms / 1000) for s in sums]),
        family("bench_tokens_total", "counter", "Tokens of these calls; input includes cache reads.", tokens),
        family(
            "bench_cost_usd_total",
            "counter",
            "Cost of these calls where the price is known.",
            [(of(s), s.cost_pusd / PICO) for s in sums if s.cost_pusd is not None],
        ),
        family("bench_reserved_calls", "gauge", "Calls under way that hold a reservation.", plain(figures.reserved_calls(now))),
        family("bench_alerts", "gauge", "Alerts that nobody has seen.", plain(alerts.unseen())),
        family("bench_resting", "gauge", "Endpoints and models that are left alone for now.", plain(figures.resting(now))),
        family("bench_outbox_bytes", "gauge", "Bytes of ledger lines that are not in the database yet.", plain(outbox.bytes)),
        family("bench_outbox_rejected_bytes", "gauge", "Bytes of ledger lines that could not be written and wait for a person.", plain(outbox.rejected_bytes)),
        family("bench_queue_waiting", "gauge", "Tasks that wait in the queue.", plain(queue.waiting)),
        family("bench_queue_workers", "gauge", "Queue clusters with a heartbeat in the last minute.", plain(queue.workers)),
        family("bench_queue_heartbeat_age_seconds", "gauge", "Since a queue worker last finished a ring.", plain(age_s)),
    ]
    return "".join(families)


def of(summed: DaySum) -> dict[str, object]:
    return {"endpoint": summed.endpoint, "model": summed.model, "status": summed.status}


def plain(value: float | None) -> list[Sample]:
    """One sample without labels, or none where the figure cannot be had."""
    return [] if value is None else [({}, value)]


def family(name: str, kind: str, about: str, samples: Iterable[Sample]) -> str:
    """One metric with its samples, in the text format."""
    lines = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    for labels, value in samples:
        inside = ",".join(f'{label}="{escaped(str(content))}"' for label, content in labels.items())
        lines.append(f"{name}{{{inside}}} {value}" if inside else f"{name} {value}")
    return "\n".join(lines) + "\n"


def escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
