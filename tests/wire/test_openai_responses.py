"""OpenAI's Responses format: whatever comes, from a caller or a provider, is read or refused; whatever goes out is legal."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.mutations import JUNK, bent
from tests.wire.responses_stream import CALL, RESPONSE, SAID, THOUGHT, USAGE, calls_of, events_of, legal, stream_of, text_of, thought_of, upstream
from wire import dialects
from wire.conversation import Chunk, File, Image, Message, Reply, Request, Role, Stop, Text, Thinking, Tool, ToolCall, ToolChoice, ToolPiece, ToolResult, Usage
from wire.dialects import Answer, Inbound
from wire.errors import CallerError, Empty, Garbage, Truncated, UpstreamError
from wire.jsontext import parse_body

RESPONSES = dialects.get("openai-responses")
CHAT = dialects.get("openai-chat")
PATH = "/v1/responses"
OURS = "resp_01HZX3V5K7M9P1R3T5W7Y9ABCD"
FUNCTION = {
    "type": "function",
    "name": "look",
    "description": "looks",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
    "strict": True,
}
PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edits files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "x"+'},
}
SPACE = {"type": "namespace", "name": "agents", "description": "Agents.", "tools": [{"type": "function", "name": "spawn", "parameters": {"type": "object"}}]}
REQUEST: dict[str, Any] = {
    "model": "fast",
    "instructions": "Be brief.",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Mind the gap."}]},
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "What is this?"}, {"type": "input_image", "image_url": "data:image/jpg;base64,QUJD", "detail": "low"}],
        },
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "gAAAA"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Let me look."}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": '{"at":"it"}'},
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c2", "name": "apply_patch", "input": "*** Begin\n*** End"},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [{"type": "input_text", "text": "a cat"}, {"type": "input_image", "image_url": "https://example.org/a.png"}],
        },
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "done"},
        {"role": "user", "content": "And now?"},
    ],
    "tools": [FUNCTION, PATCH, SPACE, {"type": "web_search"}],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "high", "summary": "auto"},
    "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}, "strict": True}, "verbosity": "low"},
    "max_output_tokens": 100,
    "temperature": 0.5,
    "top_p": 1,
    "stream": True,
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "k1",
    "metadata": {"a": "b"},
    "truncation": "disabled",
    "unknown_field": {"kept": [1, 2]},
}


def a_request(earlier: Any = None, **more: Any) -> Request:
    return RESPONSES.read_request(Inbound(PATH, "", {}, {"model": "fast", "input": "hi", **more}, earlier))


def whole_request() -> Request:
    return RESPONSES.read_request(Inbound(PATH, "", {}, REQUEST))


def written(answer: Reply, request: Request | None = None, **more: Any) -> dict[str, Any]:
    body = RESPONSES.write_reply(Answer(OURS, "bench/core", 5, answer, Usage(1, 2), request=request, **more))
    return dict(orjson.loads(orjson.dumps(body)))


def fits(value: Any) -> bool:
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True


# ------------------------------------------------------------------ requests in


def test_a_request_is_understood() -> None:
    request = whole_request()
    assert (request.model, request.stream, request.output_limit, request.parallel_tool_calls) == ("fast", True, 100, True)
    assert [m.role for m in request.messages] == [Role.SYSTEM, Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL, Role.USER]
    assert [m.text for m in request.messages[:2]] == ["Be brief.", "Mind the gap."]
    assert request.messages[2].parts == (Text("What is this?"), Image(media_type="image/jpeg", data="QUJD", detail="low"))
    thought, said, look, patch = request.messages[3].parts
    assert isinstance(thought, Thinking)
    assert thought.text == "hm"
    assert said == Text("Let me look.")
    assert look == ToolCall("c1", "look", '{"at":"it"}')
    assert isinstance(patch, ToolCall)
    assert json.loads(patch.arguments) == {"input": "*** Begin\n*** End"}
    result = request.messages[4].parts[0]
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.name, result.parts) == ("c1", "look", (Text("a cat"), Image(url="https://example.org/a.png")))
    assert [(t.name, t.kind) for t in request.tools] == [
        ("look", "function"),
        ("apply_patch", "function"),
        ("agents__spawn", "function"),
        ("web_search", "web_search"),
    ]
    assert request.format is not None
    assert (request.format.kind, request.format.name, request.format.strict) == ("schema", "a", True)
    assert request.reasoning is not None
    assert request.reasoning.effort == "high"
    assert request.marks == ("prompt_cache_key:k1",)
    assert set(request.unread) == {"reasoning.summary", "text.verbosity", "unknown_field"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", None),
        ("model", 7),
        ("input", None),
        ("input", 5),
        ("input", {}),
        ("input[0]", "hi"),
        ("input[0].role", "wizard"),
        ("input[0].role", 3),
        ("input[0].content", 3),
        ("input[0].content[0]", 5),
        ("input[0].content[0].text", 5),
        ("input[0].content[0].type", 5),
        ("input[0].type", 5),
        ("instructions", 5),
        ("stream", "yes"),
        ("temperature", "hot"),
        ("max_output_tokens", 0),
        ("max_output_tokens", "9"),
        ("tools", {}),
        ("tools[0]", "look"),
        ("tools[0].name", 5),
        ("tools[0].parameters", []),
        ("tool_choice", 5),
        ("tool_choice.type", 5),
        ("reasoning", "high"),
        ("reasoning.effort", 5),
        ("text", "json"),
        ("text.format", "json"),
        ("text.format.type", 5),
        ("text.format.schema", 5),
        ("include", "all"),
        ("previous_response_id", 5),
        ("conversation", 5),
        ("background", True),
        ("parallel_tool_calls", "yes"),
    ],
)
def test_a_wrong_type_is_refused_by_its_fields_name(field: str, value: Any) -> None:
    base: dict[str, Any] = {"model": "fast", "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]}
    base |= {"tools": [dict(FUNCTION)]} if field.startswith("tools[") else {}
    for name, given_value in (
        ("tool_choice", {"type": "function", "name": "look"}),
        ("reasoning", {}),
        ("text", {"format": {"type": "json_schema", "name": "a", "schema": {}}}),
    ):
        if field.startswith(f"{name}."):
            base[name] = given_value
    target: Any = base
    keys: list[Any] = [int(k) if k.isdigit() else k for k in field.replace("[", ".").replace("]", "").split(".")]
    for key in keys[:-1]:
        target = target[key]
    target[keys[-1]] = value
    with pytest.raises(CallerError) as caught:
        RESPONSES.read_request(Inbound(PATH, "", {}, base))
    assert (caught.value.status, caught.value.code, caught.value.field) == (400, "invalid_request", field)
    assert field in caught.value.message


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({}, "input[0].type"),
        ({"type": "message", "content": "x"}, "input[0].role"),
        ({"role": "user"}, "input[0].content"),
        ({"type": "function_call", "name": "x"}, "input[0].call_id"),
        ({"type": "function_call", "call_id": "c"}, "input[0].name"),
        ({"type": "function_call_output", "output": "x"}, "input[0].call_id"),
        ({"type": "item_reference"}, "input[0].id"),
        ({"role": "user", "content": [{"type": "input_image", "image_url": {"detail": "low"}}]}, "input[0].content[0].image_url"),
    ],
)
def test_an_item_that_lacks_what_it_needs_is_refused(item: Any, field: str) -> None:
    with pytest.raises(CallerError) as caught:
        a_request(input=[item])
    assert caught.value.field == field


@pytest.mark.parametrize("body", [None, 1, "x", [], [{}], True])
def test_a_body_that_is_no_object_is_refused(body: Any) -> None:
    assert RESPONSES.refers_to(Inbound(PATH, "", {}, body)) == ""
    with pytest.raises(CallerError):
        RESPONSES.read_request(Inbound(PATH, "", {}, body))


def test_a_text_is_a_user_turn_and_nothing_at_all_is_none() -> None:
    assert a_request(input="hi").messages == (Message(Role.USER, (Text("hi"),)),)
    for empty in ([], [{"role": "user", "content": []}][:0]):
        with pytest.raises(CallerError):
            a_request(input=empty)


def test_calls_that_stand_together_are_one_turn_of_the_assistant() -> None:
    items = [
        {"role": "user", "content": "go"},
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "look", "arguments": "{}"},
        {"role": "assistant", "content": "Two looks."},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"type": "function_call_output", "call_id": "b", "output": "2"},
        {"role": "assistant", "content": "First."},
        {"role": "assistant", "content": "Second."},
    ]
    chat = CHAT.write_request(a_request(input=items), "s", {}).body["messages"]
    assert [m["role"] for m in chat] == ["user", "assistant", "tool", "tool", "assistant", "assistant"]
    assert [c["id"] for c in chat[1]["tool_calls"]] == ["a", "b"]
    assert chat[1]["content"] == "Two looks."


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"type": "input_image", "file_id": "file-1"}, "input_image by file_id"),
        ({"type": "input_file", "file_id": "file-1"}, "input_file by file_id"),
        ({"type": "input_video", "url": "x"}, "input_video"),
    ],
)
def test_what_only_its_own_provider_can_read_goes_nowhere_else(part: Any, kind: str) -> None:
    request = a_request(input=[{"role": "user", "content": [part]}])
    assert request.only_here == (f"input[0].content[0] ({kind})",)
    assert RESPONSES.write_request(request, "s", {}).body["input"][0]["content"] == [part]


def test_files_and_audio_are_read_by_their_bytes_or_address() -> None:
    content = [
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD"},
        {"type": "input_file", "file_url": "https://example.org/a.pdf"},
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "mp3"}},
    ]
    parts = a_request(input=[{"role": "user", "content": content}]).messages[0].parts
    assert parts == (
        File("file", "application/pdf", "QUJD", name="a.pdf"),
        File("file", url="https://example.org/a.pdf"),
        File("audio", "audio/mp3", "QUJD"),
    )


def test_marks_are_named_surest_first() -> None:
    request = a_request({"items": [{"role": "user", "content": "x"}]}, prompt_cache_key="k", conversation={"id": "conv_1"}, previous_response_id="resp_1")
    assert request.marks == ("prompt_cache_key:k", "conversation:conv_1", "previous_response_id:resp_1")
    assert "conversation" in request.unread


def test_an_item_of_an_unknown_kind_breaks_nothing() -> None:
    items = [
        {"role": "user", "content": "x"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "some_call", "call_id": "c9", "action": {"a": 1}},
        {"type": "some_call_output", "call_id": "c9", "output": {"b": 2}},
        {"type": "novelty", "x": 1},
    ]
    request = a_request(input=items)
    assert request.messages[1].parts == (ToolCall("c9", "some", '{"action":{"a":1}}'),)
    assert isinstance(result := request.messages[2].parts[0], ToolResult)
    assert result.parts == (Text('{"b":2}'),)
    assert request.unread == ("input.novelty",)
    assert RESPONSES.write_request(request, "s", {}).body["input"] == items


@given(bent(REQUEST) | JUNK | st.dictionaries(st.sampled_from([*REQUEST, "x", "previous_response_id", "conversation"]), JUNK))
def test_any_json_is_a_request_or_a_callers_error(body: Any) -> None:
    inbound = Inbound(PATH, "", {}, body)
    try:
        RESPONSES.refers_to(inbound)
        request = RESPONSES.read_request(inbound)
    except CallerError as error:
        assert error.status == 400  # noqa: PT017
        assert orjson.dumps(RESPONSES.write_error(error))  # noqa: PT017
        return
    for quirks in ({}, {"system_role": "developer"}):
        out = RESPONSES.write_request(request, "served", quirks).body
        assert out["model"] == "served"
        orjson.dumps(out)
    try:
        orjson.dumps(CHAT.write_request(request, "served", {}).body)
        orjson.dumps(RESPONSES.write_request(replace(request, raw=None), "served", {}).body)
        orjson.dumps(RESPONSES.write_request(replace(request, dialect="other", raw=None), "served", {}).body)
    except CallerError as error:
        assert error.status == 400  # noqa: PT017
    writer = RESPONSES.stream_writer(request, OURS, 5)
    legal(writer.start() + writer.chunk(Chunk(text="x", stop=Stop.END)) + writer.finish(Usage(1, 1)))


@given(st.binary(max_size=40) | bent(REQUEST).map(lambda v: orjson.dumps(v, default=str, option=orjson.OPT_NON_STR_KEYS) if fits(v) else b"{}"))
def test_any_bytes_are_a_request_or_a_callers_error(data: bytes) -> None:
    try:
        request = RESPONSES.read_request(Inbound(PATH, "", {}, parse_body(data)))
    except CallerError:
        return
    orjson.dumps(RESPONSES.write_request(request, "served", {}).body)


# ------------------------------------------------------------------ tools


def test_custom_tools_and_namespaces_are_functions_to_others() -> None:
    out = CHAT.write_request(whole_request(), "s", {})
    functions = {t["function"]["name"]: t["function"] for t in out.body["tools"]}
    assert set(functions) == {"look", "apply_patch", "agents__spawn"}
    assert functions["apply_patch"]["parameters"]["required"] == ["input"]
    assert 'start: "x"+' in functions["apply_patch"]["description"]
    assert functions["look"]["strict"] is True
    assert any("web_search" in d for d in out.dropped)
    assert RESPONSES.write_request(whole_request(), "s", {}).body["tools"] == REQUEST["tools"]


@pytest.mark.parametrize(
    ("namespace", "name", "shown"),
    [
        ("agents", "spawn", "agents__spawn"),
        ("mcp__files__", "read", "mcp__files__read"),
        ("a" * 60, "b" * 60, None),
        ("my space", "näme", None),
    ],
)
def test_joined_names_fit_every_format_and_come_back(namespace: str, name: str, shown: str | None) -> None:
    request = a_request(tools=[{"type": "namespace", "name": namespace, "tools": [{"type": "function", "name": name}]}])
    joined = request.tools[0].name
    assert shown is None or joined == shown
    assert len(joined) <= 64
    assert joined.isascii()
    reply = Reply((ToolCall("c1", joined, "{}"),), Stop.TOOLS)
    item = written(reply, request)["output"][0]
    assert (item["type"], item["name"], item["namespace"]) == ("function_call", name, namespace)
    again = a_request(input=[{"role": "user", "content": "x"}, item], tools=request.raw["tools"] if request.raw else [])
    assert again.messages[1].parts == (ToolCall("c1", joined, "{}"),)


@pytest.mark.parametrize(
    ("arguments", "raw"),
    [
        ('{"input":"*** Begin\\n"}', "*** Begin\n"),
        ('{"patch":"x"}', "x"),
        ('"x"', "x"),
        ("*** Begin", "*** Begin"),
        ('{"input":"cut \\n of', "cut \n of"),
        ('{"input":"cut \\', "cut "),
        ("{}", "{}"),
    ],
)
def test_a_custom_call_comes_back_with_its_raw_input(arguments: str, raw: str) -> None:
    request = a_request(tools=[PATCH], stream=True)
    item = written(Reply((ToolCall("c1", "apply_patch", arguments),), Stop.TOOLS), request)["output"][0]
    assert (item["type"], item["call_id"], item["name"], item["input"]) == ("custom_tool_call", "c1", "apply_patch", raw)
    writer = RESPONSES.stream_writer(request, OURS, 5)
    steps = [ToolPiece(0, "c1", "apply_patch"), *(ToolPiece(0, arguments=a) for a in arguments)]
    events = legal(b"".join(writer.chunk(Chunk(tools=(s,))) for s in steps) + writer.chunk(Chunk(stop=Stop.TOOLS)) + writer.finish(Usage(1, 1)))
    assert [c["input"] for c in calls_of(events)] == [raw]
    assert "".join(e["delta"] for e in events if e["type"] == "response.custom_tool_call_input.delta") == raw


@pytest.mark.parametrize(
    ("tool", "arguments", "item"),
    [
        (
            {"type": "local_shell"},
            '{"command":["ls","-l"],"timeout_ms":5}',
            {"type": "local_shell_call", "action": {"type": "exec", "env": {}, "command": ["ls", "-l"], "timeout_ms": 5}},
        ),
        ({"type": "shell"}, '{"commands":["ls"]}', {"type": "shell_call", "action": {"commands": ["ls"]}}),
        (
            {"type": "apply_patch"},
            '{"type":"update_file","path":"a","diff":"x"}',
            {"type": "apply_patch_call", "operation": {"type": "update_file", "path": "a", "diff": "x"}},
        ),
        (
            {"type": "tool_search", "execution": "client"},
            '{"query":"files"}',
            {"type": "tool_search_call", "execution": "client", "arguments": {"query": "files"}},
        ),
    ],
)
def test_what_the_client_runs_is_a_function_to_others_and_its_own_item_to_the_client(tool: Any, arguments: str, item: Any) -> None:
    request = a_request(tools=[tool], stream=True)
    kind = tool["type"]
    assert [t["function"]["name"] for t in CHAT.write_request(request, "s", {}).body["tools"]] == [kind]
    made = written(Reply((ToolCall("c1", kind, arguments),), Stop.TOOLS), request)["output"][0]
    assert {k: made[k] for k in item} == item
    writer = RESPONSES.stream_writer(request, OURS, 5)
    events = legal(writer.chunk(Chunk(tools=(ToolPiece(0, "c1", kind, arguments),), stop=Stop.TOOLS)) + writer.finish(Usage(1, 1)))
    assert {k: calls_of(events)[0][k] for k in item} == item
    again = a_request(input=[{"role": "user", "content": "x"}, made], tools=[tool]).messages[1].parts[0]
    assert isinstance(again, ToolCall)
    assert (again.id, again.name, json.loads(again.arguments)) == ("c1", kind, json.loads(arguments))


def test_tools_that_a_search_found_can_be_called() -> None:
    items = [
        {"role": "user", "content": "x"},
        {"type": "tool_search_call", "call_id": "c1", "execution": "client", "arguments": {"query": "files"}},
        {"type": "tool_search_output", "call_id": "c1", "execution": "client", "tools": [FUNCTION, SPACE]},
    ]
    request = a_request(input=items, tools=[{"type": "tool_search", "execution": "client"}])
    assert [t.name for t in request.tools] == ["tool_search", "look", "agents__spawn"]
    result = next(m for m in request.messages if m.role is Role.TOOL).parts[0]
    assert isinstance(result, ToolResult)
    assert result.parts == (Text("Tools found:\nlook\nagents__spawn"),)
    again = a_request(input=[*items, *items[1:], {"type": "additional_tools", "role": "developer", "tools": [SPACE, PATCH]}], tools=[FUNCTION])
    assert [t.name for t in again.tools] == ["look", "agents__spawn", "apply_patch"]


def test_a_shell_in_the_providers_own_container_is_the_providers() -> None:
    assert a_request(tools=[FUNCTION, {"type": "shell", "environment": {"type": "container_auto"}}]).tools[1].kind == "shell"
    with pytest.raises(CallerError):
        CHAT.write_request(a_request(tools=[{"type": "file_search", "vector_store_ids": []}]), "s", {})


@pytest.mark.parametrize(
    ("choice", "understood", "chat"),
    [
        ("none", ToolChoice("none"), "none"),
        ("required", ToolChoice("required"), "required"),
        ({"type": "function", "name": "look"}, ToolChoice("tool", "look"), {"type": "function", "function": {"name": "look"}}),
        ({"type": "custom", "name": "apply_patch"}, ToolChoice("tool", "apply_patch"), {"type": "function", "function": {"name": "apply_patch"}}),
        (
            {"type": "function", "namespace": "agents", "name": "spawn"},
            ToolChoice("tool", "agents__spawn"),
            {"type": "function", "function": {"name": "agents__spawn"}},
        ),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "look"}, {"type": "namespace", "name": "agents"}]},
            ToolChoice("required", allowed=("look", "agents__spawn")),
            None,
        ),
    ],
)
def test_a_tool_choice_is_understood(choice: Any, understood: ToolChoice, chat: Any) -> None:
    request = a_request(tools=[FUNCTION, PATCH, SPACE], tool_choice=choice)
    assert request.tool_choice == understood
    if chat is not None:
        assert CHAT.write_request(request, "s", {}).body["tool_choice"] == chat
    assert RESPONSES.write_request(request, "s", {}).body["tool_choice"] == choice
    assert RESPONSES.write_request(replace(request, raw=None), "s", {}).body["tool_choice"]


def test_a_tool_that_must_be_called_is_not_dropped() -> None:
    with pytest.raises(CallerError) as caught:
        CHAT.write_request(a_request(tools=[FUNCTION, {"type": "web_search"}], tool_choice={"type": "web_search"}), "s", {})
    assert "web_search" in caught.value.message


# ------------------------------------------------------------------ going on from what was kept


def kept_of(request: Request, reply: Reply) -> tuple[str, Any]:
    found = RESPONSES.to_keep(request, Answer(OURS, request.model, 5, reply, Usage(1, 2), request=request))
    assert found is not None
    return found[0], orjson.loads(orjson.dumps(found[1]))


def test_a_response_is_kept_and_gone_on_from() -> None:
    name, kept = kept_of(a_request(input="my name is Ada", instructions="Be brief."), Reply((Thinking("hm"), Text("hello Ada")), Stop.END))
    assert name == OURS
    assert RESPONSES.refers_to(Inbound(PATH, "", {}, {"previous_response_id": name})) == name
    request = a_request(kept, input="what is my name?", previous_response_id=name)
    assert [(m.role, m.text) for m in request.messages] == [
        (Role.USER, "my name is Ada"),
        (Role.ASSISTANT, "hello Ada"),
        (Role.USER, "what is my name?"),
    ]
    out = RESPONSES.write_request(request, "s", {}).body
    assert "previous_response_id" not in out
    assert [i["role"] for i in out["input"]] == ["user", "assistant", "user"]  # a thought that nothing proves stays here
    assert not any("id" in i for i in out["input"])
    _, again = kept_of(request, Reply((Text("Ada"),), Stop.END))
    assert [i.get("role") for i in again["items"]] == ["user", None, "assistant", "user", "assistant"]
    assert written(Reply((Text("Ada"),), Stop.END), request)["previous_response_id"] == name


def test_an_unknown_previous_response_is_refused_by_name() -> None:
    with pytest.raises(CallerError) as caught:
        a_request(None, previous_response_id="resp_gone")
    assert (caught.value.code, caught.value.field) == ("previous_response_not_found", "previous_response_id")


def test_nothing_is_kept_where_the_caller_says_so() -> None:
    request = a_request(store=False)
    assert RESPONSES.to_keep(request, Answer(OURS, "fast", 5, Reply((Text("x"),), Stop.END), Usage())) is None


def test_items_that_are_only_referred_to_are_put_in_their_place() -> None:
    name, kept = kept_of(a_request(input="go", tools=[FUNCTION]), Reply((Text("Looking."), ToolCall("c1", "look", "{}")), Stop.TOOLS))
    items = [
        {"role": "user", "content": "go"},
        *({"type": "item_reference", "id": i["id"]} for i in kept["items"][1:]),
        {"type": "function_call_output", "call_id": "c1", "output": "a cat"},
    ]
    assert RESPONSES.refers_to(Inbound(PATH, "", {}, {"input": items})) == name
    request = a_request(kept, input=items)
    assert [m.role for m in request.messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert not request.only_here
    assert [i["type"] for i in RESPONSES.write_request(request, "s", {}).body["input"][1:]] == ["message", "function_call", "function_call_output"]
    assert a_request(None, input=items).only_here == ("input[1] (item_reference)", "input[2] (item_reference)")


def test_what_is_kept_can_be_read_again() -> None:
    _, kept = kept_of(a_request(input="hi", metadata={"a": "b"}), Reply((Text("hello"),), Stop.END))
    assert RESPONSES.write_kept(kept, f"{PATH}/{OURS}")["output"][0]["content"][0]["text"] == "hello"
    assert [i["role"] for i in RESPONSES.write_kept(kept, f"{PATH}/{OURS}/input_items")["data"]] == ["user"]
    with pytest.raises(CallerError):
        RESPONSES.write_kept(kept, f"{PATH}/{OURS}/secrets")
    assert RESPONSES.refers_to(Inbound(f"{PATH}/{OURS}/input_items", "", {}, None)) == OURS
    assert RESPONSES.refers_to(Inbound(f"{PATH}/else", "", {}, None)) == ""


# ------------------------------------------------------------------ requests out


def test_the_body_passes_through_with_only_the_name_changed() -> None:
    out = RESPONSES.write_request(whole_request(), "vendor/served", {}).body
    assert out == {**REQUEST, "model": "vendor/served"}
    assert RESPONSES.write_request(a_request(), "s", {}).body == {"model": "s", "input": "hi"}


def test_ids_and_thoughts_that_were_made_here_do_not_go_to_a_provider() -> None:
    answer = written(Reply((Thinking("hm", signature="sig"), Text("hello"), ToolCall("c1", "look", "{}")), Stop.TOOLS), a_request())
    request = a_request(input=[{"role": "user", "content": "x"}, *answer["output"], {"type": "function_call_output", "call_id": "c1", "output": "y"}])
    assert request.messages[1].parts[0] == Thinking("hm", signature="sig")
    out = RESPONSES.write_request(request, "s", {}).body["input"]
    assert [i.get("type") for i in out] == [None, "message", "function_call", "function_call_output"]
    assert not any("id" in i for i in out)


def test_a_providers_encrypted_thoughts_go_back_byte_for_byte() -> None:
    request = a_request(input=[{"role": "user", "content": "x"}, THOUGHT, SAID, CALL, {"type": "function_call_output", "call_id": "c1", "output": "y"}])
    assert RESPONSES.write_request(request, "s", {}).body["input"][1:4] == [THOUGHT, SAID, CALL]
    other = RESPONSES.read_reply(RESPONSE, replace(request, dialect="other"))
    thought = other.parts[0]
    assert isinstance(thought, Thinking)
    made = Request("other", "fast", (Message(Role.USER, (Text("x"),)), Message(Role.ASSISTANT, other.parts)))
    assert RESPONSES.write_request(made, "s", {}).body["input"][1] == {k: v for k, v in THOUGHT.items() if k != "id"}


def test_another_formats_thinking_is_left_out() -> None:
    made = Request("other", "fast", (Message(Role.USER, (Text("x"),)), Message(Role.ASSISTANT, (Thinking("hm", signature="EqQB"), Text("y")))))
    assert [i["role"] for i in RESPONSES.write_request(made, "s", {}).body["input"]] == ["user", "assistant"]


def test_foreign_thinking_is_cut_out_of_the_body_too() -> None:
    request = a_request(input=[{"role": "user", "content": "x"}, THOUGHT, SAID])
    cut = RESPONSES.without_thinking(request, lambda part: True)
    assert RESPONSES.write_request(cut, "s", {}).body["input"] == [{"role": "user", "content": "x"}, SAID]
    assert RESPONSES.without_thinking(request, lambda part: False) is request


def test_a_request_of_another_format_becomes_a_body() -> None:
    made = Request(
        "other",
        "fast",
        (
            Message(Role.SYSTEM, (Text("be brief"),)),
            Message(Role.USER, (Text("hi"), Image(url="https://example.org/a.png"))),
            Message(Role.ASSISTANT, (ToolCall("toolu_1", "look", "{}"),)),
            Message(Role.TOOL, (ToolResult("toolu_1", (Text("page"), Image("image/png", "iVBORw0KGgo="))),)),
            Message(Role.SYSTEM, (Text("later"),)),
        ),
        output_limit=5,
        tools=(Tool("look"), Tool("raw", kind="custom", extra={"type": "custom", "custom": {"name": "raw", "format": {"type": "text"}}})),
        tool_choice=ToolChoice("tool", "look"),
    )
    out = RESPONSES.write_request(made, "s", {"system_role": "developer"})
    body = out.body
    assert (body["instructions"], body["store"], body["max_output_tokens"]) == ("be brief", False, 5)
    assert body["input"][0]["content"] == [{"type": "input_text", "text": "hi"}, {"type": "input_image", "image_url": "https://example.org/a.png"}]
    assert body["input"][1] == {"type": "function_call", "call_id": "toolu_1", "name": "look", "arguments": "{}"}
    assert body["input"][2]["output"] == [{"type": "input_text", "text": "page"}, {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}]
    assert body["input"][3]["role"] == "developer"
    assert body["tools"][0] == {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}, "strict": False}
    assert body["tools"][1] == {"type": "custom", "name": "raw", "format": {"type": "text"}}
    assert body["tool_choice"] == {"type": "function", "name": "look"}
    assert out.dropped == ()


def test_what_the_format_has_no_word_for_is_named_or_refused() -> None:
    chat = CHAT.read_request(
        Inbound(
            "/v1/chat/completions",
            "",
            {},
            {"model": "f", "messages": [{"role": "user", "content": "x"}], "stop": "y", "seed": 7, "presence_penalty": 0.5},
        )
    )
    out = RESPONSES.write_request(chat, "s", {})
    assert set(out.dropped) == {"stop", "seed", "presence_penalty"}
    with pytest.raises(CallerError) as caught:
        RESPONSES.write_request(replace(chat, choices=2), "s", {})
    assert caught.value.field == "n"
    with pytest.raises(CallerError):
        RESPONSES.write_request(replace(chat, messages=(Message(Role.USER, (File("video"),)),)), "s", {})


def test_ids_longer_than_the_format_takes_stay_the_same_id() -> None:
    long = "x" * 200
    made = Request(
        "other",
        "fast",
        (
            Message(Role.USER, (Text("hi"),)),
            Message(Role.ASSISTANT, (ToolCall(long, "look", "{}"),)),
            Message(Role.TOOL, (ToolResult(long, (Text("y"),)),)),
        ),
    )
    _, call, output = RESPONSES.write_request(made, "s", {}).body["input"]
    assert call["call_id"] == output["call_id"]
    assert len(call["call_id"]) <= 64


def test_names_the_format_does_not_take_go_out_changed_and_come_back() -> None:
    made = Request("other", "fast", (Message(Role.USER, (Text("hi"),)),), tools=(Tool("files.read"),), stream=True)
    sent = RESPONSES.write_request(made, "s", {}).body["tools"][0]["name"]
    assert sent != "files.read"
    reply = RESPONSES.read_reply({"output": [{**CALL, "name": sent}]}, made)
    assert isinstance(call := reply.parts[0], ToolCall)
    assert call.name == "files.read"
    reader = RESPONSES.stream_reader(made)
    pieces = [p for c in reader.feed(stream_of([{"type": "response.output_item.added", "item": {**CALL, "name": sent}}])) for p in c.tools]
    assert pieces[0].name == "files.read"


def test_a_chat_callers_custom_tool_stays_one() -> None:
    tool = {"type": "custom", "custom": {"name": "patch", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: x"}}}}
    body = {"model": "f", "messages": [{"role": "user", "content": "x"}], "tools": [tool], "stream": True}
    chat = CHAT.read_request(Inbound("/v1/chat/completions", "", {}, body))
    sent = RESPONSES.write_request(chat, "s", {}).body["tools"][0]
    assert sent == {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"}}
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "patch", "input": ""}
    at = {"item_id": "ctc_1", "output_index": 0}
    stream = stream_of(
        [
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.custom_tool_call_input.delta", **at, "delta": "*** Be"},
            {"type": "response.custom_tool_call_input.done", **at, "input": "*** Begin"},
            {"type": "response.output_item.done", "output_index": 0, "item": {**item, "input": "*** Begin"}},
            {"type": "response.completed", "response": {"status": "completed", "output": [{**item, "input": "*** Begin"}]}},
        ]
    )
    reader, writer = RESPONSES.stream_reader(chat), CHAT.stream_writer(chat, "chatcmpl-1", 5)
    out = b"".join(writer.chunk(c) for c in [*reader.feed(stream), *reader.close()]) + writer.finish(Usage())
    deltas = [e["choices"][0]["delta"] for e in (orjson.loads(line[6:]) for line in out.split(b"\n\n") if line[6:7] == b"{")]
    calls = [c for d in deltas for c in d.get("tool_calls", [])]
    assert (calls[0]["id"], calls[0]["type"], calls[0]["custom"]["name"]) == ("c1", "custom", "patch")
    assert "".join(c["custom"]["input"] for c in calls) == "*** Begin"


def test_a_user_turn_is_added_to_both() -> None:
    request = RESPONSES.with_user_turn(a_request(input="hi"), "Please go on.")
    assert [m.text for m in request.messages] == ["hi", "Please go on."]
    assert [i["content"][0]["text"] for i in RESPONSES.write_request(request, "s", {}).body["input"]] == ["hi", "Please go on."]


def test_counting_asks_with_what_counts() -> None:
    request = RESPONSES.read_request(Inbound(f"{PATH}/input_tokens", "", {}, {**REQUEST}))
    assert request.operation == "count"
    asked = RESPONSES.write_count_request(request, "s", {})
    assert asked is not None
    assert set(asked.body) <= {"input", "instructions", "model", "parallel_tool_calls", "reasoning", "text", "tool_choice", "tools", "truncation"}
    assert RESPONSES.read_count({"input_tokens": 12}) == 12
    for wrong in ({}, [], {"input_tokens": True}, {"input_tokens": 0}, {"input_tokens": "9"}):
        assert RESPONSES.read_count(wrong) is None
    assert RESPONSES.write_count(12) == {"object": "response.input_tokens", "input_tokens": 12}


# ------------------------------------------------------------------ replies


def test_a_reply_is_understood_and_passes_through() -> None:
    reply = RESPONSES.read_reply(RESPONSE, a_request())
    assert (reply.text, reply.stop, reply.finish) == ("naïve 🙂", Stop.TOOLS, "completed")
    assert reply.usage == Usage(input=11, output=7, cache_read=3, reasoning=2)
    assert [type(p) for p in reply.parts] == [Thinking, Text, ToolCall]
    out = written(reply)
    assert (out["id"], out["model"], out["service_tier"], out["usage"]) == (OURS, "bench/core", "flex", USAGE)
    assert out["output"] == RESPONSE["output"]
    assert written(reply, bench={"panel": "pan_1"})["bench"] == {"panel": "pan_1"}


@pytest.mark.parametrize(
    ("body", "error", "code"),
    [
        ([], Garbage, "upstream_garbage"),
        ("x", Garbage, "upstream_garbage"),
        ({}, Garbage, "upstream_garbage"),
        ({"output": "x"}, Garbage, "upstream_garbage"),
        ({"output": [], "status": "in_progress"}, Garbage, "upstream_garbage"),
        ({"output": []}, Empty, "empty_response"),
        ({"output": [{"type": "message", "content": []}]}, Empty, "empty_response"),
        ({"output": [], "status": "failed", "error": {"code": "server_error", "message": "boom"}}, UpstreamError, "upstream_error"),
        ({"output": [], "status": "failed", "error": {"code": "rate_limit_exceeded", "message": "slow down"}}, UpstreamError, "rate_limit_exceeded"),
        ({"error": {"code": "insufficient_quota", "message": "pay"}}, UpstreamError, "no_credit"),
        ({"error": {"code": "context_length_exceeded", "message": "too much"}}, UpstreamError, "context_too_small"),
        ({"error": {"code": "server_is_overloaded", "message": "later"}}, UpstreamError, "upstream_overloaded"),
        ({"error": {"type": "invalid_request_error", "message": "no"}}, UpstreamError, "invalid_request"),
        ({"error": "broken"}, UpstreamError, "upstream_error"),
        ({"object": "error", "message": "no", "code": 400}, UpstreamError, "invalid_request"),
    ],
)
def test_a_body_that_is_no_answer_says_what_it_is(body: Any, error: type[UpstreamError], code: str) -> None:
    with pytest.raises(error) as caught:
        RESPONSES.read_reply(body, a_request())
    assert caught.value.code == code


@pytest.mark.parametrize(("reason", "stop"), [("max_output_tokens", Stop.LENGTH), ("content_filter", Stop.FILTER), (None, Stop.LENGTH)])
def test_an_incomplete_answer_may_be_empty(reason: str | None, stop: Stop) -> None:
    reply = RESPONSES.read_reply({"output": [], "status": "incomplete", "incomplete_details": {"reason": reason}}, a_request())
    assert (reply.text, reply.stop) == ("", stop)


@pytest.mark.parametrize(
    ("usage", "understood"),
    [
        (None, None),
        ({}, None),
        ("many", None),
        ({"input_tokens": 5, "output_tokens": 2}, Usage(5, 2)),
        ({"input_tokens": -5, "output_tokens": "2"}, Usage(0, 0)),
        ({"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3}}, Usage(9, 2, 4, 3)),
        ({"input_tokens": 9, "output_tokens": 2, "input_tokens_details": [], "output_tokens_details": None}, Usage(9, 2)),
        ({"prompt_tokens": 5, "completion_tokens": 2}, Usage(5, 2)),
    ],
)
def test_usage_is_believed_as_far_as_it_makes_sense(usage: Any, understood: Usage | None) -> None:
    assert RESPONSES.read_reply({**RESPONSE, "usage": usage}, a_request()).usage == understood


@given(bent(RESPONSE) | JUNK)
def test_any_json_is_a_reply_or_an_upstream_error(body: Any) -> None:
    for request in (a_request(), replace(a_request(), dialect="other")):
        try:
            reply = RESPONSES.read_reply(body, request)
        except UpstreamError as error:
            assert error.code  # noqa: PT017
            continue
        if fits(body):
            out = written(reply, a_request())
            assert (out["object"], out["id"]) == ("response", OURS)


def test_an_answer_of_ours_has_all_that_clients_look_for() -> None:
    out = written(Reply((Text("hi"),), Stop.LENGTH), a_request(temperature=0.5, tools=[FUNCTION]), bench={"panel": "pan_1"})
    assert (out["id"], out["object"], out["created_at"], out["model"], out["status"]) == (OURS, "response", 5, "bench/core", "incomplete")
    assert out["incomplete_details"] == {"reason": "max_output_tokens"}
    assert out["output"][0]["content"] == [{"type": "output_text", "text": "hi", "annotations": [], "logprobs": []}]
    assert out["usage"]["total_tokens"] == 3
    assert (out["temperature"], out["tools"], out["parallel_tool_calls"], out["tool_choice"]) == (0.5, [FUNCTION], True, "auto")
    assert out["bench"]["panel"] == "pan_1"


def test_errors_have_the_shape_that_clients_read() -> None:
    error = CallerError("context_too_small", "No seat can take it.", field="input", seats=[{"model": "a"}])
    assert RESPONSES.write_error(error)["error"] == {
        "message": "No seat can take it.",
        "type": "invalid_request_error",
        "param": "input",
        "code": "context_too_small",
        "seats": [{"model": "a"}],
    }


# ------------------------------------------------------------------ streams


def relayed(*pieces: bytes, request: Request | None = None, foreign: bool = False) -> tuple[bytes, UpstreamError | None]:
    """What a caller gets of a provider's stream that comes in these pieces and then ends. `foreign`: written from what was understood alone."""
    request = request or a_request(stream=True)
    reader = RESPONSES.stream_reader(replace(request, dialect="other") if foreign else request)
    writer = RESPONSES.stream_writer(request, OURS, 5)
    out, usage = b"", Usage()
    try:
        for piece in (*pieces, None):
            for chunk in reader.close() if piece is None else reader.feed(piece):
                usage = chunk.usage or usage
                out += writer.chunk(chunk) + writer.keepalive()
    except UpstreamError as error:
        return out + writer.error(CallerError(error.code, "It broke off.", status=502)), error
    return out + writer.finish(usage), None


