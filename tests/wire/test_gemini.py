"""Gemini's format: what a caller sends is understood whole, what Google is sent it takes, and nothing is lost between two of the kind."""

from __future__ import annotations

import copy
import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.mutations import JUNK, bent
from wire import dialects, tool_names
from wire.conversation import (
    File,
    Format,
    Image,
    Message,
    Reasoning,
    Refusal,
    Reply,
    Request,
    Role,
    Sampling,
    Stop,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Usage,
)
from wire.dialects import Answer, Inbound
from wire.errors import CallerError, Empty, Fault, Garbage, UpstreamError

GEMINI, CHAT = dialects.get("gemini"), dialects.get("openai-chat")
PATH = "/v1beta/models/fast:generateContent"
REQUEST: dict[str, Any] = {
    "systemInstruction": {"parts": [{"text": "Be brief."}], "role": "user"},
    "contents": [
        {"role": "user", "parts": [{"text": "What is this?"}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}]},
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True},
                {"functionCall": {"id": "f1", "name": "look", "args": {"at": "it"}}, "thoughtSignature": "c2lnbmVk"},
                {"functionCall": {"id": "f2", "name": "look", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "f1", "name": "look", "response": {"output": "a cat"}}},
                {"functionResponse": {"id": "f2", "name": "look", "response": {"error": "too dark"}}},
            ],
        },
        {"role": "model", "parts": [{"text": "A cat.", "thoughtSignature": "bW9yZQ=="}]},
        {"role": "user", "parts": [{"text": "And now?"}]},
    ],
    "generationConfig": {
        "temperature": 0.5,
        "topP": 0.9,
        "topK": 40,
        "maxOutputTokens": 100,
        "stopSequences": ["x"],
        "seed": 7,
        "presencePenalty": 0.1,
        "frequencyPenalty": 0.2,
        "responseMimeType": "application/json",
        "responseSchema": {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}, "required": ["a"], "propertyOrdering": ["a"]},
        "thinkingConfig": {"thinkingLevel": "HIGH", "includeThoughts": True},
        "mediaResolution": "MEDIA_RESOLUTION_LOW",
    },
    "tools": [
        {
            "functionDeclarations": [
                {
                    "name": "look",
                    "description": "looks",
                    "parameters": {"type": "OBJECT", "properties": {"at": {"type": "STRING"}, "n": {"type": "INTEGER", "minimum": 1}}, "required": ["at"]},
                }
            ]
        }
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
    "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
    "labels": {"team": "a"},
}
REPLY: dict[str, Any] = {
    "candidates": [
        {
            "content": {
                "parts": [
                    {"text": "hm", "thought": True},
                    {"text": "a "},
                    {"text": "cat"},
                    {"functionCall": {"id": "f1", "name": "look", "args": {"at": "it"}}, "thoughtSignature": "c2lnbmVk"},
                ],
                "role": "model",
            },
            "finishReason": "STOP",
            "index": 0,
            "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"}],
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 11,
        "cachedContentTokenCount": 3,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 2,
        "totalTokenCount": 18,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 11}],
    },
    "modelVersion": "gemini-3.1-pro",
    "responseId": "r1",
}


def asked(body: Any, path: str = PATH, query: str = "") -> Request:
    return GEMINI.read_request(Inbound(path, query, {}, body))


def a_request(**more: Any) -> Request:
    return asked({"contents": [{"role": "user", "parts": [{"text": "hi"}]}], **more})


def by_chat(**more: Any) -> Request:
    return CHAT.read_request(Inbound("/v1/chat/completions", "", {}, {"model": "fast", "messages": [{"role": "user", "content": "hi"}], **more}))


def sent(request: Request, served_name: str = "gemini-3.1-pro", **quirks: Any) -> dict[str, Any]:
    return dict(json.loads(json.dumps(GEMINI.write_request(request, served_name, quirks).body)))


def snaked(value: Any, inside: str = "") -> Any:
    """The same request as the Python SDK spells some of it. What is a caller's own data stays."""
    from wire.dialects._gemini_in import snake

    if isinstance(value, dict):
        own = inside in ("properties", "args", "response", "labels")
        return {k if own else snake(k): snaked(v, k) for k, v in value.items()}
    return [snaked(v, inside) for v in value] if isinstance(value, list) else value


# ------------------------------------------------------------------ where a request comes in


@pytest.mark.parametrize("place", ["/v1beta/models/", "/v1/models/", "/models/", "/v1beta/", "/v1/"])
@pytest.mark.parametrize("name", ["fast", "bench/core", "bench/core:route", "meta-llama/Llama-3.3-70B:free", "a b@c.d", "日本"])
def test_the_path_names_the_model_and_the_method_follows_the_last_colon(place: str, name: str) -> None:
    for method, stream, operation in (("generateContent", False, "ask"), ("streamGenerateContent", True, "ask"), ("countTokens", False, "count")):
        request = asked({"contents": [{"parts": [{"text": "hi"}]}]}, f"{place}{name}:{method}")
        assert (request.model, request.stream, request.operation) == (name, stream, operation)


@pytest.mark.parametrize(
    "path", ["/v1beta/models/fast", "/v1beta/models/fast:embedContent", "/v1beta/models/bench/core:route", "/v1/nothing", "/v1/", "/models/"]
)
def test_what_is_no_method_is_not_found(path: str) -> None:
    with pytest.raises(CallerError) as caught:
        asked({"contents": []}, path)
    assert (caught.value.status, caught.value.code) == (404, "model_not_found")


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb"])
def test_a_name_beyond_measure_is_refused(name: str) -> None:
    with pytest.raises(CallerError) as caught:
        asked({"contents": []}, f"/v1beta/models/{name}:generateContent")
    assert caught.value.status == 400


