"""The official `ollama` SDK, unmodified, with the server's address as its host; a provider of this format and one of another behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import ollama
import openai
import pytest

from tests.fake import reply, status, whole
from tests.gateway.shape import check_bench, headings
from tests.http import Reply, Stream
from tests.live import Bench

pytestmark = pytest.mark.formats

HI: list[Any] = [{"role": "user", "content": "hi"}]
LOOK: dict[str, Any] = {
    "type": "function",
    "function": {"name": "look", "description": "looks", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}},
}
PNG = "iVBORw0KGgo="
BOTH = pytest.mark.parametrize("kind", ["ollama", "openai"])


@pytest.fixture
def client(bench: Bench) -> Iterator[ollama.Client]:
    made = ollama.Client(host=bench.live.url, headers={"authorization": f"Bearer {bench.key()}"}, timeout=60)
    yield made
    made._client.close()


def either(bench: Bench, kind: str, name: str, *answers: Any, **more: Any) -> str:
    """A model behind a provider of this format, or of OpenAI's."""
    if kind != "ollama":
        return bench.model(name, *answers, **more)
    endpoint = f"{bench.tag}-ollamas"
    if endpoint not in bench.endpoints:
        bench.endpoint("ollamas", kind="ollama", base_url=bench.fake.root)
    return bench.model(name, *answers, endpoint=endpoint, **more)


def post(bench: Bench, body: dict[str, Any], path: str = "/api/chat") -> Reply:
    return bench.load().live.send("POST", path, body)


def lines_of(answer: Reply) -> list[Any]:
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.body.split(b"\n")[:-1]]


# ------------------------------------------------------------------ one model


@BOTH
def test_a_whole_answer(bench: Bench, client: ollama.Client, kind: str) -> None:
    fast = either(bench, kind, "fast", reply("hello", reasoning="hm", usage=None if kind == "none" else (11, 7)))
    bench.load()
    answer = client.chat(model=fast, messages=HI, options={"temperature": 0.5, "num_predict": 9}, think=True)
    assert (answer.message.content, answer.message.thinking, answer.model, answer.done, answer.done_reason) == ("hello", "hm", fast, True, "stop")
    assert (answer.prompt_eval_count, answer.eval_count) == (11, 7)
    sent = bench.fake.call(fast).json
    if kind == "ollama":
        assert (sent["options"], sent["think"], sent["stream"]) == ({"temperature": 0.5, "num_predict": 9}, True, False)
    else:
        assert (sent["temperature"], sent["max_tokens"]) == (0.5, 9)


@BOTH
def test_a_stream_comes_line_by_line(bench: Bench, client: ollama.Client, kind: str) -> None:
    gate = bench.fake.gate()
    mark = '"first "}, "done": false}\n' if kind == "ollama" else "first "
    fast = either(bench, kind, "fast", reply(["first ", "second"], usage=(11, 7)).holding(gate, after=mark))
    bench.load()
    stream = client.chat(model=fast, messages=HI, stream=True)
    assert next(stream).message.content == "first "
    gate.open()
    rest = list(stream)
    assert "".join(part.message.content or "" for part in rest) == "second"
    assert [part.done for part in rest][-1] is True
    assert (rest[-1].done_reason, rest[-1].prompt_eval_count, rest[-1].eval_count) == ("stop", 11, 7)


@BOTH
def test_a_stream_that_waits_is_kept_alive_by_nothing_that_could_be_an_answer(bench: Bench, kind: str) -> None:
    gate = bench.fake.gate()
    fast = either(bench, kind, "fast", reply("late").after(gate))
    data = json.dumps({"model": fast, "messages": HI}).encode()
    with Stream(bench.load().live.host, bench.live.port, "/api/chat", data, {"content-type": "application/json"}) as stream:
        while len(stream.got) < 2:
            stream.got += stream.response.read1(65536)
        assert not stream.got.strip()
        assert b"\n" not in stream.got
        gate.open()
        lines = [json.loads(line) for line in stream.rest().split(b"\n")[:-1]]
    assert "".join(line["message"]["content"] for line in lines) == "late"


@BOTH
@pytest.mark.parametrize("streamed", [False, True])
def test_a_turn_with_tools_and_its_results(bench: Bench, client: ollama.Client, kind: str, streamed: bool) -> None:
    calls = [("call_a", "look", '{"at": "sky"}'), ("call_b", "look", "{}")]
    fast = either(bench, kind, "fast", reply("", tools=calls), reply("a cat"))
    bench.load()

    def ask(messages: list[Any]) -> Any:
        if not streamed:
            return client.chat(model=fast, messages=messages, tools=[LOOK]).message
        parts = list(client.chat(model=fast, messages=messages, tools=[LOOK], stream=True))
        called = [c for p in parts for c in p.message.tool_calls or []]
        return ollama.Message(role="assistant", content="".join(p.message.content or "" for p in parts), tool_calls=called or None)

    first = ask(HI)
    assert [(c.function.name, dict(c.function.arguments)) for c in first.tool_calls] == [("look", {"at": "sky"}), ("look", {})]
    results = [{"role": "tool", "tool_name": "look", "content": "a cat"}, {"role": "tool", "tool_name": "look", "content": "nothing"}]
    assert ask([*HI, first, *results]).content == "a cat"
    sent = bench.fake.call(fast, 1).json["messages"]
    assert [m["role"] for m in sent] == ["user", "assistant", "tool", "tool"]
    if kind == "openai":
        assert [c["id"] for c in sent[1]["tool_calls"]] == [m["tool_call_id"] for m in sent[2:]]
        assert len({m["tool_call_id"] for m in sent[2:]}) == 2