@pytest.mark.parametrize("foreign", [False, True])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_stream_comes_through_in_any_packets(size: int, foreign: bool) -> None:
    stream = stream_of(upstream())
    out, error = relayed(*[stream[i : i + size] for i in range(0, len(stream), size)], foreign=foreign)
    assert error is None
    events = legal(out)
    assert (text_of(events), thought_of(events)) == ("naïve 🙂", "hmm well")
    assert [(c["call_id"], c["name"], c["arguments"]) for c in calls_of(events)] == [("c1", "look", '{"at":"it"}')]
    last = events[-1]["response"]
    assert (last["id"], last["model"]) == (OURS, "fast")
    assert last["usage"]["input_tokens"] == 11


def test_the_same_format_loses_nothing() -> None:
    events = legal(relayed(stream_of(upstream()))[0])
    own = [e for e in events if e["type"] != "response.in_progress"]
    for mine, theirs in zip(own, [e for e in upstream() if e["type"] != "response.in_progress"], strict=True):
        assert mine["type"] == theirs["type"]
        for name, value in theirs.items():
            if name not in ("sequence_number", "response", "part"):
                assert mine[name] == value
    last = events[-1]["response"]
    assert last == {**last, **{k: v for k, v in RESPONSE.items() if k not in ("id", "model", "created_at")}}


