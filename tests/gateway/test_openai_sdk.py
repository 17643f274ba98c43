"""The official `openai` SDK, unmodified, with the server's address as its base URL."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import openai
import pytest

from tests.fake import reply, status
from tests.gateway.shape import check_bench
from tests.live import Bench

pytestmark = pytest.mark.formats


@pytest.fixture
def client(bench: Bench) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{bench.live.url}/v1", api_key=bench.key(), max_retries=0, timeout=60) as made:
        yield made


MESSAGES: list = [{"role": "user", "content": "hi"}]  # type: ignore[type-arg]


def test_a_whole_answer(bench: Bench, client: openai.OpenAI) -> None:
    fast = bench.model("fast", reply("hello", usage=(11, 7)))
    bench.load()
    answer = client.chat.completions.create(model=fast, messages=MESSAGES)
    assert answer.choices[0].message.content == "hello"
    assert answer.usage is not None
    assert answer.usage.total_tokens == 18


def test_a_panel_with_its_bench_field(bench: Bench, client: openai.OpenAI) -> None:
    core = bench.collection([bench.model("one", reply("alpha")), bench.model("two", reply("beta"))])
    bench.load()
    answer = client.chat.completions.create(model=core, messages=MESSAGES)
    assert [s["text"] for s in check_bench(answer.model_extra["bench"])] == ["alpha", "beta"]  # type: ignore[index]


def test_a_stream_and_its_helper(bench: Bench, client: openai.OpenAI) -> None:
    core = bench.collection([bench.model("one", reply(["al", "pha"])), bench.model("two", reply("beta"))])
    bench.load()
    pieces, told = "", None
    for chunk in client.chat.completions.create(model=core, messages=MESSAGES, stream=True):
        if chunk.choices:
            pieces += chunk.choices[0].delta.content or ""
        told = (chunk.model_extra or {}).get("bench") or told
    assert "alpha" in pieces
    assert "beta" in pieces
    assert told is not None
    check_bench(told)
    with client.chat.completions.stream(model=core, messages=MESSAGES) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
    assert "alpha" in (final.choices[0].message.content or "")


def test_heartbeats_are_no_events_to_the_sdk(bench: Bench, client: openai.OpenAI) -> None:
    """A member that is silent for long: what keeps the connection alive meanwhile parses as nothing at all, for readers of every kind (sd-01)."""
    gate = bench.fake.gate()
    slow = bench.model("slow", reply(["first ", "second"]).holding(gate, after="first"))
    bench.load()
    raw: list[bytes] = []

    def watch() -> None:
        with bench.live.stream(slow, key=bench.live.operator_key) as stream:
            stream.until("first")
            while stream.got.count(b"\n: ") + stream.got.count(b"\n:\n") < 2:
                piece = stream.response.read1(65536)
                if not piece:
                    break
                stream.got += piece
            gate.open()
            raw.append(stream.rest() or stream.got)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        said = "".join(c.choices[0].delta.content or "" for c in client.chat.completions.create(model=slow, messages=MESSAGES, stream=True) if c.choices)
    finally:
        watching.join(60)
    assert said == "first second"
    lines = [line for line in raw[0].splitlines() if line.startswith(b"data:")]
    assert [json.loads(line[5:]) for line in lines[:-1]]
    assert lines[-1] == b"data: [DONE]"


def test_errors_become_the_sdks_own(bench: Bench, client: openai.OpenAI) -> None:
    limited = bench.model("limited", status(429, headers={"retry-after": "7"}))
    bench.load()
    with pytest.raises(openai.NotFoundError) as unknown:
        client.chat.completions.create(model="nobody", messages=MESSAGES)
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.RateLimitError) as slow:
        client.chat.completions.create(model=limited, messages=MESSAGES)
    assert slow.value.code == "rate_limit_exceeded"
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model=limited, messages=[])
    with (
        openai.OpenAI(base_url=f"{bench.live.url}/v1", api_key="bw_live_wrong0123456789", max_retries=0) as stranger,
        pytest.raises(openai.AuthenticationError),
    ):
        stranger.models.list()


def test_a_stream_that_breaks_off_raises(bench: Bench, client: openai.OpenAI) -> None:
    fast = bench.model("fast", reply(["half", "whole"]).cut(after="half"))
    bench.load()
    with pytest.raises(openai.APIError, match=r".+"):
        for _ in client.chat.completions.create(model=fast, messages=MESSAGES, stream=True):
            pass


def test_models_are_listed_and_told(bench: Bench, client: openai.OpenAI) -> None:
    fast = bench.model("vendor/fast:free")
    core = bench.collection([fast])
    bench.load()
    assert {fast, core} <= {m.id for m in client.models.list()}
    assert client.models.retrieve(core).id == core


def test_an_image_in_a_user_turn(bench: Bench, client: openai.OpenAI) -> None:
    sighted = bench.model("sighted", reply("a cat"), facts={"vision": True})
    bench.load()
    content = [{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]
    answer = client.chat.completions.create(model=bench.collection([sighted]) and sighted, messages=[{"role": "user", "content": content}])  # type: ignore[misc, list-item]
    assert answer.choices[0].message.content == "a cat"


async def test_the_async_client(bench: Bench) -> None:
    fast = bench.model("fast", reply(["a", "b"]))
    bench.load()
    async with openai.AsyncOpenAI(base_url=f"{bench.live.url}/v1", api_key=bench.key(), max_retries=0) as client:
        stream = await client.chat.completions.create(model=fast, messages=MESSAGES, stream=True)
        assert "".join([c.choices[0].delta.content or "" async for c in stream if c.choices]) == "ab"
