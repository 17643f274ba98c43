"""The guide's programs, each run as a reader runs it: a process of its own, against the running server, its models and its sandbox."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import benchwright
import pytest
from benchwright import Benchwright

from suite.sandbox import box
from tests.client.conftest import environment
from tests.fake import Answer, reply
from tests.fake.script import Call
from tests.live import CHECKOUT, Bench

GUIDE = CHECKOUT / "docs" / "guide"
PATIENCE_S = 240.0
CHAPTERS = sorted(path.name for path in GUIDE.glob("ch*.py"))
needs_sandbox = pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")

# What a model that knows answers, by a piece of the question: a text, or calls.
KNOWS: dict[str, Any] = {
    "symmetric group": "B",
    "ring of integers have": "B",
    "additive order": "The answer is B.",
    "cyclic group": "C",
    "abelian groups": "B",
    "six elements": "B",
    "sign of the permutation": "A",
    "ideals": "C",
    "Oslo": [("get_weather", {"city": "Rome"}), ("get_weather", {"city": "Oslo"})],  # right, and not in the key's order
    "2 + 3": [("add", {"a": 2, "b": 3}), ("add", {"b": 20, "a": 10})],
    "Lima": [("get_weather", {"city": "Lima"}), ("find_route", {"start": "Lima", "end": "Cusco"})],
    "Kyiv": [("get_weather", {"city": "Kyiv"})],
    "crates": "31",
    "train": "It covers 400",
    "coin": "2.60",
    "double(x)": "```python\ndef double(x):\n    return 2 * x\n```",
    "reverse(s)": "def reverse(s):\n    return s[::-1]",
}
# One that is wrong everywhere: a letter that is none, no calls, no numbers, no programs.
KNOWS_NOTHING: dict[str, Any] = {}


def answering(known: Mapping[str, Any]) -> Answer:
    def steps(call: Call) -> Any:
        asked = json.dumps(call.json["messages"], ensure_ascii=False)
        found = next((answer for piece, answer in known.items() if piece in asked), None)
        if known and (total := re.search(r"What is (\d+) \+ (\d+)\?", asked)):
            found = str(int(total[1]) + int(total[2]))
        if isinstance(found, list):
            tools = tuple((f"call_{n}", name, json.dumps(args)) for n, (name, args) in enumerate(found))
            return reply("", tools=tools, usage=(40, 20)).steps(call)
        return reply(found or "I cannot tell.", usage=(40, 20)).steps(call)

    return Answer(steps)


Program = Callable[..., str]


@pytest.fixture
def program(bench: Bench, tmp_path: Path) -> Program:
    """Runs a chapter and gives what it printed."""

    def run(name: str, *models: str) -> str:
        env = environment(tmp_path, BW_BASE_URL=bench.live.url, BW_PAT=bench.live.operator_key)
        done = subprocess.run(
            [sys.executable, str(GUIDE / name), *models], capture_output=True, text=True, cwd=tmp_path, env=env, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, f"{name} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


@pytest.fixture
def models(bench: Bench) -> dict[str, str]:
    """One that knows, one that knows nothing, and one that knows some."""
    facts = {"input_usd_per_mtok": "100", "output_usd_per_mtok": "200"}
    some = {piece: answer for n, (piece, answer) in enumerate(KNOWS.items()) if n % 2 == 0}
    found = {name: bench.model(name, answering(known), facts=facts) for name, known in (("able", KNOWS), ("lost", KNOWS_NOTHING), ("some", some))}
    bench.load()
    return found


@pytest.fixture
def bw(bench: Bench) -> Any:
    with Benchwright(api_key=bench.live.operator_key, base_url=bench.live.url) as client:
        yield client


def test_a_first_run(program: Program, models: dict[str, str]) -> None:
    said = program("ch02_first_run.py", models["some"])
    assert said.startswith("PhaseStarted: Materialize\n")
    assert said.count("  task ") == 8
    assert "50.0% pass rate, $0.06 billed" in said
    assert "95% interval 21.5% to 78.5%, 100% of the tasks scored" in said


def test_the_three_ways_to_launch(program: Program, models: dict[str, str]) -> None:
    said = program("ch03_three_ways.py", models["able"])
    assert "comparable to the last byte: True" in said
    assert "request 501 Launching by a request in words" in said
    assert "both    422 mode_conflict" in said
    assert "benchwright" in said.partition("harnesses:")[2]


@pytest.mark.parametrize("request_line", ["Run MMLU Abstract Algebra on openai/gpt-4o-mini via OpenRouter", "Run MMLU Pro (full) on openai/gpt-4o-mini"])
def test_the_guides_own_request_in_words_is_answered_by_its_name(bw: Benchwright, request_line: str) -> None:
    with pytest.raises(benchwright.NotImplementedByServer) as later:
        bw.runs.launch(request=request_line, sut={"model": "openai/gpt-4o-mini", "provider": "openrouter"}, metadata={"sweep": "x"})
    assert (later.value.status, later.value.code, later.value.feature) == (501, "not_implemented", "Launching by a request in words")


@needs_sandbox
def test_an_existing_benchmark(program: Program, models: dict[str, str]) -> None:
    said = program("ch04_existing_benchmark.py", models["able"], models["some"])
    assert "'pass_rate': 0.5" in said
    assert re.search(rf"\n1-\d  {models['able']} +100\.0%", said)
    assert "inspect: 422 harness_unavailable" in said
    assert "computed on local-bwrap" in said


@needs_sandbox
def test_iterating_on_failures(program: Program, models: dict[str, str]) -> None:
    said = program("ch05_iterating.py", models["able"], models["lost"])
    assert "at first: 75.0%" in said
    assert "mended:   100.0%" in said
    assert "noise:    100.0% → 100.0%" in said
    assert "larger:   0.0%" in said


@needs_sandbox
def test_a_benchmark_of_ones_own(program: Program, models: dict[str, str]) -> None:
    said = program("ch06_authoring.py", models["able"])
    assert "private" in said.splitlines()[0]
    assert "tried on 3 rows by a right answer and by none\n" in said
    assert said.count("an empty answer came to") == 3
    assert "the right answer" not in said
    assert "'passed': 4" in said
    assert "\npublic\n" in said
    assert "'run_timeout': 900" in said
    assert "{'changed': 1, 'added': 0, 'removed': 0}" in said
    assert "before: True" in said


def test_a_hard_subset(program: Program, models: dict[str, str], bw: Benchwright, tmp_path: Path) -> None:
    said = program("ch07_hard_subset.py", models["some"], models["lost"], models["lost"])
    assert "4 universally hard tasks" in said
    assert "the same by one call: True" in said
    manifest = json.loads((tmp_path / "sweep-manifest.json").read_text())
    assert [run.status for run in map(bw.runs.get, manifest["runs"])] == ["ok"] * 3


@needs_sandbox
def test_a_composite(program: Program, models: dict[str, str]) -> None:
    said = program("ch08_composite.py", models["lost"], "--", models["able"])
    assert "total: 13 tasks, 4 source benchmarks" in said
    assert "aggregate: 100.0%  (13/13)" in said
    for kind, count in {"code": 2, "function_call": 4, "math": 3, "multiple_choice": 4}.items():
        assert re.search(rf"  {kind} +100\.0%  {count}/{count}", said), said


def test_a_rolling_benchmark(program: Program, models: dict[str, str]) -> None:
    said = program("ch09_rolling.py", models["able"], models["lost"])
    assert "day 1: version 1, 3 new, 3 in all" in said
    assert re.search(rf"{models['able']} +3/3  scope ids, version 2", said)
    assert re.search(rf"{models['lost']} +0/3  scope ids, version 3", said)
    assert said.rstrip().endswith("subset_frozen")
    assert said.count("day 3: version 3, 3 new, 9 in all") == 2, "the same key again gives the first answer"


@needs_sandbox
def test_a_sweep(program: Program, models: dict[str, str]) -> None:
    said = program("ch10_sweep.py", models["lost"], models["able"], models["some"])
    lines = [line.split() for line in said.splitlines() if line.startswith("  ") and "%" in line]
    assert [(name, rate) for name, rate, *_ in lines] == [(models["able"], "100.0%"), (models["some"], "50.0%"), (models["lost"], "0.0%")]
    assert re.search(r"swp_\w+: ok, 2 runs", said)


def test_every_chapter_is_tried_and_told_of() -> None:
    tried = set(re.findall(r'program\("(ch\w+\.py)"', Path(__file__).read_text(encoding="utf-8")))
    told = set(re.findall(r"`(ch\w+\.py)`", (GUIDE / "README.md").read_text(encoding="utf-8")))
    assert tried == told == set(CHAPTERS)
    assert [name[:4] for name in CHAPTERS] == [f"ch{n:02}" for n in range(2, 11)]


def test_a_chapter_without_a_model_says_what_it_needs(tmp_path: Path) -> None:
    env = environment(tmp_path, BW_BASE_URL="http://127.0.0.1:1")
    for name in CHAPTERS:
        assert re.search(r"material\.models\(\d?\)", (GUIDE / name).read_text(encoding="utf-8")), name
    done = subprocess.run([sys.executable, str(GUIDE / CHAPTERS[0])], capture_output=True, text=True, cwd=tmp_path, env=env, timeout=60, check=False)
    assert done.returncode == 1
    assert f"python {CHAPTERS[0]} mercury" in done.stderr
