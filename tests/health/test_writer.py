from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from health.models import Attempt, Meter, Permit
from health.outbox import REJECTED, Outbox, drain_dead, files, read_uncommitted
from health.reserve import Denied
from health.reserve import Permit as Granted
from health.writer import Writer
from tests.health.conftest import ask, held, hold, looked, row


def budget(name: str, amount: int = 10, cap: int = 10) -> Any:
    return ask(name, hold("key:1", "pusd", amount, month=cap), hold("key:1", "parallel", 1, parallel=100))


async def test_what_is_recorded_is_committed_soon_and_leaves_the_outbox(writer: Writer) -> None:
    for number in range(20):
        writer.record({"begin": [row(f"a{number}")]})
        writer.record({"attempts": [row(f"a{number}")]})
    assert await writer.flush()
    assert await looked(Attempt.objects.count) == 20
    assert writer.outbox.size == 0
    assert not writer.state().is_behind


async def test_nothing_to_flush_is_flushed(writer: Writer) -> None:
    assert await writer.flush()
    writer.record({"begin": [row("a")]})
    assert await writer.flush()


async def test_fifty_concurrent_calls_against_a_budget_for_one_admit_one(writer: Writer) -> None:
    answers = await asyncio.gather(*[writer.reserve(budget(f"p{n}")) for n in range(50)])
    granted = [answer.first for answer in answers if isinstance(answer.first, Granted)]
    denied = [answer.first for answer in answers if isinstance(answer.first, Denied)]
    assert len(granted) == 1
    assert {(one.scope, one.measure, one.window, one.never) for one in denied} == {("key:1", "pusd", "month", False)}
    assert await looked(held, "key:1|pusd", "month") == 10
    # What was refused has used up nothing else of the key's.
    assert await looked(held, "key:1|parallel", "parallel") == 1


async def test_a_request_that_its_key_refuses_reserves_nothing_at_an_endpoint(writer: Writer) -> None:
    answer = await writer.reserve(budget("p", amount=11), [ask("s", hold("endpoint:1", "requests", 1, minute=10))])
    assert answer.first == Denied("key:1", "pusd", "month", answer.first.wait_s, True)  # type: ignore[union-attr]
    assert answer.rest == (answer.first,)
    assert await looked(held, "endpoint:1|requests", "minute") == 0
    assert await looked(Permit.objects.count) == 0


async def test_each_seat_is_all_or_nothing_by_itself(writer: Writer) -> None:
    seats = [
        ask(
            f"s{n}", hold("endpoint:1", "requests", 1, minute=10), hold("endpoint:1", "tokens", 400, minute=1000), hold(f"model:{n}", "parallel", 1, parallel=1)
        )
        for n in range(3)
    ]
    answer = await writer.reserve(budget("p"), seats)
    assert answer.first == Granted("p")
    assert answer.rest[:2] == (Granted("s0"), Granted("s1"))
    refused = answer.rest[2]
    assert isinstance(refused, Denied)
    assert (refused.scope, refused.measure, refused.window) == ("endpoint:1", "tokens", "minute")
    assert 59 < refused.wait_s <= 60
    assert await looked(held, "endpoint:1|requests", "minute") == 2
    assert await looked(held, "model:2|parallel", "parallel") == 0
    assert {permit.pk for permit in await looked(list, Permit.objects.all())} == {"p", "s0", "s1"}


async def test_two_limits_on_one_meter_are_both_held(writer: Writer) -> None:
    answer = await writer.reserve(None, [ask("s", hold("m", "tokens", 60, minute=100), hold("m", "tokens", 60, minute=100))])
    assert isinstance(answer.rest[0], Denied)


async def test_capacity_that_a_settlement_frees_is_there_for_the_next_reservation(writer: Writer) -> None:
    one = hold("endpoint:1", "parallel", 1, parallel=1)
    for number in range(30):
        answer = await writer.reserve(None, [ask(f"s{number}", one)])
        assert answer.rest == (Granted(f"s{number}"),)
        writer.record({"attempts": [row(f"s{number}")], "settle": [{"permit": f"s{number}"}]})
    assert await writer.flush()
    assert await looked(held, "endpoint:1|parallel", "parallel") == 0


async def test_a_released_reservation_gives_everything_back(writer: Writer) -> None:
    seat = ask("s", hold("e", "requests", 1, minute=1), hold("e", "tokens", 5, minute=5), hold("e", "parallel", 1, parallel=1))
    for _ in range(3):
        (granted,) = (await writer.reserve(None, [seat])).rest
        assert isinstance(granted, Granted)
        writer.release(granted)
    assert await writer.flush()
    assert await looked(Permit.objects.count) == 0


async def test_the_answer_tells_the_rosters_version(writer: Writer) -> None:
    def version() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT version FROM access_rosterversion")
            return cursor.fetchone()[0]

    from access.models import Key

    await looked(lambda: Key.objects.create(name="k", digest="d", hint="h"))
    before = await looked(version)
    assert (await writer.reserve(budget("p1"))).roster_version == before
    await looked(lambda: Key.objects.update(name="renamed"))
    assert (await writer.reserve(budget("p2"))).roster_version == before + 1
    assert (await writer.reserve(None)).roster_version == before + 1