@pytest.mark.parametrize(("query", "form"), [("alt=sse", ""), ("key=x&alt=sse", ""), ("", "array"), ("alt=json", "array")])
def test_a_stream_is_events_only_where_the_query_says_so(query: str, form: str) -> None:
    assert asked(REQUEST, PATH.replace(":g", ":streamG"), query).stream_form == form


# ------------------------------------------------------------------ requests in


@pytest.mark.parametrize("body", [REQUEST, snaked(REQUEST)], ids=["camelCase", "snake_case"])
def test_a_request_is_understood(body: dict[str, Any]) -> None:
    request = asked(body)
    assert [m.role for m in request.messages] == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT, Role.USER]
    assert request.messages[0].text == "Be brief."
    assert request.messages[1].parts == (Text("What is this?"), Image(media_type="image/png", data="iVBORw0KGgo="))
    assert request.messages[2].parts == (
        Thinking("hm"),
        ToolCall("f1", "look", '{"at":"it"}', signature="c2lnbmVk"),
        ToolCall("f2", "look", "{}"),
    )
    assert request.messages[3].parts == (
        ToolResult("f1", (Text("a cat"),), name="look"),
        ToolResult("f2", (Text("too dark"),), is_error=True, name="look"),
    )
    assert request.sampling == Sampling(0.5, 0.9, 40, ("x",), 7, 0.1, 0.2)
    assert request.output_limit == 100
    assert request.format == Format("schema", {"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]}, "answer")
    assert request.tools == (
        Tool(
            "look",
            "looks",
            {"type": "object", "properties": {"at": {"type": "string"}, "n": {"type": "integer", "minimum": 1}}, "required": ["at"]},
        ),
    )
    assert request.tool_choice == ToolChoice("auto")
    assert request.reasoning == Reasoning(effort="high", enabled=True, summary="auto")
    assert {n.partition(".")[2] or n for n in request.unread} in (
        {"safetySettings", "labels", "mediaResolution"},
        {"safety_settings", "labels", "media_resolution"},
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("contents", None),
        ("contents", "hi"),
        ("contents", []),
        ("contents[0]", "hi"),
        ("contents[0].role", "wizard"),
        ("contents[0].role", 3),
        ("contents[0].parts", "hi"),
        ("contents[0].parts[0]", "hi"),
        ("contents[0].parts[0].text", 5),
        ("contents[0].parts[1].inlineData", "x"),
        ("contents[0].parts[1].inlineData.mimeType", 5),
        ("contents[0].parts[1].inlineData.data", None),
        ("contents[0].parts[1].inlineData.data", {}),
        ("contents[1].parts[1].functionCall.name", 5),
        ("contents[1].parts[1].functionCall.name", None),
        ("contents[1].parts[1].functionCall.args", "x"),
        ("contents[1].parts[1].thoughtSignature", 5),
        ("contents[2].parts[0].functionResponse.id", 5),
        ("systemInstruction", 5),
        ("systemInstruction.parts[0].text", 5),
        ("generationConfig", "x"),
        ("generationConfig.temperature", "hot"),
        ("generationConfig.topP", True),
        ("generationConfig.topK", "many"),
        ("generationConfig.maxOutputTokens", "x"),
        ("generationConfig.maxOutputTokens", 1.5),
        ("generationConfig.stopSequences", "x"),
        ("generationConfig.stopSequences[0]", 5),
        ("generationConfig.responseMimeType", 5),
        ("generationConfig.responseSchema", "x"),
        ("generationConfig.thinkingConfig", "x"),
        ("generationConfig.thinkingConfig.thinkingLevel", 5),
        ("generationConfig.thinkingConfig.includeThoughts", "yes"),
        ("tools", "x"),
        ("tools[0]", "x"),
        ("tools[0].functionDeclarations", "x"),
        ("tools[0].functionDeclarations[0].name", None),
        ("tools[0].functionDeclarations[0].parameters", "x"),
        ("toolConfig", "x"),
        ("toolConfig.functionCallingConfig", "x"),
        ("toolConfig.functionCallingConfig.mode", 5),
    ],
)
def test_a_wrong_type_is_refused_by_its_fields_name(field: str, value: Any) -> None:
    body = copy.deepcopy(REQUEST)
    keys: list[Any] = [int(k) if k.isdigit() else k for k in field.replace("[", ".").replace("]", "").split(".")]
    target: Any = body
    for key in keys[:-1]:
        target = target[key]
    target[keys[-1]] = value
    with pytest.raises(CallerError) as caught:
        asked(body)
    assert (caught.value.status, caught.value.code, caught.value.field) == (400, "invalid_request", field)
    assert field in caught.value.message


@given(bent(REQUEST) | bent(snaked(REQUEST)) | JUNK | st.dictionaries(st.sampled_from([*REQUEST, "x"]), JUNK))
def test_any_json_is_a_request_or_a_callers_error(body: Any) -> None:
    try:
        request = asked(body)
    except CallerError as error:
        assert error.status == 400  # noqa: PT017
        assert orjson.dumps(GEMINI.write_error(error))  # noqa: PT017
        return
    for served, quirks in (("gemini-3.1-pro", {}), ("gemini-2.0-flash", {"max_tokens": 9}), ("gemini-2.5-pro", {"defaults": {"temperature": 0.2}})):
        json.dumps(sent(request, served, **quirks))
    GEMINI.without_thinking(request, lambda part: True)
    GEMINI.with_user_turn(request, "more")
    GEMINI.stream_writer(request, "gem_1", 5)
    assert all(name.isascii() and name.isprintable() for name in request.unread)
    for other in dialects.every():
        try:
            other.write_request(request, "served", {})
        except CallerError:
            pass


def test_one_content_or_part_alone_counts_as_a_list_and_a_missing_role_as_the_user() -> None:
    request = asked({"contents": {"parts": {"text": "hi"}}, "system_instruction": {"parts": {"text": "be brief"}}})
    assert [(m.role, m.text) for m in request.messages] == [(Role.SYSTEM, "be brief"), (Role.USER, "hi")]


def test_calls_without_ids_are_known_by_their_place_and_results_by_their_names() -> None:
    contents = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"functionCall": {"name": n}} for n in ("a", "b", "a")]},
        {"role": "user", "parts": [{"functionResponse": {"name": n, "response": {"result": r}}} for n, r in (("b", "2"), ("a", "1"), ("a", "3"))]},
    ]
    request = asked({"contents": contents})
    assert [p.id for p in request.messages[1].parts if isinstance(p, ToolCall)] == ["call_0", "call_1", "call_2"]
    assert [p.call_id for p in request.messages[2].parts if isinstance(p, ToolResult)] == ["call_1", "call_0", "call_2"]


