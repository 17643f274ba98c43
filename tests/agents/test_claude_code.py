"""Claude Code, which speaks Messages, on members that speak other formats."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agents.scripted import FIRST_SAID, FIRST_TASK, LONGEST_S, SECOND_SAID, SECOND_TASK, Tool, check_failover, stage
from tests.live import Bench

pytestmark = pytest.mark.agents

PACKAGE, VERSION, PROGRAM = "@anthropic-ai/claude-code", "2.1.197", "claude"
BASH = Tool(("Bash",), lambda command: json.dumps({"command": command, "description": "Find a number"}))
QUIET = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER")
MODELS = ("ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL")


@pytest.mark.parametrize("kinds", [("openai", "gemini"), ("gemini", "openai")], ids="-".join)
def test_claude_code_goes_on_when_its_member_breaks_down(
    bench: Bench, fetched: Callable[[str, str, str], Path], rooms: tuple[Path, dict[str, str]], kinds: tuple[str, str]
) -> None:
    program = fetched(PACKAGE, VERSION, PROGRAM)
    there = stage(bench, BASH, kinds)
    work, env = rooms
    env |= {"ANTHROPIC_BASE_URL": bench.live.url, "ANTHROPIC_AUTH_TOKEN": there.key, **dict.fromkeys(QUIET, "1"), **dict.fromkeys(MODELS, there.model)}

    def run(*arguments: str) -> dict[str, Any]:
        order = [str(program), *arguments, "--allowedTools", "Bash", "--max-turns", "6", "--output-format", "json"]
        done = subprocess.run(order, cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST_S, check=False)
        assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]
        said: dict[str, Any] = json.loads(done.stdout)
        assert not said["is_error"], said
        return said

    assert run("-p", FIRST_TASK)["result"] == "The first number is found."
    assert (work / "first.txt").read_text().strip() == FIRST_SAID
    assert run("-c", "-p", SECOND_TASK)["result"] == "The second number is found."
    assert (work / "second.txt").read_text().strip() == SECOND_SAID
    check_failover(there)
