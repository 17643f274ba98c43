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
