"""The `benchwright` command against the running server: what it prints where, what it remembers, and the codes that jobs go by."""

from __future__ import annotations

import json
import os
import pty
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from benchwright import Benchwright
from benchwright.cli import main, output
from benchwright.cli.session import Session

from suite.sandbox import box
from tests.client.conftest import Ran, environment
from tests.fake import reply, status
from tests.live import Bench, free_port
from tests.suite.driving import sums
from tests.suite.test_scorers import one_method

ANSWER = reply("ANSWER: 4", usage=(20, 8))
COMMAND = [sys.executable, "-m", "benchwright"]
Wright = Callable[..., Ran]


@pytest.fixture
def wright(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Wright:
    """Runs the command's own entry in this process, in an environment and a folder of its own, against the running server."""
    for name in [n for n in os.environ if n.startswith(("BW_", "BENCHWARMERS_", "XDG_")) or n == "CI"]:
        monkeypatch.delenv(name)
    for name, value in {
        "HOME": str(tmp_path),
        "BENCHWARMERS_HOME": str(tmp_path / "none"),
        "BW_BASE_URL": bench.live.url,
        "BW_PAT": bench.live.operator_key,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, pipe: str = "") -> Ran:
        (tmp_path / ".stdin").write_text(pipe)
        with (tmp_path / ".stdin").open() as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            capfd.readouterr()
            code = main.run(list(arguments))
        said = capfd.readouterr()
        return Ran(code, said.out, said.err)

    return run


@pytest.fixture
def bw(bench: Bench) -> Iterator[Benchwright]:
    with Benchwright(api_key=bench.live.operator_key, base_url=bench.live.url) as client:
        yield client


@pytest.fixture
def pinned(bench: Bench, bw: Benchwright) -> list[str]:
    """The options of a launch: ten sums of which the model misses two."""
    return pinned_to(bench, bw, 10, 2)


def pinned_to(bench: Bench, bw: Benchwright, count: int, wrong: int, *answers: Any) -> list[str]:
    model = bench.model("calm", *(answers or (ANSWER,)), facts={"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"})
    bench.load()
    bm = bw.benchmarks.create(name=f"{bench.tag} sums")
    bw.subsets.create(benchmark=bm, slug="small", tasks=sums(count, wrong), grader={"kind": "math"})
    return ["--benchmark", bm.id, "--model", model]


def told(ran: Ran) -> Any:
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


# ------------------------------------------------------------------ a run


def test_a_run_is_followed_on_stderr_and_put_out_on_stdout(wright: Wright, pinned: list[str]) -> None:
    ran = wright("run", *pinned, "--limit-to", "run.cost=5", "--limit", "5", "--metadata", "sweep=x", "--metadata", "n=3", "--tag", "nightly")
    run = told(ran)
    assert (run["status"], run["summary"]["passed"], run["summary"]["total"]) == ("ok", 3, 5)
    assert (run["metadata"], run["tags"], run["limits"]) == ({"sweep": "x", "n": 3, "limit": 5}, ["nightly"], {"run": {"cost": 5.0}})
    assert "PhaseStarted: Materialize" in ran.err
    assert "5/5 done, 3 passed" in ran.err
    assert told(wright("run", "show", "@last"))["id"] == run["id"]
    tasks = [json.loads(line) for line in wright("run", "tasks", "@last", "--passed=false", "--limit", "1").out.splitlines()]
    assert [t["task_id"] for t in tasks] == ["t0"]
    assert told(wright("run", "task", "@last", "t0"))["expected"] == {"value": 5}
    assert told(wright("run", "task", "@last", tasks[0]["id"]))["output"] == "ANSWER: 4"
    listed = wright("run", "ls", "--metadata", "sweep=x", "--benchmark", pinned[1], "--output", "json")
    assert [r["id"] for r in told(listed)] == [run["id"]]
    streamed = wright("run", "stream", run["id"])
    assert [json.loads(line)["seq"] for line in streamed.out.splitlines()] == list(range(1, len(streamed.out.splitlines()) + 1))
    assert len(wright("run", "events", run["id"], "--types", "MaterializeTaskResult").out.splitlines()) == 5
    assert told(wright("run", "wait", "@last", "--timeout", "5"))["id"] == run["id"]


def test_a_launch_is_looked_at_before(wright: Wright, pinned: list[str]) -> None:
    shown = told(wright("run", "preview", *pinned, "--limit", "3"))
    assert "3" in json.dumps(shown)
    assert wright("run", "ls", "--benchmark", pinned[1]).out == ""


def test_a_run_without_waiting_prints_its_id(wright: Wright, pinned: list[str]) -> None:
    ran = wright("run", *pinned, "--no-wait")
    assert ran.code == 0
    assert ran.out.startswith("run_")
    assert ran.out.count("\n") == 1
    assert told(wright("run", *pinned, "--no-wait", "--output", "json"))["id"] == ran.out.strip()
    assert wright("run", *pinned, "--no-wait", "--gate", "pass_rate=0.5").code == 2
    assert told(wright("run", "wait", ran.out.strip()))["status"] == "ok"


def test_the_same_command_follows_the_run_that_it_launched(wright: Wright, pinned: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = told(wright("run", *pinned))["id"]
    again = wright("run", *pinned, "--output", "json")
    assert told(again)["id"] == first
    assert f"re-attached to {first}" in again.err
    fresh = told(wright("run", *pinned, "--fresh"))["id"]
    assert fresh != first
    assert told(wright("run", *pinned))["id"] == fresh, "what was begun anew is what the same command follows from then on"
    assert told(wright("run", *pinned, "--trials", "1"))["id"] not in (first, fresh)
    assert told(wright("run", *pinned, "--idempotency-key", f"gha-{first}"))["id"] not in (first, fresh)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert told(wright("run", *pinned, "--no-wait", "--output", "json"))["id"] not in (first, fresh)


@pytest.mark.parametrize("again", [("run", "--replay-from", "@last"), ("run", "--replay-from=@last"), ("run", "replay", "@last")], ids=" ".join)
def test_the_same_words_about_another_last_run_are_another_command(wright: Wright, pinned: list[str], again: tuple[str, ...]) -> None:
    """Launch and replay, each day: the second day's replay was refused for the first one's key."""
    for _ in range(2):
        first = told(wright("run", *pinned, "--fresh"))["id"]
        assert told(wright(*again))["derived_from"] == first
        second = told(wright(*again))
        assert second["derived_from"] != first, "of the replay, which is the last by then"


def test_what_is_not_committed_makes_another_command_of_it(wright: Wright, pinned: list[str], tmp_path: Path) -> None:
    def git(*order: str) -> None:
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *order], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / ".gitignore").write_text(".*\n")
    git("init", "-q")
    seen = []
    for change in (
        None,
        lambda: (tmp_path / "scorer.py").write_text("a = 1\n"),
        lambda: (tmp_path / "scorer.py").write_text("a = 2\n"),
        lambda: (git("add", "-A"), git("commit", "-qm", "One")),
        lambda: (tmp_path / "scorer.py").write_text("a = 3\n"),
    ):
        if change:
            change()
        seen.append(wright("run", *pinned, "--no-wait").out)
        assert wright("run", *pinned, "--no-wait").out == seen[-1]
    assert len(set(seen)) == 5


