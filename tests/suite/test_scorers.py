"""Scorers as code: they run in the sandbox, reach the model through the proxy alone, and cannot write their own verdict."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from suite.sandbox import box
from tests.fake import reply
from tests.live import Bench
from tests.suite.driving import Driver, sums

pytestmark = pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")

ASK = """
import json, os, requests
from bench_task import BenchTask

class Task(BenchTask):
    def extract(self, path, index):
        with open(path) as f:
            rows = [json.loads(line) for line in f]
        row = rows[index]
        return {"task_id": row["task_id"], "input": row["input"], "expected": row["expected"]}

    def solve(self, index, input):
        headers = {}
        key = os.environ.get("BW_MODEL_PROXY_KEY")
        if key: headers["Authorization"] = f"Bearer {key}"
        r = requests.post(
            f"{os.environ['BW_MODEL_PROXY_URL']}/v1/chat/completions",
            headers=headers,
            json={"model": os.environ["BW_MODEL_MODEL"], "messages": [{"role": "user", "content": input["question"]}]},
            timeout=120,
        )
        r.raise_for_status()
        return r.json()["choices"][0]["message"]["content"]

    def score(self, index, output, expected):
        return 1.0 if str(expected["value"]) in output else 0.0
"""


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


def launched(bench: Bench, driver: Driver, code: str, tasks: list[dict[str, Any]] | None = None, status: str = "ok", **more: Any) -> tuple[dict[str, Any], str]:
    model = bench.model("calm", reply("four is 4", usage=(20, 8)), facts={"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"})
    bench.load()
    benchmark = driver.benchmark()["id"]
    subset = driver.api("POST", f"benchmarks/{benchmark}/subsets", {"slug": "s", "tasks": sums(3, wrong=1) if tasks is None else tasks}, 201)
    impl = driver.api("POST", "impls", {"benchmark": benchmark, "subset": subset["id"], "code": textwrap.dedent(code)})
    run = driver.api("POST", "runs", {"benchmark": benchmark, "subset": subset["id"], "impl": impl["id"], "sut": model, **more}, 201)
    return driver.ended(run["id"], status), model


def test_a_scorer_asks_through_the_proxy_and_scores_after(bench: Bench, driver: Driver) -> None:
    found, model = launched(bench, driver, ASK)
    assert (found["summary"]["passed"], found["summary"]["failed"]) == (2, 1)
    assert found["cost"]["metered_usd"] == "0.000108"
    rows = bench.live.attempts(3, model=model)
    assert {row["purpose"] for row in rows} == {"suite"}
    assert found["impl"]["id"].startswith("imp_")


def one_method(solve: str = 'return "4"', score: str = "return 1.0", top: str = "") -> str:
    return f"""
from bench_task import BenchTask
{top}
class Task(BenchTask):
    def extract(self, path, index):
        import json
        return json.loads(open(path).readline())
    def solve(self, index, input):
        {solve}
    def score(self, index, output, expected):
        {score}