@pytest.mark.parametrize("with_id", [True, False])
def test_a_result_that_stands_twice_in_a_history_goes_out_once(with_id: bool) -> None:
    mark = {"id": "f1"} if with_id else {}
    result = {"functionResponse": {**mark, "name": "look", "response": {"output": "a cat"}}}
    contents = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"functionCall": {**mark, "name": "look", "args": {}}, "thoughtSignature": "c2ln"}]},
        {"role": "user", "parts": [result, copy.deepcopy(result)]},
        {"role": "user", "parts": [copy.deepcopy(result)]},
        {"role": "model", "parts": [{"text": "A cat."}]},
        {"role": "user", "parts": [{"text": "And now?"}]},
    ]
    request = asked({"contents": contents})
    assert sum(isinstance(p, ToolResult) for m in request.messages for p in m.parts) == 1
    out = sent(request)
    assert out["contents"] == [contents[0], contents[1], {"role": "user", "parts": [result]}, *contents[4:]]


def test_the_same_call_made_again_is_answered_again() -> None:
    step = [
        {"role": "model", "parts": [{"functionCall": {"id": "f1", "name": "look", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "f1", "name": "look", "response": {"output": "a cat"}}}]},
    ]
    request = asked({"contents": [{"parts": [{"text": "go"}]}, *step, *copy.deepcopy(step)]})
    assert sum(isinstance(p, ToolResult) for m in request.messages for p in m.parts) == 2


@pytest.mark.parametrize(
    ("response", "text", "failed"),
    [
        ({"output": "a"}, "a", False),
        ({"result": {"x": 1}}, '{"x":1}', False),
        ({"error": "no"}, "no", True),
        ({"error": {"code": 1}}, '{"code":1}', True),
        ({"x": 1, "y": [2]}, '{"x":1,"y":[2]}', False),
        ({}, "{}", False),
        (None, "", False),
    ],
)
def test_what_a_tool_answered_becomes_text(response: Any, text: str, failed: bool) -> None:
    part = {"functionResponse": {"name": "look", "response": response, "parts": [{"inlineData": {"mimeType": "image/png", "data": "QUJD"}}]}}
    result = asked({"contents": [{"parts": [part]}]}).messages[0].parts[0]
    assert isinstance(result, ToolResult)
    assert (*(p.text for p in result.parts if isinstance(p, Text)), "")[0] == text
    assert (result.is_error, result.parts[-1]) == (failed, Image(media_type="image/png", data="QUJD"))


@pytest.mark.parametrize(
    ("config", "understood"),
    [
        ({"thinkingBudget": 0}, Reasoning(budget=0, enabled=False)),
        ({"thinkingBudget": -1, "includeThoughts": True}, Reasoning(enabled=True, summary="auto")),
        ({"thinkingBudget": 512}, Reasoning(budget=512, enabled=True)),
        ({"thinking_level": "LOW"}, Reasoning(effort="low", enabled=True)),
        ({"includeThoughts": False}, None),
        ({}, None),
    ],
)
def test_thinking_is_understood(config: dict[str, Any], understood: Reasoning | None) -> None:
    assert a_request(generationConfig={"thinkingConfig": config}).reasoning == understood


@pytest.mark.parametrize(
    ("calling", "understood"),
    [
        ({"mode": "ANY"}, ToolChoice("required")),
        ({"mode": "ANY", "allowedFunctionNames": ["a"]}, ToolChoice("tool", name="a")),
        ({"mode": "ANY", "allowed_function_names": ["a", "b"]}, ToolChoice("required", allowed=("a", "b"))),
        ({"mode": "NONE"}, ToolChoice("none")),
        ({"mode": "VALIDATED", "allowedFunctionNames": ["a"]}, ToolChoice("auto", allowed=("a",))),
        ({}, ToolChoice("auto")),
    ],
)
def test_the_choice_of_tools_is_understood(calling: dict[str, Any], understood: ToolChoice) -> None:
    assert a_request(toolConfig={"functionCallingConfig": calling}).tool_choice == understood


def test_what_google_runs_itself_is_no_tool_for_others() -> None:
    with pytest.raises(CallerError, match="googleSearch"):
        CHAT.write_request(a_request(tools=[{"googleSearch": {}}]), "s", {})
    mixed = a_request(tools=[{"functionDeclarations": [{"name": "look"}], "google_search": {}}])
    assert CHAT.write_request(mixed, "s", {}).dropped == ("tools: googleSearch",)
    assert sent(mixed)["tools"] == [{"functionDeclarations": [{"name": "look"}], "google_search": {}}]


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"cachedContent": "cachedContents/1"}, "cachedContent"),
        ({"cached_content": "cachedContents/1"}, "cached_content"),
        ({"generationConfig": {"responseModalities": ["IMAGE"]}}, "generationConfig.responseModalities"),
        ({"generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}}, ""),
    ],
)
def test_what_only_google_can_honour_is_told(more: dict[str, Any], field: str) -> None:
    request = a_request(**more)
    assert request.bound == field
    assert sent(request).items() >= more.items()


