"""Measures a run of the suite beside Inspect AI and lm-evaluation-harness: `python -m bench.evals`, as `make bench` does after the calls.

The same questions by the same compiled upstream, 32 at once, one program after the other. What a program takes to start is taken out: each runs a small set
and a large one, and the difference is divided by the samples between. `--samples` how many, `--alone` leaves the others out (and their downloads, about
1 GB, once, into `~/.cache/benchwarmers-bench`), `--write` renders the table into docs/PERFORMANCE.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import compiled, machine, servers, tables

AT_ONCE = 32
SMALL = 200
INSPECT, LM_EVAL = "0.3.285", "0.4.13"
BEGIN, END = "<!-- evals: written by python -m bench.evals --write -->", "<!-- end of evals -->"
OVER = ("ok", "failed", "halted")


@dataclass(frozen=True, slots=True)
class Took:
    """What one set took. Units: seconds of CPU of the whole process tree, MB of its largest process, seconds by the clock."""

    cpu_s: float
    memory_mb: float
    wall_s: float


@dataclass(frozen=True, slots=True)
class Figure:
    """Shape: `keeps` says what is on disk when a sample has ended."""

    name: str
    cpu_ms: float
    memory_mb: float
    calls: int
    keeps: str


def question(number: int) -> str:
    return f"q={number}.1; What is 2 + 2? Show your work, then end with one line: ANSWER: and the number."


# ------------------------------------------------------------------ this server


def peak(root: int) -> float:
    return max((machine.pss_mb(process.pid) for process in machine.tree(root)), default=0.0)


class Ours:
    """This server with one subset a size, asked as any client asks it."""

    def __init__(self, folder: Path, port: int) -> None:
        self.server = servers.start_ours(folder, port, [], "fake-l0")
        self.key = (self.server.home / "operator.key").read_text().strip()
        self.send("settings/default_concurrency", {"value": AT_ONCE}, "PUT")

    def send(self, path: str, body: Any = None, method: str = "") -> Any:
        status, said = servers.ask(self.server.running.port, f"/v1/{path}", body, self.key, method, timeout_s=120)
        if status >= 300:
            raise servers.CannotStart(f"/v1/{path} answered {status}: {said}")
        return said

    def run(self, count: int) -> Took:
        benchmark = self.send("benchmarks", {"name": f"bench {count}"})["id"]
        rows = [{"task_id": f"t{n}", "input": {"question": question(n)}, "expected": {"value": 4}} for n in range(count)]
        subset = self.send(f"benchmarks/{benchmark}/subsets", {"slug": "s", "grader": {"kind": "math"}, "rolling": True, "tasks": rows[:1000]})["id"]
        for start in range(1000, count, 1000):
            self.send(f"subsets/{subset}/tasks", {"tasks": rows[start : start + 1000]})
        root = self.server.running.pid
        memory = peak(root)
        cpu, began = machine.cpu_s(root), time.monotonic()
        run = self.send("runs", {"benchmark": benchmark, "subset": subset, "sut": "fake-l0"})["id"]
        while (said := self.send(f"runs/{run}"))["status"] not in OVER:
            memory = max(memory, peak(root))
            time.sleep(1)
        found = Took(machine.cpu_s(root) - cpu, memory, time.monotonic() - began)
        if said["status"] != "ok" or said["progress"]["done"] != count:
            raise servers.CannotStart(f"The run ended as {said['status']} with {said['progress']['done']} of {count}: {said['error']}")
        return found


# ------------------------------------------------------------------ the others


def installed(name: str, wanted: str, *packages: str) -> Path:
    """Puts a package into a virtual environment of its own, once. Shape: its folder. Errors: CannotStart."""
    folder = servers.CACHE / name
    if not list(folder.glob(f"lib/python3*/site-packages/{wanted}.dist-info")):
        print(f"Installing {packages[0]} into {folder} …", flush=True)
        servers.CACHE.mkdir(parents=True, exist_ok=True)
        for command in ([sys.executable, "-m", "venv", str(folder)], [str(folder / "bin" / "pip"), "install", "-q", *packages]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise servers.CannotStart(f"{packages[0]} could not be installed:\n{done.stderr[-1500:]}\nLeave the others out with --alone.")
    return folder


def timed(command: list[str], folder: Path, environment: dict[str, str]) -> Took:
    """Runs a program to its end. Errors: CannotStart with the end of what it said."""
    base = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")}
    began = time.monotonic()
    with (folder / "said.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=base | environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise servers.CannotStart(f"{command[0]} ended with {process.returncode}:\n{(folder / 'said.log').read_text(errors='replace')[-2000:]}")
    return Took(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, time.monotonic() - began)


INSPECT_TASK = """
import json
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match
from inspect_ai.solver import generate

@task
def sums():
    rows = [json.loads(line) for line in open("rows.jsonl")]
    return Task(dataset=[Sample(input=row["question"], target="4") for row in rows], solver=generate(), scorer=match(numeric=True))