def test_a_refusal_does_not_stick_to_the_command(wright: Wright, bench: Bench, bw: Benchwright) -> None:
    pinned = pinned_to(bench, bw, 2, 0)
    later = f"{bench.tag}-later"
    launch = ["run", *pinned[:2], "--model", later]
    refused = wright(*launch)
    assert refused.code == 1
    assert f"There is no model {later}" in refused.err
    bench.model("later", ANSWER)
    bench.load()
    assert told(wright(*launch))["model"]["identifier"] == later


def test_runs_are_done_again(wright: Wright, pinned: list[str], tmp_path: Path) -> None:
    first = told(wright("run", *pinned))
    replayed = told(wright("run", "--replay-from", "@last", "--only-failed"))
    assert (replayed["scope"], replayed["derived_from"], replayed["progress"]["total"]) == ("failed", first["id"], 2)
    some = told(wright("run", "replay", first["id"], "--task", "t3", "--task", "t4"))
    assert (some["scope"], some["progress"]["total"]) == ("ids", 2)
    (tmp_path / "grader.json").write_text('{"kind": "math", "tolerance": 0.5}')
    forked = told(wright("run", "fork", first["id"], "-m", "five will do", "--grader-file", "grader.json"))
    assert forked["summary"]["passed"] == 10
    assert told(wright("run", "show", "@last"))["id"] == forked["id"]
    again = told(wright("run", "rescore", first["id"], "--grader-file", "grader.json"))
    assert (again["status"], again["version"], again["now_passed"]) == ("ok", 2, 10 - first["summary"]["passed"])
    if not box.trouble():
        (tmp_path / "task_impl.py").write_text(one_method(score="return 0.5"))
        by_code = told(wright("run", "rescore", first["id"], "--file", "task_impl.py", "--label", "half"))
        assert (by_code["status"], by_code["now_not"], by_code["done"]) == ("ok", 10, 10)
    assert told(wright("compare", first["id"], "@last"))["pairs"][0]["second"] == forked["id"]
    assert told(wright("run", "publish", first["id"]))["visibility"] == "public"
    assert wright("run", "kill", first["id"]).code == 1
    assert wright("run", "delete", first["id"]).code == 2
    assert wright("run", "delete", first["id"], "--confirm", forked["id"]).code == 2
    gone = wright("run", "delete", first["id"], "--confirm", first["id"])
    assert (gone.code, gone.out) == (0, "")
    assert told(wright("run", "show", first["id"]))["status"] == "deleted"