@pytest.mark.parametrize("foreign", [False, True])
def test_a_stream_cut_anywhere_is_no_finished_answer(foreign: bool) -> None:
    stream = stream_of(upstream())
    end = stream.index(b"event: response.completed")
    for at in range(0, len(stream), 1):
        out, error = relayed(stream[:at], foreign=foreign)
        events = legal(out, failed=error is not None)
        assert "naïve 🙂".startswith(text_of(events))
        if at <= end:
            assert isinstance(error, Truncated | Empty)
            assert not calls_of(events) or b'"type":"response.output_item.done","output_index":2' in stream[:at]


def bare(events: list[dict[str, Any]], *gone: str) -> list[dict[str, Any]]:
    return [{k: v for k, v in e.items() if k not in gone} for e in events]


@pytest.mark.parametrize("foreign", [False, True])
@pytest.mark.parametrize(
    "events",
    [
        bare(upstream(), "sequence_number", "output_index", "content_index", "summary_index"),
        bare(upstream(), "sequence_number", "output_index", "content_index", "summary_index", "item_id"),
        [e for e in upstream() if "part" not in e["type"]],
        [e for e in upstream() if not e["type"].endswith((".part.added", "_part.added", "text.done", "_part.done", "arguments.done"))],
        [e for e in upstream() if not e["type"].endswith(".delta")],
        [e for e in upstream() if e["type"] == "response.output_item.done" or e["type"] in ("response.created", "response.completed")],
        [e for e in upstream() if e["type"] == "response.completed"],
        [e for e in upstream() if e["type"] != "response.output_item.done"],
        [e for e in upstream() if e["type"] != "response.created"],
        [*upstream(output=[])],
        [*bare(upstream(), "type")],
    ],
    ids=["indexes", "indexes and ids", "parts", "dones", "deltas", "all but whole items", "all but the end", "items' ends", "the beginning", "output", "types"],
)
def test_what_a_server_leaves_out_is_made_up_for(events: list[dict[str, Any]], foreign: bool) -> None:
    names = [e["type"] for e in upstream()] if "type" not in events[0] else [e["type"] for e in events]
    stream = b"".join(b"event: " + n.encode() + b"\ndata: " + orjson.dumps(e) + b"\n\n" for n, e in zip(names, events, strict=True))
    out, error = relayed(stream, foreign=foreign)
    assert error is None
    found = legal(out)
    assert (text_of(found), thought_of(found)) == ("naïve 🙂", "hmm well")
    assert [(c["call_id"], c["name"], c["arguments"]) for c in calls_of(found)] == [("c1", "look", '{"at":"it"}')]


