"""Money and limits when everything goes another way: whatever a caller or a provider does, a key's meters say what the ledger says, and nothing stays held."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests import factories
from tests.fake import hang, reply, sse, status
from tests.live import Bench, eventually

FACTS = dict(factories.PRICES)
LARGE = {"rpm": 1000, "tpm": 10_000_000, "max_parallel": 100, "budget_usd": "100"}


class Books:
    """One key with every kind of limit, and what is written of it."""

    def __init__(self, bench: Bench, **limits: Any) -> None:
        self.bench, self.name = bench, f"{bench.tag}-booked"
        self.secret = bench.key(name=self.name, **{**LARGE, **limits})
        (row,) = bench.live.rows("access.Key", name=self.name)
        self.id = row["id"]

    def meters(self) -> dict[str, dict[str, int]]:
        """Used by measure: the minute's sum, the month's, what is under way."""
        found = {}
        for row in self.bench.live.rows("health.Meter", scope__startswith=f"key:{self.id}|"):
            minute, _, month, parallel, _ = json.loads(row["state"])
            found[row["scope"].partition("|")[2]] = {"minute": sum(e[1] for e in minute), "month": month[1] if month else 0, "parallel": parallel}
        return found

    def ledger(self) -> dict[str, int]:
        rows = self.bench.live.rows("health.Attempt", key_id=self.id)
        return {"tokens": sum(r["input_tokens"] + r["output_tokens"] for r in rows), "pusd": sum(r["cost_pusd"] or 0 for r in rows)}

    def permits(self) -> list[dict[str, Any]]:
        return [r for r in self.bench.live.rows("health.Permit") if f"key:{self.id}|" in r["holds"]]

    def settled(self, rows: int) -> dict[str, int]:
        """What the ledger says once nothing is under way any more. Errors: AssertionError where the meters say otherwise."""
        self.bench.live.attempts(rows, key_id=self.id)
        eventually(lambda: not self.permits(), "the last permit's end")
        meters, ledger = self.meters(), self.ledger()
        assert meters.get("parallel", {}).get("parallel", 0) == 0  # a meter in which nothing counts is swept away
        assert meters["tokens"]["minute"] == ledger["tokens"]
        assert meters["pusd"]["month"] == ledger["pusd"]
        return ledger


def test_a_seat_that_comes_while_the_others_are_merged_is_paid_for(bench: Bench) -> None:
    late, merging = bench.fake.gate(), bench.fake.gate()
    quick = bench.model("quick", reply("quick", usage=(10, 5)), facts=FACTS)
    second = bench.model("second", reply("second", usage=(10, 5)), facts=FACTS)
    slow = bench.model("slow", reply("slow", usage=(1000, 500)).after(late), facts=FACTS)
    merger = bench.model("merger", reply("merged", usage=(20, 5)).after(merging), facts=FACTS)
    core = bench.collection([quick, second, slow], quorum=2, grace_s=0, mergers=[merger])
    books = Books(bench)
    with bench.stream(f"{core}:merged", key=books.secret) as stream:
        bench.fake.call(merger)
        late.open()
        bench.live.attempts(1, model=slow)
        merging.open()
        stream.rest()
    assert books.settled(4)["tokens"] == 15 + 15 + 1500 + 25


def test_a_merger_whose_caller_left_is_paid_for(bench: Bench) -> None:
    never = bench.fake.gate()
    members = [bench.model(n, reply(n, usage=(10, 5)), facts=FACTS) for n in ("one", "two")]
    merger = bench.model("merger", reply(["begun ", "and gone on for long"], usage=(500, 400)).holding(never, after="begun "), facts=FACTS)
    core = bench.collection(members, mergers=[merger])
    books = Books(bench)
    with bench.stream(f"{core}:merged", key=books.secret) as stream:
        stream.until("begun ")
    assert books.settled(3)["tokens"] > 30
    (row,) = bench.live.attempts(1, model=merger)
    assert row["status"] == "cancelled"


@pytest.mark.parametrize("mode", ["", ":merged", ":route"])
@pytest.mark.parametrize("streams", [True, False])
def test_a_caller_who_leaves_in_the_middle_holds_nothing(bench: Bench, mode: str, streams: bool) -> None:
    never = bench.fake.gate()
    members = [bench.model("one", reply("done", usage=(10, 5)), facts=FACTS), bench.model("two", hang(), facts=FACTS)]
    if mode == ":route":
        members.reverse()
    core = bench.collection(members)
    books = Books(bench)
    bench.load()
    body = json.dumps({"model": core + mode, "stream": streams, "messages": [{"role": "user", "content": "hi"}]}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {books.secret}\r\ncontent-length: {len(body)}\r\n\r\n"
    with socket.create_connection((bench.live.host, bench.live.port), timeout=60) as sock:
        sock.sendall(head.encode() + body)
        bench.fake.call(members[1] if mode != ":route" else members[0])
        if mode != ":route":
            bench.live.attempts(1, model=members[0])
    never.open()
    books.settled(1 if mode == ":route" else 2)


def test_a_merger_of_unknown_price_is_no_way_around_a_budget(bench: Bench) -> None:
    members = [bench.model(n, reply(n), facts=FACTS) for n in ("one", "two")]
    unpriced = bench.model("unpriced")
    core = bench.collection(members, mergers=[unpriced, members[0]])
    answer = bench.ask(f"{core}:merged", key=Books(bench).secret)
    assert (answer.status, answer.code) == (402, "price_unknown")
    assert not bench.fake.calls_to(unpriced)


def test_the_answers_that_a_merger_reads_are_reserved_too(bench: Bench) -> None:
    """Each seat may say 1,000 tokens at no cost; the merger pays for reading them."""
    free = {"input_usd_per_mtok": "0", "output_usd_per_mtok": "0"}
    members = [bench.model(n, reply("word " * 1000, usage=(1, 1000)), facts=free) for n in ("one", "two")]
    merger = bench.model("merger", reply("m", usage=(2100, 1)), facts={"input_usd_per_mtok": "100", "output_usd_per_mtok": "0"})
    core = bench.collection(members, mergers=[merger])
    answer = bench.ask(f"{core}:merged", key=Books(bench, budget_usd="0.1").secret, max_tokens=1000)
    assert (answer.status, answer.code) == (402, "budget_exceeded")
    assert bench.ask(f"{core}:merged", key=bench.key(budget_usd="0.5"), max_tokens=1000).status == 200


def test_a_panel_whose_late_seat_never_got_a_permit_gives_back_what_it_held(bench: Bench) -> None:
    full = bench.endpoint("full", limits={"requests": {"minute": 1}})
    other = bench.endpoint("other")
    waits = bench.model("waits", endpoint=full, facts=FACTS)
    bench.model("quick", reply("q", usage=(10, 5)), endpoint=other, facts=FACTS)
    core = bench.collection([waits, f"{bench.tag}-quick"], quorum=1, grace_s=0, wait_max_s=2)
    assert bench.ask(waits).status == 200
    books = Books(bench)
    assert bench.ask(core, key=books.secret).status == 200
    assert books.settled(1)["tokens"] == 15


@pytest.mark.parametrize("mode", ["", ":merged", ":route"])
def test_what_providers_break_is_counted_as_the_ledger_counts_it(bench: Bench, mode: str) -> None:
    broken = bench.model("broken", reply(["half ", "an answer"]).cut(after="half "), facts=FACTS)
    refuses = bench.model("refuses", status(500), facts=FACTS)
    empty = bench.model("empty", sse(), facts=FACTS)
    sound = bench.model("sound", reply("sound", usage=(9, 9)), facts=FACTS)
    core = bench.collection([refuses, empty, broken, sound], mergers=[refuses, empty, sound])
    books = Books(bench)
    with bench.stream(core + mode, key=books.secret) as stream:
        stream.rest()
    bench.live.attempts(1, model=refuses) if mode != ":merged" else None
    eventually(lambda: not books.permits(), "the last permit's end")
    rows = bench.live.rows("health.Attempt", key_id=books.id)
    books.settled(len(rows))
    if mode == ":route":
        assert [r["model"].rpartition("-")[2] for r in sorted(rows, key=lambda r: r["started_at"])] == ["refuses", "empty", "broken"]


def test_many_callers_who_come_and_go_leave_the_books_true(bench: Bench) -> None:
    members = [bench.model(f"m{n}", reply(["some ", "thing"], usage=(7, n + 1)).holding(0.05, after="some "), facts=FACTS) for n in range(3)]
    core = bench.collection(members, wait_max_s=5)
    books = Books(bench)
    bench.load()

    def one(n: int) -> int:
        mode = ("", ":merged", ":route", None)[n % 4]
        with bench.live.stream(members[0] if mode is None else core + mode, key=books.secret) as stream:
            if n % 3 == 0:
                return 0  # gone at once
            if n % 3 == 1:
                stream.response.read1(64)
                return 0
            return len(stream.rest())

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(one, range(48)))
    eventually(lambda: not books.permits(), "the last permit's end")
    books.settled(len(bench.live.rows("health.Attempt", key_id=books.id)))
    assert not [r for r in bench.live.rows("health.Attempt", key_id=books.id) if r["status"] == "lost"]


def test_shadows_that_a_budget_cannot_pay_for_are_no_fault_of_the_server(bench: Bench) -> None:
    member = bench.model("priced", reply("x", usage=(10, 5)), facts=FACTS)
    other = bench.model("unpriced", ad_hoc=False)
    core = bench.collection([member, other], shadow_share=1)
    books = Books(bench)
    before = len(bench.live.tracebacks())
    # The dearest of all is what has no price: a budgeted key may not ask this collection at all, or only the priced member of it.
    assert bench.ask(f"{core}:route", key=books.secret).status in (200, 402)
    assert len(bench.live.tracebacks()) == before
