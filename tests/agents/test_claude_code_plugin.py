"""The plugin in Claude Code itself: installed from this checkout, its tools called, its hook heard, with a model that plays its part by script."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.agents.scripted import FACTS, LONGEST_S, offered
from tests.agents.test_claude_code import MODELS, PACKAGE, PROGRAM, QUIET, VERSION
from tests.fake import reply
from tests.fake.script import Answer, Call, Step
from tests.live import CHECKOUT, Bench, free_port

pytestmark = pytest.mark.agents

TOOLS = "mcp__plugin_benchwarmers_benchwarmers__"
CALL = re.compile(r"call_[0-9A-Z]{26}")
REMINDER = "nobody has judged these seats"
ANSWERED, UNJUDGED, ONWARD = "The panel has answered.", "They stay unjudged.", "Something else, then."
Run = Callable[..., str]


@dataclass(frozen=True, slots=True)
class Desk:
    """Claude Code with the plugin, driven by a model of the same server. Shape: `first` and `second` sit in the panel `reviewers`."""

    bench: Bench
    run: Run
    env: dict[str, str]
    driver: str
    first: str
    second: str
    reviewers: str

    def turns(self) -> list[Call]:
        return [call for call in self.bench.fake.calls_to(self.driver) if offered(call)]


def driver(reviewers: str) -> Answer:
    """Asks the panel once, says that it has answered, and heeds the reminder when it comes."""

    def play(call: Call) -> list[Step]:
        body, names = call.body.decode(), offered(call)
        if not names:
            return reply("A title").steps(call)
        has_asked = any(message["role"] == "tool" for message in call.json["messages"])
        if "Ask them." in body and not has_asked and f"{TOOLS}ask" in names:
            arguments = json.dumps({"collection": reviewers, "prompt": "Is 91 prime?"})
            return reply("", tools=[("call_1", f"{TOOLS}ask", arguments)]).steps(call)
        if "Go on." in body:
            return reply(ONWARD).steps(call)
        return reply(UNJUDGED if REMINDER in body else ANSWERED).steps(call)

    return Answer(play)


@pytest.fixture
def desk(bench: Bench, fetched: Callable[[str, str, str], Path], rooms: tuple[Path, dict[str, str]]) -> Desk:
    program = fetched(PACKAGE, VERSION, PROGRAM)
    first, second = bench.model("first", reply("first says")), bench.model("second", reply("second says"))
    reviewers = bench.collection([first, second], name="reviewers").removeprefix("bench/")
    driving = bench.model("driver", driver(reviewers), facts=FACTS)
    model = f"{bench.collection([driving], name='drivers')}:route"
    work, env = rooms
    env |= {"ANTHROPIC_BASE_URL": bench.live.url, "ANTHROPIC_AUTH_TOKEN": bench.key(), **dict.fromkeys(QUIET, "1"), **dict.fromkeys(MODELS, model)}
    # The first turn waits for the server's tools, and all of them are listed.
    env |= {"MCP_CONNECTION_NONBLOCKING": "0", "ENABLE_TOOL_SEARCH": "false", "BENCHWARMERS_URL": bench.live.url}

    def run(*arguments: str) -> str:
        order = [str(program), *arguments]
        done = subprocess.run(order, cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST_S, check=False)
        assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]
        return done.stdout

    run("plugin", "marketplace", "add", str(CHECKOUT))
    run("plugin", "install", "benchwarmers@benchwarmers")
    return Desk(bench, run, env, driving, first, second, reviewers)


def say(desk: Desk, *arguments: str) -> str:
    said: dict[str, Any] = json.loads(desk.run(*arguments, "--max-turns", "8", "--output-format", "json"))
    assert not said["is_error"], said
    return str(said["result"])


def test_the_manifests_are_in_form(fetched: Callable[[str, str, str], Path], rooms: tuple[Path, dict[str, str]]) -> None:
    program, (work, env) = fetched(PACKAGE, VERSION, PROGRAM), rooms
    for folder in (CHECKOUT, CHECKOUT / "plugins/claude-code"):
        order = [str(program), "plugin", "validate", "--strict", str(folder)]
        done = subprocess.run(order, cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST_S, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_panel_is_asked_by_command_and_its_seats_are_reminded_of_once(desk: Desk) -> None:
    assert say(desk, "-p", f"/benchwarmers:ask {desk.reviewers} Ask them.") == UNJUDGED
    asked, answered, reminded = desk.turns()
    assert desk.reviewers in asked.body.decode()
    assert "first says" in answered.body.decode(), "the command approved the tool"
    assert REMINDER not in answered.body.decode()
    (panel,) = desk.bench.live.rows("panels.Panel", collection=desk.reviewers)
    assert panel["judge"] == "local", "an empty key is none"
    calls = {row["model"]: row["call"] for row in desk.bench.live.rows("panels.Seat", panel_id=panel["id"])}
    for model in (desk.first, desk.second):
        assert f"{calls[model]} of {model} in {desk.reviewers}" in reminded.body.decode()
    assert say(desk, "-c", "-p", "Go on.") == ONWARD
    assert len(desk.turns()) == 4, "a reminder that was heard does not come again"


def test_answers_too_long_for_a_conversation_are_found_where_claude_code_put_them(desk: Desk) -> None:
    desk.bench.fake.script(desk.first, reply("word " * 60_000))
    assert say(desk, "-p", f"/benchwarmers:ask {desk.reviewers} Ask them.") == UNJUDGED
    *_, answered, reminded = desk.turns()
    assert not CALL.search(answered.body.decode())
    assert len(set(CALL.findall(reminded.body.decode()))) == 2


def test_seats_that_were_judged_by_any_door_are_not_reminded_of(desk: Desk) -> None:
    def judge(call: Call) -> list[Step]:
        body, names = call.body.decode(), offered(call)
        calls = list(dict.fromkeys(CALL.findall(body)))
        if not names or not calls or "by.the.shell" in body or f"{TOOLS}verdict" not in names:
            return driver(desk.reviewers).steps(call)
        by_tool = json.dumps({"call": calls[0], "useful": True, "real": ["91 is 7 times 13"], "note": "by.the.tool"})
        if "by.the.tool" not in body:
            return reply("", tools=[("call_2", f"{TOOLS}verdict", by_tool)]).steps(call)
        by_shell = json.dumps({"call": calls[1], "useful": False, "note": "by.the.shell"})
        command = f"curl -sS -m 20 {desk.bench.live.url}/bench/verdict -H 'Content-Type: application/json' -d '{by_shell}'"
        return reply("", tools=[("call_3", "Bash", json.dumps({"command": command, "description": "Judge"}))]).steps(call)

    desk.bench.fake.script(desk.driver, Answer(judge))
    assert say(desk, "-p", f"/benchwarmers:ask {desk.reviewers} Ask them.", "--allowedTools", "Bash(curl:*)") == ANSWERED
    assert len(desk.turns()) == 4
    kept = {row["note"]: row["judge"] for row in desk.bench.live.rows("panels.Verdict", collection=desk.reviewers)}
    assert kept == {"by.the.tool": "local", "by.the.shell": "local"}


def test_a_turn_ends_quietly_where_no_server_runs(desk: Desk) -> None:
    desk.env["BENCHWARMERS_URL"] = f"http://127.0.0.1:{free_port()}"
    assert say(desk, "-p", "Go on.") == ONWARD
    (turn,) = desk.turns()
    assert "Stop hook feedback" not in turn.body.decode()