def test_ids_that_change_on_the_way_stay_one() -> None:
    events = [json.loads(json.dumps(e).replace("msg_up", f"msg_{n}").replace("fc_up", f"fc_{n}").replace("rs_up", f"rs_{n}")) for n, e in enumerate(upstream())]
    for foreign in (False, True):
        found = legal(relayed(stream_of(events), foreign=foreign)[0])
        assert text_of(found) == "naïve 🙂"
        assert [c["arguments"] for c in calls_of(found)] == ['{"at":"it"}']


@pytest.mark.parametrize(
    "noise",
    [
        b": ping\n\n",
        b"data: : keepalive\n\n",
        b"data: \n\n",
        b"event: ping\ndata: {}\n\n",
        b'event: keepalive\ndata: {"type":"keepalive","sequence_number":3}\n\n',
        b"\n\n\n",
        b"retry: 1\n\n",
        b"data: [PING]\n\n",
        b'event: response.novelty\ndata: {"type":"response.novelty","x":1}\n\n',
    ],
)
def test_heartbeats_in_any_disguise_are_no_faults(noise: bytes) -> None:
    parts = [stream_of([e]) for e in upstream()]
    for foreign in (False, True):
        out, error = relayed(noise + noise.join(parts) + b"data: [DONE]\n\n", foreign=foreign)
        assert error is None
        assert text_of(legal(out)) == "naïve 🙂"


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "boom"}}}, "upstream_error"),
        ({"type": "response.failed", "response": {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "wait"}}}, "rate_limit_exceeded"),
        ({"type": "response.failed", "response": {"error": {"code": "context_length_exceeded", "message": "long"}}}, "context_too_small"),
        ({"type": "response.failed"}, "upstream_error"),
        ({"type": "error", "code": "server_is_overloaded", "message": "later", "param": None}, "upstream_overloaded"),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}, "invalid_request"),
        ({"error": {"message": "slow down", "code": 429}}, "rate_limit_exceeded"),
        ({"type": "response.created", "response": {"error": {"code": "server_error", "message": "boom"}}}, "upstream_error"),
    ],
)
def test_an_error_inside_a_stream_ends_it(event: Any, code: str) -> None:
    for before in ([], upstream()[:12]):
        out, error = relayed(stream_of([*before, event]))
        assert error is not None
        assert error.code == code
        assert legal(out, failed=True)[-1]["response"]["error"]["code"] == code


