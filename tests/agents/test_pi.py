"""pi, a small agent that speaks four formats, on members that speak others."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.scripted import FIRST_SAID, FIRST_TASK, LONGEST_S, SECOND_SAID, SECOND_TASK, Tool, check_failover, stage
from tests.live import Bench

pytestmark = pytest.mark.agents

PACKAGE, VERSION, PROGRAM = "@mariozechner/pi-coding-agent", "0.73.1", "pi"
BASH = Tool(("bash",), lambda command: json.dumps({"command": command}))


@pytest.mark.parametrize(
    ("api", "version_part", "kinds"),
    [
        ("openai-completions", "/v1", ("anthropic", "gemini")),
        ("openai-responses", "/v1", ("gemini", "anthropic")),
        ("anthropic-messages", "", ("openai", "gemini")),
        ("google-generative-ai", "/v1beta", ("anthropic", "openai")),
    ],
    ids=["chat", "responses", "messages", "gemini"],
)
def test_pi_goes_on_when_its_member_breaks_down(
    bench: Bench, fetched: Callable[[str, str, str], Path], rooms: tuple[Path, dict[str, str]], api: str, version_part: str, kinds: tuple[str, str]
) -> None:
    program = fetched(PACKAGE, VERSION, PROGRAM)
    there = stage(bench, BASH, kinds)
    work, env = rooms
    folder = Path(env["HOME"]) / ".pi" / "agent"
    folder.mkdir(parents=True)
    model = {"id": there.model, "name": "bench", "reasoning": False, "input": ["text"], "contextWindow": 128000, "maxTokens": 8192}
    model["cost"] = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)
    provider = {"baseUrl": bench.live.url + version_part, "api": api, "apiKey": "BENCH_KEY", "models": [model]}
    (folder / "models.json").write_text(json.dumps({"providers": {"bench": provider}}), encoding="utf-8")
    env |= {"BENCH_KEY": there.key, "PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"}

    def run(*arguments: str) -> str:
        order = [str(program), "--provider", "bench", "--model", there.model, *arguments]
        done = subprocess.run(order, cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST_S, check=False)
        assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]
        return done.stdout.strip()

    assert run("-p", FIRST_TASK) == "The first number is found."
    assert (work / "first.txt").read_text().strip() == FIRST_SAID
    assert run("-c", "-p", SECOND_TASK) == "The second number is found."
    assert (work / "second.txt").read_text().strip() == SECOND_SAID
    # In Messages, pi makes text of thinking that bears no signature, and a member behind chat gives none.
    check_failover(there, is_thinking_marked=api != "anthropic-messages")