def test_code_that_google_ran_is_text_for_others() -> None:
    parts = [{"executableCode": {"language": "PYTHON", "code": "print(1)"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}}]
    request = asked({"contents": [{"parts": [{"text": "go"}]}, {"role": "model", "parts": parts}, {"parts": [{"text": "and?"}]}]})
    assert "```python\nprint(1)\n```" in request.messages[1].text
    assert sent(request)["contents"][1]["parts"] == parts


def test_files_come_by_their_bytes_or_their_address() -> None:
    parts = [
        {"inlineData": {"mimeType": "application/pdf", "data": "QU-_", "displayName": "a.pdf"}},
        {"inlineData": {"mimeType": "audio/wav", "data": "QUJD"}},
        {"fileData": {"mimeType": "image/png", "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/x"}},
    ]
    assert asked({"contents": [{"parts": parts}]}).messages[0].parts == (
        File("file", media_type="application/pdf", data="QU+/", name="a.pdf"),
        File("audio", media_type="audio/wav", data="QUJD"),
        File("file", media_type="image/png", url="https://generativelanguage.googleapis.com/v1beta/files/x"),
    )


def test_counting_takes_a_whole_request_too() -> None:
    plain = asked({"contents": [{"parts": [{"text": "hi"}]}]}, "/v1beta/models/fast:countTokens")
    counting = GEMINI.write_count_request(plain, "served", {})
    assert counting is not None
    assert counting.body == {"contents": [{"parts": [{"text": "hi"}]}]}
    whole = asked({"generateContentRequest": {"model": "models/fast", **REQUEST}}, "/v1beta/models/fast:countTokens")
    assert whole.messages[0].text == "Be brief."
    counting = GEMINI.write_count_request(whole, "served", {})
    assert counting is not None
    assert counting.body == {"generateContentRequest": {**REQUEST, "model": "models/served"}}
    assert GEMINI.read_count({"totalTokens": 31}) == 31
    assert GEMINI.read_count({"totalTokens": 0}) is None
    assert GEMINI.write_count(5) == {"totalTokens": 5}


# ------------------------------------------------------------------ requests out, of the same format


@pytest.mark.parametrize("body", [REQUEST, snaked(REQUEST)], ids=["camelCase", "snake_case"])
def test_the_body_passes_through_as_it_came(body: dict[str, Any]) -> None:
    out = GEMINI.write_request(asked(body), "gemini-3.1-pro", {})
    assert (out.body, out.dropped) == (body, ())


def test_calls_without_any_signature_get_googles_placeholder_where_the_model_wants_one() -> None:
    contents = [{"parts": [{"text": "go"}]}, {"role": "model", "parts": [{"text": "so"}, {"functionCall": {"name": "a"}}, {"functionCall": {"name": "b"}}]}]
    request = asked({"contents": contents})
    parts = sent(request)["contents"][1]["parts"]
    assert [p.get("thoughtSignature") for p in parts] == [None, "skip_thought_signature_validator", None]
    assert sent(request, "gemini-2.5-pro")["contents"] == contents
    assert sent(request, "gemini-3.1-pro", thought_signatures=False)["contents"] == contents
    assert "thoughtSignature" in sent(request, "gemini-2.5-pro", thought_signatures=True)["contents"][1]["parts"][1]


@pytest.mark.parametrize(
    ("served", "config", "out", "dropped"),
    [
        ("gemini-3.1-pro", {"thinkingLevel": "LOW"}, {"thinkingLevel": "LOW"}, ()),
        ("gemini-3.1-pro", {"thinkingBudget": 99}, {"thinkingBudget": 99}, ()),
        ("gemini-2.5-pro", {"thinkingLevel": "LOW", "includeThoughts": True}, {"thinkingBudget": 1024, "includeThoughts": True}, ()),
        ("gemini-2.5-pro", {"thinkingBudget": 99}, {"thinkingBudget": 99}, ()),
        ("gemini-2.0-flash", {"thinkingBudget": 99}, None, ("generationConfig.thinkingConfig",)),
        ("gemma-3-27b-it", {"thinkingLevel": "LOW"}, None, ("generationConfig.thinkingConfig",)),
    ],
)
def test_thinking_is_asked_for_as_the_very_model_takes_it(served: str, config: dict[str, Any], out: Any, dropped: tuple[str, ...]) -> None:
    written = GEMINI.write_request(a_request(generationConfig={"thinkingConfig": config}), served, {})
    assert written.body["generationConfig"].get("thinkingConfig") == out
    assert written.dropped == dropped


def test_an_output_limit_beyond_the_models_is_cut_and_named() -> None:
    written = GEMINI.write_request(a_request(generation_config={"max_output_tokens": 90_000}), "s", {"max_tokens": 8192})
    assert written.body["generation_config"] == {"max_output_tokens": 8192}
    assert written.dropped == ("generation_config.max_output_tokens",)


def test_defaults_of_an_endpoint_fill_what_nobody_said() -> None:
    quirks = {"defaults": {"temperature": 0.2, "top_p": 0.9, "safetySettings": [], "generationConfig": {"seed": 3}}}
    out = GEMINI.write_request(a_request(generationConfig={"topP": 0.5}), "s", quirks).body
    assert out["generationConfig"] == {"topP": 0.5, "temperature": 0.2, "seed": 3}
    assert out["safetySettings"] == []


def test_an_empty_tool_list_is_no_tools() -> None:
    assert not {"tools", "toolConfig"} & sent(a_request(tools=[], toolConfig={"functionCallingConfig": {"mode": "AUTO"}})).keys()


