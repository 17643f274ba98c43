"""With BENCH_KEEP_TEXT_DAYS=0 no prompt and no answer is anywhere on the disk: not in the database, not in an outbox, not while a call runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake import FakeProvider, reply
from tests.http import content_of
from tests.live import Bench, Live

PROMPT, ANSWER, SYSTEM = "prompt-canary-olm", "answer-canary-newt", "system-canary-eft"
TALK = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    server = Live(tmp_path_factory.mktemp("forgetful"), BENCH_KEEP_TEXT_DAYS="0", BENCH_WORKERS="1")
    try:
        server.start()
        yield server
    finally:
        wrong = server.stop()
    assert not wrong


def kept(folder: Path) -> list[str]:
    """The files that hold any of the texts."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            found += [f"{path.name}: {text}" for text in (PROMPT, ANSWER, SYSTEM) if text.encode() in data]
    return found


def test_nothing_of_prompts_and_answers_is_kept_where_nothing_may_be(forgetful: Live, fake: FakeProvider) -> None:
    bench = Bench(forgetful, fake)
    gate = fake.gate()
    one = bench.model("one", reply([ANSWER, " and more"]))
    slow = bench.model("slow", reply([ANSWER, " and more"]).holding(gate, after=ANSWER))
    core = bench.collection([one, bench.model("two", reply(ANSWER))], mergers=[one], keep_text=True, shadow_share=1)
    waiting = bench.collection([one, slow], "waiting", keep_text=True)
    bench.load()
    key = bench.key()
    calls = []
    for model in (core, f"{core}:merged", f"{core}:route", one):
        answer = bench.ask(model, TALK, key=key)
        assert answer.status == 200
        calls += [seat["call"] for seat in answer.json.get("bench", {}).get("seats", [])]
        with bench.stream(model, TALK, key=key) as stream:
            assert ANSWER in content_of(stream.events())
    stored = forgetful.send("POST", "/v1/responses", {"model": one, "input": PROMPT, "instructions": SYSTEM, "store": True}, key=key)
    assert stored.status == 200
    # A verdict holds its claims all the same.
    told = forgetful.send("POST", "/bench/verdict", {"call": calls[0], "useful": True, "real": ["a claim"]}, key=key)
    assert told.json["real"] == ["a claim"]

    with bench.stream(waiting, TALK, key=key) as stream:
        stream.until(ANSWER)
        assert not kept(forgetful.home), "while a call runs"
        gate.open()
        stream.rest()
    rows = forgetful.rows("panels.Panel")
    assert rows
    assert not [r for r in rows if r["prompt"]]
    assert not [r for r in forgetful.rows("panels.Seat") if r["text"]]
    assert not forgetful.rows("panels.StoredResponse")
    assert not kept(forgetful.home)
    for text in (PROMPT, ANSWER, SYSTEM):
        assert text not in forgetful.log_text()
