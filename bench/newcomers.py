"""The onboarding part of a fault run: models on their way onto the bench while processes are killed; each must end once, and its calls be on record."""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import books, servers
from bench.faults import FIRST_TOKENS, Served

ENDPOINT = "new"
# What a full onboarding asks of a model: one word, a short and a long answer.
CALLS = 3
ONBOARDINGS = f"SELECT served_name, state, message FROM health_onboarding WHERE endpoint = '{ENDPOINT}'"
MODELS = f"SELECT m.served_name FROM catalog_model m JOIN catalog_endpoint e ON e.id = m.endpoint_id WHERE e.name = '{ENDPOINT}'"
# In time, not in an hour: permits of calls that died with their process run out by themselves two minutes later.
SWEEP = "from datetime import timedelta; from django.utils import timezone; from health.sweep import sweep; sweep(timezone.now() + timedelta(hours=1))"


@dataclass(frozen=True, slots=True)
class Seen:
    """What the database says of the newcomers."""

    onboardings: Sequence[tuple[str, str, str]]
    models: Sequence[str]

    @property
    def is_over(self) -> bool:
        return all(state not in ("waiting", "running") for _, state, _ in self.onboardings)


def names(count: int) -> list[str]:
    return [f"new-{number}" for number in range(1, count + 1)]


def endpoint(port: int) -> dict[str, Any]:
    return {"name": ENDPOINT, "kind": "openai", "base_url": f"http://127.0.0.1:{port}/{ENDPOINT}/v1"}


def begin(port: int, operator: str, count: int) -> None:
    """Errors: CannotStart."""
    status, said = servers.ask(port, "/bench/onboard", {"endpoint": ENDPOINT, "served_names": names(count), "mode": "full"}, operator, timeout_s=30)
    if status != 202:
        raise servers.CannotStart(f"POST /bench/onboard answered {status}: {said}")


def read(ask: Callable[[str], Iterable[Sequence[Any]]]) -> Seen:
    return Seen([(name, state, message) for name, state, message in ask(ONBOARDINGS)], [name for (name,) in ask(MODELS)])


def read_from(sqlite_path: Path, postgres: str) -> Seen:
    if postgres:
        import psycopg

        with psycopg.connect(postgres) as connection:
            return read(lambda query: connection.execute(query).fetchall())
    with contextlib.closing(sqlite3.connect(f"file:{sqlite_path}?mode=ro", uri=True, timeout=30)) as connection:
        return read(connection.execute)


def compare(seen: Seen, kept: books.Books, served: Sequence[Served], count: int, kills: int, found: books.Findings) -> None:
    """Adds what is wrong with the newcomers, and how many calls were lost, to what was found."""
    wrong = found.wrong
    rows = Counter(name for name, _, _ in seen.onboardings)
    for name in names(count):
        if rows[name] != 1:
            wrong.append(f"{name} has {rows[name]} onboardings instead of one")
    for name, state, message in seen.onboardings:
        if state != "done":
            wrong.append(f"{name} ended as {state}: {message}")
    for name, times in Counter(seen.models).items():
        if times != 1:
            wrong.append(f"{name} is on the roster {times} times")
    if missing := set(names(count)) - set(seen.models):
        wrong.append(f"not on the roster: {', '.join(sorted(missing))}")

    by_model: dict[str, list[books.Row]] = defaultdict(list)
    for row in kept.rows:
        if row.model.startswith("new-"):
            by_model[row.model].append(row)
    lost = 0
    for name in names(count):
        answers = {s.number for s in served if s.model == name and s.state == "whole"}
        begun = sum(s.model == name for s in served)
        good = [row.input_tokens - FIRST_TOKENS for row in by_model[name] if row.status == "ok"]
        lost_here = sum(row.status == "lost" for row in by_model[name])
        lost += lost_here
        if len(good) != len(set(good)) or not set(good) <= answers:
            wrong.append(f"{name}: the ledger holds answers {sorted(good)}, the upstream gave {sorted(answers)}")
        if len(good) != CALLS:
            wrong.append(f"{name}: {len(good)} calls were answered and recorded instead of {CALLS}: a stage was paid twice, or not at all")
        if begun > len(by_model[name]):
            wrong.append(f"{name}: the upstream saw {begun} calls, the ledger holds {len(by_model[name])}")
        if len(answers) > len(good) + lost_here:
            wrong.append(f"{name}: {len(answers)} answers went out, {len(good)} are recorded and {lost_here} lost")
    if lost > kills:
        wrong.append(f"{lost} of the newcomers' calls were lost by {kills} kills")
    found.counts |= {"newcomers": dict(Counter(state for _, state, _ in seen.onboardings)), "newcomers' calls lost in flight": lost}