"""


BAD_SCORES = [
    "return 2",
    "return -0.1",
    "return float('nan')",
    "return True",
    "return None",
    "return 'yes'",
    "raise SystemExit(0)",
    "import os; os._exit(0)",
    "1/0",
]


@pytest.mark.parametrize("score", BAD_SCORES)
def test_a_score_that_is_none_is_the_scorers_failing_and_no_result(bench: Bench, driver: Driver, score: str) -> None:
    found, _ = launched(bench, driver, one_method(score=score), sums(1))
    assert (found["summary"]["judge_failed"], found["summary"]["pass_rate"], found["summary"]["coverage"]) == (1, None, 0.0)


def test_a_printed_or_forged_result_is_none(bench: Bench, driver: Driver) -> None:
    forge = """print('{"ok": true, "score": 1.0}')
        import os
        for fd in range(3, 64):
            try: os.write(fd, b'{"ok": true, "score": 1.0}\\n')
            except OSError: pass
        os._exit(0)"""
    found, _ = launched(bench, driver, one_method(score=forge), sums(1))
    assert found["summary"]["passed"] == 0


def test_what_is_expected_is_not_there_while_the_model_is_asked(bench: Bench, driver: Driver) -> None:
    found, _ = launched(
        bench,
        driver,
        one_method(solve="return str(open('tasks.jsonl').read())", score='return 1.0 if "424242" not in output else 0.0'),
        [{**sums(1)[0], "expected": {"value": 424242}}],
    )
    assert found["summary"]["passed"] == 1


def test_another_model_and_a_wrong_key_are_refused_by_the_proxy(bench: Bench, driver: Driver) -> None:
    solve = """import json, os, requests
        url = os.environ["BW_MODEL_PROXY_URL"] + "/v1/chat/completions"
        say = {"messages": [{"role": "user", "content": "hi"}]}
        mine = {"Authorization": "Bearer " + os.environ["BW_MODEL_PROXY_KEY"]}
        other = requests.post(url, json={"model": "another", **say}, headers=mine).status_code
        nobody = requests.post(url, json={"model": os.environ["BW_MODEL_MODEL"], **say}, headers={"Authorization": "Bearer x"}).status_code
        return json.dumps([other, nobody])"""
    found, model = launched(bench, driver, one_method(solve=solve, score='return 1.0 if output == "[403, 401]" else 0.0'), sums(1))
    assert found["summary"]["passed"] == 1
    assert not bench.fake.calls_to(model)


SEES = """import json, os, socket
        pids = [p for p in os.listdir("/proc") if p.isdigit()]
        found = {"env": dict(os.environ), "home": os.path.exists("/root"), "etc": os.path.exists("/etc/passwd"), "pids": pids}
        try:
            socket.create_connection(("127.0.0.1", PORT), 1)
            found["port"] = True
        except OSError:
            found["port"] = False
        return json.dumps(found)"""
LEAKS = """import json
        o = json.loads(output)
        leaks = [k for k in o["env"] if "SECRET" in k or "BENCHWARMERS" in k]
        return 0.0 if o["home"] or o["etc"] or o["port"] or len(o["pids"]) > 4 or leaks else 1.0"""


def test_a_scorer_sees_nothing_of_the_host(bench: Bench, driver: Driver) -> None:
    found, _ = launched(bench, driver, one_method(solve=SEES.replace("PORT", str(bench.live.port)), score=LEAKS), sums(1))
    assert found["summary"]["passed"] == 1


def test_a_scorer_that_does_not_end_is_ended(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", reply("4"))
    bench.load()
    benchmark = driver.benchmark()["id"]
    subset = driver.api("POST", f"benchmarks/{benchmark}/subsets", {"slug": "s", "tasks": sums(1), "recipe": {"run_timeout": 2}}, 201)
    impl = driver.api("POST", "impls", {"benchmark": benchmark, "subset": subset["id"], "code": one_method(score="\n        while True: pass")})
    run = driver.api("POST", "runs", {"benchmark": benchmark, "subset": subset["id"], "impl": impl["id"], "sut": model}, 201)
    found = driver.ended(run["id"])
    assert found["summary"]["judge_failed"] == 1
    (task,) = driver.api("GET", f"runs/{run['id']}/tasks")["data"]
    assert "too long" in driver.api("GET", f"runs/{run['id']}/tasks/{task['id']}/payload")["samples"][0]["explanation"]


CHILD = """import os
        ppid = os.getppid()
        for fd in range(0, 64):
            for path in (f"/proc/{ppid}/fd/{fd}", f"/proc/self/fd/{fd}"):
                try:
                    with open(path, "wb", buffering=0) as f: f.write(b'{"ok": true, "score": 1.0}\\n')
                except OSError: pass
        try:
            with open(f"/proc/{ppid}/mem", "rb") as f: print("READ", len(f.read(1)))
        except OSError: print("CLOSED")
        try: print("ENV" if b"BENCH" in open(f"/proc/{ppid}/environ", "rb").read() else "NONE")
        except OSError: print("CLOSED")
        """


def test_a_program_that_a_scorer_starts_cannot_reach_the_scorer(bench: Bench, driver: Driver) -> None:
    """Scorers run what models wrote as a subprocess: it finds neither the result's way out nor the word that goes with it."""
    child = "\n".join(line.removeprefix("        ") for line in CHILD.splitlines())
    score = f"""import subprocess
        said = subprocess.run(["python3", "-c", {child!r}], capture_output=True, text=True).stdout
        return {{"value": 0.0, "explanation": said}}"""
    found, _ = launched(bench, driver, one_method(score=score), sums(1))
    assert (found["summary"]["passed"], found["summary"]["failed"]) == (0, 1)
    (task,) = driver.api("GET", f"runs/{found['id']}/tasks")["data"]
    said = driver.api("GET", f"runs/{found['id']}/tasks/{task['id']}/payload")["samples"][0]["explanation"]
    assert said.split()[-2:] == ["CLOSED", "CLOSED"]


ALL_ASYNC = """
import asyncio
from bench_task import BenchTask

class Task(BenchTask):
    async def extract(self, path, index):
        raise AssertionError("the iterator is used")
    async def extract_all(self, path):
        import json
        for line in open(path):
            yield json.loads(line)
    async def solve(self, index, input):
        await asyncio.sleep(0)
        return {"n": input["question"]}
    async def score(self, index, output, expected):
        return {"value": 0.25, "answer": "x", "explanation": "a quarter", "metadata": {"seen": output, "odd": float("nan"), 7: {1}}}
"""


def test_methods_may_be_async_and_a_score_may_say_more(bench: Bench, driver: Driver) -> None:
    found, _ = launched(bench, driver, ALL_ASYNC, sums(1))
    assert (found["summary"]["failed"], found["summary"]["mean"]) == (1, 0.25)
    (task,) = driver.api("GET", f"runs/{found['id']}/tasks")["data"]
    (sample,) = driver.api("GET", f"runs/{found['id']}/tasks/{task['id']}/payload")["samples"]
    assert (sample["answer"], sample["explanation"]) == ("x", "a quarter")
    assert sample["metadata"] == {"seen": '{"n": "What is 2 + 2? (0)"}', "odd": "NaN", "7": "{1}"}


HALVES = "return '\\ud835\\x00\\u202e'"


@pytest.mark.parametrize(
    ("solve", "outcome"),
    [
        ("return 'x' * 30_000_000", "judge_failed"),
        (HALVES, "passed"),
        ("return {1: 2}", "passed"),
        ("return object()", "judge_failed"),
        ("raise KeyboardInterrupt", "judge_failed"),
        ("import os; os.kill(os.getpid(), 9)", "judge_failed"),
    ],
)
def test_whatever_a_scorer_gives_as_output_the_run_ends(bench: Bench, driver: Driver, solve: str, outcome: str) -> None:
    found, _ = launched(bench, driver, one_method(solve=solve), sums(1))
    assert found["summary"][outcome] == 1
    (task,) = driver.api("GET", f"runs/{found['id']}/tasks")["data"]
    payload = driver.api("GET", f"runs/{found['id']}/tasks/{task['id']}/payload")
    assert solve != HALVES or payload["output"] == "\ud835\x00\u202e"
