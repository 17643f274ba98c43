"""A server that can make no sandbox, and `manage.py scorers` beside it that can: as in compose, where what runs strangers' code is a container of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from suite.sandbox import box
from tests.fake import FakeProvider, reply
from tests.live import CHECKOUT, STOP_S, Bench, Live, eventually
from tests.suite.driving import Driver, sums
from tests.suite.test_scorers import one_method

pytestmark = pytest.mark.skipif(bool(box.trouble()), reason=f"no sandbox here: {box.trouble()}")
TASK = {"task_id": "one", "input": {"prompt": "Write foo."}, "expected": {"test_code": "assert foo(1) == 2", "solution": "def foo(x):\n    return x + 1"}}


@pytest.fixture(scope="module")
def locked_down(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server whose bubblewrap is refused, as a container's usual profile refuses it."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    (folder / "bwrap").chmod(0o755)
    server = Live(PATH=f"{folder}{os.pathsep}{os.environ['PATH']}")
    try:
        server.start()
        yield server
    finally:
        wrong = server.stop()
    assert not wrong, wrong


@pytest.fixture
def scorers(locked_down: Live) -> Iterator[subprocess.Popen[bytes]]:
    with (Path(locked_down.folder) / "scorers.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "scorers"], cwd=CHECKOUT, env={**locked_down.environment, "PATH": os.environ["PATH"]}, stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_S)


def rescored(driver: Driver, run: str, body: dict[str, Any]) -> dict[str, Any]:
    told = driver.api("POST", f"runs/{run}/rescore", body, 202)
    where = f"runs/{run}/rescorings/{told['id']}?wait=5"
    found: dict[str, Any] = eventually(lambda: r if (r := driver.api("GET", where))["status"] == "ok" else None, f"the end of {told['id']}")
    return found


def test_code_waits_for_a_host_that_runs_it_and_the_rest_does_not(locked_down: Live, fake: FakeProvider, request: pytest.FixtureRequest) -> None:
    bench = Bench(locked_down, fake)
    driver = Driver(bench)
    coder = bench.model("coder", reply("```python\ndef foo(x):\n    return x + 1\n```", usage=(20, 8)))
    calm = bench.model("calm", reply("ANSWER: 4", usage=(20, 8)))
    bench.load()
    code, plain = driver.subset([TASK], grader={"kind": "code"}), driver.subset(sums(2))
    by_row = driver.subset([{**TASK, "kind": "code"}], grader={})
    refused = driver.send("POST", "runs", {"benchmark": code["benchmark"], "subset": code["id"], "sut": coder})
    assert (refused.status, refused.json["code"]) == (422, "sandbox_unavailable")
    assert "manage.py scorers" in refused.json["detail"]
    driver.ended(driver.launch(plain, calm)["id"])

    sums_run = driver.ended(driver.launch(plain, calm)["id"])
    scorer = {"code": one_method(score='return 1.0 if output == "ANSWER: 4" else 0.0')}
    refused = driver.send("POST", f"runs/{sums_run['id']}/rescore", scorer)
    assert (refused.status, refused.json["code"]) == (422, "sandbox_unavailable")

    process = request.getfixturevalue("scorers")
    eventually(lambda: locked_down.rows("suite.CodeHost"), "a host that runs code")
    runs = [driver.launch(subset, coder)["id"] for subset in (code, by_row)]
    assert [driver.ended(run)["summary"]["passed"] for run in runs] == [1, 1]
    assert driver.ended(driver.launch(plain, calm)["id"])["summary"]["passed"] == 2
    assert rescored(driver, runs[0], {})["changed"] == 0
    assert rescored(driver, sums_run["id"], scorer)["done"] == 2
    found = driver.api("POST", f"impls/{driver.api('GET', f'runs/{runs[0]}')['impl']['id']}/dry-run", {})
    assert (found["ok"], found["findings"]) == (True, [])
    assert "another host runs code" in locked_down.manage("doctor")

    process.send_signal(signal.SIGTERM)
    assert process.wait(STOP_S) == 0
    assert not locked_down.rows("suite.CodeHost")
    assert driver.send("POST", "runs", {"benchmark": code["benchmark"], "subset": code["id"], "sut": coder}).json["code"] == "sandbox_unavailable"


def test_a_host_that_can_run_none_says_so_and_ends(locked_down: Live) -> None:
    assert "No permissions" in locked_down.manage("scorers", code=1)
    assert not locked_down.rows("suite.CodeHost")
