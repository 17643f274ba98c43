"""The Stop hook of the Claude Code plugin as Claude Code runs it: a process, its word on stdin, a transcript on disk."""

from __future__ import annotations

import ast
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from access.ids import new_id
from tests.fake import reply
from tests.live import CHECKOUT, Bench, Live, eventually, free_port

HOOK = CHECKOUT / "plugins/claude-code/hooks/pending.py"
PATIENCE_S = 60.0
ASK = "mcp__plugin_benchwarmers_benchwarmers__ask"


@dataclass
class Session:
    """A session of Claude Code on disk. Shape: `name` is its id, `folder` where its transcript lies."""

    folder: Path
    url: str
    name: str = "11111111-2222-3333-4444-555555555555"
    environment: dict[str, str] = field(default_factory=dict)
    count: int = 0

    @property
    def transcript(self) -> Path:
        return self.folder / f"{self.name}.jsonl"

    @property
    def beside(self) -> Path:
        return self.folder / self.name

    def used(self, tool: str, result: Any, given: dict[str, Any] | None = None, file: Path | None = None) -> None:
        """Writes down that a tool was called and what it said."""
        self.count += 1
        name = f"toolu_{self.count}"
        lines = (
            {
                "type": "assistant",
                "message": {"content": [{"type": "text", "text": "…"}, {"type": "tool_use", "id": name, "name": tool, "input": given or {}}]},
            },
            {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": name, "content": result}]}},
        )
        path = file or self.transcript
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as out:
            out.write("".join(json.dumps(line) + "\n" for line in lines))

    def stops(self, program: str = sys.executable, told: str | None = None, **more: Any) -> str:
        """Ends a turn and gives what the hook tells Claude; a hook that fails or says anything else fails the test."""
        word = {"session_id": self.name, "transcript_path": str(self.transcript), "hook_event_name": "Stop", "stop_hook_active": False, **more}
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "BENCHWARMERS_URL": self.url, **self.environment}
        text = json.dumps(word) if told is None else told
        done = subprocess.run([program, str(HOOK)], input=text, capture_output=True, text=True, env=env, timeout=PATIENCE_S, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        if not done.stdout:
            return ""
        said = json.loads(done.stdout)
        assert said["decision"] == "block"
        return str(said["reason"])


@pytest.fixture
def session(tmp_path: Path, live: Live) -> Session:
    return Session(tmp_path, live.url)


@dataclass(frozen=True, slots=True)
class Asked:
    """A panel. Shape: `told` is what the tool `ask` says of it, `calls` its call ids by model."""

    panel: str
    told: str
    calls: dict[str, str]


@pytest.fixture
def panel(bench: Bench) -> Callable[..., Asked]:
    """Asks a panel of two without a key, or with one."""

    def ask(key: str | None = None) -> Asked:
        if not bench.collections:
            bench.collection([bench.model("one", reply("one says")), bench.model("two", reply("two says"))])
        told = bench.ask(f"bench/{next(iter(bench.collections))}", key=key).json["bench"]
        bench.live.attempts(2, panel=told["panel"])
        return Asked(told["panel"], json.dumps({"bench": told}), {seat["model"]: seat["call"] for seat in told["seats"]})

    return ask


# ------------------------------------------------------------------ reminding


def test_each_seat_is_reminded_of_once(session: Session, panel: Callable[..., Asked], bench: Bench) -> None:
    first = panel()
    session.used(ASK, first.told)
    said = session.stops()
    for model, call in first.calls.items():
        assert f"{call} of {model} in {next(iter(bench.collections))}" in said
    assert session.stops() == ""
    second = panel()
    session.used(ASK, [{"type": "text", "text": second.told}])
    again = session.stops()
    assert all(call in again for call in second.calls.values())
    assert not any(call in again for call in first.calls.values())


def test_what_anybody_judged_by_any_door_is_left_out(session: Session, panel: Callable[..., Asked], bench: Bench) -> None:
    asked = panel()
    session.used(ASK, asked.told)
    by_key, by_none = asked.calls.values()
    bench.live.send("POST", "/bench/verdict", {"call": by_none, "useful": True})
    assert by_none not in session.stops()
    bench.live.api("POST", "verdict", {"call": by_key, "useful": False})
    other = Session(session.folder / "other", session.url)
    other.used(ASK, asked.told)
    assert other.stops() == ""


@pytest.mark.parametrize("tool", [ASK, "mcp__bench__ask", "mcp__hub__benchwarmers_1mcp_ask", "mcp__hub__gw__ask", "ask"])
def test_the_tool_is_known_under_any_prefix(session: Session, panel: Callable[..., Asked], tool: str) -> None:
    session.used(tool, panel().told)
    assert session.stops()


@pytest.mark.parametrize(
    "command",
    [
        'bench ask core "Why?" > review.md',
        "git diff | .venv/bin/benchwarmers ask core",
        "bench --json --url http://127.0.0.1:8122 ask core x",
        'curl -s http://127.0.0.1:8122/v1/chat/completions \\\n -d \'{"model": "bench/core"}\'',
    ],
)
def test_a_panel_that_was_asked_in_a_shell_counts_whoever_asked_it(session: Session, panel: Callable[..., Asked], bench: Bench, command: str) -> None:
    asked = panel(bench.live.operator_key)  # as `bench` on the server's own machine does
    session.used("Bash", asked.told, {"command": command})
    said = session.stops()
    assert all(call in said for call in asked.calls.values())


def test_a_shell_in_the_background_tells_later(session: Session, panel: Callable[..., Asked]) -> None:
    asked = panel()
    session.used("Bash", "Command running in background with ID: b1", {"command": "bench ask core x", "run_in_background": True})
    session.used("BashOutput", asked.told)
    assert session.stops()


def test_sub_agents_and_long_results_are_found_beside_the_transcript(session: Session, panel: Callable[..., Asked]) -> None:
    of_agent, long = panel(), panel()
    session.used("Read", "nothing")
    session.used(ASK, of_agent.told, file=session.beside / "subagents" / "workflows" / "agent-a1.jsonl")
    saved = session.beside / "tool-results" / "mcp-ask-1.txt"
    saved.parent.mkdir()
    saved.write_text(long.told)
    session.used(ASK, f"Error: result exceeds maximum allowed tokens. Output has been saved to {saved}.")
    said = session.stops()
    assert all(call in said for call in (*of_agent.calls.values(), *long.calls.values()))


def test_call_ids_that_were_only_read_are_nobodys_business(session: Session, panel: Callable[..., Asked]) -> None:
    told = panel().told
    for tool, given in (("Read", {}), ("Bash", {"command": "cat notes.md"}), ("mcp__bench__pending_verdicts", {}), ("mcp__bench__verdict", {})):
        session.used(tool, told, given)
    assert session.stops() == ""


def test_many_seats_are_named_in_part(session: Session, panel: Callable[..., Asked]) -> None:
    for _ in range(12):
        session.used(ASK, panel().told)
    said = session.stops()
    assert said.count("\n- call_") == 20
    assert "and 4 more" in said
    assert session.stops() == ""


def test_a_key_is_sent_where_one_is_set(session: Session, panel: Callable[..., Asked], bench: Bench) -> None:
    asked = panel(bench.live.operator_key)
    session.used(ASK, asked.told)
    session.environment["BENCHWARMERS_KEY"] = "bw_live_nosuchkey"
    assert session.stops() == "", "a key that is sent is checked"
    session.environment["BENCHWARMERS_KEY"] = bench.key(scopes=["judge"])
    assert session.stops()


# ------------------------------------------------------------------ silence


class Elsewhere(ThreadingHTTPServer):
    """Something on this machine that is no Benchwarmers server. Shape: `asked` are the requests it got."""

    def __init__(self, code: int, body: bytes) -> None:
        self.asked: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                there.asked.append(self.path)
                self.rfile.read(int(self.headers.get("content-length", 0)))
                self.send_response(code)
                self.send_header("location", "/elsewhere")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None: ...

        super().__init__(("127.0.0.1", 0), Handler)
        there = self
        threading.Thread(target=self.serve_forever, daemon=True).start()


@pytest.fixture
def other_server() -> Iterator[Callable[[int, bytes], Elsewhere]]:
    made: list[Elsewhere] = []

    def make(code: int, body: bytes) -> Elsewhere:
        made.append(Elsewhere(code, body))
        return made[-1]

    yield make
    for one in made:
        one.shutdown()
        one.server_close()


def made_up() -> str:
    return json.dumps({"seats": [{"call": new_id("call")}]})


@pytest.mark.parametrize(
    "url",
    [
        "http://bench.example.org",
        "https://10.0.0.7:8122",
        "http://127.0.0.1.example.org",
        "http://user:secret@127.0.0.1",
        "ftp://127.0.0.1",
        "http://[::1",
        "http://127.0.0.1:99999",
        "nonsense",
    ],
)
def test_it_is_silent_where_the_server_is_not_on_this_machine(session: Session, url: str, other_server: Callable[[int, bytes], Elsewhere]) -> None:
    proxy = other_server(200, b"{}")
    session.environment |= dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY"), f"http://127.0.0.1:{proxy.server_port}")
    session.used(ASK, made_up())
    session.url = url
    assert session.stops() == ""
    assert proxy.asked == []


def test_it_is_silent_where_no_server_runs(session: Session) -> None:
    session.used(ASK, made_up())
    session.url = f"http://127.0.0.1:{free_port()}"
    assert session.stops() == ""


@pytest.mark.parametrize(
    ("code", "body"),
    [
        (200, b"<html>"),
        (200, b"{}"),
        (200, b'{"result": {"isError": true}}'),
        (200, b"[" * 100_000),
        (302, b""),
        (401, b'{"result": 1}'),
        (200, b" " * 2_000_000),
        (500, b""),
    ],
)
def test_it_is_silent_whatever_else_answers_there(session: Session, code: int, body: bytes, other_server: Callable[[int, bytes], Elsewhere]) -> None:
    there = other_server(code, body)
    session.used(ASK, made_up())
    session.url = f"http://127.0.0.1:{there.server_port}/prefix/"
    assert session.stops() == ""
    assert there.asked == ["/prefix/mcp"]


@pytest.mark.parametrize("told", ["", "no json", "[]", "{}", '{"session_id": 1, "transcript_path": "nowhere"}', "[" * 100_000])
def test_it_is_silent_whatever_it_is_told(session: Session, told: str) -> None:
    assert session.stops(told=told) == ""


def test_it_is_silent_when_a_reminder_is_what_made_claude_go_on(session: Session, panel: Callable[..., Asked]) -> None:
    session.used(ASK, panel().told)
    assert session.stops(stop_hook_active=True) == ""
    assert session.stops(), "the next turn's end is time enough"


def test_it_reads_past_lines_that_are_cut_or_odd(session: Session, panel: Callable[..., Asked]) -> None:
    odd = [
        '{"type": "assistant", "message": {"content": "tool_use tool_result"}}',
        '["tool_use"]',
        '{"message": {"content": [1, {"type": "tool_use"}',
        "\x00\xff",
    ]
    session.transcript.write_text("\n".join(odd) + "\n", encoding="latin-1")
    session.used(ASK, panel().told)
    with session.transcript.open("a") as out:
        out.write('{"type": "user", "message": {"content": [{"type": "tool_result"')
    assert session.stops()


def test_it_is_silent_where_it_cannot_remember(session: Session, panel: Callable[..., Asked]) -> None:
    session.used(ASK, panel().told)
    (session.folder / "file").write_text("")
    session.environment["XDG_STATE_HOME"] = str(session.folder / "file")
    assert session.stops() == ""


def test_it_runs_with_an_old_python() -> None:
    assert ast.parse(HOOK.read_text(encoding="utf-8"), feature_version=(3, 8))
    unknown = {
        node.module or "" for node in ast.walk(ast.parse(HOOK.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)
    } - sys.stdlib_module_names
    assert unknown <= {"collections.abc", "urllib.parse"}


# ------------------------------------------------------------------ memory


def test_what_it_remembers_is_the_users_alone_and_goes_in_time(session: Session, panel: Callable[..., Asked]) -> None:
    folder = session.folder / ".local/state/benchwarmers/reminded"
    folder.mkdir(parents=True)
    (folder / "old.txt").write_text("")
    os.utime(folder / "old.txt", (0, 0))
    session.used(ASK, panel().told)
    assert session.stops()
    (kept,) = folder.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert session.name not in kept.name


def test_a_session_that_was_forked_is_not_reminded_again(session: Session, panel: Callable[..., Asked]) -> None:
    session.used(ASK, panel().told)
    assert session.stops()
    fork = Session(session.folder, session.url, name="66666666-2222-3333-4444-555555555555")
    fork.transcript.write_text(session.transcript.read_text())
    assert fork.stops() == ""


def test_a_seat_of_this_moment_is_found(session: Session, bench: Bench) -> None:
    core = bench.collection([bench.model("one", reply("one says"))])
    told = bench.ask(core).json["bench"]
    session.used(ASK, json.dumps(told))
    assert told["seats"][0]["call"] in session.stops()
    assert eventually(lambda: bench.live.rows("panels.Seat", call=told["seats"][0]["call"]), "the seat")