def test_a_failed_response_tells_what_it_used() -> None:
    _, error = relayed(stream_of([{"type": "response.failed", "response": {"error": {"code": "server_error", "message": "x"}, "usage": USAGE}}]))
    assert error is not None
    assert error.usage == Usage(11, 7, 3, 0, 2)


def test_parallel_calls_keep_their_own_arguments() -> None:
    added = [
        {"type": "response.output_item.added", "output_index": n, "item": {"type": "function_call", "id": f"fc_{n}", "call_id": f"c{n}", "name": "look"}}
        for n in (0, 3)
    ]
    said = [(3, "{"), (0, "[1"), (3, "}"), (0, "]")]
    deltas = [{"type": "response.function_call_arguments.delta", "output_index": n, "item_id": f"fc_{n}", "delta": d} for n, d in said]
    stream = stream_of([*added, *deltas, {"type": "response.completed", "response": {"output": []}}])
    reader = RESPONSES.stream_reader(replace(a_request(), dialect="other"))
    calls: dict[int, str] = {}
    for chunk in [*reader.feed(stream), *reader.close()]:
        for piece in chunk.tools:
            calls[piece.index] = calls.get(piece.index, "") + piece.arguments
    assert calls == {0: "[1]", 1: "{}"}
    for foreign in (False, True):
        assert [c["arguments"] for c in calls_of(legal(relayed(stream, foreign=foreign)[0]))] == ["[1]", "{}"]


