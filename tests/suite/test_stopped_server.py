"""A server that is told to stop while a provider says nothing: it ends in its time, what was under way is on record, and a run goes on at the next start."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

from tests.fake import FakeProvider, hang, reply
from tests.http import Stream
from tests.live import Bench, Live, eventually
from tests.suite.driving import Driver, sums

ANSWER = reply("ANSWER: 4", usage=(20, 8))
TASKS = 8


def left_over(server: Live) -> list[str]:
    return [path.name for path in (server.home / "outbox").glob("*") if path.stat().st_size]


def test_a_stop_does_not_wait_for_a_provider_that_says_nothing(tmp_path: Path, fake: FakeProvider) -> None:
    server = Live(tmp_path / "server", BENCH_WORKERS="1", BENCH_GRACEFUL_TIMEOUT_S="3")
    try:
        server.start()
        bench = Bench(server, fake)
        stuck = bench.model("stuck", ANSWER, ANSWER, hang(), endpoint=bench.endpoint("runs", limits={"parallel": 4}))
        silent = bench.model("silent", hang(), endpoint=bench.endpoint("silent"))
        broken_off = bench.model("broken-off", reply(["a word ", "and more"]).holding(fake.gate(), after="a word "), endpoint=bench.endpoint("broken-off"))
        driver = Driver(bench.load())
        run = driver.launch(driver.subset(sums(TASKS)), stuck)["id"]
        eventually(lambda: driver.api("GET", f"runs/{run}")["progress"]["done"] == 2, "two tasks")
        eventually(lambda: len(fake.calls_to(stuck)) > 2, "a call of the run that hangs")
        whole = threading.Thread(target=lambda: attempt(bench, silent))
        whole.start()
        stream = bench.stream(broken_off)
        stream.until("a word ")
        eventually(lambda: fake.calls_to(silent), "the direct call")

        assert server.terminate() == 0  # Errors: TimeoutExpired long after its time
        whole.join()
        ended(stream)
        assert "did not end" not in server.log_text()
        assert not left_over(server), "what was to be committed is"
        asked = len(fake.calls_to(stuck))

        # Before anybody starts it again: whatever went out stands in the ledger, once.
        rows = server.rows("health.Attempt")
        by_model = {name: [row for row in rows if row["model"] == name] for name in (stuck, silent, broken_off)}
        assert len(by_model[silent]) == len(by_model[broken_off]) == 1, by_model
        assert by_model[silent][0]["status"] == by_model[broken_off][0]["status"] == "cancelled"
        assert by_model[broken_off][0]["output_tokens"] > 0, "what had come is counted"
        states = Counter(row["status"] for row in by_model[stuck])
        assert states == {"ok": 2, "cancelled": asked - 2}

        fake.script(bench.models[stuck]["served_name"], ANSWER)
        server.launch()
        found = driver.ended(run)
        assert (found["summary"]["total"], found["summary"]["passed"], found["interruptions"]) == (TASKS, TASKS, 0)
        good = [row for row in server.rows("health.Attempt", model=stuck) if row["status"] == "ok"]
        assert len(good) == TASKS, "nothing that had ended was asked again"
        assert [row["superseded"] for row in server.rows("suite.Sample", run=run)] == [0] * TASKS
        assert server.terminate() == 0
    finally:
        assert not server.stop()


def attempt(bench: Bench, model: str) -> None:
    """Asks for what is not answered: the connection is cut."""
    with suppress(OSError, HTTPException):
        bench.live.ask(model)


def ended(stream: Stream) -> None:
    with suppress(OSError, HTTPException):
        stream.rest()
    stream.close()