async def test_whoever_gives_up_waiting_holds_nothing(writer: Writer) -> None:
    tasks = [asyncio.create_task(writer.reserve(budget(f"p{n}", amount=1, cap=1000))) for n in range(40)]
    # Some go before the writer has begun, some while it works, some in the moment the answer is there.
    for number, task in enumerate(tasks):
        for _ in range(number // 8):
            await asyncio.sleep(0)
        task.cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    kept = [answer for answer in answers if not isinstance(answer, BaseException)]
    while (await writer.reserve(None)) and not await writer.flush():
        pass
    await asyncio.sleep(0)
    assert await writer.flush()
    assert await looked(held, "key:1|parallel", "parallel") == len(kept)
    assert await looked(Permit.objects.count) == len(kept)


async def test_a_bad_line_does_not_spoil_the_reservations_it_came_with(writer: Writer) -> None:
    writer.record({"attempts": [row("bad", cost_pusd=2**63)]})
    writer.record({"attempts": [row("good")]})
    answers = await asyncio.gather(*[writer.reserve(None, [ask(f"s{n}", hold("e", "requests", 1, minute=10))]) for n in range(5)])
    assert Counter(type(answer.rest[0]) for answer in answers) == {Granted: 5}
    assert await writer.flush()
    assert await looked(held, "e|requests", "minute") == 5
    assert await looked(lambda: [a.pk for a in Attempt.objects.all()]) == ["good"]
    assert (writer.outbox.path.parent / REJECTED).exists()


async def test_a_bad_reservation_spoils_no_other(writer: Writer) -> None:
    good, bad, other = await asyncio.gather(
        writer.reserve(None, [ask("s1", hold("e", "requests", 1, minute=10))]),
        writer.reserve(None, [ask("s2", hold("huge", "tokens", 2**70, minute=2**71))]),
        writer.reserve(None, [ask("s3", hold("e", "requests", 1, minute=10))]),
        return_exceptions=True,
    )
    assert isinstance(bad, TypeError)
    assert good.rest == (Granted("s1"),)  # type: ignore[union-attr]
    assert other.rest == (Granted("s3"),)  # type: ignore[union-attr]
    assert await looked(held, "e|requests", "minute") == 2


async def test_a_call_with_absurd_numbers_is_reserved_like_any_other(writer: Writer) -> None:
    answer = await writer.reserve(None, [ask("s", hold("e", "parallel", 1, parallel=1), stub=row("s", output_tokens=10**30, error="\ud800"))])
    assert answer.rest == (Granted("s"),)


async def test_stopping_commits_what_is_there_and_leaves_no_file(tables: None, folder: Path) -> None:
    writer = Writer(Outbox(folder, "test"), coalesce_s=3600)
    for number in range(1200):
        writer.record({"attempts": [row(f"a{number}")]})
    await writer.stop()
    assert await looked(Attempt.objects.count) == 1200
    assert files(folder) == []


async def test_stopping_with_a_call_under_way_leaves_it_to_a_drain(tables: None, folder: Path) -> None:
    writer = Writer(Outbox(folder, "test"))
    writer.record({"begin": [row("a")]})
    writer.record({"attempts": [row("b")]})
    await writer.stop()
    assert [line["attempts"][0]["id"] for line in read_uncommitted(folder)] == ["b"]
    lost: list[Any] = []
    drain_dead(folder, lost.extend)
    assert lost[-1]["attempts"][0]["status"] == "lost"


async def test_more_lines_than_memory_holds_are_read_back_from_the_file(tables: None, folder: Path, items: dict[str, list[Any]]) -> None:
    writer = Writer(Outbox(folder, "test"), keep_bytes=20_000)
    for number in range(3000):
        writer.record({"begin": [row(f"a{number}")]})
        writer.record({"attempts": [row(f"a{number}")], "things": [number]})
        if number % 500 == 0:
            await asyncio.sleep(0)
    assert await writer.flush(60)
    assert await looked(Attempt.objects.count) == 3000
    assert sorted(set(items["things"])) == list(range(3000))
    assert writer.outbox.size == 0
    writer.record({"attempts": [row("after")]})
    assert await writer.flush()
    await writer.stop()
    assert await looked(Attempt.objects.count) == 3001


async def test_what_the_disk_has_no_room_for_is_committed_from_memory(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(line: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer.outbox, "append", full)
    for number in range(10):
        writer.record({"attempts": [row(f"a{number}")]})
    assert await writer.flush()
    assert await looked(Attempt.objects.count) == 10


async def test_other_rooms_lines_come_in_the_order_they_were_recorded(writer: Writer, items: dict[str, list[Any]]) -> None:
    for number in range(2000):
        writer.record({"things": [number]})
    assert await writer.flush(30)
    assert items["things"] == list(range(2000))


async def test_meters_are_only_of_what_was_asked(writer: Writer) -> None:
    await writer.reserve(budget("p"))
    assert set(await looked(lambda: list(Meter.objects.values_list("scope", flat=True)))) == {"key:1|pusd", "key:1|parallel"}