@BOTH
def test_an_image_reaches_who_can_see_it(bench: Bench, client: ollama.Client, kind: str) -> None:
    sighted, blind = either(bench, kind, "sighted", reply("a cat"), facts={"vision": True}), bench.model("blind", facts={"vision": False})
    bench.load()
    messages = [{"role": "user", "content": "what?", "images": [PNG]}]
    assert client.chat(model=sighted, messages=messages).message.content == "a cat"
    sent = bench.fake.call(sighted).json["messages"][0]
    if kind == "ollama":
        assert sent == messages[0]
    else:
        assert sent["content"][1]["image_url"]["url"] == f"data:image/png;base64,{PNG}"
    with pytest.raises(ollama.ResponseError) as caught:
        client.chat(model=blind, messages=messages)
    assert caught.value.status_code == 400
    assert "image" in caught.value.error


@BOTH
def test_structured_output_is_asked_for(bench: Bench, client: ollama.Client, kind: str) -> None:
    fast = either(bench, kind, "fast", reply('{"a": "b"}'))
    bench.load()
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert json.loads(client.chat(model=fast, messages=HI, format=schema).message.content or "") == {"a": "b"}
    sent = bench.fake.call(fast).json
    assert (sent["format"] if kind == "ollama" else sent["response_format"]["json_schema"]["schema"]) == schema