"""


def inspect(folder: Path, port: int) -> Callable[[int], Took]:
    venv = installed("inspect", f"inspect_ai-{INSPECT}", f"inspect_ai=={INSPECT}", "openai")

    def run(count: int) -> Took:
        here = Path(tempfile.mkdtemp(dir=folder))
        (here / "task.py").write_text(INSPECT_TASK)
        (here / "rows.jsonl").write_text("".join(json.dumps({"question": question(n)}) + "\n" for n in range(count)))
        command = [str(venv / "bin" / "inspect"), "eval", "task.py", "--model", "openai/fake-l0", "--max-connections", str(AT_ONCE), "--display", "none"]
        # The upstream speaks chat completions, as both others ask for.
        command += ["-M", "responses_api=false", "--no-fail-on-error", "--log-dir", "logs"]
        return timed(command, here, {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1", "OPENAI_API_KEY": "sk-fake"})

    return run


LM_EVAL_TASK = """
task: sums
dataset_path: json
dataset_kwargs: {data_files: {test: rows.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "4"
generation_kwargs: {until: ["<end>"], max_gen_toks: 64, do_sample: false}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""


def lm_eval(folder: Path, port: int) -> Callable[[int], Took]:
    venv = installed("lmeval", f"lm_eval-{LM_EVAL}", f"lm_eval[api]=={LM_EVAL}")

    def run(count: int) -> Took:
        here = Path(tempfile.mkdtemp(dir=folder))
        (here / "sums.yaml").write_text(LM_EVAL_TASK)
        (here / "rows.jsonl").write_text("".join(json.dumps({"question": question(n)}) + "\n" for n in range(count)))
        address = f"http://127.0.0.1:{port}/v1/chat/completions"
        model = f"model=fake-l0,base_url={address},num_concurrent={AT_ONCE},tokenizer_backend=None,tokenized_requests=False"
        command = [str(venv / "bin" / "lm_eval"), "--model", "local-chat-completions", "--model_args", model, "--tasks", "sums", "--include_path", "."]
        command += ["--apply_chat_template", "--output_path", "out", "--log_samples"]
        offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(here / "hf"), "OPENAI_API_KEY": "sk-fake"}
        return timed(command, here, offline)

    return run


# ------------------------------------------------------------------ side by side


def figure(name: str, run: Callable[[int], Took], samples: int, upstream: servers.Running, keeps: str) -> Figure:
    before = servers.stats(upstream)["requests"]
    small, large = run(SMALL), run(samples)
    calls = servers.stats(upstream)["requests"] - before
    found = Figure(name, (large.cpu_s - small.cpu_s) / (samples - SMALL) * 1000, large.memory_mb, calls, keeps)
    print(f"{name}: {found.cpu_ms:.2f} ms CPU a sample, {found.memory_mb:.0f} MB, {calls} calls, {large.wall_s:.0f} s", flush=True)
    return found


def render(figures: list[Figure], samples: int) -> str:
    about = machine.describe()
    lines = [[f.name, f"{f.cpu_ms:.2f}", f"{f.memory_mb:.0f}", f"{f.calls:,}", f.keeps] for f in figures]
    return "\n\n".join(
        [
            f"Run of {datetime.now(UTC).isoformat(timespec='seconds')}, revision {machine.revision(servers.ROOT)}, {samples:,} samples, {AT_ONCE} at once.",
            f"Machine: {about['cpu']}, {about['cores']} cores, Python {about['python']}; a million turns of a plain loop take {about['loop_ms']} ms here.",
            tables.table(["program", "CPU ms a sample", "MB of the largest process", "calls upstream", "kept when a sample has ended"], lines),
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.evals", description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--samples", type=int, default=5_000)
    parser.add_argument("--alone", action="store_true", help="this server alone")
    parser.add_argument("--write", action="store_true", help="render the table into docs/PERFORMANCE.md")
    given = parser.parse_args()
    try:
        tools = compiled.tools()
    except compiled.CannotBuild as reason:
        print(f"The benchmark is skipped: {reason}")
        return 0
    with tempfile.TemporaryDirectory(prefix="benchwarmers-evals-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        try:
            upstream = servers.start_upstream(tools["upstream"], folder)
            stack.callback(upstream.end)
            ours = Ours(folder, upstream.port)
            figures = [figure("this server", ours.run, given.samples, upstream, "all of it, its call's cost and its event")]
            ours.server.running.end()
            if not given.alone:
                figures.append(figure(f"Inspect AI {INSPECT}", inspect(folder, upstream.port), given.samples, upstream, "its log, some samples at a time"))
                figures.append(figure(f"lm-evaluation-harness {LM_EVAL}", lm_eval(folder, upstream.port), given.samples, upstream, "nothing until the end"))
        except servers.CannotStart as reason:
            print(f"The benchmark cannot run: {reason}", file=sys.stderr)
            return 1
    text = render(figures, given.samples)
    print(text)
    if given.write:
        page = tables.PAGE.read_text()
        before, after = page[: page.index(BEGIN) + len(BEGIN)], page[page.index(END) :]
        tables.PAGE.write_text(f"{before}\n\n{text}\n\n{after}")
    wrong = [f.name for f in figures if f.calls != SMALL + given.samples]
    if wrong:
        print(f"Another number of calls than of samples: {', '.join(wrong)}", file=sys.stderr)
    return 1 if "this server" in wrong else 0


if __name__ == "__main__":
    sys.exit(main())
