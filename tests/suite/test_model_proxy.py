"""A scorer's way to the model (B125): a key that ends with its attempt, one model, nothing streamed, and all of it counted."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest

from access.caller import Caller
from panels.gateway import Gateway
from suite.running.proxy import Pass, Proxy
from suite.sandbox import box
from tests.fake import reply
from tests.live import CANARY_KEY, Bench
from tests.suite.driving import Driver, sums

needs_box = pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")


async def nobody() -> Any:
    raise AssertionError("refused before anything is looked up")


async def put(proxy: Proxy, key: str, body: Any, path: str = "/v1/chat/completions") -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(proxy.socket))) as session,
        session.post(f"http://proxy{path}", json=body, headers=headers) as answer,
    ):
        return answer.status, await answer.json() if "json" in answer.content_type else await answer.text()


async def test_a_key_is_good_for_one_model_and_ends_with_its_attempt() -> None:
    with box.scratch() as folder:
        proxy = Proxy(cast(Gateway, None), Path(folder))
        await proxy.open()
        try:
            say = {"messages": [{"role": "user", "content": "hi"}]}
            caller = Caller(kind="user", judge="x", scopes=frozenset({"ask"}))
            async with proxy.passing(Pass("mine", caller, nobody, "run_1")) as key, proxy.passing(Pass("other", caller, nobody, "run_2")) as second:
                assert key != second
                assert (await put(proxy, key, {"model": "other", **say}))[0] == 403
                assert (await put(proxy, key, {**say}))[0] == 403
                assert (await put(proxy, key, ["mine"]))[0] == 403
                assert (await put(proxy, key, {"model": "mine", "stream": True, **say}))[0] == 400
                assert (await put(proxy, f"{key}x", {"model": "mine", **say}))[0] == 401
                assert (await put(proxy, "", {"model": "mine", **say}))[0] == 401
                assert (await put(proxy, key, {"model": "mine", **say}, "/v1/models"))[0] in (404, 405)
            assert (await put(proxy, "\u00e9", {"model": "mine", **say}))[0] == 401
            status, said = await put(proxy, key, {"model": "mine", **say})
            assert (status, said["error"]["code"]) == (401, "invalid_key")
        finally:
            await proxy.close()


ASKS = """
import json, os, requests
from bench_task import BenchTask

class Task(BenchTask):
    def extract(self, path, index):
        return json.loads(open(path).readline())
    def solve(self, index, input):
        found = []
        for i in range(TIMES):
            r = requests.post(
                os.environ["BW_MODEL_PROXY_URL"] + "/v1/chat/completions",
                headers={"Authorization": "Bearer " + os.environ["BW_MODEL_PROXY_KEY"]},
                json={"model": os.environ["BW_MODEL_MODEL"], "messages": [{"role": "user", "content": f"{i}"}]},
            )
            found.append((r.status_code, r.text, dict(r.headers)))
        return json.dumps({"asked": found, "env": dict(os.environ)})
    def score(self, index, output, expected):
        return {"value": 1.0, "explanation": json.dumps([status for status, _, _ in json.loads(output)["asked"]])}
"""


def asked(bench: Bench, times: int, **launch: Any) -> tuple[dict[str, Any], dict[str, Any], str]:
    driver = Driver(bench)
    model = bench.model("calm", reply("4", usage=(20, 8)), facts={"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"})
    bench.load()
    benchmark = driver.benchmark()["id"]
    subset = driver.api("POST", f"benchmarks/{benchmark}/subsets", {"slug": "s", "tasks": sums(1)}, 201)
    impl = driver.api("POST", "impls", {"benchmark": benchmark, "subset": subset["id"], "code": textwrap.dedent(ASKS.replace("TIMES", str(times)))})
    run = driver.ended(driver.api("POST", "runs", {"benchmark": benchmark, "subset": subset["id"], "impl": impl["id"], "sut": model, **launch}, 201)["id"])
    (task,) = driver.api("GET", f"runs/{run['id']}/tasks")["data"]
    (sample,) = driver.api("GET", f"runs/{run['id']}/tasks/{task['id']}/payload")["samples"]
    return run, sample, model


@needs_box
def test_every_call_of_an_attempt_is_counted_and_shows_no_real_key(bench: Bench) -> None:
    run, sample, model = asked(bench, 3)
    assert sample["explanation"] == "[200, 200, 200]"
    assert (run["cost"]["metered_usd"], run["summary"]["tokens"]) == ("0.000108", {"input": 60, "output": 24})
    assert {row["purpose"] for row in bench.live.attempts(3, model=model)} == {"suite"}
    for secret in (CANARY_KEY, bench.live.operator_key):
        assert secret not in sample["output"]


@needs_box
def test_an_attempt_breaks_its_tasks_ceiling_by_its_calls(bench: Bench) -> None:
    run, sample, model = asked(bench, 5, limits={"task": {"tokens": 50}})
    assert (run["summary"]["limit"], sample["error_class"]) == (1, "limit_exceeded:task.tokens")
    assert len(bench.fake.calls_to(model)) == 2, "28 tokens each: the third is not asked"
