"""Two servers with data folders of their own on one PostgreSQL: what one of them is told or counts holds in the other from the next request on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fake import FakeProvider, reply
from tests.gateway.test_route import SERVER
from tests.live import Bench, Database, Live, eventually


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Live, Live]]:
    shared = Database(SERVER)
    try:
        shared.create()
    except Exception as error:  # whatever keeps this machine from having one
        pytest.skip(f"no PostgreSQL here: {type(error).__name__}")
    servers = [Live(tmp_path_factory.mktemp(name), BENCH_WORKERS="1", DATABASE_URL=shared.url) for name in ("first", "second")]
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


def test_what_one_host_counts_and_is_told_holds_in_the_other(hosts: tuple[Live, Live], fake: FakeProvider) -> None:
    here, there = hosts
    bench = Bench(here, fake)
    fast = bench.model("fast", reply("fine", usage=(10, 5)))
    core = bench.collection([fast])
    bench.load()

    # A roster that was loaded at one host, and a key that was made there; two requests a minute, wherever they come in.
    key = bench.key(rpm=2)
    assert here.ask(fast, key=key).status == 200
    answer = there.ask(core, key=key)
    assert answer.status == 200
    refused = [server.ask(fast, key=key) for server in hosts]
    assert [(r.status, r.code) for r in refused] == [(429, "rate_limit_exceeded")] * 2

    # Rows of both stand in one ledger, once.
    assert len(here.attempts(2, model=fast)) == 2

    # A verdict on an answer of the other host: its line may still be in that host's outbox for a moment.
    call = answer.json["bench"]["seats"][0]["call"]
    judged = eventually(lambda: got if (got := here.send("POST", "/bench/verdict", {"call": call, "useful": True})).status == 200 else None, "the call")
    assert judged.json["call"] == call

    # Revoked here, nobody there; each host's own operator key works at both.
    name = next(k["name"] for k in there.listed("keys") if k["rpm"] == 2)
    here.api("DELETE", f"keys/{name}")
    assert there.ask(fast, key=key).status == 401
    assert there.send("GET", "/bench/keys", key=here.operator_key).status == 200
    here.api("POST", f"models/{fast}/retire", {"reason": "a test"})
    assert there.ask(fast).status == 404


def test_a_stop_of_one_host_leaves_the_other_serving(hosts: tuple[Live, Live], fake: FakeProvider) -> None:
    here, there = hosts
    bench = Bench(here, fake)
    fast = bench.model("fast", reply("fine"))
    bench.load()
    there.terminate()
    assert here.ask(fast).status == 200
    assert not there.is_alive()
