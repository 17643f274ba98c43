"""The real server, started once a run in a data folder of its own on a free port, and what tests do with it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from tests import factories
from tests.fake import FakeProvider
from tests.http import Reply, Stream, exchange, send

CHECKOUT = Path(__file__).resolve().parent.parent
START_S = 120.0
STOP_S = 60.0
PATIENCE_S = 30.0
CANARY_KEY = "sk-canary-0123456789abcdef"  # an endpoint's key in the server's environment; it must turn up nowhere (tests/test_canary.py)
SECRET = "test-secret-0123456789abcdef"


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def eventually(look: Callable[[], Any], what: str) -> Any:
    """Looks until something true is there. Errors: AssertionError after a patience that no healthy run needs."""
    end = time.monotonic() + PATIENCE_S
    pause = threading.Event()
    while not (found := look()):
        assert time.monotonic() < end, f"{what} did not come about in {PATIENCE_S:.0f} s"
        pause.wait(0.05)
    return found


class Database:
    """A PostgreSQL database of this run's own on the server of the tests' `DATABASE_URL`, or nothing where tests run on SQLite."""

    def __init__(self, server_url: str) -> None:
        self.server_url = server_url
        self.name = f"bench_live_{uuid.uuid4().hex[:12]}" if server_url else ""

    @property
    def url(self) -> str:
        return urlunsplit(urlsplit(self.server_url)._replace(path=f"/{self.name}")) if self.name else ""

    def _run(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(urlunsplit(urlsplit(self.server_url)._replace(path="/postgres")), autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[call-overload]

    def create(self) -> None:
        if self.name:
            self._run(f'CREATE DATABASE "{self.name}"')

    def drop(self) -> None:
        if self.name:
            self._run(f'DROP DATABASE IF EXISTS "{self.name}" WITH (FORCE)')


class Live:
    """One running server. `more` are environment variables over the usual ones."""

    host = "127.0.0.1"

    def __init__(self, folder: Path | None = None, **more: str) -> None:
        self.folder = folder or Path(tempfile.mkdtemp(prefix="benchwarmers-live-"))
        self.home = self.folder / "data"
        self.home.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.url = f"http://{self.host}:{self.port}"
        self.log = self.folder / "server.log"
        self.names = self.folder / "names.txt"
        self.database = Database(os.environ.get("DATABASE_URL", ""))
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("BENCH", "DJANGO", "DATABASE_URL", "REDIS_URL", "PYTEST"))},
            "HOME": str(self.folder),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_DATA_HOME": str(self.folder / "share"),
            "BENCHWARMERS_HOME": str(self.home),
            "BENCHWARMERS_SECRET_KEYS": SECRET,
            "BENCH_PORT": str(self.port),
            "BENCH_WORKERS": "2",  # what one worker knows the other must know too
            "BENCH_KEEPALIVE_S": "0.5",
            "BENCH_HEADERS_WITHIN_S": "1",
            "BENCH_GRACEFUL_TIMEOUT_S": "20",
            "BENCH_MAX_BODY_MB": "2",
            "BENCH_CATALOG_URLS": "models_dev=,openrouter=,freellmapi=",  # no public catalog is read
            "BENCH_TEST_NAMES": str(self.names),
            "BENCHWARMERS_KEY_CANARY": CANARY_KEY,
            "PYTHONPATH": os.pathsep.join([str(CHECKOUT / "tests" / "shims"), str(CHECKOUT)]),
            **({"DATABASE_URL": self.database.url} if self.database.name else {}),
            **({"REDIS_URL": os.environ["REDIS_URL"]} if os.environ.get("REDIS_URL") else {}),
            **more,
        }
        self._server: subprocess.Popen[bytes] | None = None
        self._commands: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._key = ""

    # ---- life

    def start(self) -> None:
        if not self._server:
            self.database.create()
        self.launch()

    def launch(self, *arguments: str) -> None:
        """Starts `serve` in a process session of its own and waits until it answers."""
        with self.log.open("ab") as log:
            self._server = subprocess.Popen(
                [
                    sys.executable,
                    "manage.py",
                    "serve",
                    "--no-browser",
                    "--workers",
                    self.environment["BENCH_WORKERS"],
                    *(["--migrate"] if self.database.name else []),
                    *arguments,
                ],
                cwd=CHECKOUT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        end = time.monotonic() + START_S
        pause = threading.Event()
        while not self.is_alive():
            assert self._server.poll() is None, f"serve ended with {self._server.returncode} while starting:\n{self.log_text()[-1500:]}"
            assert time.monotonic() < end, f"serve did not answer within {START_S:.0f} s:\n{self.log_text()[-1500:]}"
            pause.wait(0.1)

    def is_alive(self) -> bool:
        """Whether it answers. It is ready only once its queue has rung for the first time, which no call waits for."""
        try:
            return self.send("GET", "/livez").status == 200
        except OSError:
            return False

    @property
    def pid(self) -> int:
        assert self._server
        return self._server.pid

    def terminate(self) -> int:
        """Asks `serve` to end and gives its exit code."""
        assert self._server
        self._server.send_signal(signal.SIGTERM)
        return self._server.wait(STOP_S)

    def kill(self) -> None:
        """Kills `serve`, and waits until those that it started have seen that and gone."""
        assert self._server
        self._server.kill()
        self._server.wait(STOP_S)
        eventually(lambda: not self.is_alive(), "the end of its workers")

    def stop(self) -> list[str]:
        """Ends everything. Gives what was wrong with the run: tracebacks in the log, a server that did not end."""
        wrong = []
        if self._commands:
            assert self._commands.stdin
            assert self._commands.stdout
            self._commands.stdin.close()
            self._commands.wait(STOP_S)
            self._commands.stdout.close()
        if self._server and self._server.poll() is None:
            try:
                code = self.terminate()
                if code != 0:
                    wrong.append(f"serve ended with {code}")
            except subprocess.TimeoutExpired:
                wrong.append(f"serve did not end within {STOP_S:.0f} s of SIGTERM")
                with suppress(ProcessLookupError):
                    os.killpg(self._server.pid, signal.SIGKILL)
                self._server.wait(STOP_S)
        self.database.drop()
        wrong += self.tracebacks()
        if not wrong:  # what went wrong can be looked at
            shutil.rmtree(self.folder, ignore_errors=True)
        return wrong

    def log_text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def tracebacks(self) -> list[str]:
        """The log's tracebacks, each with some lines around it."""
        text = self.log_text()
        return [text[max(0, m.start() - 300) : m.start() + 2500] for m in re.finditer(r"Traceback \(most recent call last\)", text)]

    # ---- commands and rows

    def order(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Runs one order in the warm command line (see tests/commands.py)."""
        with self._lock:
            if self._commands is None or self._commands.poll() is not None:
                with (self.folder / "commands.log").open("ab") as log:
                    self._commands = subprocess.Popen(
                        [sys.executable, "-m", "tests.commands"],
                        cwd=CHECKOUT,
                        env=self.environment,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=log,
                        text=True,
                    )
            assert self._commands.stdin
            assert self._commands.stdout
            self._commands.stdin.write(json.dumps(order) + "\n")
            self._commands.stdin.flush()
            line = self._commands.stdout.readline()
        assert line, f"the command line died:\n{(self.folder / 'commands.log').read_text()[-3000:]}"
        return dict(json.loads(line))

    def manage(self, *argv: str, code: int = 0) -> str:
        """Runs a management command and gives what it said."""
        done = self.order({"argv": list(argv)})
        assert done["code"] == code, f"{argv[0]} ended with {done['code']}: {done['out']}"
        return str(done["out"])

    def roster(self, roster: Mapping[str, Any]) -> str:
        """Applies a roster through `manage.py roster load`."""
        path = self.folder / f"roster-{uuid.uuid4().hex[:8]}.json"
        path.write_text(json.dumps(roster), encoding="utf-8")
        return self.manage("roster", "load", str(path))

    def rows(self, label: str, **where: Any) -> list[dict[str, Any]]:
        """What a table holds."""
        return list(self.order({"rows": label, "where": where})["rows"])

    def attempts(self, count: int, **where: Any) -> list[dict[str, Any]]:
        """The ledger's rows, once there are so many."""
        found: list[dict[str, Any]] = eventually(
            lambda: found if len(found := self.rows("health.Attempt", **where)) >= count else None, f"{count} ledger rows of {where}"
        )
        assert len(found) == count, f"{len(found)} ledger rows instead of {count}: {found}"
        return sorted(found, key=lambda row: row["id"])

    # ---- calls

    @property
    def operator_key(self) -> str:
        if not self._key:
            self._key = (self.home / "operator.key").read_text(encoding="utf-8").strip()
        return self._key

    def send(self, method: str, path: str, body: Any = None, *, key: str | None = None, headers: Mapping[str, str] | None = None) -> Reply:
        """One request; a body that is not bytes goes as JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        return send(self.host, self.port, method, path, data, self._headers(key, data, headers))

    def _headers(self, key: str | None, data: bytes | None, headers: Mapping[str, str] | None) -> dict[str, str]:
        return {
            **({"authorization": f"Bearer {key}"} if key else {}),
            **({"content-type": "application/json"} if data is not None else {}),
            **(headers or {}),
        }

    def api(self, method: str, path: str, body: Any = None, *, status: int | None = None) -> Any:
        """The server's own API with the operator's key; gives the JSON."""
        reply = self.send(method, f"/bench/{path}", body, key=self.operator_key)
        assert reply.status == status if status else reply.status < 300, f"{method} /bench/{path}: {reply.status} {reply.body[:2000]!r}"
        return reply.json if reply.body else None

    def ask(self, model: str, prompt: Any = "hi", *, key: str | None = None, headers: Mapping[str, str] | None = None, **more: Any) -> Reply:
        """One chat completion, whole."""
        return self.send("POST", "/v1/chat/completions", question(model, prompt, **more), key=key, headers=headers)

    def stream(self, model: str, prompt: Any = "hi", *, key: str | None = None, headers: Mapping[str, str] | None = None, **more: Any) -> Stream:
        """One chat completion, streamed."""
        data = json.dumps(question(model, prompt, stream=True, **more)).encode()
        return Stream(self.host, self.port, "/v1/chat/completions", data, self._headers(key, data, headers))

    def exchange(self, data: bytes, *, half_close: bool = False) -> bytes:
        return exchange(self.host, self.port, data, half_close=half_close)

    def listed(self, path: str) -> list[dict[str, Any]]:
        """All of a list, page by page: by the end of a run a server holds more rows than any page."""
        page = self.api("GET", f"{path}?limit=500")
        found = list(page["data"])
        while page["next"]:
            page = self.api("GET", f"{path}?limit=500&page_token={quote(page['next'])}")
            found += page["data"]
        return found

    def key(self, name: str = "", **fields: Any) -> str:
        """Makes a gateway key and gives it in the clear."""
        return str(self.api("POST", "keys", {"name": name or factories.tag("key-"), **fields}, status=201)["key"])


def question(model: str, prompt: Any = "hi", **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    return {"model": model, "messages": messages, **more}


class Bench:
    """One test's own endpoints, models and collections at a server, under names of its own. Loaded at the first question."""

    def __init__(self, live: Live, fake: FakeProvider) -> None:
        self.live, self.fake, self.tag = live, fake, factories.tag()
        self.endpoints: dict[str, dict[str, Any]] = {}
        self.models: dict[str, dict[str, Any]] = {}
        self.collections: dict[str, dict[str, Any]] = {}
        self._changed = False

    def endpoint(self, name: str = "here", base_url: str | None = None, **more: Any) -> str:
        name = f"{self.tag}-{name}"
        self.endpoints[name] = factories.endpoint(name, base_url or self.fake.url, **more)
        self._changed = True
        return name

    def model(self, name: str = "fast", *answers: Any, endpoint: str | None = None, **more: Any) -> str:
        """A model that the fake provider serves under its own alias; `answers` are its script."""
        if endpoint is None:
            endpoint = f"{self.tag}-here"
            if endpoint not in self.endpoints:
                self.endpoint()
        alias = f"{self.tag}-{name}"
        self.models[alias] = factories.model(alias, endpoint, **more)
        if answers:
            self.fake.script(self.models[alias]["served_name"], *answers)
        self._changed = True
        return alias

    def collection(self, members: Sequence[str], name: str = "core", **more: Any) -> str:
        """Gives the name that it is asked for by."""
        name = f"{self.tag}-{name}"
        self.collections[name] = factories.collection(name, members, **more)
        self._changed = True
        return f"bench/{name}"

    def load(self) -> Bench:
        if self._changed:
            self.live.roster({"endpoints": [*self.endpoints.values()], "models": [*self.models.values()], "collections": [*self.collections.values()]})
            self._changed = False
        return self

    def ask(self, model: str, prompt: Any = "hi", **more: Any) -> Reply:
        return self.load().live.ask(model, prompt, **more)

    def stream(self, model: str, prompt: Any = "hi", **more: Any) -> Stream:
        return self.load().live.stream(model, prompt, **more)

    def key(self, **fields: Any) -> str:
        return self.load().live.key(**fields)

    def no_explorers_but_mine(self) -> None:
        """Takes other tests' models out of explorer seats, so that a count of explorers means this test's."""
        for row in self.live.listed("models"):
            if not row["ad_hoc"] and row["alias"] not in self.models:
                self.live.api("PATCH", f"models/{quote(row['alias'], safe='')}", {"ad_hoc": True})