@BOTH
def test_generate_is_answered_in_its_own_shape(bench: Bench, client: ollama.Client, kind: str) -> None:
    fast = either(bench, kind, "fast", reply(["hel", "lo"], usage=(11, 7)))
    bench.load()
    answer = client.generate(model=fast, prompt="hi", system="Be brief.")
    assert (answer.response, answer.done, answer.eval_count) == ("hello", True, 7)
    assert bench.fake.call(fast).json["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    parts = list(client.generate(model=fast, prompt="hi", stream=True))
    assert "".join(p.response or "" for p in parts) == "hello"
    assert parts[-1].done


def test_a_body_of_the_same_format_passes_whole_and_so_does_its_answer(bench: Bench) -> None:
    fast = either(bench, "ollama", "fast", reply("hello", reasoning="hm", extra={"a_new_field": [1]}), served_name=f"{bench.tag}/served")
    body = {"model": fast, "messages": HI, "stream": False, "options": {"num_ctx": 4096}, "keep_alive": "5m", "logprobs": True, "new": {"kept": [1, None]}}
    answer = post(bench, body)
    assert answer.status == 200
    assert "x-bench-dropped" not in answer.headers
    assert bench.fake.call(f"{bench.tag}/served").json == {**body, "model": f"{bench.tag}/served"}
    assert (answer.json["a_new_field"], answer.json["total_duration"], answer.json["created_at"]) == ([1], 5, "2026-01-01T00:00:00.5Z")
    lines = lines_of(post(bench, {**body, "stream": True}))
    assert lines[-1]["a_new_field"] == [1]
    assert {line["created_at"] for line in lines} == {"2026-01-01T00:00:00.5Z"}
    assert {line["model"] for line in lines} == {fast}


def test_what_only_this_format_knows_stops_before_another_and_is_named(bench: Bench) -> None:
    fast = bench.model("fast", reply("hello"))
    answer = post(bench, {"model": fast, "messages": HI, "stream": False, "options": {"num_ctx": 4096, "top_k": 5}, "keep_alive": "5m"})
    assert answer.status == 200
    assert set(answer.headers["x-bench-dropped"].split(", ")) == {"options.num_ctx", "keep_alive", "top_k"}


# ------------------------------------------------------------------ panels


@BOTH
def test_a_panel_with_its_bench_field(bench: Bench, client: ollama.Client, kind: str) -> None:
    core = bench.collection([either(bench, kind, "one", reply("alpha")), bench.model("two", reply("beta"))])
    bench.load()
    body = post(bench, {"model": core, "messages": HI, "stream": False}).json
    seats = check_bench(body["bench"])
    assert [s["text"] for s in seats] == ["alpha", "beta"]
    headings(body["message"]["content"], seats)
    lines = lines_of(post(bench, {"model": core, "messages": HI}))
    assert [line for line in lines if "bench" in line] == [lines[-1]]
    assert lines[-1]["done"] is True
    headings("".join(line["message"]["content"] for line in lines), check_bench(lines[-1]["bench"]))
    assert "alpha" in "".join(p.message.content or "" for p in client.chat(model=core, messages=HI, stream=True))


def test_a_merged_answer_streams(bench: Bench, client: ollama.Client) -> None:
    one, two = either(bench, "ollama", "one", reply("alpha")), either(bench, "ollama", "two", reply("beta"))
    merger = either(bench, "ollama", "merger", reply(["both ", "agree"]))
    core = bench.collection([one, two], mergers=[merger])
    bench.load()
    parts = list(client.chat(model=f"{core}:merged", messages=HI, stream=True))
    assert "both agree" in "".join(p.message.content or "" for p in parts)
    assert parts[-1].done


def test_tools_are_refused_to_a_panel_and_say_where_they_go(bench: Bench, client: ollama.Client) -> None:
    core = bench.collection([bench.model("one")])
    bench.load()
    with pytest.raises(ollama.ResponseError, match=":route") as caught:
        client.chat(model=core, messages=HI, tools=[LOOK])
    assert caught.value.status_code == 400


# ------------------------------------------------------------------ errors


@BOTH
def test_errors_become_the_sdks_own(bench: Bench, client: ollama.Client, kind: str) -> None:
    limited = either(bench, kind, "limited", status(429, headers={"retry-after": "7"}))
    bench.load()
    for model, code in (("nobody", 404), (limited, 429)):
        for streamed in (False, True):
            with pytest.raises(ollama.ResponseError) as caught:
                list(client.chat(model=model, messages=HI, stream=streamed))
            assert caught.value.status_code == code
            assert model in caught.value.error or caught.value.error


@BOTH
def test_a_stream_that_breaks_off_raises(bench: Bench, client: ollama.Client, kind: str) -> None:
    mark = '"half"}, "done": false}\n' if kind == "ollama" else "half"
    fast = either(bench, kind, "fast", reply(["half", "whole"]).cut(after=mark))
    bench.load()
    got: list[Any] = []
    with pytest.raises(ollama.ResponseError):
        got.extend(client.chat(model=fast, messages=HI, stream=True))
    assert [(part.message.content, part.done) for part in got] == [("half", False)]
    (row,) = bench.live.attempts(1, model=fast)
    assert (row["status"], row["code"]) == ("partial", "upstream_truncated")


def test_an_error_inside_a_stream_before_any_word_is_an_ordinary_one(bench: Bench) -> None:
    fast = either(bench, "ollama", "fast", whole(b'{"error":"model runner has unexpectedly stopped"}\n', content_type="application/x-ndjson"))
    answer = post(bench, {"model": fast, "messages": HI})
    assert (answer.status, answer.json["code"]) == (502, "upstream_error")
    assert "runner" in answer.json["error"]


def test_a_provider_that_streams_lines_serves_clients_of_another_format(bench: Bench) -> None:
    """Calls lines before the end, which then says "stop"; lines split anywhere."""
    fast = either(bench, "ollama", "fast", reply("", reasoning="hm", tools=[("", "look", '{"at": "sky"}')]).dripping(3))
    tool: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    bench.load()
    with openai.OpenAI(base_url=f"{bench.live.url}/v1", api_key=bench.key(), max_retries=0, timeout=60) as sdk:
        answer = sdk.chat.completions.create(model=fast, messages=[{"role": "user", "content": "hi"}], tools=[tool])
        assert answer.choices[0].finish_reason == "tool_calls"
        with sdk.chat.completions.stream(model=fast, messages=[{"role": "user", "content": "hi"}], tools=[tool]) as stream:
            final = stream.get_final_completion().choices[0]
    assert final.finish_reason == "tool_calls"
    assert final.message.tool_calls is not None
    assert [(c.function.name, json.loads(c.function.arguments)) for c in final.message.tool_calls] == [("look", {"at": "sky"})]
    assert final.message.tool_calls[0].id.startswith("call_")


# ------------------------------------------------------------------ what is on offer


def test_models_are_listed_and_shown_truthfully(bench: Bench, client: ollama.Client) -> None:
    facts = {"tools": True, "vision": True, "reasoning": True, "context_window": 4096}
    able, plain = bench.model("vendor/able:free", facts=facts), bench.model("plain")
    core = bench.collection([able, plain])
    bench.load()
    assert {able, plain, core, f"{core}:route", f"{core}:merged"} <= {m.model for m in client.list().models}
    assert set(client.show(able).capabilities or []) == {"completion", "tools", "vision", "thinking"}
    assert client.show(plain).capabilities == ["completion"]
    assert set(client.show(core).capabilities or []) == {"completion", "vision"}
    assert "tools" in (client.show(f"{core}:route").capabilities or [])
    told = client.show(able).modelinfo or {}
    assert [v for k, v in told.items() if k.endswith(".context_length")] == [4096]
    with pytest.raises(ollama.ResponseError):
        client.show("nobody")
    assert httpx.get(f"{bench.live.url}/api/version").json()["version"]


async def test_the_async_client(bench: Bench) -> None:
    fast = either(bench, "ollama", "fast", reply(["a", "b"]))
    bench.load()
    client = ollama.AsyncClient(host=bench.live.url, timeout=60)
    parts = [p async for p in await client.chat(model=fast, messages=HI, stream=True)]
    assert "".join(p.message.content or "" for p in parts) == "ab"
    await client._client.aclose()
