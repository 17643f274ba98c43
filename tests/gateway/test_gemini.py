"""The official `google-genai` SDK, unmodified, with the server's address as its base URL; providers of both formats behind it, and of this one behind chat."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from google import genai
from google.genai import errors, types

from tests.fake import reply, sse, status
from tests.fake.script import whole
from tests.gateway.shape import check_bench
from tests.http import Stream
from tests.live import CANARY_KEY, Bench
from tests.wire import gemini_stream as grammar

pytestmark = pytest.mark.formats

PNG = bytes.fromhex("89504e470d0a1a0a")
LOOK = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="look", description="looks", parameters=types.Schema(type=types.Type.OBJECT, properties={"at": types.Schema(type=types.Type.STRING)})
        )
    ]
)


@pytest.fixture
def client(bench: Bench) -> Iterator[genai.Client]:
    made = genai.Client(api_key=bench.key(), http_options=types.HttpOptions(base_url=bench.live.url, timeout=60_000))
    yield made
    made.close()


def google(bench: Bench, name: str = "google", *answers: Any, **more: Any) -> str:
    """A model behind a provider of this format."""
    endpoint = f"{bench.tag}-googles"
    if endpoint not in bench.endpoints:
        bench.endpoint("googles", kind="gemini", base_url=bench.fake.root, key_env="BENCHWARMERS_KEY_CANARY")
    return bench.model(name, *answers, endpoint=endpoint, **more)


def either(bench: Bench, kind: str, name: str, *answers: Any, **more: Any) -> str:
    return google(bench, name, *answers, **more) if kind == "gemini" else bench.model(name, *answers, **more)


def post(bench: Bench, path: str, body: Any, **headers: str) -> Any:
    return bench.load().live.send("POST", path, body, headers=headers)


def open_stream(bench: Bench, path: str, body: Any) -> Stream:
    data = json.dumps(body).encode()
    return Stream(bench.load().live.host, bench.live.port, path, data, {"content-type": "application/json"})


BOTH = pytest.mark.parametrize("kind", ["gemini", "openai"])
HI: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


# ------------------------------------------------------------------ one model


@BOTH
def test_a_whole_answer(bench: Bench, client: genai.Client, kind: str) -> None:
    fast = either(bench, kind, "fast", reply("hello", usage=(11, 7)))
    bench.load()
    config = types.GenerateContentConfig(system_instruction="Be brief.", max_output_tokens=64, temperature=0.5, seed=3, stop_sequences=["x"])
    answer = client.models.generate_content(model=fast, contents="hi", config=config)
    assert (answer.text, answer.model_version) == ("hello", fast)
    assert answer.usage_metadata is not None
    assert (answer.usage_metadata.prompt_token_count, answer.usage_metadata.candidates_token_count, answer.usage_metadata.total_token_count) == (11, 7, 18)
    assert answer.candidates
    assert answer.candidates[0].finish_reason is types.FinishReason.STOP
    call = bench.fake.call(fast)
    if kind == "gemini":
        assert call.path == f"/v1beta/models/{fast}:generateContent"
        assert call.headers["x-goog-api-key"] == CANARY_KEY
        assert CANARY_KEY not in call.path + call.query
        assert call.json["generationConfig"]["maxOutputTokens"] == 64
    else:
        assert call.json["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
        assert (call.json["max_tokens"], call.json["temperature"], call.json["seed"], call.json["stop"]) == (64, 0.5, 3, ["x"])


@BOTH
def test_a_stream_with_thoughts(bench: Bench, client: genai.Client, kind: str) -> None:
    fast = either(bench, kind, "fast", reply(["hel", "lo"], reasoning="hm", usage=(11, 7)))
    bench.load()
    config = types.GenerateContentConfig(thinking_config=types.ThinkingConfig(include_thoughts=True))
    chunks = list(client.models.generate_content_stream(model=fast, contents="hi", config=config))
    assert "".join(c.text or "" for c in chunks) == "hello"
    parts = [p for c in chunks for one in c.candidates or () if one.content for p in one.content.parts or ()]
    assert [p.text for p in parts if p.thought] == ["hm"]
    assert chunks[-1].candidates
    assert chunks[-1].candidates[0].finish_reason is types.FinishReason.STOP
    assert chunks[-1].usage_metadata is not None
    assert chunks[-1].usage_metadata.total_token_count == 18
    call = bench.fake.call(fast)
    if kind == "gemini":
        assert (call.path, call.query) == (f"/v1beta/models/{fast}:streamGenerateContent", "alt=sse")


@BOTH
@pytest.mark.parametrize("streamed", [False, True])
def test_a_turn_with_tools_and_its_results(bench: Bench, client: genai.Client, kind: str, streamed: bool) -> None:
    calls = [("call_a!c2lnbmVk" if kind == "gemini" else "call_a", "look", '{"at": "sky"}'), ("" if kind == "gemini" else "call_b", "look", "{}")]
    fast = either(bench, kind, "fast", reply("", tools=calls), reply("a cat"))
    bench.load()
    config = types.GenerateContentConfig(tools=[LOOK])
    turns: list[Any] = [types.Content(role="user", parts=[types.Part(text="hi")])]

    def ask() -> list[types.Part]:
        if not streamed:
            answer = client.models.generate_content(model=fast, contents=turns, config=config)
            return list(answer.candidates[0].content.parts or ())  # type: ignore[index, union-attr]
        chunks = client.models.generate_content_stream(model=fast, contents=turns, config=config)
        return [p for c in chunks for one in c.candidates or () if one.content for p in one.content.parts or ()]

    first = [p for p in ask() if p.function_call]
    made = [p.function_call for p in first if p.function_call]
    assert [(c.name, c.args) for c in made] == [("look", {"at": "sky"}), ("look", {})]
    assert made[0].id == "call_a"
    assert made[1].id
    turns.append(types.Content(role="model", parts=first))
    results = [types.FunctionResponse(id=c.id, name=c.name, response={"output": f"result {n}"}) for n, c in enumerate(made)]
    turns.append(types.Content(role="user", parts=[types.Part(function_response=r) for r in (*results, results[0])]))
    assert "".join(p.text or "" for p in ask()) == "a cat"
    sent = bench.fake.call(fast, 1).json
    if kind == "gemini":
        assert [p.get("thoughtSignature") for p in sent["contents"][1]["parts"]] == ["c2lnbmVk", None]
        assert [p["functionResponse"]["id"] for p in sent["contents"][2]["parts"]] == ["call_a", made[1].id]
    else:
        assert [(m["role"], m.get("tool_call_id"), m["content"]) for m in sent["messages"][2:]] == [
            ("tool", "call_a", "result 0"),
            ("tool", "call_b", "result 1"),
        ]
        assert sent["tools"][0]["function"]["parameters"] == {"type": "object", "properties": {"at": {"type": "string"}}}


@BOTH
def test_functions_that_the_sdk_calls_by_itself(bench: Bench, client: genai.Client, kind: str) -> None:
    fast = either(bench, kind, "fast", reply("", tools=[("call_a", "weather", '{"city": "Graz"}')]), reply("It is sunny."))
    bench.load()
    asked: list[str] = []

    def weather(city: str) -> str:
        """Tells the weather of a city."""
        asked.append(city)
        return "sunny"

    chat = client.chats.create(model=fast, config=types.GenerateContentConfig(tools=[weather]))
    assert chat.send_message("And the weather?").text == "It is sunny."
    assert asked == ["Graz"]
    asked.clear()
    bench.fake.script(fast, reply("", tools=[("call_b", "weather", '{"city": "Linz"}')]), reply("It rains."))
    pieces = list(chat.send_message_stream("And there?"))
    assert "".join(c.text or "" for c in pieces).endswith("It rains.")
    assert asked == ["Linz"]


@BOTH
def test_a_promised_shape(bench: Bench, client: genai.Client, kind: str) -> None:
    fast = either(bench, kind, "fast", reply('{"name": "Mia", "age": 3}'))
    bench.load()
    schema = types.Schema(type=types.Type.OBJECT, properties={"name": types.Schema(type=types.Type.STRING), "age": types.Schema(type=types.Type.INTEGER)})
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=schema)
    answer = client.models.generate_content(model=fast, contents="who?", config=config)
    assert answer.text is not None
    assert json.loads(answer.text) == {"name": "Mia", "age": 3}
    sent = bench.fake.call(fast).json
    if kind == "openai":
        assert sent["response_format"]["json_schema"]["schema"] == {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}


@BOTH
def test_an_image(bench: Bench, client: genai.Client, kind: str) -> None:
    fast = either(bench, kind, "fast", reply("a cat"), facts={"vision": True})
    bench.load()
    answer = client.models.generate_content(model=fast, contents=["what?", types.Part.from_bytes(data=PNG, mime_type="image/png")])
    assert answer.text == "a cat"
    sent = bench.fake.call(fast).json
    if kind == "gemini":
        assert sent["contents"][0]["parts"][1]["inlineData"]["data"] == "iVBORw0KGgo="
    else:
        assert sent["messages"][0]["content"][1]["image_url"]["url"] == "data:image/png;base64,iVBORw0KGgo="


def test_tokens_are_counted(bench: Bench, client: genai.Client) -> None:
    mine, theirs = google(bench, "mine"), bench.model("theirs")
    bench.load()
    assert client.models.count_tokens(model=mine, contents="hi").total_tokens == 321
    assert (client.models.count_tokens(model=theirs, contents="hi").total_tokens or 0) > 0
    path = f"/v1beta/models/{mine}:countTokens"
    counted = post(bench, path, {"generateContentRequest": {"model": "models/x", **HI, "systemInstruction": {"parts": [{"text": "Be brief."}]}}})
    assert (counted.json, counted.headers["x-bench-count"]) == ({"totalTokens": 321}, "counted")
    assert bench.fake.calls_to(mine)[-1].json["generateContentRequest"]["model"] == f"models/{mine}"


def test_a_body_of_the_same_format_passes_whole(bench: Bench) -> None:
    served = f"{bench.tag}/served"
    fast = google(bench, "fast", reply("hello", usage={"promptTokenCount": 3, "totalTokenCount": 5, "trafficType": "ON_DEMAND"}), served_name=served)
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {
                "role": "model",
                "parts": [{"text": "é🙂", "thought": True}, {"function_call": {"name": "look", "args": {}}, "thought_signature": "EqRk+/=="}],
            },
            {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": {"deep": [1, None]}}}}]},
        ],
        "system_instruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"temperature": 1, "mediaResolution": "MEDIA_RESOLUTION_LOW", "thinking_config": {"include_thoughts": True}},
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        "cachedContent": "cachedContents/1",
        "tools": [
            {"functionDeclarations": [{"name": "look", "parametersJsonSchema": {"type": "object", "additionalProperties": False}}]},
            {"googleSearch": {}},
        ],
        "an_unknown_field": {"kept": [1, None]},
    }
    answer = post(bench, f"/v1beta/models/{fast}:generateContent", body)
    assert answer.status == 200, answer.body
    assert "x-bench-dropped" not in answer.headers
    assert bench.fake.call(served).json == body
    assert answer.json["usageMetadata"]["trafficType"] == "ON_DEMAND"
    assert answer.json["modelVersion"] == fast


def test_what_only_google_knows_stops_before_another_and_is_named(bench: Bench) -> None:
    fast = bench.model("fast", reply("hello"))
    more = {"safetySettings": [], "generationConfig": {"topK": 4, "mediaResolution": "x", "evil\r\nname": 1}, "labels": {}}
    answer = post(bench, f"/v1beta/models/{fast}:generateContent", {**HI, **more})
    assert answer.status == 200
    assert set(answer.headers["x-bench-dropped"].split(", ")) == {
        "safetySettings",
        "labels",
        "generationConfig.mediaResolution",
        "a field",
        "top_k",
    }
    for refused in ({"cachedContent": "cachedContents/1"}, {"generationConfig": {"responseModalities": ["AUDIO"]}}):
        answer = post(bench, f"/v1beta/models/{fast}:generateContent", {**HI, **refused})
        assert answer.status == 400
        assert answer.json["error"]["status"] == "INVALID_ARGUMENT"
        assert next(iter(refused)) in answer.json["error"]["message"]


# ------------------------------------------------------------------ names and paths


@pytest.mark.parametrize("place", ["/v1beta/models/", "/v1/models/", "/models/", "/v1beta/", "/v1/"])
def test_every_path_leads_to_the_model(bench: Bench, place: str) -> None:
    fast = bench.model("vendor/fast:free", reply("hello"))
    core = bench.collection([fast])
    for name in (fast, quote(fast, safe=""), f"{core}:route", quote(f"{core}:route", safe="")):
        answer = post(bench, f"{place}{name}:generateContent", HI)
        assert answer.status == 200, (name, answer.body)
        assert answer.json["candidates"][0]["content"]["parts"] == [{"text": "hello"}]


def test_models_are_listed_and_told(bench: Bench, client: genai.Client) -> None:
    fast = bench.model("vendor/fast:free")
    core = bench.collection([fast])
    bench.load()
    assert {f"models/{fast}", f"models/{core}:route"} <= {m.name for m in client.models.list()}
    assert client.models.get(model=core).name == f"models/{core}"


def test_errors_become_the_sdks_own(bench: Bench, client: genai.Client) -> None:
    limited, other = bench.model("limited", status(429, headers={"retry-after": "7"})), bench.model("other")
    bench.load()
    with pytest.raises(errors.ClientError) as unknown:
        client.models.generate_content(model="nobody", contents="hi")
    assert (unknown.value.code, unknown.value.status) == (404, "NOT_FOUND")
    assert unknown.value.details["error"]["details"][0]["reason"] == "model_not_found"
    with pytest.raises(errors.ClientError) as wrong:
        client.models.generate_content(model=other, contents="hi", config=types.GenerateContentConfig(candidate_count=2))
    assert wrong.value.code == 400
    with pytest.raises(errors.ClientError) as slow:
        client.models.generate_content(model=limited, contents="hi")
    assert (slow.value.code, slow.value.status) == (429, "RESOURCE_EXHAUSTED")
    assert slow.value.details["error"]["details"][1]["retryDelay"] == "7s"
    with pytest.raises(errors.ClientError) as missing:
        client.models.get(model="nobody")
    assert missing.value.code == 404
    stranger = genai.Client(api_key="bw_live_wrong0123456789", http_options=types.HttpOptions(base_url=bench.live.url))
    with pytest.raises(errors.ClientError) as denied:
        stranger.models.generate_content(model=limited, contents="hi")
    assert (denied.value.code, denied.value.status) == (401, "UNAUTHENTICATED")


@BOTH
def test_a_stream_that_breaks_off_raises(bench: Bench, client: genai.Client, kind: str) -> None:
    fast = either(bench, kind, "fast", reply(["half", "whole"]).cut(after="half"))
    bench.load()
    with pytest.raises(errors.APIError) as broken:
        for _ in client.models.generate_content_stream(model=fast, contents="hi"):
            pass
    assert broken.value.details["error"]["details"][0]["reason"] == "upstream_truncated"
    with open_stream(bench, f"/v1beta/models/{fast}:streamGenerateContent", HI) as stream:
        found = grammar.elements(stream.rest(), whole=True)
    grammar.check(found, ended=False, failed=True)
    assert "error" in found[-1]


@pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")  # the SDK's own
async def test_the_async_client(bench: Bench) -> None:
    fast = google(bench, "fast", reply(["a", "b"]))
    bench.load()
    made = genai.Client(api_key=bench.key(), http_options=types.HttpOptions(base_url=bench.live.url))
    stream = await made.aio.models.generate_content_stream(model=fast, contents="hi")
    assert "".join([c.text or "" async for c in stream]) == "ab"
    await made.aio.aclose()
    made.close()


# ------------------------------------------------------------------ panels


def test_a_panel_with_its_bench_field(bench: Bench, client: genai.Client) -> None:
    core = bench.collection([bench.model("one", reply("alpha")), google(bench, "two", reply("beta"))])
    bench.load()
    answer = post(bench, f"/v1beta/models/{core}:generateContent", HI)
    assert [s["text"] for s in check_bench(answer.json["bench"])] == ["alpha", "beta"]
    told = client.models.generate_content(model=core, contents="hi").text or ""
    assert "alpha" in told
    assert "beta" in told


def test_a_panel_as_events_and_as_an_array(bench: Bench, client: genai.Client) -> None:
    core = bench.collection([bench.model("one", reply(["al", "pha"])), google(bench, "two", reply("beta"))])
    bench.load()
    text = "".join(c.text or "" for c in client.models.generate_content_stream(model=core, contents="hi"))
    assert "alpha" in text
    assert "beta" in text
    for path, kind in (
        (f"/v1beta/models/{core}:streamGenerateContent?alt=sse", "text/event-stream"),
        (f"/v1beta/models/{core}:streamGenerateContent", "application/json"),
    ):
        with open_stream(bench, path, HI) as stream:
            assert stream.headers["content-type"] == kind
            data = stream.rest()
        found = grammar.events(data) if "sse" in path else grammar.elements(data, whole=True)
        said = grammar.said(grammar.check(found, ended=True))
        assert "alpha" in said
        assert "beta" in said
        assert [s["text"] for s in check_bench(found[-1]["bench"])] == ["alpha", "beta"]


def test_a_panel_takes_no_tools(bench: Bench, client: genai.Client) -> None:
    core = bench.collection([bench.model("one")])
    bench.load()
    with pytest.raises(errors.ClientError) as refused:
        client.models.generate_content(model=core, contents="hi", config=types.GenerateContentConfig(tools=[LOOK]))
    assert refused.value.details["error"]["details"][0]["reason"] == "tools_need_route"


@pytest.mark.parametrize("query", ["?alt=sse", ""])
def test_a_panel_that_takes_its_time_is_kept_alive(bench: Bench, query: str) -> None:
    gate = bench.fake.gate()
    core = bench.collection([bench.model("slow", reply("alpha").after(gate))])
    alive = 'data: {"candidates":[]}' if query else "\n"
    with open_stream(bench, f"/v1beta/models/{core}:streamGenerateContent{query}", HI) as stream:
        data = stream.until(alive).encode()
        gate.open()
        data += stream.rest()
    found = grammar.events(data) if query else grammar.elements(data, whole=True)
    assert "alpha" in grammar.said(grammar.check(found, ended=True))


def test_a_panel_that_is_kept_alive_is_read_by_the_sdk(bench: Bench, client: genai.Client) -> None:
    gate = bench.fake.gate()
    core = bench.collection([bench.model("quick", reply("beta")), bench.model("slow", reply("alpha").after(gate))])
    bench.load()
    text, empty = "", 0
    for chunk in client.models.generate_content_stream(model=core, contents="hi"):
        text += chunk.text or ""
        empty += not chunk.candidates
        if empty and "beta" in text:
            gate.open()
    assert "alpha" in text


def test_a_merged_answer(bench: Bench, client: genai.Client) -> None:
    merger = google(bench, "merger", reply("both agree"))
    core = bench.collection([bench.model("one", reply("alpha")), bench.model("two", reply("beta"))], mergers=[merger])
    bench.load()
    assert "both agree" in (client.models.generate_content(model=f"{core}:merged", contents="hi").text or "")


# ------------------------------------------------------------------ route


@pytest.mark.parametrize("streamed", [False, True])
def test_a_signature_that_a_client_cannot_echo_is_put_back(bench: Bench, streamed: bool) -> None:
    thinker = google(bench, "thinker", reply("", tools=[("!c2lnbmVk", "look", "{}")], reasoning="hm"), reply("a cat"))
    core = f"{bench.collection([thinker])}:route"
    look = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    if streamed:
        with bench.stream(core, tools=[look]) as stream:
            chunks = [json.loads(line[6:]) for line in stream.rest().decode().splitlines() if line.startswith("data: {")]
        call = next(c["choices"][0]["delta"]["tool_calls"][0] for c in chunks if c["choices"] and c["choices"][0]["delta"].get("tool_calls"))
    else:
        call = bench.ask(core, tools=[look]).json["choices"][0]["message"]["tool_calls"][0]
    history = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": call["id"], "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": call["id"], "content": "dark"},
    ]
    assert bench.ask(core, history, tools=[look]).json["choices"][0]["message"]["content"] == "a cat"
    model_turn = bench.fake.call(thinker, 1).json["contents"][1]
    assert model_turn["parts"][-1]["thoughtSignature"] == "c2lnbmVk"


def test_a_conversation_goes_on_elsewhere_with_googles_placeholder(bench: Bench, client: genai.Client) -> None:
    first = bench.model("first", reply("", tools=[("call_a", "look", "{}")]), status(500))
    second = google(bench, "second", reply("a cat"))
    core = f"{bench.collection([first, second])}:route"
    bench.load()
    config = types.GenerateContentConfig(tools=[LOOK])
    answer = client.models.generate_content(model=core, contents="hi", config=config)
    assert answer.function_calls
    result = types.Part(function_response=types.FunctionResponse(id="call_a", name="look", response={"output": "dark"}))
    turns = [types.Content(role="user", parts=[types.Part(text="hi")]), answer.candidates[0].content, types.Content(role="user", parts=[result])]  # type: ignore[index]
    assert client.models.generate_content(model=core, contents=turns, config=config).text == "a cat"
    assert bench.fake.call(second).json["contents"][1]["parts"][0]["thoughtSignature"] == "skip_thought_signature_validator"


def test_a_busy_member_is_passed_over(bench: Bench, client: genai.Client) -> None:
    busy = google(bench, "busy", status(503, "The model is overloaded."))
    core = f"{bench.collection([busy, bench.model('spare', reply('here'))])}:route"
    bench.load()
    assert "".join(c.text or "" for c in client.models.generate_content_stream(model=core, contents="hi")) == "here"
    other = google(bench, "other", sse({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}, done=False))
    core = f"{bench.collection([other, bench.model('spare2', reply('there'))], 'again')}:route"
    bench.load()
    assert "".join(c.text or "" for c in client.models.generate_content_stream(model=core, contents="hi")) == "there"


# ------------------------------------------------------------------ behind chat


def test_a_chat_client_gets_what_google_says(bench: Bench) -> None:
    counts = {"promptTokenCount": 11, "cachedContentTokenCount": 3, "candidatesTokenCount": 5, "thoughtsTokenCount": 2, "totalTokenCount": 18}
    fast = google(bench, "fast", reply(["a ", "cat"], reasoning="hm", usage=counts))
    answer = bench.ask(fast).json
    assert answer["choices"][0]["message"]["content"] == "a cat"
    assert answer["choices"][0]["message"]["reasoning_content"] == "hm"
    assert (answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]) == (11, 7)
    assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] == 3
    assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] == 2


def test_a_refused_prompt_is_a_filtered_answer(bench: Bench) -> None:
    body = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 12, "totalTokenCount": 12}}
    fast = google(bench, "fast", whole(body))
    assert bench.ask(fast).json["choices"][0]["finish_reason"] == "content_filter"
    (row,) = bench.live.attempts(1, model=fast)
    assert (row["status"], row["input_tokens"]) == ("refused", 12)


def test_an_image_by_its_address_is_not_fetched_for_google(bench: Bench) -> None:
    fast = google(bench, "fast", facts={"vision": True})
    content = [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]
    answer = bench.ask(fast, [{"role": "user", "content": content}])
    assert answer.status == 400
    assert not bench.fake.calls_to(fast)
