"""The fault run: calls, panels, streams, onboarding and runs of the suite while processes are killed and the database is taken away; then books are compared.

`python -m bench.soak`, or `make soak`. Ten minutes by default; `--seconds N` another length, `--seed S` the same faults again (the seed is printed).
With a PostgreSQL (`--postgres URL`, else one on 127.0.0.1:5432 that lets this user in) two `serve` share a database of their own in it, reached through a
cable that is pulled now and then; without one a single `serve` runs on SQLite, and another process sits on its write lock instead.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from bench import books, machine, newcomers, servers, soaked
from bench.cable import Cable
from bench.callers import Callers
from bench.faults import FaultyUpstream

POSTGRES = "postgresql://postgres@127.0.0.1:5432/postgres"
KILLS = ("worker", "worker", "worker", "master", "queue", "serve")
SETTLE_S = 90.0
NEWCOMERS_S = 600.0
LIMITS = {"rpm": 1_000_000, "budget_usd": "1000000"}


@dataclass(frozen=True, slots=True)
class Blow:
    """One fault. Shape: `what` is a process to kill or `database`; it falls `at_s` seconds after the start and not before `after_calls` upstream calls.

    With `on_newcomer` it waits for a call of a model that is being onboarded.
    """

    what: str
    at_s: float = 0.0
    after_calls: int = 0
    away_s: float = 0.0
    on_newcomer: bool = False


@dataclass(slots=True)
class Serve:
    """One `serve` that is started again whenever it ends, as an init system would. Shape: `blows` counts kills that hit something."""

    name: str
    folder: Path
    environment: dict[str, str]
    port: int
    running: servers.Running | None = None
    over: bool = False
    starts: int = 0

    async def keep(self) -> None:
        while not self.over:
            self.running = servers.start(self.name, [sys.executable, "manage.py", "serve", "--no-browser"], self.folder, self.environment)
            self.running.port = self.port
            self.starts += 1
            await asyncio.to_thread(self.running.process.wait)
            await asyncio.sleep(1)

    async def until_ready(self, patience_s: float = 90) -> None:
        give_up = time.monotonic() + patience_s
        while time.monotonic() < give_up:
            with contextlib.suppress(Exception):
                if (await asyncio.to_thread(servers.ask, self.port, "/readyz", timeout_s=5))[0] == 200:
                    return
            await asyncio.sleep(0.25)
        raise servers.CannotStart(f"{self.name} was not ready within {patience_s:.0f} s:\n{self.running.tail() if self.running else ''}")

    def victims(self, what: str) -> list[int]:
        """The processes of one kind, by what they descend from and what their command line says."""
        if self.running is None or self.running.process.poll() is not None:
            return []
        root = self.running.pid
        members = machine.tree(root)
        masters = [p.pid for p in members if p.parent == root and "gunicorn" in machine.command_line(p.pid)]
        queues = [p.pid for p in members if p.parent == root and machine.command_line(p.pid).endswith(" queue")]
        below = [p.pid for p in members if p.parent in masters]
        return {"serve": [root], "master": masters, "queue": queues, "worker": below}[what]

    def end(self) -> int | None:
        """Ends it in order. Shape: its exit code, None where it had to be killed."""
        self.over = True
        if self.running is None:
            return 0
        self.running.process.terminate()
        try:
            return self.running.process.wait(60)
        except subprocess.TimeoutExpired:
            return None

    def kill_all(self) -> None:
        self.over = True
        if self.running is None:
            return
        for process in [*machine.tree(self.running.pid)][::-1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        self.running.end(1)


@dataclass(slots=True)
class Soak:
    """One fault run. Shape: `blows` in the order in which they fall; `fallen` are those that hit something."""

    folder: Path
    seed: int
    blows: list[Blow]
    seconds: float = 0.0
    calls: int = 0
    callers: int = 16
    pace: float = 1.0
    postgres: str = ""
    onboards: int = 0
    runs: int = 0
    tasks: int = 0
    new_s: tuple[float, float] = (4.0, 12.0)
    say: Callable[[str], None] = print
    upstream: FaultyUpstream = field(init=False)
    cable: Cable | None = None
    serves: list[Serve] = field(default_factory=list)
    fallen: list[str] = field(default_factory=list)
    database: str = ""  # reached directly
    cabled: str = ""  # and through the cable
    asking: Callers = field(init=False)

    async def run(self) -> books.Findings:
        """Runs it all. Errors: CannotStart."""
        self.upstream = FaultyUpstream(self.seed, self.pace, self.new_s)
        await self.upstream.start()
        keepers: list[asyncio.Task[None]] = []
        async with self.a_database():
            try:
                await self.start_serves(keepers)
                keys = await self.prepare()
                self.asking = Callers([s.port for s in self.serves], keys, self.seed)
                began = time.monotonic()
                asking = asyncio.create_task(self.asking.run(self.callers))
                await self.strike(began)
                while time.monotonic() - began < self.seconds or len(self.upstream.served) < self.calls:
                    if time.monotonic() - began > self.seconds + 120:
                        raise servers.CannotStart(f"Only {len(self.upstream.served)} of {self.calls} calls reached the upstream in time.")
                    await asyncio.sleep(0.1)
                self.asking.over = True
                await asking
                self.say(f"{len(self.asking.heard)} requests, {len(self.upstream.served)} upstream calls; comparing the books …")
                for serve in self.serves:
                    await serve.until_ready()
                await self.newcomers_over()
                await self.runs_over()
                await self.settled()
                found = self.compared()
                found.wrong += await self.end_in_order()
                await self.upstream.end()
                after = self.compared()
                found.wrong += [f"after the stop: {line}" for line in after.wrong if line not in found.wrong]
                found.counts |= {"starts": sum(s.starts for s in self.serves), **{f"killed {k}": self.fallen.count(k) for k in sorted(set(self.fallen))}}
                return found
            finally:
                for keeper in keepers:
                    keeper.cancel()
                for serve in self.serves:
                    serve.kill_all()
                await self.upstream.end()

    # ------------------------------------------------------------------ setting up

    @contextlib.asynccontextmanager
    async def a_database(self) -> AsyncIterator[None]:
        if not self.postgres:
            yield
            return
        import psycopg

        name = f"benchwarmers_soak_{os.getpid()}"
        with psycopg.connect(self.postgres, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        parts = urlsplit(self.postgres)
        self.cable = Cable(parts.hostname or "127.0.0.1", parts.port or 5432)
        await self.cable.plug()
        user = parts.netloc.rpartition("@")[0]
        self.database = urlunsplit(parts._replace(path=f"/{name}"))
        self.cabled = urlunsplit(parts._replace(netloc=f"{user}{'@' if user else ''}127.0.0.1:{self.cable.port}", path=f"/{name}"))
        try:
            yield
        finally:
            await self.cable.pull()
            with psycopg.connect(self.postgres, autocommit=True) as connection:
                connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    async def start_serves(self, keepers: list[asyncio.Task[None]]) -> None:
        for number in range(2 if self.postgres else 1):
            folder = self.folder / f"serve-{number}"
            (folder / "home").mkdir(parents=True)
            port = servers.free_port()
            environment = {
                "BENCHWARMERS_HOME": str(folder / "home"),
                "BENCHWARMERS_SECRET_KEYS": servers.SECRET,
                "BENCH_PORT": str(port),
                "BENCH_CATALOG_URLS": "models_dev=,openrouter=,freellmapi=",
                "BENCH_WORKERS": "2",
                "BENCH_GRACEFUL_TIMEOUT_S": "20",
                **({"DATABASE_URL": self.cabled} if self.postgres else {}),
            }
            serve = Serve(f"serve-{number}", folder, environment, port)
            if self.postgres and number == 0:
                await asyncio.to_thread(servers.manage, environment, "migrate", "--verbosity", "0")
            self.serves.append(serve)
            keepers.append(asyncio.create_task(serve.keep()))
            await serve.until_ready()

    async def prepare(self) -> dict[str, str]:
        """Loads the roster and makes two keys, one with limits. Shape: secrets by name."""
        facts = {"output_limit": 1000, "input_usd_per_mtok": "0.5", "output_usd_per_mtok": "1.5"}
        roster = {
            "endpoints": [
                {
                    "name": name,
                    "kind": "openai",
                    "base_url": f"http://127.0.0.1:{self.upstream.port}/{name}/v1",
                    "limits": {"requests": {"minute": 1_000_000}, "parallel": 1000},
                }
                for name in ("good", "bad")
            ]
            + [newcomers.endpoint(self.upstream.port), soaked.endpoint(self.upstream.port)],
            "models": [
                {"alias": a, "endpoint": a.split("-")[0], "served_name": a, "facts": facts}
                for a in ("good-1", "good-2", "good-3", "bad-1", "bad-2", soaked.MODEL)
            ],
            "collections": [
                {
                    "name": "mixed",
                    "members": ["good-1", "good-2", "bad-1", "bad-2"],
                    "explorers": 0,
                    "timeout_s": 20,
                    "first_token_timeout_s": 8,
                    "idle_timeout_s": 5,
                    "wait_max_s": 5,
                }
            ],
        }
        path = self.folder / "roster.json"
        path.write_text(json.dumps(roster))
        first = self.serves[0]
        await asyncio.to_thread(servers.manage, first.environment, "roster", "load", str(path))
        operator = (first.folder / "home" / "operator.key").read_text().strip()
        keys = {}
        for name, limits in (("free", {}), ("limited", LIMITS)):
            status, made = await asyncio.to_thread(servers.ask, first.port, "/bench/keys", {"name": name, "owner": f"owner-{name}", **limits}, operator)
            if status != 201:
                raise servers.CannotStart(f"POST /bench/keys answered {status}: {made}")
            keys[name] = made["key"]
        if self.onboards:
            await asyncio.to_thread(newcomers.begin, first.port, operator, self.onboards)
        if self.runs:
            await asyncio.to_thread(soaked.begin, first.port, operator, self.runs, self.tasks)
        return keys

    # ------------------------------------------------------------------ faults

    async def strike(self, began: float) -> None:
        choice = random.Random(f"{self.seed}-victims")
        for blow in self.blows:
            give_up = time.monotonic() + 60
            while time.monotonic() - began < blow.at_s or len(self.upstream.served) < blow.after_calls or not self.is_hit(blow):
                if (blow.after_calls or blow.on_newcomer) and time.monotonic() > give_up:
                    raise servers.CannotStart(
                        f"Only {len(self.upstream.served)} of {blow.after_calls} calls reached the upstream before {blow.what} was to be hit."
                    )
                await asyncio.sleep(0.02)
            if blow.what == "database":
                self.say(f"{time.monotonic() - began:6.1f} s  the database is away for {blow.away_s:.0f} s")
                await self.take_database(blow.away_s)
                self.fallen.append("database")
                continue
            for _ in range(150):  # one that is just being started again is waited for
                if found := [(serve, pid) for serve in self.serves for pid in serve.victims(blow.what)]:
                    serve, pid = choice.choice(found)
                    self.say(f"{time.monotonic() - began:6.1f} s  kill -9 {blow.what} {pid} of {serve.name}, {self.upstream.in_flight} calls in flight")
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        self.fallen.append(blow.what)
                    break
                await asyncio.sleep(0.1)

    def is_hit(self, blow: Blow) -> bool:
        return any(s.state == "begun" and (s.endpoint == newcomers.ENDPOINT or not blow.on_newcomer) for s in self.upstream.served)

    async def take_database(self, away_s: float) -> None:
        if self.cable:
            await self.cable.pull()
            await asyncio.sleep(away_s)
            await self.cable.plug()
            return
        path = self.serves[0].folder / "home" / "benchwarmers.sqlite3"

        def sit_on_it() -> None:
            with contextlib.closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                time.sleep(away_s)
                connection.execute("ROLLBACK")

        await asyncio.to_thread(sit_on_it)

    # ------------------------------------------------------------------ the end

    def read(self) -> books.Books:
        return books.read_postgres(self.database) if self.database else books.read_sqlite(self.serves[0].folder / "home" / "benchwarmers.sqlite3")

    def compared(self) -> books.Findings:
        kept = self.read()
        found = books.compare(kept, self.upstream.served, self.asking.heard)
        if self.onboards:
            newcomers.compare(self.seen(), kept, self.upstream.served, self.onboards, len(self.fallen), found)
        if self.runs:
            soaked.compare(self.seen_runs(), kept, self.upstream.served, found)
        return found

    def seen(self) -> newcomers.Seen:
        return newcomers.read_from(self.serves[0].folder / "home" / "benchwarmers.sqlite3", self.database)

    def seen_runs(self) -> soaked.Seen:
        return soaked.read_from(self.serves[0].folder / "home" / "benchwarmers.sqlite3", self.database)

    async def runs_over(self) -> None:
        """Waits until every run has ended. Errors: CannotStart."""
        give_up = time.monotonic() + NEWCOMERS_S
        while self.runs and not (seen := await asyncio.to_thread(self.seen_runs)).is_over:
            if time.monotonic() > give_up:
                raise servers.CannotStart(f"Runs did not end within {NEWCOMERS_S:.0f} s: {seen.runs}")
            await asyncio.sleep(0.5)
        if self.runs:
            await asyncio.to_thread(servers.manage, self.serves[0].environment, "shell", "-v", "0", "-c", newcomers.SWEEP)

    async def newcomers_over(self) -> None:
        """Waits until every newcomer has ended, then lets what died under its calls be swept. Errors: CannotStart."""
        if not self.onboards:
            return
        give_up = time.monotonic() + NEWCOMERS_S
        while not (seen := await asyncio.to_thread(self.seen)).is_over or not seen.onboardings:
            if time.monotonic() > give_up:
                raise servers.CannotStart(f"Newcomers did not end within {NEWCOMERS_S:.0f} s: {seen.onboardings}")
            await asyncio.sleep(0.5)
        await asyncio.to_thread(servers.manage, self.serves[0].environment, "shell", "-v", "0", "-c", newcomers.SWEEP)

    async def settled(self) -> None:
        """Waits until the books agree, or until nothing changes them any more."""
        give_up = time.monotonic() + SETTLE_S
        while time.monotonic() < give_up:
            found = await asyncio.to_thread(self.compared)
            if not found.wrong and not self.upstream.in_flight:
                return
            await asyncio.sleep(1)

    async def end_in_order(self) -> list[str]:
        wrong = []
        for serve in self.serves:
            await serve.until_ready()  # one that was killed a moment ago must have learned to stop before it is asked to
            code = await asyncio.to_thread(serve.end)
            if code != 0:
                wrong.append(f"{serve.name} ended with {code} when asked to stop")
            if left := [p.name for p in (serve.folder / "home" / "outbox").glob("*") if p.stat().st_size]:
                wrong.append(f"{serve.name} left {len(left)} outbox files behind: {', '.join(left[:3])}")
        return wrong


def plan(seed: int, seconds: float) -> list[Blow]:
    """Shape: kills every 8 to 20 seconds until 15 before the end, the database away at a third and at two thirds of the time."""
    choice = random.Random(f"{seed}-plan")
    blows = [Blow("database", seconds / 3, away_s=seconds / 30), Blow("database", seconds * 2 / 3, away_s=min(seconds / 10, 60))]
    at_s = choice.uniform(5, 10)
    while at_s < seconds - 15:
        blows.append(Blow(choice.choice(KILLS), at_s))
        at_s += choice.uniform(8, 20)
    return sorted(blows, key=lambda blow: blow.at_s)


def short_plan(onboards: int = 0) -> list[Blow]:
    """Fixed points, by upstream calls begun: each kind of process once, with calls in flight, and the write lock held in between."""
    return [
        Blow("worker", after_calls=25),
        Blow("queue", after_calls=50, on_newcomer=bool(onboards)),
        Blow("database", after_calls=60, away_s=2),
        Blow("master", after_calls=90),
        Blow("serve", after_calls=130, on_newcomer=bool(onboards)),
    ]


def reachable_postgres(url: str) -> str:
    """The URL where a PostgreSQL answers there, else nothing."""
    try:
        import psycopg

        with psycopg.connect(url, connect_timeout=2):
            return url
    except Exception:
        return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description="The fault run.")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--callers", type=int, default=16)
    parser.add_argument("--onboards", type=int, default=20, help="models that are onboarded meanwhile")
    parser.add_argument("--runs", type=int, default=2, help="runs of the suite that go on meanwhile")
    parser.add_argument("--postgres", default=POSTGRES, help=f"a PostgreSQL in which a database may be made ({POSTGRES})")
    parser.add_argument("--sqlite", action="store_true", help="one serve on SQLite, even where a PostgreSQL answers")
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1_000_000)
    postgres = "" if given.sqlite else reachable_postgres(given.postgres)
    print(f"Seed {seed}, {given.seconds:.0f} s, on " + ("two serves and a PostgreSQL" if postgres else "one serve and SQLite"), flush=True)
    folder = Path(tempfile.mkdtemp(prefix="benchwarmers-soak-"))
    soak = Soak(
        folder,
        seed,
        plan(seed, given.seconds),
        given.seconds,
        callers=given.callers,
        postgres=postgres,
        onboards=given.onboards,
        runs=given.runs,
        # At most a thousand, and so many that asking takes about as long as the faults.
        tasks=max(60, min(1000, round(given.seconds * 2.5 / max(given.runs, 1)))),
        say=lambda line: print(line, flush=True),
    )
    try:
        found = asyncio.run(soak.run())
    except servers.CannotStart as reason:
        print(f"The fault run could not be made: {reason}\nIts folder: {folder}", file=sys.stderr)
        return 1
    print(json.dumps(found.counts, indent=1))
    for line in found.wrong[:50]:
        print(f"WRONG: {line}")
    print("The books agree." if not found.wrong else f"{len(found.wrong)} things are wrong; seed {seed}, logs in {folder}.")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
