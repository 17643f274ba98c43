"""Times every list, sum and page over a ledger of a million rows: `scripts/bench.sh million`, on SQLite or on what DATABASE_URL names.

`--rows` how many, `--rounds` how often each is asked. What is slower than 100 ms (p95) is marked, and the exit code is 1. The database must be empty.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import django

LIMIT_MS = 100.0
DAYS, MODELS, KEYS, COLLECTIONS, ENDPOINTS, TEAMS = 400, 40, 20, 8, 10, 4
ROSTER = 500  # models on the roster; those beyond MODELS were never called
SEATS = 4  # of a panel; every fifth question is a direct call
CHUNK = 5000

Columns = tuple[str, ...]
Lists = dict[str, list[tuple[Any, ...]]]


def questions(count: int, start: datetime) -> Iterator[tuple[str, datetime, random.Random]]:
    """Shape: a name, a moment and what draws its parts; moments spread over all days, in order."""
    draw = random.Random(7)
    step = timedelta(days=DAYS) / count
    for number in range(count):
        yield f"{number:08d}", start + number * step, draw


def rows(count: int, now: datetime) -> Iterator[Lists]:
    """Makes panels, seats, attempts and verdicts, some at a time."""
    made: Lists = {"panel": [], "seat": [], "attempt": [], "verdict": []}
    asked = count // SEATS
    for name, at, draw in questions(asked, now - timedelta(days=DAYS)):
        who = draw.randrange(KEYS)
        place = (who + draw.randrange(2)) % COLLECTIONS  # a key asks two collections
        collection = f"collection-{place}"
        is_panel = draw.random() < 0.8
        mode = "panel" if is_panel else "direct"
        panel = f"pan_{name}"
        judge, team, key = f"person-{who % 10}", f"team-{who % TEAMS}", f"key-{who}"
        if is_panel:
            made["panel"].append((panel, at, collection, mode, "complete", judge, who + 1, key, f"req-{name}", None, 1, None, 4.2, "openai-chat"))
        judged = False
        for seat in range(SEATS):
            call = f"call_{name}{seat}"
            model = (place * 5 + draw.randrange(6)) % MODELS  # of the collection's own six
            status = "ok" if draw.random() < 0.97 else draw.choice(["error", "timeout", "rate_limited"])
            kind = "member" if is_panel else "direct"
            cost = None if model == 0 else draw.randrange(10**9)
            tokens = (draw.randrange(20_000), draw.randrange(4000), draw.randrange(1000), 0, draw.randrange(500))
            made["attempt"].append(
                (
                    *(f"att_{name}{seat}", call, panel if is_panel else f"pan_{name}{seat}", f"req-{name}", mode, kind, collection if is_panel else "", judge),
                    *(who + 1, key, team, f"endpoint-{model % ENDPOINTS}", f"model-{model}", f"vendor/model-{model}", at + timedelta(milliseconds=seat)),
                    *(draw.randrange(20_000), 400, status, 200, "", "", "stop", *tokens, False, cost),
                )
            )
            if is_panel:
                made["seat"].append((call, panel, seat, f"model-{model}", kind, status, "", "", None, "stop", 3.1, 0.4))
                if draw.random() < 0.1 or judged:
                    judged = draw.random() < 0.7  # who judges one answer of a panel judges more of it
                    false = [] if draw.random() < 0.6 else [f"claim {draw.randrange(40)} of model {draw.randrange(3)} does not hold in this place"]
                    words = json.dumps(false)
                    made["verdict"].append((call, judge, f"model-{model}", collection, draw.random() < 0.5, "", "[]", words, at, True))
        if len(made["attempt"]) >= CHUNK:
            yield made
            made = {name: [] for name in made}
    yield made


def columns() -> dict[str, tuple[str, Columns]]:
    from health.lines import COLUMNS
    from panels.record import PANEL_FIELDS

    seat = ("call", "panel_id", "position", "model", "seat", "status", "code", "message", "text", "finish_reason", "seconds", "ttft_seconds")
    verdict = ("call", "judge", "model", "collection", "useful", "note", "real", "false", "at", "current")
    panel = (*PANEL_FIELDS[:11], "merge_order", "seconds", "dialect")
    return {
        "panel": ("panels_panel", panel),
        "seat": ("panels_seat", seat),
        "attempt": ("health_attempt", COLUMNS),
        "verdict": ("panels_verdict", verdict),
    }


def seed(count: int, now: datetime) -> None:
    from django.db import connection, transaction

    tables = columns()
    with transaction.atomic(), connection.cursor() as cursor:
        for made in rows(count, now):
            for kind, some in made.items():
                table, names = tables[kind]
                if connection.vendor == "postgresql":
                    with cursor.copy(f"COPY {table} ({', '.join(names)}) FROM STDIN") as copy:  # type: ignore[attr-defined]
                        for row in some:
                            copy.write_row(row)
                else:
                    adapted = [[connection.ops.adapt_datetimefield_value(v) if isinstance(v, datetime) else v for v in row] for row in some]
                    quoted = ", ".join(f'"{name}"' for name in names)
                    cursor.executemany(f"INSERT INTO {table} ({quoted}) VALUES ({', '.join(['%s'] * len(names))})", adapted)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def roster() -> None:
    from django.utils import timezone

    from catalog.models import Endpoint, Model, Price
    from panels.models import Collection, Member

    endpoints = [
        Endpoint.objects.create(name=f"endpoint-{n}", kind="openai", base_url="http://127.0.0.1:9/v1", limits={"requests": {"minute": 60, "day": 5000}})
        for n in range(ENDPOINTS)
    ]
    models = [Model.objects.create(alias=f"model-{n}", endpoint=endpoints[n % ENDPOINTS], served_name=f"vendor/model-{n}") for n in range(ROSTER)]
    for model in models:
        Price.objects.create(model=model, source="models_dev", since=timezone.now().date(), input_usd_per_mtok="0.5", output_usd_per_mtok="1.5")
    for n in range(COLLECTIONS):
        collection = Collection.objects.create(name=f"collection-{n}")
        for place, model in enumerate(models[n * 5 % MODELS : n * 5 % MODELS + 6]):
            Member.objects.create(collection=collection, model=model, position=place)


def doors() -> tuple[Callable[[str], Any], Callable[[str], Any]]:
    """The API with an operator's key, and the admin's pages, both without a network between."""
    from django.test import Client

    from access.ids import new_id
    from access.keys import mint
    from access.people import ensure_admin

    _, secret = mint(new_id("million"), scopes=["read", "ask", "judge", "operate", "admin"], actor="bench")
    api, pages = Client(), Client()
    pages.force_login(ensure_admin(), backend="access.backends.RoleBackend")
    local = {"host": "localhost"}
    return (lambda path: api.get(path, headers={**local, "authorization": f"Bearer {secret}"})), (lambda path: pages.get(path, headers=local))


def paths(now: datetime) -> tuple[list[str], list[str]]:
    from health import sums

    day = f"{now:%Y-%m-%d}"
    month = f"{now:%Y-%m}"
    earlier = f"{now - timedelta(days=200):%Y-%m-%d}"
    asked = [
        *(f"/bench/usage?by={by}" for by in sums.BY),
        *(f"/bench/usage?by={by}&group=day" for by in ("model", "key", "purpose")),
        f"/bench/usage?month={month}",
        f"/bench/usage?by=collection&from={earlier}&to={day}",
        f"/bench/usage?group=day&from={earlier}&to={day}&limit=500",
        "/bench/calls",
        "/bench/calls?limit=500",
        f"/bench/calls?from={earlier}&to={earlier}",
        "/bench/calls?model=model-3",
        "/bench/panels",
        "/bench/panels?collection=collection-3",
        "/bench/verdicts/pending",
        "/bench/collections",
        "/bench/collections/collection-3",
        "/bench/models",
        "/bench/models?limit=500",
        "/bench/models?sort=useful&limit=500",
        "/bench/models?sort=price&find=MODEL-1",
        "/bench/models?collection=collection-3",
        "/bench/models/model-3",
        "/bench/models/model-3/history",
        "/bench/models/model-3/history?days=400",
        "/bench/models/model-3/evidence",
        "/bench/endpoints",
        "/bench/keys",
        "/bench/quotas",
        "/bench/budgets",
        "/bench/alerts",
        "/bench/status",
        "/metrics",
    ]
    shown = [
        "/admin/",
        "/admin/health/attempt/",
        "/admin/health/attempt/?p=3",
        "/admin/health/attempt/?model__icontains=model-3",
        "/admin/health/attempt/?status__exact=error",
        "/admin/health/attempt/?endpoint=endpoint-3",
        "/admin/health/attempt/?purpose=direct",
        "/admin/health/attempt/?key_name__icontains=key-3",
        "/admin/health/attempt/?collection__icontains=collection-3",
        "/admin/panels/panel/",
        "/admin/panels/panel/?status__exact=complete",
        "/admin/panels/panel/?collection__icontains=collection-3",
        "/admin/panels/verdict/",
        "/admin/panels/verdict/?model__icontains=model-3",
        "/admin/panels/verdict/records/",
        "/admin/catalog/model/",
        "/admin/access/key/",
    ]
    return asked, shown


def measure(ask: Callable[[str], Any], path: str, rounds: int) -> tuple[float, float, float]:
    """Units: milliseconds; the median, the 95th percentile and the median of this process's own time, after one that warms up."""
    times, own = [], []
    for number in range(rounds + 1):
        began, busy = time.perf_counter(), time.process_time()
        response = ask(path)
        took, used = (time.perf_counter() - began) * 1000, (time.process_time() - busy) * 1000
        if response.status_code != 200:
            raise SystemExit(f"{path} answered {response.status_code}: {response.content[:300]!r}")
        if number:
            times.append(took)
            own.append(used)
    return statistics.median(times), sorted(times)[max(0, round(len(times) * 0.95) - 1)], statistics.median(own)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.million", description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", default="", help="paths that hold this")
    parser.add_argument("--kept", action="store_true", help="the database holds them already")
    given = parser.parse_args()
    django.setup()
    from django.core.management import call_command
    from django.db import connection

    from health import rollups
    from panels import tally

    now = datetime.now(UTC)
    if not given.kept:
        call_command("migrate", verbosity=0)
        began = time.perf_counter()
        roster()
        seed(given.rows, now)
        seeded = time.perf_counter()
        print(f"{given.rows:,} rows in {seeded - began:.0f} s", flush=True)
        rollups.rebuild()
        tally.rebuild()
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
        print(f"summed in {time.perf_counter() - seeded:.0f} s", flush=True)
    api, pages = doors()
    gc.collect()
    gc.freeze()  # as a worker does when it has started
    slow = 0
    print(f"{connection.vendor}; median and p95 in ms of {given.rounds}, and the median of this process's own time")
    for ask, wanted in zip((api, pages), paths(now), strict=True):
        for path in [one for one in wanted if given.only in one]:
            median, p95, own = measure(ask, path, given.rounds)
            slow += p95 > LIMIT_MS
            print(f"{median:9.1f} {p95:9.1f} {own:9.1f} {'SLOW' if p95 > LIMIT_MS else '    '} {path}", flush=True)
    print(f"{slow} slower than {LIMIT_MS:.0f} ms")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
