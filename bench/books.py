"""Compares three books after a fault run: what the upstream answered, what callers received, what the ledger holds."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from bench.callers import Heard
from bench.faults import FIRST_TOKENS, OUTPUT_TOKENS, Served

PUSD = 10**12
ROWS = "SELECT id, call, panel, model, status, key_id, key_name, input_tokens, output_tokens, estimated, cost_pusd FROM health_attempt"
METERS = "SELECT scope, state FROM health_meter WHERE scope LIKE 'key:%|pusd'"
LIMITED = "SELECT id FROM access_key WHERE budget_usd IS NOT NULL"
PERMITS = "SELECT count(*) FROM health_permit"
RUNNING = "SELECT (SELECT count(*) FROM panels_panel WHERE status = 'running') + (SELECT count(*) FROM panels_seat WHERE status = 'running')"


@dataclass(frozen=True, slots=True)
class Row:
    id: str
    call: str
    panel: str
    model: str
    status: str
    key_id: int | None
    key_name: str
    input_tokens: int
    output_tokens: int
    estimated: bool
    cost_pusd: int | None


@dataclass(frozen=True, slots=True)
class Books:
    """What the database says. Shape: `spent` is what the budget meter of each key with a budget holds, in trillionths of a dollar."""

    rows: Sequence[Row]
    spent: dict[int, int]
    permits: int
    running: int


@dataclass(slots=True)
class Findings:
    """Shape: `wrong` holds one line a thing that must not be."""

    wrong: list[str] = field(default_factory=list)
    counts: dict[str, Any] = field(default_factory=dict)


def read(ask: Callable[[str], Iterable[Sequence[Any]]]) -> Books:
    spent = {int(key): 0 for (key,) in ask(LIMITED)}
    for scope, state in ask(METERS):
        month = json.loads(state)[2] if state else None
        spent[int(scope.split(":")[1].split("|")[0])] = month[1] if month else 0
    return Books([Row(*row) for row in ask(ROWS)], spent, next(iter(ask(PERMITS)))[0], next(iter(ask(RUNNING)))[0])


def read_sqlite(path: Path) -> Books:
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as connection:
        connection.execute("BEGIN")
        return read(connection.execute)


def read_postgres(url: str) -> Books:
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        return read(lambda query: connection.execute(query).fetchall())


def compare(books: Books, served: Sequence[Served], heard: Sequence[Heard]) -> Findings:
    """Looks for every answer, every call and every sum."""
    found = Findings()
    wrong = found.wrong
    by_call: dict[str, list[Row]] = defaultdict(list)
    by_tokens: dict[int, list[Row]] = defaultdict(list)
    for row in books.rows:
        by_call[row.call].append(row)
        if not row.estimated and row.input_tokens >= FIRST_TOKENS:
            by_tokens[row.input_tokens].append(row)
    for call, rows in by_call.items():
        if len(rows) > 1:
            wrong.append(f"call {call} has {len(rows)} rows: {', '.join(r.status for r in rows)}")
    for tokens, rows in by_tokens.items():
        if len(rows) > 1:
            wrong.append(f"answer {tokens - FIRST_TOKENS} is in the ledger {len(rows)} times")

    received = 0
    for reply in heard:
        wrong += [f"caller {reply.mark} ({reply.kind}): {line}" for line in reply.wrong]
        if not reply.whole:
            continue
        for seat in reply.seats:
            if seat.answer is not None:
                received += 1
                wrong += missing(f"caller {reply.mark} ({reply.kind}) received answer {seat.answer} whole", seat.call, seat.answer, by_tokens, served)
            elif seat.tries and len(by_call.get(seat.call, ())) != seat.tries:
                wrong.append(
                    f"caller {reply.mark}: seat {seat.call} ({seat.status}) tells of {seat.tries} calls, the ledger of {len(by_call.get(seat.call, ()))}"
                )
            if seat.cost_usd is not None and seat.tries:
                cost = sum(r.cost_pusd or 0 for r in by_call.get(seat.call, ()))
                if Decimal(seat.cost_usd) * PUSD != cost:
                    wrong.append(f"caller {reply.mark}: seat {seat.call} ({seat.status}) cost {seat.cost_usd}, the ledger says {Decimal(cost) / PUSD}")

    # Every call that reached the upstream is some row; a row more than that is a call that never got there, which must not say that it was answered.
    began = Counter(s.model for s in served)
    recorded = Counter(r.model for r in books.rows)
    answered = {s.input_tokens for s in served}
    for model in sorted(began | recorded):
        if recorded[model] < began[model]:
            wrong.append(f"{model}: the upstream saw {began[model]} calls, the ledger holds {recorded[model]}")
    for row in books.rows:
        # Estimated: the caller left between the finish reason and the usage.
        if row.status == "ok" and not row.estimated and row.input_tokens not in answered:
            wrong.append(f"row {row.id} is ok, but the upstream gave no such answer")
        if row.status == "lost" and not row.estimated:
            wrong.append(f"row {row.id} is lost, yet its tokens are not called an estimate")

    for key, spent in books.spent.items():
        cost = sum(r.cost_pusd or 0 for r in books.rows if r.key_id == key)
        if cost != spent:
            wrong.append(f"the budget of key {key} says {Decimal(spent) / PUSD} dollars, its rows {Decimal(cost) / PUSD}")
    if books.permits:
        wrong.append(f"{books.permits} permits were never settled")
    if books.running:
        wrong.append(f"{books.running} panels or seats still say that they run")

    found.counts = {
        "requests": len(heard),
        "whole replies": sum(h.whole for h in heard),
        "hung up": sum(h.hung_up for h in heard),
        "refused": dict(Counter(str(h.status) for h in heard if h.status not in (0, 200))),
        "cut": sum(not h.whole and not h.hung_up and h.status in (0, 200) for h in heard),
        "upstream calls": dict(Counter(s.state for s in served)),
        "answers received whole": received,
        "ledger": dict(Counter(r.status for r in books.rows)),
    }
    return found


def missing(what: str, call: str, answer: int, by_tokens: dict[int, list[Row]], served: Sequence[Served]) -> list[str]:
    """Looks one received answer up. Shape: what is wrong with it."""
    rows = by_tokens.get(FIRST_TOKENS + answer)
    if not rows:
        return [f"{what}, the ledger does not hold it (call {call})"]
    row, source = rows[0], served[answer]
    wrong = []
    if call and row.call != call:
        wrong.append(f"{what} as call {call}, the ledger has it as {row.call}")
    if (row.status, row.model, row.output_tokens) != ("ok", source.model, OUTPUT_TOKENS):
        wrong.append(f"{what}, the ledger says {row.status}, {row.model}, {row.output_tokens} tokens out")
    return wrong
