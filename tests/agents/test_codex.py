"""OpenAI's Codex, which speaks Responses, on members that speak other formats."""

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

PACKAGE, VERSION, PROGRAM = "@openai/codex", "0.171.0", "codex"
SHELL = Tool(("exec_command",), lambda command: json.dumps({"cmd": command}))
CONFIG = """\
model = {model}
model_provider = "bench"
model_context_window = 128000
check_for_update_on_startup = false

[model_providers.bench]
name = "bench"
base_url = {url}
env_key = "BENCH_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false

[otel]
exporter = "none"
"""


@pytest.mark.parametrize("kinds", [("anthropic", "openai"), ("openai", "anthropic")], ids="-".join)
def test_codex_goes_on_when_its_member_breaks_down(
    bench: Bench, fetched: Callable[[str, str, str], Path], rooms: tuple[Path, dict[str, str]], kinds: tuple[str, str]
) -> None:
    program = fetched(PACKAGE, VERSION, PROGRAM)
    there = stage(bench, SHELL, kinds)
    work, env = rooms
    folder = Path(env["HOME"]) / ".codex"
    folder.mkdir()
    # A TOML text is a JSON text.
    (folder / "config.toml").write_text(CONFIG.format(model=json.dumps(there.model), url=json.dumps(f"{bench.live.url}/v1")), encoding="utf-8")
    env |= {"CODEX_HOME": str(folder), "BENCH_KEY": there.key}

    def run(*arguments: str) -> str:
        order = [str(program), "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", *arguments]
        done = subprocess.run(order, cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST_S, check=False)
        assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]
        events: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        assert events[-1]["type"] == "turn.completed", events[-3:]
        return str([e["item"]["text"] for e in events if e["type"] == "item.completed" and e["item"]["type"] == "agent_message"][-1])

    assert run(FIRST_TASK) == "The first number is found."
    assert (work / "first.txt").read_text().strip() == FIRST_SAID
    assert run("resume", "--last", SECOND_TASK) == "The second number is found."
    assert (work / "second.txt").read_text().strip() == SECOND_SAID
    check_failover(there)