def test_a_sweep_launches_a_run_for_each_model(wright: Wright, bench: Bench, bw: Benchwright) -> None:
    pinned = pinned_to(bench, bw, 3, 0)
    other = bench.model("other", reply("ANSWER: 5"))
    bench.load()
    anchor = told(wright("run", *pinned))["id"]
    made = told(wright("sweep", "create", "--anchor", "@last", "--model", pinned[3], "--model", other, "--idempotency-key", anchor))
    assert told(wright("sweep", "create", "--anchor", "@last", "--model", pinned[3], "--model", other, "--idempotency-key", anchor))["id"] == made["id"]
    for run in made["runs"]:
        assert wright("run", "wait", run["run"]).code == 0
    shown = told(wright("sweep", "show", made["id"]))
    assert (shown["status"], shown["counts"]["runs"], shown["anchor"]) == ("ok", 2, anchor)
    assert made["id"] in wright("sweep", "ls").out


# ------------------------------------------------------------------ what a job goes by


GATES = [
    (["--gate", "pass_rate=0.8"], 0),
    (["--gate", "pass_rate=0.81"], 10),
    (["--gate", "pass_rate=0.81", "--fail-code", "7"], 7),
    (["--gate", "pass_rate=0.8", "--confidence", "0.95"], 11),
    (["--gate", "pass_rate=0.1", "--confidence", "0.95"], 0),
    (["--gate", "pass_rate=0.99", "--confidence", "0.95"], 10),
    (["--gate", "pass_rate=0.8", "--gate", "cost=0.0000001"], 10),
    (["--gate", "cost=1", "--gate", "coverage=1", "--gate", "mean=0.8"], 0),
]


def test_gates_decide_what_a_command_ends_with(wright: Wright, pinned: list[str]) -> None:
    run = told(wright("run", *pinned))["id"]
    for options, code in GATES:
        ran = wright("run", "wait", run, *options)
        assert ran.code == code, (options, ran.err)
        assert json.loads(ran.out)["gates"][0]["gate"] == options[1]
    plain = wright("run", "wait", run, "--gate", "pass_rate=0.8")
    (gate,) = json.loads(plain.out)["gates"]
    assert gate["verdict"] == "pass"
    assert [round(end, 3) for end in gate["interval"]] == [0.490, 0.943]
    assert "0.4902 to 0.9433" in plain.err
    assert "warning:" in plain.err, "the interval holds the threshold"
    assert "warning:" not in wright("run", "wait", run, "--gate", "pass_rate=0.1").err


@pytest.mark.parametrize("gate", ["pass_rate", "pass_rate=", "pass_rate=x", "pass_rate=1.5", "pass_rate=-1", "speed=1", "pass_rate=nan", "pass_rate=inf"])
def test_a_gate_that_cannot_be_read_is_bad_usage_before_anything_is_spent(wright: Wright, bench: Bench, gate: str) -> None:
    ran = wright("run", "--benchmark", "bm_x", "--model", "y", "--gate", gate)
    assert ran.code == 2
    assert "pass_rate" in ran.err or "metrics" in ran.err


