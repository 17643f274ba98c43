"""The measurements: each phase runs one load against each server in turn and answers one flat row a server."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import machine, servers

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """One thing that is measured. Shape: `pid` is the root of its processes, 0 where none is measured; `workers` names those that answer callers."""

    name: str
    port: int
    key: str = ""
    pid: int = 0
    workers: Callable[[], list[int]] = list
    ours: servers.Ours | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """One load. Shape: `arguments` are the load generator's; `model` by target where names differ from `served`.

    Units: `patience_s` until the generator is given up, `gap_ms` between chunks.
    """

    phase: str
    clients: int
    arguments: tuple[str, ...]
    model: str = "fake-l0"
    patience_s: float = 300


class Watch(threading.Thread):
    """Looks at some processes' memory once a second and keeps the peak. Reading it costs the kernel time, so no more often."""

    def __init__(self, workers: Callable[[], list[int]]) -> None:
        super().__init__(daemon=True)
        self.workers, self.peak_mb, self.threads, self.over = workers, 0.0, 0, threading.Event()

    def look(self) -> None:
        pids = self.workers()
        self.peak_mb = max(self.peak_mb, sum(machine.pss_mb(pid) for pid in pids))
        self.threads = max(self.threads, sum(machine.threads(pid) for pid in pids))

    def run(self) -> None:
        while not self.over.wait(1.0):
            self.look()

    def end(self) -> None:
        self.over.set()
        self.join()
        self.look()


class Bench:
    """Runs loads and keeps the rows. One instance a run."""

    def __init__(self, loadgen: Path, upstream: servers.Running) -> None:
        self.loadgen, self.upstream, self.rows = loadgen, upstream, list[Row]()

    def run(self, target: Target, load: Load) -> Row:
        """Runs one load against one target and waits until its ledger holds it, so that the writing is in the measured CPU time."""
        before = servers.stats(self.upstream)
        ledger_before = target.ours.ledger() if target.ours else (0, 0, 0)
        cpu_before = {p.pid: p.cpu_s for p in machine.tree(target.pid)} if target.pid else {}
        web_before = sum(cpu_before.get(pid, 0) for pid in target.workers())
        watch = Watch(target.workers)
        watch.start()
        command = [str(self.loadgen), "-p", str(target.port), "-m", load.model, "-c", str(load.clients), *load.arguments]
        try:
            done = subprocess.run([*command, *(["-k", target.key] if target.key else [])], capture_output=True, text=True, timeout=load.patience_s, check=False)
        finally:
            watch.end()
        if done.returncode:
            raise RuntimeError(f"The load generator ended with status {done.returncode} ({' '.join(command)}): {done.stderr.strip()}")
        row: Row = {"phase": load.phase, "target": target.name, "clients": load.clients, "model": load.model} | json.loads(done.stdout)
        after = servers.stats(self.upstream)
        row["upstream_requests"] = after["requests"] - before["requests"]
        if target.ours:
            row |= self.settled(target.ours, ledger_before, before)
        if target.pid:
            row["cpu_s"] = machine.cpu_s(target.pid) - sum(cpu_before.values())
            row["web_cpu_s"] = sum(p.cpu_s for p in machine.tree(target.pid) if p.pid in target.workers()) - web_before
            calls = max(row["ok"], 1)
            row["cpu_ms_per_call"] = row["cpu_s"] * 1000 / calls
            row["web_cpu_ms_per_call"] = row["web_cpu_s"] * 1000 / calls
            row["cpu_us_per_chunk"] = row["cpu_s"] * 1e6 / max(row["chunks"], 1)
            row["pss_mb"], row["threads"] = watch.peak_mb, watch.threads
        self.rows.append(row)
        print(f"  {target.name:10} {self.said(row)}", flush=True)
        return row

    def settled(self, ours: servers.Ours, ledger_before: tuple[int, int, int], upstream_before: dict[str, int]) -> Row:
        """Waits until the ledger holds what the upstream saw, 20 s at most, and says what it then held."""
        give_up = time.monotonic() + 20
        while True:
            upstream = servers.stats(self.upstream)
            rows, told, said = (now - then for now, then in zip(ours.ledger(), ledger_before, strict=True))
            seen = upstream["requests"] - upstream_before["requests"]
            if rows >= seen or time.monotonic() > give_up:
                break
            time.sleep(0.1)
        exact = {
            "rows": rows == seen,
            "input_tokens": told == upstream["input_tokens"] - upstream_before["input_tokens"],
            "output_tokens": said == upstream["output_tokens"] - upstream_before["output_tokens"],
        }
        return {
            "ledger_rows": rows,
            "upstream_requests": seen,
            "ledger_exact": all(exact.values()),
            "ledger_wrong": [name for name, right in exact.items() if not right],
        }

    @staticmethod
    def said(row: Row) -> str:
        parts = [f"{row['ok']} ok, {row['errors']} errors, {row['per_second']:.0f}/s"]
        for name in ("total", "ttft", "chunk"):
            if name in row and (name == "total" or row["chunks"] > row["ok"]):
                parts.append(f"{name} p50 {row[name]['p50']:.2f} p99 {row[name]['p99']:.2f} ms")
        if "cpu_ms_per_call" in row:
            parts.append(f"CPU {row['cpu_ms_per_call']:.2f} ms a call (web {row['web_cpu_ms_per_call']:.2f})")
        if "pss_mb" in row:
            parts.append(f"{row['pss_mb']:.0f} MB")
        if "ledger_exact" in row:
            parts.append("ledger exact" if row["ledger_exact"] else f"LEDGER: {row['ledger_rows']} rows, wrong: {', '.join(row['ledger_wrong'])}")
        if row["crossed"]:
            parts.append(f"CROSSED {row['crossed']}")
        return "; ".join(parts)