def test_anothers_thinking_is_cut_out_of_the_body_too() -> None:
    cut = GEMINI.without_thinking(asked(REQUEST), lambda part: part.text == "hm")
    assert not any(isinstance(p, Thinking) for m in cut.messages for p in m.parts)
    assert sent(cut)["contents"][1]["parts"] == REQUEST["contents"][1]["parts"][1:]
    request = asked(REQUEST)
    assert GEMINI.without_thinking(request, lambda part: False) is request


def test_a_turn_added_stands_last_in_the_body_too() -> None:
    more = GEMINI.with_user_turn(asked({"contents": {"parts": [{"text": "hi"}]}}), "go on")
    assert more.messages[-1] == Message(Role.USER, (Text("go on"),))
    assert sent(more)["contents"] == [{"parts": [{"text": "hi"}]}, {"role": "user", "parts": [{"text": "go on"}]}]


# ------------------------------------------------------------------ requests out, of another format

HISTORY = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "go"},
    {
        "role": "assistant",
        "content": "so",
        "reasoning_content": "secret",
        "tool_calls": [{"id": i, "type": "function", "function": {"name": "look", "arguments": '{"at":"it"}'}} for i in ("c1", "c2", "c3")],
    },
    {"role": "tool", "tool_call_id": "c3", "content": "three"},
    {"role": "tool", "tool_call_id": "c1", "content": "one"},
    {"role": "user", "content": "well?"},
    {"role": "system", "content": "In French."},
]
LOOK = {"type": "function", "function": {"name": "look", "description": "looks", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}}


def test_a_conversation_of_another_format_is_written_as_google_wants_it() -> None:
    out = sent(by_chat(messages=HISTORY, tools=[LOOK], tool_choice="required", max_tokens=9, temperature=0.5, stop="x", seed=3))
    call = {"name": "look", "args": {"at": "it"}}
    assert out["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert out["contents"] == [
        {"role": "user", "parts": [{"text": "go"}]},
        {
            "role": "model",
            "parts": [
                {"text": "so"},
                {"functionCall": {"id": "c1", **call}, "thoughtSignature": "skip_thought_signature_validator"},
                {"functionCall": {"id": "c2", **call}},
                {"functionCall": {"id": "c3", **call}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "c1", "name": "look", "response": {"output": "one"}}},
                {"functionResponse": {"id": "c2", "name": "look", "response": {"error": "No result: the call was interrupted."}}},
                {"functionResponse": {"id": "c3", "name": "look", "response": {"output": "three"}}},
            ],
        },
        {"role": "user", "parts": [{"text": "well?"}, {"text": "<system>\nIn French.\n</system>"}]},
    ]
    assert out["tools"] == [
        {"functionDeclarations": [{"name": "look", "description": "looks", "parameters": {"type": "OBJECT", "properties": {"at": {"type": "STRING"}}}}]}
    ]
    assert out["toolConfig"] == {"functionCallingConfig": {"mode": "ANY"}}
    assert out["generationConfig"] == {"temperature": 0.5, "seed": 3, "maxOutputTokens": 9, "stopSequences": ["x"]}


