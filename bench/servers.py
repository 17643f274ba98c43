"""Starts and ends what is measured: the fake upstream, this server, LiteLLM's proxy. All on loopback, each in a process session of its own."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import machine

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path.home() / ".cache" / "benchwarmers-bench"
LITELLM_VERSION = "1.108.7"
LITELLM_KEY = "sk-bench-0123456789abcdef"
SEATS = 5
# Not a secret: it seals nothing but this run's throw-away database.
SECRET = "bench-secret-0123456789abcdef"


class CannotStart(Exception):
    """A server that is to be measured did not come up; the message says which, and shows the end of what it said."""


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def ask(port: int, path: str, body: Any = None, key: str = "", method: str = "", timeout_s: float = 10) -> tuple[int, Any]:
    """One request to a server of this machine. Shape: status and the parsed body, or its text where it is no JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        connection.request(method or ("GET" if body is None else "POST"), path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
    finally:
        connection.close()
    try:
        return answer.status, json.loads(text)
    except ValueError:
        return answer.status, text


@dataclass(slots=True)
class Running:
    """A started program. Shape: `log` is the file that holds all it said."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    port: int = 0

    @property
    def pid(self) -> int:
        return self.process.pid

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]

    def end(self, patience_s: float = 20) -> None:
        """Asks it to stop, then kills its whole process session."""
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(patience_s)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def wait_until(self, path: str, key: str, patience_s: float) -> None:
        """Errors: CannotStart, with the end of the program's log."""
        give_up = time.monotonic() + patience_s
        while time.monotonic() < give_up:
            if self.process.poll() is not None:
                raise CannotStart(f"{self.name} ended with status {self.process.returncode}:\n{self.tail()}")
            with contextlib.suppress(OSError, http.client.HTTPException):
                if ask(self.port, path, key=key)[0] == 200:
                    return
            time.sleep(0.2)
        raise CannotStart(f"{self.name} did not answer {path} within {patience_s:.0f} s:\n{self.tail()}")


def start(name: str, command: list[str], folder: Path, environment: dict[str, str] | None = None) -> Running:
    log = folder / f"{name}.log"
    base = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV")}
    with log.open("ab") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=base | (environment or {}), stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    return Running(name, process, log)


# ------------------------------------------------------------------ the fake upstream


def start_upstream(tool: Path, folder: Path) -> Running:
    port = free_port()
    running = start("upstream", [str(tool), str(port)], folder)
    running.port = port
    running.wait_until("/stats", "", 5)
    return running


def stats(upstream: Running) -> dict[str, int]:
    return dict(ask(upstream.port, "/stats")[1])


# ------------------------------------------------------------------ this server


@dataclass(slots=True)
class Ours:
    """This server with its own data folder and SQLite. Shape: `keys` by what limits them: `free` and `limited`."""

    running: Running
    home: Path
    environment: dict[str, str]
    keys: dict[str, str] = field(default_factory=dict)

    @property
    def database(self) -> Path:
        return self.home / "benchwarmers.sqlite3"

    def ledger(self) -> tuple[int, int, int]:
        """Rows, input tokens and output tokens that the ledger holds."""
        with contextlib.closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=20)) as connection:
            rows, told, said = connection.execute(
                "SELECT count(*), coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0) FROM health_attempt"
            ).fetchone()
        return rows, told, said

    def web_workers(self) -> list[int]:
        """The processes that answer callers: the children of gunicorn's master."""
        return web_workers(self.running.pid)


def web_workers(serve_pid: int) -> list[int]:
    """The gateway's worker processes below a `serve`: gunicorn's children. The queue's processes are not among them."""
    members = machine.tree(serve_pid)
    gunicorns = {p.pid for p in members if "gunicorn" in machine.command_line(p.pid) or "gunicorn" in p.name}
    masters = {p.pid for p in members if p.pid in gunicorns and p.parent not in gunicorns}
    return [p.pid for p in members if p.parent in masters]


def roster(upstream_port: int, stream_models: list[str], seat_model: str) -> dict[str, Any]:
    """One endpoint; a model for direct calls, one for each stream form, five for the panel. Shape: a roster file's."""
    facts = {"context_window": 131072, "output_limit": 4096, "input_usd_per_mtok": "0.5", "output_usd_per_mtok": "1.5"}
    models = [{"alias": name, "endpoint": "fake", "served_name": name, "facts": facts} for name in ["fake-l0", *stream_models]]
    seats = [{"alias": f"seat-{n}", "endpoint": "fake", "served_name": seat_model, "facts": facts} for n in range(1, SEATS + 1)]
    return {
        "endpoints": [{"name": "fake", "kind": "openai", "base_url": f"http://127.0.0.1:{upstream_port}/v1"}],
        "models": models + seats,
        "collections": [{"name": "five", "members": [s["alias"] for s in seats], "explorers": 0}],
    }


