"""Ten calls a minute, shared by two servers of two workers each on one PostgreSQL: never more reach the provider in any 60 seconds, and all ten are used."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.fake import FakeProvider, reply
from tests.gateway.test_route import SERVER
from tests.http import Reply
from tests.live import Bench, Database, Live

A_MINUTE = 10
CALLERS = 6  # at each server
# Two minutes' worth of calls, and the wait between them.
PATIENCE_S = 150.0


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Live, Live]]:
    shared = Database(SERVER)
    try:
        shared.create()
    except Exception as error:  # whatever keeps this machine from having one
        pytest.skip(f"no PostgreSQL here: {type(error).__name__}")
    servers = [Live(tmp_path_factory.mktemp(name), DATABASE_URL=shared.url) for name in ("first", "second")]
    wrong: list[str] = []
    for server in servers:
        server.database = Database("")
    try:
        servers[0].launch("--migrate")
        servers[1].launch()
        yield servers[0], servers[1]
    finally:
        for server in servers:
            wrong += server.stop()
        shared.drop()
    assert not wrong


def test_ten_a_minute_hold_over_two_servers_and_all_ten_are_used(hosts: tuple[Live, Live], fake: FakeProvider) -> None:
    bench = Bench(hosts[0], fake)
    here = bench.endpoint("limited", limits={"requests": {"minute": A_MINUTE}})
    fast = bench.model("fast", reply("fine"), endpoint=here)
    bench.load()
    enough = threading.Event()
    answers: list[Reply] = []

    def press(server: Live) -> None:
        while not enough.is_set():
            answers.append(server.ask(fast))
            if answers[-1].status != 200:
                enough.wait(0.2)

    callers = [threading.Thread(target=press, args=(server,)) for server in hosts for _ in range(CALLERS)]
    for caller in callers:
        caller.start()
    look = threading.Event()
    for _ in range(int(PATIENCE_S * 10)):
        if len(fake.calls_to(fast)) >= 2 * A_MINUTE:
            break
        look.wait(0.1)
    enough.set()
    for caller in callers:
        caller.join()

    at = sorted(call.at for call in fake.calls_to(fast))
    assert len(at) >= 2 * A_MINUTE  # all that a minute allows, twice
    assert at[A_MINUTE - 1] - at[0] < 60
    assert [late - early for early, late in zip(at, at[A_MINUTE:], strict=False) if late - early < 60] == []
    assert {answer.status for answer in answers} == {200, 429}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in answers if answer.status == 429)
    assert sum(answer.status == 200 for answer in answers) == len(at)