def test_switches_of_other_formats_stay_out() -> None:
    out = sent(by_chat(stream=True, stream_options={"include_usage": True}, parallel_tool_calls=False, logit_bias={"5": 1}, user="u", store=False))
    assert out == {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def test_a_signature_put_back_goes_with_its_call_and_no_other_gets_a_placeholder() -> None:
    calls = (ToolCall("c1", "look", "{}", signature="c2ln"), ToolCall("c2", "look", "{}"))
    out = sent(Request("ours", "fast", (Message(Role.USER, (Text("go"),)), Message(Role.ASSISTANT, calls))))
    assert [p.get("thoughtSignature") for p in out["contents"][1]["parts"]] == ["c2ln", None]


def test_thinking_goes_to_google_only_where_it_was_kept_for_it() -> None:
    thoughts = (Thinking("mine", "c2ln", extra={"restored": True}), Thinking("theirs", "sig"), Thinking("plain"), Text("so"))
    out = sent(Request("ours", "fast", (Message(Role.USER, (Text("go"),)), Message(Role.ASSISTANT, thoughts))))
    assert out["contents"][1]["parts"] == [{"text": "mine", "thought": True, "thoughtSignature": "c2ln"}, {"text": "so"}]


def test_a_result_whose_call_is_not_there_is_told_in_words() -> None:
    out = sent(Request("ours", "fast", (Message(Role.USER, (Text("go"),)), Message(Role.TOOL, (ToolResult("gone", (Text("a cat"),), name="look"),)))))
    assert out["contents"] == [{"role": "user", "parts": [{"text": "go"}, {"text": "Result of look:\na cat"}]}]


@pytest.mark.parametrize(
    ("messages", "contents", "system"),
    [
        ([Message(Role.SYSTEM, (Text("a"),))], [{"role": "user", "parts": [{"text": "a"}]}], None),
        ([Message(Role.SYSTEM, ())], [{"role": "user", "parts": [{"text": "Please begin."}]}], None),
        (
            [Message(Role.ASSISTANT, (Text("a"),)), Message(Role.USER, (Text("b"),))],
            [{"role": "user", "parts": [{"text": "Please begin."}]}, {"role": "model", "parts": [{"text": "a"}]}, {"role": "user", "parts": [{"text": "b"}]}],
            None,
        ),
    ],
)
def test_a_conversation_always_begins_with_the_user(messages: list[Message], contents: Any, system: Any) -> None:
    out = sent(Request("ours", "fast", tuple(messages)))
    assert (out["contents"], out.get("systemInstruction")) == (contents, system)


def test_a_model_that_knows_no_system_text_is_told_by_the_user() -> None:
    request = by_chat(messages=HISTORY[:2])
    for out in (sent(request, "gemma-3-27b-it"), sent(request, "gemini-3", system_role="user")):
        assert out == {"contents": [{"role": "user", "parts": [{"text": "Be brief."}, {"text": "go"}]}]}


def test_pictures_of_a_result_go_with_it() -> None:
    parts = (Text("look"), Image(media_type="image/png", data="QUJD"))
    messages = (Message(Role.USER, (Text("go"),)), Message(Role.ASSISTANT, (ToolCall("c1", "see", "{}"),)), Message(Role.TOOL, (ToolResult("c1", parts),)))
    response = sent(Request("ours", "fast", messages))["contents"][2]["parts"][0]["functionResponse"]
    assert response["parts"] == [{"inlineData": {"mimeType": "image/png", "data": "QUJD"}}]


@pytest.mark.parametrize(
    ("part", "out"),
    [
        (Image(data="/9j/AAA"), {"inlineData": {"mimeType": "image/jpeg", "data": "/9j/AAA"}}),
        (File("audio", "audio/mpeg", "QUJD"), {"inlineData": {"mimeType": "audio/mp3", "data": "QUJD"}}),
        (File("file", data="data:application/pdf;base64,QUJD"), {"inlineData": {"mimeType": "application/pdf", "data": "QUJD"}}),
        (Refusal("no"), {"text": "no"}),
    ],
)
def test_parts_are_written_as_google_takes_them(part: Any, out: Any) -> None:
    assert sent(Request("ours", "fast", (Message(Role.USER, (part,)),)))["contents"][0]["parts"] == [out]


@pytest.mark.parametrize("part", [Image(url="https://example.org/a.png"), File("file", url="https://example.org/a.pdf"), File("file_id"), File("video_url")])
def test_what_this_format_has_no_part_for_is_refused(part: Any) -> None:
    with pytest.raises(CallerError) as caught:
        sent(Request("ours", "fast", (Message(Role.USER, (part,)),)))
    assert caught.value.field == "messages"


def test_several_answers_are_not_asked_for_on_behalf_of_another_format() -> None:
    with pytest.raises(CallerError) as caught:
        sent(by_chat(n=2))
    assert caught.value.field == "n"
    assert sent(a_request(generationConfig={"candidateCount": 2}))["generationConfig"] == {"candidateCount": 2}
    assert a_request(generationConfig={"candidateCount": 2}).choices == 2


def test_a_promised_shape_is_asked_for() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "const": "x"}}, "required": ["a"], "additionalProperties": False}
    request = by_chat(response_format={"type": "json_schema", "json_schema": {"name": "c", "schema": schema}})
    written = GEMINI.write_request(request, "gemini-2.5-pro", {})
    google = {"type": "OBJECT", "properties": {"a": {"type": "STRING", "enum": ["x"]}}, "required": ["a"]}
    assert written.body["generationConfig"] == {"responseMimeType": "application/json", "responseSchema": google}
    assert written.dropped == ("response_format: additionalProperties",)
    assert sent(by_chat(response_format={"type": "json_object"}))["generationConfig"] == {"responseMimeType": "application/json"}


@pytest.mark.parametrize(("served", "quirks", "tools"), [("gemini-2.5-pro", {}, [LOOK]), ("gemini-3", {"structured_output": False}, None)])
def test_where_a_shape_cannot_be_promised_words_ask_for_it(served: str, quirks: dict[str, Any], tools: Any) -> None:
    request = by_chat(response_format={"type": "json_schema", "json_schema": {"name": "c", "schema": {"type": "object"}}}, tools=tools)
    out = sent(request, served, **quirks)
    assert "generationConfig" not in out
    assert '{"type":"object"}' in out["systemInstruction"]["parts"][-1]["text"]


@pytest.mark.parametrize(
    ("effort", "served", "out"),
    [
        ("low", "gemini-3.1-pro", {"includeThoughts": True, "thinkingLevel": "low"}),
        ("minimal", "gemini-3.1-pro", {"includeThoughts": True, "thinkingLevel": "low"}),
        ("minimal", "gemini-3-flash", {"includeThoughts": True, "thinkingLevel": "minimal"}),
        ("xhigh", "models-of-tomorrow", {"includeThoughts": True, "thinkingLevel": "high"}),
        ("none", "gemini-3-flash", {"thinkingLevel": "minimal"}),
        ("none", "gemini-2.5-flash", {"thinkingBudget": 0}),
        ("none", "gemini-2.5-pro", {"thinkingBudget": 128}),
        ("medium", "gemini-2.5-pro", {"includeThoughts": True, "thinkingBudget": 8192}),
    ],
)
def test_how_hard_to_think_is_said_in_the_models_own_terms(effort: str, served: str, out: dict[str, Any]) -> None:
    assert sent(by_chat(reasoning_effort=effort), served)["generationConfig"] == {"thinkingConfig": out}


def test_effort_that_a_model_knows_nothing_of_is_dropped_by_its_name() -> None:
    written = GEMINI.write_request(by_chat(reasoning_effort="low", parallel_tool_calls=False, seed=2**40, stop=list("abcdef")), "gemini-2.0-flash", {})
    assert set(written.dropped) == {"reasoning_effort", "parallel_tool_calls", "seed", "stop"}
    assert written.body["generationConfig"] == {"stopSequences": list("abcde")}


def test_strange_names_and_free_form_tools_go_out_changed_and_come_back_as_they_were() -> None:
    name = "strange.name/with:all"
    tools = (Tool(name, parameters={"type": "object"}), Tool("patch", "patches", kind="custom"))
    request = Request("ours", "fast", (Message(Role.USER, (Text("go"),)),), tools=tools, tool_choice=ToolChoice("tool", name=name))
    out = sent(request)
    changed = tool_names.changed(name)
    assert out["tools"][0]["functionDeclarations"] == [
        {"name": changed},
        {"name": "patch", "description": "patches", "parameters": {"type": "OBJECT", "properties": {"input": {"type": "STRING"}}, "required": ["input"]}},
    ]
    assert out["toolConfig"] == {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [changed]}}
    calls = [{"functionCall": {"name": changed, "args": {}}}, {"functionCall": {"name": "patch", "args": {"input": "*** Begin"}}}]
    reply = GEMINI.read_reply({"candidates": [{"content": {"parts": calls}, "finishReason": "STOP"}]}, request)
    assert [(p.name, p.arguments, p.kind) for p in reply.parts if isinstance(p, ToolCall)] == [(name, "{}", "function"), ("patch", "*** Begin", "custom")]