def manage(environment: dict[str, str], *words: str) -> str:
    """Runs one command of the server's own. Errors: CannotStart."""
    base = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV")}
    done = subprocess.run([sys.executable, "manage.py", *words], cwd=ROOT, env=base | environment, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise CannotStart(f"manage.py {' '.join(words)} ended with status {done.returncode}:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    return done.stdout


def start_ours(folder: Path, upstream_port: int, stream_models: list[str], seat_model: str) -> Ours:
    home = folder / "home"
    home.mkdir()
    port = free_port()
    environment = {"BENCHWARMERS_HOME": str(home), "BENCHWARMERS_SECRET_KEYS": SECRET, "BENCH_PORT": str(port), "BENCH_WORKERS": "2"}
    environment["BENCH_CATALOG_URLS"] = "models_dev=,openrouter=,freellmapi="  # measured without readings of public catalogs
    (folder / "roster.json").write_text(json.dumps(roster(upstream_port, stream_models, seat_model)))
    running = start("ours", [sys.executable, "manage.py", "serve", "--no-browser"], folder, environment)
    running.port = port
    ours = Ours(running, home, environment)
    try:
        running.wait_until("/readyz", "", 60)
        manage(environment, "roster", "load", str(folder / "roster.json"))
        operator = (home / "operator.key").read_text().strip()
        for name, limits in (("free", {}), ("limited", {"rpm": 100_000_000, "budget_usd": "100000"})):
            status, made = ask(port, "/bench/keys", {"name": f"bench-{name}", "owner": "bench", **limits}, operator)
            if status != 201:
                raise CannotStart(f"POST /bench/keys answered {status}: {made}")
            ours.keys[name] = made["key"]
    except BaseException:
        running.end()
        raise
    return ours


# ------------------------------------------------------------------ LiteLLM's proxy


def install_litellm() -> Path:
    """Puts the pinned version into a virtual environment of its own, once. Shape: its folder. Errors: CannotStart."""
    folder = CACHE / "litellm"
    if not list(folder.glob(f"lib/python3*/site-packages/litellm-{LITELLM_VERSION}.dist-info")):
        print(f"Installing litellm[proxy] {LITELLM_VERSION} into {folder} (about 800 MB) …", flush=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        for command in ([sys.executable, "-m", "venv", str(folder)], [str(folder / "bin" / "pip"), "install", "-q", f"litellm[proxy]=={LITELLM_VERSION}"]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise CannotStart(f"LiteLLM could not be installed ({' '.join(command)}):\n{done.stderr[-1500:]}\nLeave it out with --no-litellm.")
    return folder


def start_litellm(folder: Path, upstream_port: int) -> Running:
    """Master key, no database, two workers, logging and write-backs turned down as its own production guide says."""
    venv = install_litellm()
    config = folder / "litellm.json"  # JSON is YAML
    config.write_text(
        json.dumps(
            {
                "model_list": [
                    {"model_name": "*", "litellm_params": {"model": "openai/*", "api_base": f"http://127.0.0.1:{upstream_port}/v1", "api_key": "sk-fake"}}
                ],
                "litellm_settings": {
                    "set_verbose": False,
                    "json_logs": True,
                    "request_timeout": 600,
                    "telemetry": False,
                    "use_chat_completions_url_for_anthropic_messages": True,  # else it asks the upstream for Responses
                },
                "general_settings": {
                    "master_key": LITELLM_KEY,
                    "proxy_batch_write_at": 60,
                    "disable_spend_logs": True,
                    "disable_error_logs": True,
                },
            }
        )
    )
    port = free_port()
    # The price map that ships with the package, instead of one from the internet.
    environment = {"LITELLM_MODE": "PRODUCTION", "LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [str(venv / "bin" / "litellm"), "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "2"]
    running = start("litellm", command, folder, environment)
    running.port = port
    try:
        running.wait_until("/health/liveliness", LITELLM_KEY, 180)
        status, body = ask(
            port, "/v1/chat/completions", {"model": "fake-l0", "messages": [{"role": "user", "content": "q=1.1; hello"}]}, LITELLM_KEY, timeout_s=60
        )
        if status != 200:
            raise CannotStart(f"LiteLLM's proxy answered {status}: {body}")
    except BaseException:
        running.end()
        raise
    return running


@contextlib.contextmanager
def ending(*started: Running | None) -> Iterator[None]:
    """Ends what was started, the last first, whatever happens."""
    try:
        yield
    finally:
        for running in reversed(started):
            if running is not None:
                running.end()