def test_a_gate_may_stand_beside_an_earlier_run(wright: Wright, bench: Bench, bw: Benchwright) -> None:
    pinned = pinned_to(bench, bw, 12, 0)
    worse = bench.model("worse", reply("ANSWER: 5"))
    bench.load()
    good = told(wright("run", *pinned))["id"]
    rule = ["--gate-vs", good, "no_regression@alpha=0.05"]
    bad = wright("run", "--replay-from", good, "--model", worse, *rule)
    assert bad.code == 10
    assert "-100.0%" in bad.err
    same = wright("run", "--replay-from", good, *rule)
    assert same.code == 0
    assert "no drop was shown" in same.err
    assert wright("run", "wait", json.loads(same.out)["id"], *rule, "--confidence", "0.95").code == 11
    assert wright("run", "wait", good, "--gate-vs", good, "no_change").code == 2


def test_each_kind_of_end_has_its_code(wright: Wright, bench: Bench, bw: Benchwright, monkeypatch: pytest.MonkeyPatch) -> None:
    dear = pinned_to(bench, bw, 8, 0, reply("ANSWER: 4", usage=(1_000_000, 1000)))
    halted = wright("run", *dear, "--limit-to", "run.cost=2", "--gate", "pass_rate=0.1")
    assert halted.code == 12, halted.err
    assert json.loads(halted.out)["halt_reason"] == "limit_exceeded:run.cost"
    unpriced = bench.model("unpriced", reply("ANSWER: 4"))
    bench.load()
    stopped = wright("run", *dear[:2], "--model", unpriced, "--limit-to", "run.cost=2")
    assert stopped.code == 1, stopped.err
    assert "RunHalting: price_unknown. Its ceiling of cost cannot be kept" in stopped.err
    assert wright("run").code == 2
    assert wright("run", "--only-failed", "--benchmark", "bm_x").code == 2
    assert wright("run", "show").code == 2
    assert wright("nonsense").code == 2
    assert wright("run", "show", "run_01M8PHCT10QCRDCHSMGPT39BFZ").code == 1
    monkeypatch.setenv("BW_PAT", "bw_live_pat_nothing")
    assert wright("run", "ls").code == 4
    monkeypatch.setenv("BW_PAT", bench.key(owner="somebody", scopes=["runs:read"]))
    refused = wright("bench", "create", "x")
    assert refused.code == 4
    assert "registry:publish" in refused.err
    monkeypatch.setenv("BW_BASE_URL", f"http://127.0.0.1:{free_port()}")
    gone = wright("run", "ls")
    assert (gone.code, gone.out) == (3, "")


def test_a_run_that_fails_ends_with_one(wright: Wright, bench: Bench, bw: Benchwright) -> None:
    ran = wright("run", *pinned_to(bench, bw, 12, 0, status(401)), "--gate", "pass_rate=0")
    assert ran.code == 1, ran.out
    assert json.loads(ran.out)["status"] == "failed"


def test_last_is_nothing_where_nothing_was_launched(wright: Wright) -> None:
    ran = wright("run", "show", "@last")
    assert ran.code == 2
    assert "There is no @last yet" in ran.err