# ------------------------------------------------------------------ replies


def test_a_reply_is_understood() -> None:
    reply = GEMINI.read_reply(REPLY, by_chat())
    assert reply.parts == (Thinking("hm"), Text("a "), Text("cat"), ToolCall("f1", "look", '{"at":"it"}', signature="c2lnbmVk"))
    assert (reply.stop, reply.finish, reply.raw) == (Stop.TOOLS, "STOP", None)
    assert reply.usage == Usage(input=11, output=7, cache_read=3, reasoning=2)


def test_a_reply_of_the_same_format_passes_through() -> None:
    reply = GEMINI.read_reply(REPLY, a_request())
    body = GEMINI.write_reply(Answer("gem_1", "bench/core:route", 5, reply, Usage(11, 7)))
    assert body == {**REPLY, "modelVersion": "bench/core:route"}


def test_calls_without_ids_get_some_that_differ() -> None:
    calls: list[dict[str, Any]] = [{"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "c2ln"}, {"functionCall": {"name": "look"}}]
    answer = {"candidates": [{"content": {"parts": calls}, "finishReason": "STOP"}]}
    for request in (by_chat(), a_request()):
        ids = [p.id for p in GEMINI.read_reply(answer, request).parts if isinstance(p, ToolCall)]
        assert len(set(ids)) == 2
        assert all(len(i) > 20 for i in ids)
    reply = GEMINI.read_reply(answer, a_request())
    written = GEMINI.write_reply(Answer("gem_1", "m", 5, reply, Usage()))["candidates"][0]["content"]["parts"]
    assert [p["functionCall"]["id"] for p in written] == [p.id for p in reply.parts if isinstance(p, ToolCall)]
    assert written[0]["thoughtSignature"] == "c2ln"
    assert "id" not in calls[0]["functionCall"]


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({"promptTokenCount": 2000, "cachedContentTokenCount": 500, "candidatesTokenCount": 0, "totalTokenCount": 2000}, Usage(2000, 0, 500)),
        ({"promptTokenCount": 5, "toolUsePromptTokenCount": 7, "candidatesTokenCount": 3, "thoughtsTokenCount": 4}, Usage(12, 7, reasoning=4)),
        ({"promptTokenCount": 5, "thoughtsTokenCount": 4, "totalTokenCount": 12}, Usage(5, 7, reasoning=4)),
        ({"promptTokenCount": 5, "totalTokenCount": 5}, Usage(5, 0)),
        ({"promptTokenCount": "5", "candidatesTokenCount": -1, "totalTokenCount": True}, Usage()),
        ({}, None),
        (None, None),
    ],
)
def test_counts_are_read_by_googles_custom(counts: Any, usage: Usage | None) -> None:
    assert GEMINI.read_usage({"usageMetadata": counts}) == usage


@pytest.mark.parametrize("usage", [Usage(11, 7), Usage(11, 7, cache_read=3, reasoning=2), Usage()])
def test_counts_come_back_as_they_went(usage: Usage) -> None:
    body = GEMINI.write_reply(Answer("gem_1", "m", 5, Reply((Text("x"),), Stop.END), usage))
    assert GEMINI.read_usage(body) == usage
    assert body["usageMetadata"]["totalTokenCount"] == usage.input + usage.output


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("STOP", Stop.END),
        ("MAX_TOKENS", Stop.LENGTH),
        ("SAFETY", Stop.FILTER),
        ("RECITATION", Stop.FILTER),
        ("PROHIBITED_CONTENT", Stop.FILTER),
        ("OTHER", Stop.END),
        ("NEW_REASON", Stop.END),
    ],
)
def test_why_an_answer_ended_is_understood(finish: str, stop: Stop) -> None:
    reply = GEMINI.read_reply({"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": finish}]}, by_chat())
    assert (reply.stop, reply.finish) == (stop, finish)


def test_a_prompt_that_was_refused_is_a_filtered_answer() -> None:
    body = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 12, "totalTokenCount": 12}}
    for request in (by_chat(), a_request()):
        reply = GEMINI.read_reply(body, request)
        assert (reply.parts, reply.stop, reply.finish, reply.usage) == ((), Stop.FILTER, "PROHIBITED_CONTENT", Usage(12, 0))
    written = GEMINI.write_reply(Answer("gem_1", "m", 5, GEMINI.read_reply(body, a_request()), Usage()))
    assert written["promptFeedback"] == {"blockReason": "PROHIBITED_CONTENT"}


@pytest.mark.parametrize(
    ("body", "error", "code"),
    [
        ("x", Garbage, "upstream_garbage"),
        ({}, Garbage, "upstream_garbage"),
        ([5], Garbage, "upstream_garbage"),
        ({"candidates": []}, Empty, "empty_response"),
        ({"candidates": [None]}, Empty, "empty_response"),
        ({"candidates": [{"finishReason": "STOP"}]}, Empty, "empty_response"),
        ({"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]}, Empty, "empty_response"),
        ({"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL"}]}, Garbage, "upstream_garbage"),
        ({"error": {"code": 429, "message": "Resource has been exhausted", "status": "RESOURCE_EXHAUSTED"}}, UpstreamError, "rate_limit_exceeded"),
        ([{"error": {"message": "busy", "status": "UNAVAILABLE"}}], UpstreamError, "upstream_overloaded"),
        (
            {"error": {"code": 400, "message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."}},
            UpstreamError,
            "context_too_small",
        ),
    ],
)
def test_what_is_no_reply_is_an_error(body: Any, error: type[UpstreamError], code: str) -> None:
    with pytest.raises(error) as caught:
        GEMINI.read_reply(body, by_chat())
    assert caught.value.code == code