def test_a_stream_that_says_nothing_and_ends_is_empty() -> None:
    _, error = relayed(stream_of([upstream()[0], {"type": "response.completed", "response": {"output": [], "usage": USAGE}}]))
    assert isinstance(error, Empty)
    _, error = relayed(stream_of([upstream()[0], {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}}]))
    assert error is None


def test_an_incomplete_stream_says_so() -> None:
    for foreign in (False, True):
        cut = [*upstream()[:13], {"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}}]
        events = legal(relayed(stream_of(cut), foreign=foreign)[0])
        assert events[-1]["type"] == "response.incomplete"
        assert events[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
        assert text_of(events) == "naïve 🙂"


@given(st.lists(st.sampled_from(upstream()).flatmap(bent) | JUNK, max_size=6).filter(fits), st.binary(max_size=20), st.integers(0, 1500), st.booleans())
def test_any_stream_is_relayed_legally_or_ends_in_an_error(chunks: list[Any], noise: bytes, cut: int, foreign: bool) -> None:
    stream = stream_of([*upstream()[:10], *chunks, upstream()[-1]], noise)
    out, error = relayed(stream[:cut], stream[cut:], foreign=foreign)
    found = events_of(out)
    assert [e["sequence_number"] for e in found] == list(range(len(found)))
    assert found[0]["type"] == "response.created"
    assert (found[-1]["type"] == "response.failed") == (error is not None)


# ------------------------------------------------------------------ streams of ours


def spoken(*chunks: Chunk, request: Request | None = None, bench: Any = None) -> list[dict[str, Any]]:
    writer = RESPONSES.stream_writer(request or a_request(stream=True), OURS, 5)
    out = writer.keepalive() + b"".join(writer.chunk(c) + writer.keepalive() for c in chunks) + writer.finish(Usage(1, 1), bench)
    events = legal(out)
    assert writer.whole is not None
    assert writer.whole["output"] == events[-1]["response"]["output"]
    return events


def test_a_stream_of_ours_is_legal() -> None:
    steps = [
        Chunk(thinking="hm "),
        Chunk(thinking="well"),
        Chunk(signature="sig"),
        Chunk(redacted="xyz"),
        Chunk(text="one"),
        Chunk(tools=(ToolPiece(0, "c1", "look", ""),)),
        Chunk(tools=(ToolPiece(0, arguments='{"at":'),)),
        Chunk(tools=(ToolPiece(0, arguments="1}"),)),
        Chunk(text="two"),
        Chunk(refusal="no"),
        Chunk(stop=Stop.TOOLS, finish="tool_calls", usage=Usage(1, 1)),
    ]
    events = spoken(*steps, bench={"panel": "pan_1"})
    assert [e["item"]["type"] for e in events if e["type"].endswith("item.done")] == ["reasoning", "reasoning", "message", "function_call", "message"]
    assert (text_of(events), thought_of(events)) == ("onetwo", "hm well")
    assert events[-1]["bench"] == {"panel": "pan_1"}
    assert [e for e in events if "bench" in e] == [events[-1]]
    again = a_request(input=[{"role": "user", "content": "x"}, *events[-1]["response"]["output"][:2]]).messages[1].parts
    assert again == (Thinking("hm well", signature="sig"), Thinking(redacted="xyz"))


def test_mixed_up_calls_come_one_after_another() -> None:
    steps = [
        ToolPiece(0, "c0", "look", '{"a"'),
        ToolPiece(2, "c2", "look", '{"c":'),
        ToolPiece(0, "", "", ":0}"),
        ToolPiece(5, "c5", "look", ""),
        ToolPiece(2, "", "", "2}"),
    ]
    events = spoken(*(Chunk(tools=(s,)) for s in steps), Chunk(stop=Stop.TOOLS))
    assert [(c["call_id"], c["arguments"]) for c in calls_of(events)] == [("c0", '{"a":0}'), ("c2", '{"c":2}'), ("c5", "{}")]
    order = [e["output_index"] for e in events if "output_index" in e]
    assert order == sorted(order)


@pytest.mark.parametrize("name", ["look", "apply_patch"])
def test_a_call_cut_off_by_the_limit_is_incomplete(name: str) -> None:
    request = a_request(stream=True, tools=[FUNCTION, PATCH])
    events = spoken(Chunk(tools=(ToolPiece(0, "c1", name, '{"input":"*** Be'),)), Chunk(stop=Stop.LENGTH), request=request)
    assert [c["status"] for c in calls_of(events)] == ["incomplete"]
    assert not [e for e in events if e["type"].endswith(("arguments.done", "input.done"))]
    assert events[-1]["type"] == "response.incomplete"
    item = written(Reply((ToolCall("c1", name, '{"input":"*** Be'),), Stop.LENGTH), request)["output"][0]
    assert item["status"] == "incomplete"


def test_a_failure_closes_nothing_falsely() -> None:
    writer = RESPONSES.stream_writer(a_request(stream=True), OURS, 5)
    out = writer.chunk(Chunk(text="par")) + writer.chunk(Chunk(tools=(ToolPiece(0, "c1", "look", '{"a'),)))
    out += writer.error(CallerError("upstream_truncated", "It broke off.", status=502, seats=[{"model": "a"}]))
    events = legal(out, failed=True)
    assert not calls_of(events)
    assert events[-1]["response"]["error"] == {"code": "upstream_truncated", "message": "It broke off.", "seats": [{"model": "a"}]}
    assert writer.whole is None


def test_silence_is_filled_with_events_that_clients_count() -> None:
    writer = RESPONSES.stream_writer(a_request(stream=True, tools=[FUNCTION] * 50), OURS, 5)
    out = writer.keepalive() + writer.keepalive() + writer.keepalive()
    assert [e["type"] for e in events_of(out)] == ["response.created", *["response.in_progress"] * 3]
    assert len(writer.keepalive()) < 2000


def test_other_formats_events_are_no_events_of_ours() -> None:
    events = spoken(Chunk(text="x", raw={"type": "content_block_delta"}), Chunk(text="y", raw={"choices": []}), Chunk(text="z", raw=[1]))
    assert text_of(events) == "xyz"


@given(
    st.lists(
        st.builds(Chunk, text=st.sampled_from(["", "a", "b\n"]))
        | st.builds(Chunk, thinking=st.sampled_from(["", "t"]), signature=st.sampled_from(["", "s"]), redacted=st.sampled_from(["", "r"]))
        | st.builds(Chunk, refusal=st.sampled_from(["", "n"]))
        | st.builds(
            Chunk,
            tools=st.lists(
                st.builds(
                    ToolPiece,
                    index=st.integers(0, 3),
                    id=st.sampled_from(["", "c1"]),
                    name=st.sampled_from(["", "look", "apply_patch", "local_shell"]),
                    arguments=st.sampled_from(["", "{", "}", '{"input":"x"}', "1"]),
                    kind=st.sampled_from(["function", "function", "custom"]),
                ),
                max_size=3,
            ).map(tuple),
        )
        | st.builds(Chunk, stop=st.sampled_from(list(Stop)), choice=st.integers(0, 1)),
        max_size=12,
    ),
    st.integers(0, 12),
)
def test_whatever_was_understood_makes_a_legal_stream(chunks: list[Chunk], cut: int) -> None:
    request = a_request(stream=True, tools=[FUNCTION, PATCH, {"type": "local_shell"}])
    spoken(*chunks, request=request)
    writer = RESPONSES.stream_writer(request, OURS, 5)
    out = b"".join(writer.chunk(c) for c in chunks[:cut]) + writer.error(CallerError("upstream_truncated", "x", status=502))
    legal(out, failed=True)