def test_last_is_each_profiles_own(wright: Wright, pinned: list[str], bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    run = wright("run", *pinned, "--no-wait").out.strip()
    assert wright("login", "--base-url", bench.live.url, "--profile", "other", pipe=bench.live.operator_key + "\n").code == 0
    assert wright("--profile", "other", "run", "show", "@last").code == 2
    other = wright("--profile", "other", "run", *pinned, "--no-wait", "--fresh").out.strip()
    assert other not in ("", run)
    assert told(wright("run", "show", "@last"))["id"] == run
    assert told(wright("run", "show", "@last", "--profile", "other"))["id"] == other


def test_what_is_refused_is_told_in_words_and_whole_when_asked(wright: Wright) -> None:
    ran = wright("run", "Run MMLU Abstract Algebra on openai/gpt-4o-mini via OpenRouter")
    assert (ran.code, ran.out) == (1, "")
    assert "Launching by a request in words" in ran.err
    whole = wright("run", "Run MMLU", "--debug")
    assert '"code": "not_implemented"' in whole.err
    assert wright("hooks", "add", "https://ci.example/hook", "--events", "run.finished").code == 1
    assert wright("run", "Run MMLU", "--benchmark", "bm_x").code == 1
    harness = wright("run", "launch", "Run MMLU", "--harness", "inspect", "--harness-task", "inspect_evals/mmlu_0_shot")
    assert harness.code == 1
    assert "inspect" in harness.err


def test_a_secret_on_the_command_line_is_warned_of(wright: Wright) -> None:
    piped = wright("secrets", "add", "OPENROUTER_API_KEY", "--rule", "openrouter.ai:bearer:Authorization", pipe="sk-or-1\n")
    assert piped.code == 1
    assert "warning" not in piped.err
    typed = wright("secrets", "add", "OPENROUTER_API_KEY", "sk-or-2")
    assert "warning: a value on the command line" in typed.err
    assert "sk-or" not in typed.err + piped.err + typed.out + piped.out
    assert wright("secrets", "add", "X", pipe="\n").code == 2
    assert wright("secrets", "add", "X", "--rule", "nonsense", pipe="y").code == 2


# ------------------------------------------------------------------ making benchmarks


IMPL = """
import json
from bench_task import BenchTask

class Task(BenchTask):
    def extract(self, path, index):
        return json.loads(open(path).readlines()[index])
    def solve(self, index, input):
        return "4"
    def score(self, index, output, expected):
        return 1.0
"""


def test_a_benchmark_is_made_from_files(wright: Wright, bench: Bench, tmp_path: Path) -> None:
    bm = told(wright("bench", "create", f"{bench.tag} mirror", "--category", "tool-use", "--tag", "function-calling"))
    assert (bm["category"], bm["tags"]) == ("tool-use", ["function-calling"])
    (tmp_path / "tasks.jsonl").write_text("\n".join(json.dumps(row) for row in sums(3)) + "\n\n")
    (tmp_path / "grader.json").write_text('{"kind": "math"}')
    (tmp_path / "task_impl.py").write_text(f"# {bench.tag}\n{IMPL}")
    sub = told(wright("bench", "subset", "create", bm["id"], "--slug", "v1", "--file", "tasks.jsonl", "--grader-file", "grader.json", "--rolling"))
    assert (sub["tasks"], sub["rolling"], sub["runnable"]) == (3, True, True)
    more = wright("bench", "subset", "append", sub["id"], "--file", "-", pipe=json.dumps(sums(4)[3]))
    assert (told(more)["added"], told(more)["tasks"]) == (1, 4)
    impl = told(wright("bench", "impl", "create", sub["id"], "--file", "task_impl.py", "--label", "strict v1"))
    assert [json.loads(line)["id"] for line in wright("bench", "impl", "ls", sub["id"]).out.splitlines()] == [impl["id"]]
    assert wright("bench", "impl", "code", impl["id"]).out == f"# {bench.tag}\n{IMPL}"
    assert told(wright("bench", "show", bm["id"]))["subsets"][0]["slug"] == "v1"
    assert told(wright("bench", "range", bm["id"], "0-3"))["uncovered"] == [0, 1, 2, 3]
    assert told(wright("bench", "subset", "freeze", sub["id"]))["rolling"] is False
    (tmp_path / "many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in sums(1200)))
    many = told(wright("bench", "subset", "create", bm["id"], "--slug", "many", "--file", "many.jsonl", "--grader-file", "grader.json"))
    assert (many["tasks"], many["rolling"], many["version"]) == (1200, False, 1)
    (tmp_path / "bad.jsonl").write_text('{"task_id": "a"}\n{nonsense\n')
    bad = wright("bench", "subset", "create", bm["id"], "--slug", "bad", "--file", "bad.jsonl")
    assert bad.code == 2
    assert "line 2" in bad.err


def test_a_recipe_is_read_and_changed(wright: Wright, bench: Bench, bw: Benchwright, tmp_path: Path) -> None:
    bm = bw.benchmarks.create(name=f"{bench.tag} built")
    slug = f"{bench.tag}-built"
    bw.subsets.create(benchmark=bm, slug=slug, tasks=sums(2), grader={"kind": "math"})
    changed = told(wright("bench", "recipe", "set", slug, "--set", "run_timeout=900", "--set", "trials=3", "--note", "it boots slowly"))
    assert changed
    assert told(wright("bench", "recipe", "show", slug))["config"].items() >= {"run_timeout": 900, "trials": 3}.items()
    assert wright("bench", "recipe", "set", slug, "--set", "trials=3").code == 2
    (tmp_path / "fix.jsonl").write_text(json.dumps({**sums(1)[0], "expected": {"value": 4}, "input": {"question": "What is 1 + 3?"}}))
    fixed = told(wright("bench", "samples", "set", slug, "--upsert-file", "fix.jsonl", "--note", "the question was wrong"))
    assert fixed
    assert "What is 1 + 3?" in wright("bench", "samples", "show", slug).out


# ------------------------------------------------------------------ profiles


def test_a_login_is_kept_for_its_owner_alone(wright: Wright, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BW_PAT")
    monkeypatch.delenv("BW_BASE_URL")
    token = bench.key(scopes=["runs:read", "registry:read"])
    kept = wright("login", "--base-url", bench.live.url, pipe=token + "\n")
    assert kept.code == 0, kept.err
    assert token not in kept.out + kept.err
    path = tmp_path / ".config" / "benchwright" / "config.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert wright("run", "ls").code == 0
    monkeypatch.setenv("BW_BASE_URL", f"http://127.0.0.1:{free_port()}")
    assert wright("run", "ls").code == 3
    monkeypatch.delenv("BW_BASE_URL")
    assert wright("login", "--base-url", bench.live.url, "--profile", "ci", pipe="bw_live_pat_wrong\n").code == 4
    assert "[ci]" not in path.read_text()
    assert wright("run", "ls", "--profile", "ci").code == 2
    assert wright("login", pipe="\n").code == 2


# ------------------------------------------------------------------ forms


VALUES: list[Any] = [
    {"a": 1, "b": None, "c": True, "d": 1.5, "e": [], "f": {}, "g": [1, [2, {"h": "i"}]], "j": {"k": {"l": ["m"]}}},
    [
        "yes",
        "no",
        "null",
        "~",
        "1",
        "1.5",
        "0x1f",
        "1e3",
        ".inf",
        "2026-11-30",
        "",
        " a",
        "a ",
        "a: b",
        "# c",
        "- d",
        "on",
        "y",
        "=",
        "<<",
        "!x",
        "&a",
        "*a",
        "a_b",
    ],
    ["a\nb", "\ttab", 'quote " and \\', "ü😀", "\u2028\u2029\x85\x7f", "\x00\x1b[2J", "%x", "@x", "`x", "|", ">", "?", "[", "{"],
    {"odd key: #": 1, "true": 2, "": 3, "12": 4},
    [[[]], [{}], {"a": [{"b": 1, "c": [1]}, {"b": 2}]}],
    "text",
    7,
    None,
]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_yaml_reads_back_as_what_it_was(value: Any) -> None:
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load(output.yaml(value)) == value


def test_every_form_says_the_same(wright: Wright, pinned: list[str]) -> None:
    yaml = pytest.importorskip("yaml")
    run = wright("run", *pinned, "--no-wait").out.strip()
    assert wright("run", "wait", run).code == 0
    as_json = told(wright("run", "tasks", run, "--output", "json"))
    assert [json.loads(line) for line in wright("run", "tasks", run, "--output", "ndjson").out.splitlines()] == as_json
    assert yaml.safe_load(wright("run", "tasks", run, "--output", "yaml").out) == as_json
    table = wright("run", "tasks", run, "--output", "table").out.splitlines()
    assert [line.split("\t")[0] for line in table] == [row["task_id"] for row in as_json]
    assert wright("run", "tasks", run, "--output", "xml").code == 2
    assert Session().form in ("table", "ndjson")


def test_every_table_is_one_for_people(wright: Wright, bench: Bench, bw: Benchwright) -> None:
    pinned = pinned_to(bench, bw, 6, 2)
    run = told(wright("run", *pinned))
    other = told(wright("run", "replay", run["id"]))["id"]
    sweep = told(wright("sweep", "create", "--anchor", run["id"], "--model", pinned[3], "--name", bench.tag))
    assert wright("run", "wait", sweep["runs"][0]["run"]).code == 0
    tables = {
        ("run", "ls", "--benchmark", pinned[1]): run["id"],
        ("run", "show", run["id"]): "66.7%  4/6",
        ("run", "tasks", run["id"]): "t5",
        ("run", "events", run["id"]): "RunFinished",
        ("run", "task", run["id"], "t0"): "What is 2 + 2? (0)",
        ("run", "wait", run["id"]): "95% interval",
        ("run", "artifacts", run["id"]): "report",
        ("run", "cost", run["id"]): run["id"],
        ("run", "fingerprint", run["id"]): run["fingerprint"],
        ("bench", "ls", "--find", bench.tag): pinned[1],
        ("bench", "show", pinned[1]): "small",
        ("bench", "range", pinned[1], "0-5"): run["id"],
        ("bench", "subset", "ls", pinned[1]): run["subset_id"],
        ("bench", "subset", "board", run["subset_id"]): "66.7%",
        ("bench", "subset", "runs", run["subset_id"]): other,
        ("bench", "subset", "admission", run["subset_id"]): "admitted",
        ("bench", "subset", "admission", run["subset_id"], "--fresh"): "admitted",
        ("bench", "subset", "distill", run["id"], other, "--rule", "k_of_n", "--k", "1", "--dry-run"): "looked_at",
        ("bench", "subset", "distill", "--sweep", sweep["id"], "--rule", "k_of_n", "--k", "1", "--dry-run"): "looked_at",
        ("bench", "impl", "ls", run["subset_id"]): "built-in math",
        ("bench", "recipe", "show", run["subset_id"]): "config.grader.kind",
        ("bench", "samples", "show", run["subset_id"]): "t5",
        ("sweep", "ls"): sweep["id"],
        ("sweep", "show", sweep["id"]): sweep["runs"][0]["run"],
        ("compare", run["id"], other): "inconclusive",
        ("doctor",): "sandbox",
        ("settings", "ls"): "default_trials",
        ("settings", "get", "default_trials"): "1",
    }
    for order, expected in tables.items():
        ran = wright(*order, "--output", "table")
        assert ran.code in ((0, 1) if order == ("doctor",) else (0,)), (order, ran.err)
        assert expected in ran.out, (order, ran.out)
        assert "None" not in ran.out, (order, ran.out)


def test_what_a_model_says_moves_no_terminal(wright: Wright, bench: Bench, bw: Benchwright) -> None:
    nasty = "4 a\x1b]0;owned\x07b\x1b[2Jc\r\nd\u202ee\x9bf"
    run = told(wright("run", *pinned_to(bench, bw, 1, 0, reply(nasty))))["id"]
    for order in (
        ("run", "task", run, "t0", "--output", "table"),
        ("run", "tasks", run, "--output", "table"),
        ("run", "tasks", run),
        ("run", "task", run, "t0"),
    ):
        ran = wright(*order)
        assert ran.code == 0
        assert not set(ran.out + ran.err) & set("\x1b\x07\x9b\u202e\r"), order
    assert "owned" in wright("run", "task", run, "t0", "--output", "yaml").out


def process(bench: Bench, folder: Path, **more: str) -> dict[str, str]:
    return environment(folder, BW_BASE_URL=bench.live.url, BW_PAT=bench.live.operator_key, **more)


def test_on_a_terminal_it_is_a_table_and_colours_can_be_switched_off(bench: Bench, tmp_path: Path, bw: Benchwright) -> None:
    bm = bw.benchmarks.create(name=f"{bench.tag} table")
    for no_colour in ("", "1"):
        ours, theirs = pty.openpty()
        env = process(bench, tmp_path, TERM="xterm", COLUMNS="160", **({"NO_COLOR": "1"} if no_colour else {}))
        done = subprocess.Popen([*COMMAND, "bench", "ls", "--find", bench.tag], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=env, cwd=tmp_path)
        os.close(theirs)
        said = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:
                break
            if not piece:
                break
            said += piece
        os.close(ours)
        assert done.wait(60) == 0, said
        assert bm.id.encode() in said
        assert b"visibility" in said
        if no_colour:
            assert b"\x1b[3" not in said


def test_a_reader_that_leaves_and_an_interrupt_have_codes_of_their_own(bench: Bench, tmp_path: Path, bw: Benchwright) -> None:
    run = bw.runs.wait(bw.runs.launch(**launch_of(pinned_to(bench, bw, 5, 0)))).id
    env = process(bench, tmp_path)
    reading, writing = os.pipe()
    os.close(reading)
    gone = subprocess.run([*COMMAND, "run", "events", run], stdout=writing, stderr=subprocess.PIPE, env=env, cwd=tmp_path, timeout=60)
    os.close(writing)
    assert (gone.returncode, gone.stderr) == (128 + signal.SIGPIPE, b"")


def test_an_interrupt_leaves_the_run_going(bench: Bench, tmp_path: Path, bw: Benchwright) -> None:
    gate = bench.fake.gate()
    pinned = pinned_to(bench, bw, 2, 0, ANSWER.after(gate))
    env = process(bench, tmp_path)
    with subprocess.Popen([*COMMAND, "run", *pinned], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd=tmp_path, text=True) as following:
        assert following.stderr is not None
        said = ""
        while "PhaseStarted" not in said:
            line = following.stderr.readline()
            assert line, said
            said += line
        following.send_signal(signal.SIGINT)
        out, err = following.communicate(timeout=60)
    assert (following.returncode, out) == (130, "")
    run = said.split()[0]
    assert f"{run} goes on" in err
    assert bw.runs.get(run).status == "running"
    gate.open()
    assert bw.runs.wait(run).status == "ok"


def test_a_token_is_made_by_a_browsers_session_alone(wright: Wright, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    no_session = wright("token", "create", "laptop", "--scope", "runs:read")
    assert no_session.code == 4
    assert "browser" in no_session.err
    monkeypatch.setenv("BW_SESSION", bench.live.order({"user": {"name": f"{bench.tag}-ann", "role": "admin"}})["session"])
    made = wright("token", "create", "laptop", "--scope", "runs:read")
    assert made.code == 0, made.err
    assert made.out.startswith("bw_live_pat_")
    monkeypatch.setenv("BW_PAT", made.out.strip())
    assert wright("run", "ls").code == 0
    assert wright("bench", "create", "x").code == 4
    monkeypatch.setenv("BW_SESSION", "nonsense")
    assert wright("token", "create", "laptop").code == 4


def test_the_doctor_and_settings_are_reached(wright: Wright) -> None:
    told_of = [json.loads(line) for line in wright("doctor").out.splitlines()]
    assert {"token", "sandbox"} <= {check["name"] for check in told_of}
    listed = [json.loads(line)["key"] for line in wright("settings", "ls").out.splitlines()]
    assert "default_gate_confidence" in listed
    assert told(wright("settings", "set", "default_gate_confidence", "0.9"))["value"] == 0.9
    assert told(wright("settings", "get", "default_gate_confidence"))["value"] == 0.9
    assert wright("settings", "unset", "default_gate_confidence").code == 0
    assert wright("settings", "set", "colour", "red").code == 1
    assert told(wright("settings", "schema"))["properties"]


def test_the_budget_is_told_and_granted(wright: Wright, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BW_PAT", bench.key(owner=f"{bench.tag}-kim", scopes=["admin"]))
    assert told(wright("billing", "topup", "12.50", "--note", "June"))["amount"]["amount_cents"] == 1250
    assert told(wright("billing", "balance"))["balance"]["amount_cents"] == 1250
    assert "$12.5" in wright("billing", "balance", "--output", "table").out
    for wrong in ("0", "x", "1.234", "nan", "-5", "inf"):
        assert wright("billing", "topup", "--", wrong).code == 2
    assert told(wright("billing", "controls", "--set", "monthly_cap_cents=10000"))["monthly_cap_cents"] == 10000
    assert json.loads(wright("billing", "transactions", "--kind", "grant").out)["kind"] == "grant"
    assert "grant" in wright("billing", "transactions", "--output", "table").out
    assert wright("billing", "export", "--type", "transactions").out.lstrip("\ufeff").startswith("id,kind")
    assert told(wright("billing", "trend"))["object"] == "usage_trend"


def test_a_report_goes_into_a_file_only(wright: Wright, pinned: list[str]) -> None:
    run = told(wright("run", *pinned))["id"]
    assert run in wright("run", "report", "@last").out
    files = [json.loads(line) for line in wright("run", "artifacts", run, "--type", "dataset").out.splitlines()]
    assert len(wright("run", "artifact", run, files[0]["id"]).out.encode()) == files[0]["size"]
    assert told(wright("run", "cost", run))["run"] == run
    assert told(wright("run", "fingerprint", run))["run"] == run


def launch_of(pinned: list[str]) -> dict[str, str]:
    return {"benchmark": pinned[1], "sut": pinned[3]}


def test_a_proxy_of_the_environment_does_not_capture_calls_to_this_machine(bench: Bench, tmp_path: Path) -> None:
    proxy = f"http://127.0.0.1:{free_port()}"
    env = process(bench, tmp_path, HTTP_PROXY=proxy, HTTPS_PROXY=proxy, ALL_PROXY=proxy, http_proxy=proxy)
    done = subprocess.run([*COMMAND, "run", "ls", "--limit", "1"], capture_output=True, env=env, cwd=tmp_path, timeout=60)
    assert done.returncode == 0, done.stderr


def test_shells_that_launch_at_once_share_what_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchwright.cli import kept

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    writers = [threading.Thread(target=kept.changed, args=(Session(), "last", f"http://{n}.example", f"run_{n}")) for n in range(20)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert kept.read(kept.file_of(Session()))["last"] == {f"http://{n}.example": f"run_{n}" for n in range(20)}