def test_an_error_inside_a_body_tells_how_long_to_wait() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "26.66s"}]
    with pytest.raises(UpstreamError) as caught:
        GEMINI.read_reply({"error": {"code": 429, "message": "Slow down", "details": details}}, by_chat())
    assert (caught.value.retry_after_s, caught.value.fault) == (26.66, Fault.KEY)


def test_a_stream_as_one_array_is_a_reply() -> None:
    pieces = [
        {"candidates": [{"content": {"parts": [{"text": "a "}], "role": "model"}, "index": 0}], "usageMetadata": {"promptTokenCount": 3}},
        {
            "candidates": [{"content": {"parts": [{"text": "cat"}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2},
        },
    ]
    reply = GEMINI.read_reply(pieces, by_chat())
    assert (reply.text, reply.stop, reply.usage) == ("a cat", Stop.END, Usage(3, 2))


@given(bent(REPLY) | JUNK | st.lists(bent(REPLY), max_size=2))
def test_any_json_is_a_reply_or_an_upstream_error(body: Any) -> None:
    for request in (by_chat(), asked(REQUEST)):
        try:
            reply = GEMINI.read_reply(body, request)
        except UpstreamError:
            continue
        json.dumps(GEMINI.write_reply(Answer("gem_1", "m", 5, reply, reply.usage or Usage(), request=request)))
        CHAT.write_reply(Answer("x", "m", 5, Reply(reply.parts, reply.stop), Usage()))


@pytest.mark.parametrize(
    ("parts", "stop", "written", "finish"),
    [
        ((Text("a"), Text("b")), Stop.END, [{"text": "a"}, {"text": "b"}], "STOP"),
        ((), Stop.LENGTH, [{"text": ""}], "MAX_TOKENS"),
        ((Refusal("no"),), Stop.REFUSAL, [{"text": "no"}], "SAFETY"),
        ((Thinking("hm", "sig"), Text("a")), Stop.END, [{"text": "a"}], "STOP"),
        ((ToolCall("c1", "f", '{"a":1}'),), Stop.TOOLS, [{"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}}], "STOP"),
        ((ToolCall("c1", "f", ""),), Stop.TOOLS, [{"functionCall": {"id": "c1", "name": "f", "args": {}}}], "STOP"),
        ((ToolCall("c1", "f", "[1]"),), Stop.TOOLS, [{"functionCall": {"id": "c1", "name": "f", "args": {"input": [1]}}}], "STOP"),
        ((ToolCall("c1", "f", "raw", kind="custom"),), Stop.TOOLS, [{"functionCall": {"id": "c1", "name": "f", "args": {"input": "raw"}}}], "STOP"),
        ((Text("a"), ToolCall("c1", "f", '{"a":')), Stop.LENGTH, [{"text": "a"}], "MAX_TOKENS"),
    ],
)
def test_an_answer_of_another_format_is_written_in_this_one(parts: tuple[Any, ...], stop: Stop, written: Any, finish: str) -> None:
    body = GEMINI.write_reply(Answer("gem_1", "m", 5, Reply(parts, stop), Usage(1, 2), bench={"panel": "p"}, request=a_request()))
    candidate = body["candidates"][0]
    assert candidate == {"content": {"parts": written, "role": "model"}, "finishReason": finish, "index": 0}
    assert (body["modelVersion"], body["responseId"], body["bench"]) == ("m", "gem_1", {"panel": "p"})


def test_thoughts_are_shown_to_those_who_asked_for_them() -> None:
    for request, shown in ((asked(REQUEST), True), (asked(snaked(REQUEST)), True), (a_request(), False), (None, False)):
        body = GEMINI.write_reply(Answer("gem_1", "m", 5, Reply((Thinking("hm", "theirs"), Text("a")), Stop.END), Usage(), request=request))
        assert ({"text": "hm", "thought": True} in body["candidates"][0]["content"]["parts"]) is shown


def test_an_error_has_googles_shape_and_our_code() -> None:
    error = CallerError("rate_limit_exceeded", "Slow down.", status=429, retry_after_s=6.2, field="model")
    body = GEMINI.write_error(error)["error"]
    assert (body["code"], body["status"], body["message"]) == (429, "RESOURCE_EXHAUSTED", "Slow down.")
    assert body["details"][0] == {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "rate_limit_exceeded",
        "domain": "benchwarmers",
        "metadata": {"field": "model"},
    }
    assert body["details"][1] == {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}


# ------------------------------------------------------------------ there and back


def test_a_request_of_this_format_reaches_another_and_comes_back() -> None:
    body = {k: v for k, v in REQUEST.items() if k not in ("safetySettings", "labels")}
    chat = CHAT.write_request(asked(body), "served", {}).body
    again = sent(CHAT.read_request(Inbound("/v1/chat/completions", "", {}, {**chat, "model": "m"})))
    assert again["systemInstruction"]["parts"] == body["systemInstruction"]["parts"]
    assert again["tools"] == body["tools"]
    assert [p["functionResponse"]["id"] for p in again["contents"][2]["parts"]] == ["f1", "f2"]
    assert again["contents"][0] == body["contents"][0]
    assert again["contents"][1]["parts"][0]["functionCall"] == body["contents"][1]["parts"][1]["functionCall"]
    assert again["generationConfig"]["responseSchema"] == {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}, "required": ["a"]}