# ------------------------------------------------------------------ the loads

STREAM = "fake-l500-n20-d250"  # a model's pace: first word after half a second, four chunks a second, five seconds
STREAM_GAP_MS = 250
FAST_STREAM = "fake-l0-n100-d20"
SEAT = "fake-l2000"
SEAT_MS = 2000


def direct_loads(seconds: float, clients: tuple[int, ...]) -> list[Load]:
    return [Load("direct", count, ("-t", str(seconds), "-T", "60")) for count in clients]


def paced_load(seconds: float, rate: int) -> Load:
    """Calls on a timetable that every server can keep, so that latency is not just the reciprocal of throughput."""
    return Load("paced", 200, ("-q", str(rate), "-t", str(seconds), "-T", "60"))


def stream_load(count: int) -> Load:
    return Load("streams", count, ("-s", "-n", "1", "-r", "3000", "-g", str(STREAM_GAP_MS), "-T", "120"), STREAM, 200)


def translated_loads(rounds: int) -> list[Load]:
    """The same stream passed through (chat in, chat out) and translated (Messages in, chat out), a chunk every 20 ms."""
    common = ("-s", "-n", str(rounds), "-w", "1", "-r", "500", "-T", "60")
    return [
        Load("passed", 16, common, FAST_STREAM),
        Load("translated", 16, (*common, "-u", "/v1/messages", "-b", '"max_tokens":4000'), FAST_STREAM),
    ]


def panel_load(count: int, rounds: int) -> Load:
    """Each client asks panels one after the other; they begin spread over a seat's time, as many callers do. The first of each is dropped."""
    return Load("panels", count, ("-n", str(rounds), "-w", "1", "-r", str(SEAT_MS), "-e", "-T", "60"), "bench/five", 200)


def seats_load(count: int, rounds: int) -> Load:
    """What the panels' seats cost without a gateway: as many calls at once, straight to the upstream."""
    return Load("panels", count * servers.SEATS, ("-n", str(rounds), "-w", "1", "-r", str(SEAT_MS), "-T", "60"), SEAT, 200)
