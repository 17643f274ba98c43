"""The bench is changed, and its database locked, while calls are under way."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fake import FakeProvider, reply
from tests.gateway.test_hostile_money import FACTS, Books
from tests.live import Bench, Live, eventually


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server of this file's own: its database is taken away."""
    server = Live(tmp_path_factory.mktemp("changing"), BENCH_WORKERS="2")
    try:
        server.start()
        yield server
    finally:
        wrong = server.stop()
    assert not wrong


@pytest.fixture
def shaken(changing: Live, fake: FakeProvider) -> Bench:
    return Bench(changing, fake)


@pytest.mark.skipif(bool(os.environ.get("DATABASE_URL")), reason="locks an SQLite file")
def test_a_locked_database_refuses_limits_and_loses_nothing(shaken: Bench) -> None:
    fast = shaken.model("fast", reply("x", usage=(5, 3)), facts=FACTS)
    core = shaken.collection([fast])
    books = Books(shaken)
    free = shaken.key()
    assert shaken.ask(core, key=books.secret).status == 200
    shaken.live.attempts(1, model=fast)
    (file,) = [f for f in shaken.live.home.iterdir() if f.suffix in (".sqlite3", ".db")]
    lock = sqlite3.connect(file, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    try:
        unlimited = [shaken.live.ask(name, key=free).status for name in (fast, core, f"{core}:route", f"{core}:merged")]
        limited = [shaken.live.ask(name, key=books.secret) for name in (fast, core)]
    finally:
        lock.execute("ROLLBACK")
        lock.close()
    assert unlimited == [200] * 4
    assert [(a.status, a.code) for a in limited] == [(503, "database_unavailable")] * 2
    assert all(int(a.headers["retry-after"]) >= 1 for a in limited)
    assert eventually(lambda: shaken.live.ask(core, key=books.secret).status == 200, "the database's return")
    books.settled(len(shaken.live.rows("health.Attempt", key_id=books.id)))
    shaken.live.attempts(4 + len(shaken.live.rows("health.Attempt", key_id=books.id)), model=fast)


def test_a_key_revoked_in_mid_stream_ends_with_that_stream(shaken: Bench) -> None:
    gate = shaken.fake.gate()
    fast = shaken.model("fast", reply(["one ", "two"], usage=(3, 2)).holding(gate, after="one "), facts=FACTS)
    books = Books(shaken)
    with shaken.stream(fast, key=books.secret) as stream:
        stream.until("one ")
        shaken.live.api("DELETE", f"keys/{books.name}")
        assert shaken.live.ask(fast, key=books.secret).status == 401
        gate.open()
        assert b"[DONE]" in stream.rest()
    books.settled(1)


def test_a_panel_is_finished_as_it_was_planned(shaken: Bench) -> None:
    gate = shaken.fake.gate()
    one = shaken.model("one", reply("one", usage=(3, 2)).after(gate), facts=FACTS)
    two = shaken.model("two", reply("two", usage=(3, 2)).after(gate), facts=FACTS)
    core = shaken.collection([one, two], mergers=[one])
    books = Books(shaken)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(shaken.ask, core, key=books.secret)
        shaken.fake.call(two)
        shaken.live.api("POST", f"models/{one}/retire", {"reason": "mid-flight"})
        shaken.live.api("DELETE", f"collections/{core.removeprefix('bench/')}")
        gate.open()
        answer = asked.result()
    assert answer.status == 200
    assert [s["status"] for s in answer.json["bench"]["seats"]] == ["ok", "ok"]
    assert shaken.live.ask(core, key=books.secret).status == 404
    books.settled(2)


def test_no_call_is_refused_while_its_collection_is_edited_ten_times_a_second(shaken: Bench) -> None:
    members = [shaken.model(f"m{n}", reply(["a ", "b"], usage=(5, 3)).holding(0.05, after="a "), facts=FACTS) for n in range(2)]
    core = shaken.collection(members)
    books = Books(shaken)
    shaken.load()
    over = threading.Event()

    def shaking() -> None:
        n = 0
        while not over.wait(0.1):
            n += 1
            shaken.live.api("PATCH", f"collections/{core.removeprefix('bench/')}", {"description": f"edition {n}"})

    thread = threading.Thread(target=shaking)
    thread.start()
    try:

        def one(n: int) -> tuple[int, bool]:
            name = members[0] if n % 3 == 0 else core if n % 3 == 1 else f"{core}:route"
            with shaken.live.stream(name, key=books.secret) as stream:
                return stream.status, b"[DONE]" in stream.rest()

        until = time.monotonic() + 6
        got: list[tuple[int, bool]] = []
        with ThreadPoolExecutor(4) as pool:
            while time.monotonic() < until:
                got += pool.map(one, range(12))
    finally:
        over.set()
        thread.join()
    assert set(got) == {(200, True)}
    eventually(lambda: not books.permits(), "the last permit's end")
    rows = shaken.live.rows("health.Attempt", key_id=books.id)
    assert len(rows) == len(got) // 12 * (4 + 8 + 4)
    assert {r["status"] for r in rows} == {"ok"}
