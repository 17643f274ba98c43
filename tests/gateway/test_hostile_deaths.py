"""Workers killed in the middle of every mode: nothing is lost, counted twice, or held until its time runs out."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from tests.benchwarmers.test_serving import processes
from tests.fake import FakeProvider, hang, reply
from tests.gateway.test_hostile_money import FACTS, Books
from tests.live import Bench, Live, eventually


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server of this file's own: its workers are killed."""
    server = Live(tmp_path_factory.mktemp("mortal"), BENCH_WORKERS="2")
    try:
        server.start()
        yield server
    finally:
        wrong = server.stop()
    assert not wrong


@pytest.fixture
def doomed(mortal: Live, fake: FakeProvider) -> Bench:
    return Bench(mortal, fake)


def web_workers(server: Live) -> list[int]:
    found = processes(server)
    masters = {pid for pid, (parent, command) in found.items() if parent == server.pid and "gunicorn" in command}
    return [pid for pid, (parent, _) in found.items() if parent in masters]


RINGS = itertools.count(61, 61)  # each slot of a job runs once, so every ring is of a later one


def sweep(server: Live) -> None:
    server.order({"ring": next(RINGS)})


def kill_workers(server: Live) -> None:
    dead = eventually(lambda: web_workers(server), "web workers")
    for pid in dead:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: len(set(web_workers(server)) - set(dead)) == len(dead) and server.is_alive(), "new workers")


@pytest.mark.parametrize("mode", [None, "", ":merged", ":route"], ids=["direct", "panel", "merged", "route"])
def test_a_killed_worker_holds_no_limit_of_a_key(doomed: Bench, mode: str | None) -> None:
    done = doomed.model("done", reply("done", usage=(10, 5)), facts=FACTS)
    stuck = doomed.model("stuck", hang(), facts=FACTS)
    members = [done, stuck] if mode in ("", ":merged") else [stuck]
    core = doomed.collection(members)
    books = Books(doomed, max_parallel=1)
    doomed.load()

    def ask() -> None:
        try:
            doomed.live.ask(stuck if mode is None else core + mode, key=books.secret, max_tokens=100)
        except OSError:
            pass  # its worker died

    caller = threading.Thread(target=ask)
    caller.start()
    doomed.fake.call(stuck)
    if len(members) == 2:
        doomed.live.attempts(1, model=done)
    kill_workers(doomed.live)
    caller.join()
    sweep(doomed.live)
    books.settled(len(members))
    (lost,) = doomed.live.attempts(1, model=stuck)
    assert lost["status"] == "lost"
    assert doomed.live.ask(done, key=books.secret).status == 200


def test_a_killed_worker_lets_go_of_a_shadows_reservation_in_time(doomed: Bench) -> None:
    taken = doomed.model("taken", reply("taken", usage=(10, 5)), facts=FACTS, ad_hoc=False)
    shadow = doomed.model("shadow", hang(), facts=FACTS, ad_hoc=False)
    core = doomed.collection([taken, shadow], shadow_share=1, timeout_s=1)
    books = Books(doomed)
    assert doomed.ask(f"{core}:route", key=books.secret, max_tokens=100).status == 200
    doomed.fake.call(shadow)
    kill_workers(doomed.live)
    sweep(doomed.live)
    doomed.live.attempts(2, key_id=books.id)
    # Nobody knows what the shadow used: it is what was reserved for it, and once its time is over nothing is held any more.
    eventually(lambda: sweep(doomed.live) or not books.permits(), "the end of the shadow's permit")
    assert books.meters()["pusd"]["month"] == books.ledger()["pusd"]
