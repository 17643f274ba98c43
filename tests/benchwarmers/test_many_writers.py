"""Everybody writes at once: callers, judges, pages, a backup and the roster. Nobody hears of a locked database, and every call is on record."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.crawl import signed_in
from tests.factories import PRICES
from tests.fake import FakeProvider, reply
from tests.live import CHECKOUT, Bench, Live

CALLERS = 50
EACH = 4
PAGES = ("/admin/", "/admin/panels/panel/", "/admin/health/attempt/", "/admin/panels/verdict/")


def test_many_writers_leave_no_locked_database_and_a_whole_ledger(tmp_path: Path, fake: FakeProvider) -> None:
    server = Live(tmp_path, BENCH_WORKERS="2")
    try:
        server.start()
        bench = Bench(server, fake)
        one, two = (bench.model(name, reply(name), facts=PRICES) for name in ("one", "two"))
        core = bench.collection([one, two])
        limited = bench.key(rpm=100_000, budget_usd="1000")
        session = signed_in(server)

        def call(n: int) -> list[int]:
            found = []
            for _ in range(EACH):
                answer = bench.ask(core if n % 2 else one, f"question {n}", key=limited)
                found.append(answer.status)
                if n % 2 and answer.status == 200:
                    seat = answer.json["bench"]["seats"][0]["call"]
                    found.append(server.send("POST", "/bench/verdict", {"call": seat, "useful": True}, key=limited).status)
            return found

        def read(page: str) -> list[int]:
            return [session.get(server.url + page, timeout=60).status_code for _ in range(EACH)]

        def back_up() -> list[int]:
            run = [sys.executable, "manage.py", "backup", str(tmp_path / "while-it-runs.tar.gz")]
            return [subprocess.run(run, cwd=CHECKOUT, env=server.environment, capture_output=True, timeout=120, check=False).returncode]

        bench.load()
        with ThreadPoolExecutor(CALLERS + len(PAGES) + 1) as pool:
            backup = pool.submit(back_up)
            pages = [pool.submit(read, page) for page in PAGES]
            calls = [pool.submit(call, n) for n in range(CALLERS)]
            assert {s for c in calls for s in c.result()} == {200}
            assert {s for p in pages for s in p.result()} == {200}
            assert backup.result() == [0]
        half = CALLERS // 2 * EACH
        rows = server.attempts(half + half * 2)
        assert {row["status"] for row in rows} == {"ok"}
        assert len({row["panel"] for row in rows}) == CALLERS * EACH
        assert len(server.rows("panels.Verdict")) == half
        assert "database is locked" not in server.log_text()
    finally:
        wrong = server.stop()
    assert not wrong
