"""Anthropic's Messages format: what a caller sends is understood whole, what a provider is sent it takes, and nothing is lost between two of the kind."""

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
    Chunk,
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
from wire.errors import CallerError, Empty, Garbage, UpstreamError
from wire.jsontext import parse_body

MESSAGES, CHAT = dialects.get("anthropic-messages"), dialects.get("openai-chat")
PATH = "/v1/messages"
LOOK = {"name": "look", "description": "looks", "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}}, "strict": True}
REQUEST: dict[str, Any] = {
    "model": "fast",
    "max_tokens": 2048,
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=1.2.3.abc; cc_entrypoint=cli;"},
        {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
    ],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}, "cache_control": {"type": "ephemeral"}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a note"}, "title": "Note"},
            ],
        },
        {"role": "system", "content": "From now on in French."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "EqRkYmFzZTY0+/=="},
                {"type": "redacted_thinking", "data": "c2VjcmV0"},
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "sky"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "is_error": False,
                    "content": [
                        {"type": "text", "text": "a cat"},
                        {"type": "image", "source": {"type": "url", "url": "https://example.org/cat.png"}},
                        {"type": "tool_reference", "tool_name": "later"},
                    ],
                },
                {"type": "text", "text": "And now?"},
            ],
        },
    ],
    "stream": True,
    "temperature": 0.5,
    "top_k": 5,
    "stop_sequences": ["x"],
    "tools": [LOOK, {"name": "later", "input_schema": {"type": "object"}, "defer_loading": True}],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {"type": "object"}}},
    "metadata": {"user_id": "somebody"},
    "context_management": {"edits": []},
    "some_unknown_field": {"kept": [1, 2]},
}
REPLY: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "served",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "a cat", "citations": None},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "sky"}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3, "output_tokens": 7, "service_tier": "standard"},
    "container": None,
}
CALLER_CODES = {"invalid_request", "context_too_small", "tools_need_route"}


def read(body: Any, **headers: str) -> Request:
    return MESSAGES.read_request(Inbound(PATH, "", {k.replace("_", "-"): v for k, v in headers.items()}, body))


def a_request(**more: Any) -> Request:
    return read({"model": "fast", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], **more})


def a_chat(**more: Any) -> Request:
    return CHAT.read_request(Inbound("/v1/chat/completions", "", {}, {"model": "fast", "messages": [{"role": "user", "content": "hi"}], **more}))


def sent(request: Request, served_name: str = "served", **quirks: Any) -> dict[str, Any]:
    """What a provider is sent, once it is proper for this format."""
    body = MESSAGES.write_request(request, served_name, quirks).body
    proper(body)
    return body


def dropped(request: Request, served_name: str = "served", **quirks: Any) -> set[str]:
    return set(MESSAGES.write_request(request, served_name, quirks).dropped)


def proper(body: dict[str, Any]) -> None:
    """What the API refuses, as it says."""
    assert isinstance(body["max_tokens"], int)
    assert body["messages"]
    assert body["messages"][0]["role"] == "user"
    orjson.dumps(body)
    ids: set[str] = set()
    for before, turn in zip([None, *body["messages"]], body["messages"], strict=False):
        content = turn["content"]
        if not isinstance(content, list):
            continue
        assert content
        kinds = [b["type"] for b in content]
        for block in content:
            if block["type"] == "text":
                assert block["text"].strip()
            if block["type"] == "thinking":
                assert block["signature"]
            if block["type"] == "tool_use":
                assert isinstance(block["input"], dict)
                assert block["id"] not in ids
                ids.add(block["id"])
        results = [b["tool_use_id"] for b in content if b["type"] == "tool_result"]
        assert kinds[: len(results)] == ["tool_result"] * len(results), "results come first"
        assert len(results) == len(set(results)), "one result a call"
        if results and before and isinstance(before["content"], list):
            assert {b["id"] for b in before["content"] if b["type"] == "tool_use"} == set(results)
    if "thinking" in body and body["thinking"].get("type") == "enabled":
        assert 1024 <= body["thinking"]["budget_tokens"] < body["max_tokens"]


# ------------------------------------------------------------------ requests in


def test_a_request_is_understood_whole() -> None:
    request = read(REQUEST)
    assert (request.model, request.stream, request.output_limit, request.usage_wanted) == ("fast", True, 2048, True)
    assert request.sampling == Sampling(temperature=0.5, top_k=5, stop=("x",))
    assert request.format == Format("schema", {"type": "object"}, strict=True)
    assert request.reasoning == Reasoning(effort="high", budget=1024, enabled=True)
    assert (request.tool_choice, request.parallel_tool_calls) == (ToolChoice("auto"), False)
    assert [m.role for m in request.messages] == [Role.SYSTEM, Role.USER, Role.SYSTEM, Role.ASSISTANT, Role.TOOL, Role.USER]
    assert request.messages[0].parts == (Text("Be brief."),)
    first = request.messages[1].parts
    assert first[:2] == (Text("What is this?"), Image(media_type="image/png", data="iVBORw0KGgo="))
    assert isinstance(first[2], Text)
    assert first[2].text == "Note\n\na note"
    assert request.messages[2].text == "From now on in French."
    assert request.messages[3].parts == (
        Thinking("hm", signature="EqRkYmFzZTY0+/=="),
        Thinking(redacted="c2VjcmV0"),
        Text("Let me look."),
        ToolCall("toolu_1", "look", '{"at":"sky"}'),
    )
    (result,) = request.messages[4].parts
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.name, result.is_error) == ("toolu_1", "look", False)
    assert result.parts[:2] == (Text("a cat"), Image(url="https://example.org/cat.png"))
    assert "later" in result.parts[2].text  # type: ignore[union-attr]
    assert request.messages[5].parts == (Text("And now?"),)
    assert [(t.name, t.kind, t.strict) for t in request.tools] == [("look", "function", True), ("later", "function", None)]
    assert request.raw is REQUEST
    assert set(request.unread) == {"cache_control", "metadata", "context_management", "some_unknown_field", "tools.defer_loading"}


def test_a_system_prompt_may_be_a_string_and_loses_the_line_about_the_client() -> None:
    assert a_request(system="Be brief.").messages[0] == Message(Role.SYSTEM, (Text("Be brief."),))
    assert a_request(system="x-anthropic-billing-header: a=b;\nBe brief.").messages[0].text == "Be brief."
    assert a_request(system=[{"type": "text", "text": "x-anthropic-billing-header: a=b;"}]).messages[0].role is Role.USER
    assert a_request(system="").messages[0].role is Role.USER


@pytest.mark.parametrize(
    ("given", "understood"),
    [
        ({"type": "auto"}, (ToolChoice("auto"), None)),
        ({"type": "any"}, (ToolChoice("required"), None)),
        ({"type": "none"}, (ToolChoice("none"), None)),
        ({"type": "tool", "name": "look"}, (ToolChoice("tool", "look"), None)),
        ({"type": "any", "disable_parallel_tool_use": True}, (ToolChoice("required"), False)),
        ({"type": "auto", "disable_parallel_tool_use": False}, (ToolChoice("auto"), True)),
        ({"type": "sometimes"}, (None, None)),
    ],
)
def test_tool_choices(given: Any, understood: Any) -> None:
    request = a_request(tools=[LOOK], tool_choice=given)
    assert (request.tool_choice, request.parallel_tool_calls) == understood


@pytest.mark.parametrize(
    ("given", "understood"),
    [
        ({}, None),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, Reasoning(budget=2000, enabled=True)),
        ({"thinking": {"type": "adaptive", "display": "omitted"}}, Reasoning(enabled=True)),
        ({"thinking": {"type": "disabled"}}, Reasoning(enabled=False)),
        ({"output_config": {"effort": "max"}}, Reasoning(effort="max")),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}, Reasoning(effort="low", enabled=True)),
    ],
)
def test_thinking_and_effort(given: Any, understood: Any) -> None:
    assert a_request(**given).reasoning == understood


@pytest.mark.parametrize(
    ("user_id", "headers", "mark"),
    [
        (None, {}, ()),
        ("sdk-user-1", {}, ()),
        ('{"device_id":"d","account_uuid":"","session_id":"s-1"}', {}, ("claude:s-1:",)),
        ('{"session_id":7}', {}, ()),
        ("{broken", {}, ()),
        ("user_ab_account_cd_session_0000-1111", {}, ("claude:0000-1111:",)),
        (None, {"x_claude_code_session_id": "s-1"}, ("claude:s-1:",)),
        ('{"session_id":"s-1"}', {"x_claude_code_session_id": "s-1"}, ("claude:s-1:",)),
        ('{"session_id":"s-1"}', {"x_claude_code_agent_id": "a-2"}, ("claude:s-1:a-2",)),
        (None, {"x_claude_code_session_id": "s-1", "x_claude_code_agent_id": "a-2"}, ("claude:s-1:a-2",)),
    ],
)
def test_one_session_has_one_mark_wherever_it_is_told(user_id: str | None, headers: dict[str, str], mark: tuple[str, ...]) -> None:
    body = {"model": "fast", "messages": [{"role": "user", "content": "hi"}], "metadata": {"user_id": user_id}}
    assert read(body, **headers).marks == mark


def test_betas_are_kept_once_each_and_named_for_others() -> None:
    request = read(REQUEST, anthropic_beta="a-2025,b-2026, a-2025", anthropic_version="2023-06-01")
    assert request.headers == {"anthropic-beta": "a-2025,b-2026", "anthropic-version": "2023-06-01"}
    assert "anthropic-beta" in request.unread
    out = MESSAGES.write_request(request, "served", {"betas": "c-2026,b-2026"})
    assert out.headers["anthropic-beta"] == "a-2025,b-2026,c-2026"


def test_a_system_turn_that_no_longer_counts_is_left_out() -> None:
    passing = {"role": "system", "content": "only now", "clear_at": "next_user_message"}
    assert [m.text for m in a_request(messages=[{"role": "user", "content": "a"}, passing]).messages] == ["a", "only now"]
    assert [m.text for m in a_request(messages=[{"role": "user", "content": "a"}, passing, {"role": "user", "content": "b"}]).messages] == ["a", "b"]


def test_deferred_tools_are_tools_and_their_placeholder_is_none() -> None:
    tools = [LOOK, {"name": "DeferredToolPlaceholder", "description": "x", "input_schema": {"type": "object"}, "defer_loading": True}]
    assert [t.name for t in a_request(tools=tools).tools] == ["look"]
    added = {"role": "system", "content": [{"type": "tool_addition", "tool": {"type": "tool_definition", "definition": LOOK}}]}
    request = a_request(messages=[{"role": "user", "content": "a"}, added])
    assert [t.name for t in request.tools] == ["look"]
    assert [m.role for m in request.messages] == [Role.USER]


def test_tools_that_this_format_knows_by_name_are_told_to_others() -> None:
    request = a_request(tools=[{"type": "bash_20250124", "name": "bash"}, {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}])
    assert [(t.kind, bool(t.parameters)) for t in request.tools] == [("function", True), ("function", True)]
    (bash, edit) = CHAT.write_request(request, "s", {}).body["tools"]
    assert (bash["function"]["name"], edit["function"]["name"]) == ("bash", "str_replace_based_edit_tool")


def test_tools_of_anthropics_servers_are_refused_or_left_out() -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    with pytest.raises(CallerError, match=r"tools\[0\] \(web_search_20250305\)"):
        CHAT.write_request(a_request(tools=[search]), "s", {})
    with pytest.raises(CallerError, match=r"tools\[1\]"):
        CHAT.write_request(a_request(tools=[LOOK, search], tool_choice={"type": "tool", "name": "web_search"}), "s", {})
    out = CHAT.write_request(a_request(tools=[LOOK, search]), "s", {})
    assert [t["function"]["name"] for t in out.body["tools"]] == ["look"]
    assert out.dropped == ("tools: web_search_20250305",)
    assert sent(a_request(tools=[search]))["tools"] == [search]
    with pytest.raises(CallerError):
        CHAT.write_request(a_request(mcp_servers=[{"type": "url", "name": "x", "url": "https://example.org"}]), "s", {})


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        ({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD"}, "title": "t"}, File),
        ({"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}}, File),
        ({"type": "document", "source": {"type": "file", "file_id": "f1"}}, File),
        ({"type": "document", "source": {"type": "content", "content": "words"}}, Text),
        ({"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "words"}]}}, Text),
        ({"type": "search_result", "title": "T", "source": "https://example.org", "content": [{"type": "text", "text": "words"}]}, Text),
        ({"type": "web_search_tool_result", "tool_use_id": "x", "content": [{"type": "web_search_result", "title": "T", "url": "u"}]}, Text),
        ({"type": "image", "source": {"type": "file", "file_id": "f1"}}, File),
        ({"type": "container_upload", "file_id": "f1"}, File),
    ],
)
def test_other_blocks_are_files_or_the_text_that_they_hold(block: Any, kind: type) -> None:
    request = a_request(messages=[{"role": "user", "content": [block]}])
    assert [type(p) for p in request.messages[0].parts] == [kind]
    assert sent(request)["messages"] == [{"role": "user", "content": [block]}]


def test_a_block_that_nobody_knows_passes_to_its_own_and_is_named_for_others() -> None:
    block = {"type": "hologram", "id": 7}
    request = a_request(messages=[{"role": "user", "content": [{"type": "text", "text": "a"}, block]}])
    assert request.messages[0].parts == (Text("a"),)
    assert "hologram" in request.unread
    assert sent(request)["messages"][0]["content"][1] == block


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], ""),
        ({}, "model"),
        ({"model": "m"}, "messages"),
        ({"model": "m", "messages": []}, "messages"),
        ({"model": "m", "messages": [{"content": "x"}]}, "messages[0].role"),
        ({"model": "m", "messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"model": "m", "messages": [{"role": "user"}]}, "messages[0].content"),
        ({"model": "m", "messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ({"model": "m", "messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ({"model": "m", "messages": [{"role": "user", "content": [{"type": "image"}]}]}, "messages[0].content[0].source"),
        ({"model": "m", "messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}, "messages[0].content[0].tool_use_id"),
        ({"model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": "9"}, "max_tokens"),
        ({"model": "m", "messages": [{"role": "user", "content": "x"}], "stop_sequences": "x"}, "stop_sequences"),
        ({"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": [{}]}, "tools[0].name"),
        ({"model": "m", "messages": [{"role": "user", "content": "x"}], "thinking": "on"}, "thinking"),
    ],
)
def test_what_is_wrong_is_named(body: Any, field: str) -> None:
    with pytest.raises(CallerError) as caught:
        read(body)
    assert (caught.value.code, caught.value.status) == ("invalid_request", 400)
    assert caught.value.field == field or not field


def test_a_path_tells_counting_from_asking() -> None:
    assert (
        MESSAGES.read_request(Inbound("/v1/messages/count_tokens", "beta=true", {}, {"model": "m", "messages": [{"role": "user", "content": "x"}]})).operation
        == "count"
    )
    assert a_request().operation == "ask"


def fits(value: Any) -> bool:
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True


@given(bent(REQUEST) | JUNK)
def test_any_json_is_a_request_or_a_callers_error(body: Any) -> None:
    try:
        request = read(body)
    except CallerError as error:
        assert error.code in CALLER_CODES  # noqa: PT017
        assert orjson.dumps(MESSAGES.write_error(error))  # noqa: PT017
        return
    for to in (MESSAGES, CHAT):
        for quirks in ({}, {"system_role": "user", "sampling": False, "max_tokens": 100}):
            try:
                out = to.write_request(request, "served", quirks).body
            except CallerError:
                continue
            assert out["model"] == "served"
            if fits(body):
                orjson.dumps(out)
    MESSAGES.with_user_turn(request, "more")
    MESSAGES.without_thinking(request, lambda part: True)
    MESSAGES.write_count_request(request, "served", {})


@given(st.binary(max_size=40) | bent(REQUEST).map(lambda v: orjson.dumps(v, default=str, option=orjson.OPT_NON_STR_KEYS) if fits(v) else b"{}"))
def test_any_bytes_are_a_request_or_a_callers_error(data: bytes) -> None:
    try:
        request = MESSAGES.read_request(Inbound(PATH, "", {}, parse_body(data)))
    except CallerError:
        return
    orjson.dumps(MESSAGES.write_request(request, "served", {}).body)


# ------------------------------------------------------------------ to a provider of the same format


def test_the_body_passes_through_with_only_the_name_changed() -> None:
    out = sent(read(REQUEST), "vendor/served")
    assert out == {**REQUEST, "model": "vendor/served"}
    assert out["messages"][2]["content"][0] is REQUEST["messages"][2]["content"][0]


def test_what_would_poison_the_conversation_is_left_out() -> None:
    call = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    turns = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": ""}, {"type": "text", "text": "\n\n"}, call]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "note"},
                {"type": "tool_result", "tool_use_id": "t", "content": "old"},
                {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": " "}, {"type": "text", "text": "new"}]},
            ],
        },
    ]
    before = copy.deepcopy(turns)
    out = sent(a_request(messages=turns, tools=[LOOK]))["messages"]
    assert out[1]["content"] == [call]
    assert out[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "new"}]},
        {"type": "text", "text": "note"},
    ]
    assert turns == before, "the caller's own body is not written to"


def test_every_call_has_a_result_where_it_has_to_be() -> None:
    def call(i: str) -> dict[str, Any]:
        return {"type": "tool_use", "id": i, "name": "look", "input": {}}

    def result(i: str) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": i, "content": "r"}

    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": [call("x"), call("y")]}, {"role": "user", "content": [result("y")]}]
    results = sent(a_request(messages=turns))["messages"][2]["content"]
    assert [(r["tool_use_id"], r.get("is_error")) for r in results] == [("y", None), ("x", True)]
    apart = [*turns[:2], {"role": "user", "content": [result("x")]}, {"role": "user", "content": [result("y"), {"type": "text", "text": "go"}]}]
    joined = sent(a_request(messages=apart))["messages"]
    assert [b["type"] for b in joined[2]["content"]] == ["tool_result", "tool_result", "text"]
    interrupted = [*turns[:2], {"role": "user", "content": "never mind"}]
    assert [b["type"] for b in sent(a_request(messages=interrupted))["messages"][2]["content"]] == ["tool_result", "tool_result", "text"]
    at_the_end = sent(a_request(messages=turns[:2]))["messages"]
    assert [b["tool_use_id"] for b in at_the_end[2]["content"]] == ["x", "y"]
    twice = [*turns[:2], {"role": "assistant", "content": "on"}]
    assert [t["role"] for t in sent(a_request(messages=twice))["messages"]] == ["user", "assistant", "user", "assistant"]


def test_system_turns_stay_unless_the_model_knows_none() -> None:
    turns = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]},
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]},
    ]
    assert sent(a_request(messages=turns))["messages"] == turns
    out = sent(a_request(messages=turns), system_role="user")["messages"]
    assert [t["role"] for t in out] == ["user", "assistant", "user"]
    assert [b["type"] for b in out[2]["content"]] == ["tool_result", "text"]
    assert "be kind" in out[2]["content"][1]["text"]


def test_quirks_say_what_a_model_refuses() -> None:
    request = a_request(temperature=0.5, top_p=0.9, max_tokens=5000, stream=False)
    assert sent(request)["temperature"] == 0.5
    assert sent(request, "claude-opus-5")["temperature"] == 0.5, "who speaks this format knows what they say"
    assert not {"temperature", "top_p"} & sent(request, sampling=False).keys()
    assert dropped(request, sampling=False) == {"temperature", "top_p"}
    assert sent(request, max_tokens=1000)["max_tokens"] == 1000
    assert sent(a_request(max_tokens=None), max_tokens=1000)["max_tokens"] == 1000
    assert sent(a_request(max_tokens=None))["max_tokens"] == 4096
    assert sent(a_request(), defaults={"service_tier": "auto"})["service_tier"] == "auto"
    assert "stream" not in sent(request)


def test_budgeted_thinking_is_switched_off_where_it_would_be_refused() -> None:
    turns = [
        {"role": "user", "content": "a"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "x", "signature": "others"},
                {"type": "tool_use", "id": "t", "name": "look", "input": {}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]},
    ]
    body = {
        "messages": turns,
        "max_tokens": 4000,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "context_management": {"edits": [{"type": "clear_thinking_20251015"}, {"type": "clear_tool_uses_20250919"}]},
    }
    assert sent(a_request(**body))["thinking"] == body["thinking"]
    cut = MESSAGES.without_thinking(a_request(**body), lambda part: part.signature == "others")
    assert [b["type"] for b in sent(cut)["messages"][1]["content"]] == ["tool_use"]
    assert "thinking" not in sent(cut)
    assert sent(cut)["context_management"]["edits"] == [{"type": "clear_tool_uses_20250919"}]
    assert "thinking" in dropped(cut)
    assert sent(a_request(max_tokens=9000, thinking={"type": "enabled", "budget_tokens": 8000}), max_tokens=4000)["thinking"]["budget_tokens"] == 2000


def test_foreign_thinking_goes_and_all_else_stays() -> None:
    request = read(REQUEST)
    assert MESSAGES.without_thinking(request, lambda part: False) is request
    cut = MESSAGES.without_thinking(request, lambda part: bool(part.redacted))
    kinds = [b["type"] for b in sent(cut)["messages"][2]["content"]]
    assert kinds == ["thinking", "text", "tool_use"]
    only = a_request(messages=[{"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "s"}]}])
    assert len(sent(MESSAGES.without_thinking(only, lambda part: True))["messages"]) == 1


def test_one_more_user_turn_stands_in_both() -> None:
    request = MESSAGES.with_user_turn(read(REQUEST), "go on")
    assert request.messages[-1] == Message(Role.USER, (Text("go on"),))
    assert sent(request)["messages"][-1] == {"role": "user", "content": "go on"}


def test_counting_asks_only_what_counts() -> None:
    asked = MESSAGES.write_count_request(read(REQUEST, anthropic_beta="b"), "served", {})
    assert asked is not None
    assert asked.body["model"] == "served"
    assert asked.body["messages"] == REQUEST["messages"]
    assert not {"max_tokens", "stream", "temperature", "stop_sequences", "metadata"} & asked.body.keys()
    assert asked.headers == {"anthropic-beta": "b"}
    assert MESSAGES.read_count({"input_tokens": 12}) == 12
    assert [MESSAGES.read_count(b) for b in ({"input_tokens": 0}, {"input_tokens": "x"}, {}, [], None)] == [None] * 5
    assert MESSAGES.write_count(12) == {"input_tokens": 12}


# ------------------------------------------------------------------ to a provider, from another format


CHAT_TURNS: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "what"}, {"type": "image_url", "image_url": {"url": "data:image/jpg;name=x;base64,/9j/4AAQ"}}]},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "unsigned",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "look", "arguments": '{"q": "2"}'}},
        ],
    },
    {"role": "tool", "tool_call_id": "b", "content": "two"},
    {"role": "user", "content": "note"},
    {"role": "tool", "tool_call_id": "a", "content": "one"},
    {"role": "system", "content": "In French."},
    {"role": "user", "content": "go on"},
]


def test_a_chat_becomes_turns_that_this_format_takes() -> None:
    out = sent(a_chat(messages=CHAT_TURNS, max_completion_tokens=50, stop="END", tools=[{"type": "function", "function": {"name": "look"}}]))
    assert out["system"] == "Be brief."
    assert (out["max_tokens"], out["stop_sequences"]) == (50, ["END"])
    assert out["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "what"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "/9j/4AAQ"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "a", "name": "look", "input": {}},
                {"type": "tool_use", "id": "b", "name": "look", "input": {"q": "2"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "b", "content": "two"},
                {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                {"type": "text", "text": "note"},
                {"type": "text", "text": "<system>\nIn French.\n</system>"},
                {"type": "text", "text": "go on"},
            ],
        },
    ]
    assert out["tools"] == [{"name": "look", "input_schema": {"type": "object", "properties": {}}}]


def test_a_system_message_in_the_middle_keeps_its_place_where_the_model_knows_one() -> None:
    turns = [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}, {"role": "assistant", "content": "c"}, {"role": "system", "content": "d"}]
    out = sent(a_chat(messages=turns), system_role="system")["messages"]
    assert [t["role"] for t in out] == ["user", "system", "assistant", "user"]


@pytest.mark.parametrize(
    ("messages", "roles"),
    [
        ([{"role": "system", "content": "only this"}], ["user"]),
        ([{"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "hi"}], ["user", "assistant", "user"]),
        ([{"role": "user", "content": ""}], ["user"]),
        ([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}, {"role": "assistant", "content": "begun \n"}], ["user", "assistant"]),
        ([{"role": "user", "content": "a"}, {"role": "assistant", "content": " "}, {"role": "user", "content": "b"}], ["user"]),
    ],
)
def test_odd_conversations_become_proper_ones(messages: Any, roles: list[str]) -> None:
    out = sent(a_chat(messages=messages))["messages"]
    assert [t["role"] for t in out] == roles
    last = out[-1]["content"][-1]
    assert last["text"] == last["text"].rstrip()


def test_ids_and_names_that_this_format_refuses_are_changed_and_come_back() -> None:
    name = "mcp.server/" + "x" * 70
    call = {"id": "call:1/ä", "type": "function", "function": {"name": name, "arguments": "[1]"}}
    tool = {"type": "function", "function": {"name": name, "parameters": {}}}
    turns = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "tool_calls": [call, {**call, "id": "call.1.."}]},
        {"role": "tool", "tool_call_id": "call:1/ä", "content": "r"},
        {"role": "tool", "tool_call_id": "call.1..", "content": "s"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call:1/ä", "content": "again"},
    ]
    request = a_chat(messages=turns, tools=[tool], tool_choice={"type": "function", "function": {"name": name}})
    out = sent(request)
    short = out["tools"][0]["name"]
    assert len(short) <= 64
    assert out["tool_choice"] == {"type": "tool", "name": short}
    calls = [b for t in out["messages"] for b in t["content"] if b["type"] == "tool_use"]
    results = [b for t in out["messages"] for b in t["content"] if b["type"] == "tool_result"]
    assert {b["name"] for b in calls} == {short}
    assert [b["id"] for b in calls] == [b["tool_use_id"] for b in results]
    assert len({b["id"] for b in calls}) == 3
    assert calls[0]["input"] == {"arguments": "[1]"}
    assert [b["content"] for b in results] == ["r", "s", "again"]
    reply = MESSAGES.read_reply({**REPLY, "content": [{"type": "tool_use", "id": "t", "name": short, "input": {}}]}, request)
    assert reply.parts == (ToolCall("t", name, "{}"),)
    assert CHAT.write_request(a_request(tools=[{"name": name, "input_schema": {}}]), "s", {}).body["tools"][0]["function"]["name"] == tool_names.changed(name)


def test_calls_without_ids_find_their_results() -> None:
    calls = (ToolCall("", "look", "{}"), ToolCall("", "look", "{}"))
    results = (ToolResult("", (Text("1"),)), ToolResult("", (Text("2"),)))
    out = sent(Request("ours", "m", (Message(Role.USER, (Text("a"),)), Message(Role.ASSISTANT, calls), Message(Role.TOOL, results))))["messages"]
    assert [b["id"] for b in out[1]["content"]] == [b["tool_use_id"] for b in out[2]["content"]]


def test_only_thinking_that_was_kept_here_goes_to_a_provider() -> None:
    parts = (
        ToolCall("t", "look", "{}"),
        Thinking("unsigned"),
        Thinking("foreign", signature="s1"),
        Thinking("own", signature="s2", extra={"restored": True}),
        Thinking(redacted="r", extra={"restored": True}),
    )
    request = Request("ours", "m", (Message(Role.USER, (Text("a"),)), Message(Role.ASSISTANT, parts), Message(Role.TOOL, (ToolResult("t", (Text("r"),)),))))
    blocks = sent(request)["messages"][1]["content"]
    assert blocks[:2] == [{"type": "thinking", "thinking": "own", "signature": "s2"}, {"type": "redacted_thinking", "data": "r"}]
    assert [b["type"] for b in blocks[2:]] == ["tool_use"]


def test_results_carry_pictures_documents_and_failure() -> None:
    result = ToolResult(
        "t", (Text("see"), Image(media_type="image/png", data="AA=="), Image(url="https://example.org/x.png"), Image(data="/9j/x")), is_error=True
    )
    turns = (Message(Role.USER, (Text("a"),)), Message(Role.ASSISTANT, (ToolCall("t", "look", "{}"),)))
    block = sent(Request("ours", "m", (*turns, Message(Role.TOOL, (result,)))))["messages"][2]["content"][0]
    assert block["is_error"] is True
    assert [b["type"] for b in block["content"]] == ["text", "image", "image", "image"]
    assert block["content"][3]["source"]["media_type"] == "image/jpeg"


@pytest.mark.parametrize(
    ("file", "source"),
    [
        (File("file", media_type="application/pdf", data="QUJD", name="a"), {"type": "base64", "media_type": "application/pdf", "data": "QUJD"}),
        (File("file", data="data:application/pdf;base64,QUJD"), {"type": "base64", "media_type": "application/pdf", "data": "QUJD"}),
        (File("file", media_type="text/plain", data="QUJD"), {"type": "text", "media_type": "text/plain", "data": "ABC"}),
        (File("file", url="https://example.org/a.pdf"), {"type": "url", "url": "https://example.org/a.pdf"}),
        (File("audio", media_type="audio/wav", data="QUJD"), None),
        (File("file", name="file-1"), None),
        (File("file", media_type="text/plain", data="é"), None),
        (File("file", media_type="video/mp4", data="QUJD"), None),
    ],
)
def test_files_become_documents_or_are_refused(file: File, source: Any) -> None:
    request = Request("ours", "m", (Message(Role.USER, (file,)),))
    if source is None:
        with pytest.raises(CallerError):
            sent(request)
    else:
        assert sent(request)["messages"][0]["content"][0]["source"] == source


def test_more_than_one_choice_is_refused() -> None:
    with pytest.raises(CallerError, match="n must be 1"):
        sent(a_chat(n=2))


SCHEMA = {
    "type": "object",
    "properties": {
        "age": {"type": "integer", "minimum": 1, "description": "years"},
        "when": {"oneOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "moon", "maxLength": 3}]},
        "list": {"type": "array", "minItems": 2, "items": {"type": "object", "properties": {"minimum": {"type": "string"}}}},
    },
    "required": ["age"],
}


def test_a_promised_shape_goes_along_without_what_is_refused() -> None:
    request = a_chat(response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA, "strict": True}})
    schema = sent(request)["output_config"]["format"]["schema"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["age"] == {"type": "integer", "description": "years (minimum: 1)"}
    assert schema["properties"]["when"]["anyOf"][0] == {"type": "string", "format": "date"}
    assert schema["properties"]["list"]["items"]["properties"] == {"minimum": {"type": "string"}}
    assert schema["properties"]["list"]["items"]["additionalProperties"] is False
    assert dropped(request) == {f"response_format: {word}" for word in ("minimum", "format", "maxLength", "minItems")}
    assert "JSON schema" in sent(request, structured_output=False)["system"]
    assert "JSON object" in sent(a_chat(response_format={"type": "json_object"}))["system"]


def test_a_strict_tool_stays_strict_and_any_other_keeps_its_schema() -> None:
    tools = [{"type": "function", "function": {"name": n, "parameters": SCHEMA, **more}} for n, more in (("a", {"strict": True}), ("b", {}))]
    strict, loose = sent(a_chat(tools=tools))["tools"]
    assert strict["strict"] is True
    assert strict["input_schema"]["additionalProperties"] is False
    assert "strict" not in loose
    assert loose["input_schema"] == SCHEMA


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({"tool_choice": "required"}, {"type": "any"}),
        ({"tool_choice": "none"}, {"type": "none"}),
        ({"tool_choice": {"type": "function", "function": {"name": "a"}}}, {"type": "tool", "name": "a"}),
        ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        ({"parallel_tool_calls": True}, None),
        ({"tool_choice": "required", "parallel_tool_calls": False}, {"type": "any", "disable_parallel_tool_use": True}),
    ],
)
def test_choices_of_tools_are_said_in_this_formats_words(given: Any, written: Any) -> None:
    tools = [{"type": "function", "function": {"name": n}} for n in ("a", "b")]
    assert sent(a_chat(tools=tools, **given)).get("tool_choice") == written
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "b"}}]}}
    out = sent(a_chat(tools=tools, tool_choice=allowed))
    assert [t["name"] for t in out["tools"]] == ["b"]


def test_a_free_form_tool_goes_as_one_field_and_comes_back_raw() -> None:
    tool = {
        "type": "custom",
        "custom": {"name": "patch", "description": "d", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: X"}}},
    }
    request = a_chat(tools=[tool])
    (out,) = sent(request)["tools"]
    assert out["input_schema"]["required"] == ["input"]
    assert "start: X" in out["description"]
    body = {**REPLY, "content": [{"type": "tool_use", "id": "t", "name": "patch", "input": {"input": "*** Begin"}}]}
    assert MESSAGES.read_reply(body, request).parts == (ToolCall("t", "patch", "*** Begin", kind="custom"),)
    call = Message(Role.ASSISTANT, (ToolCall("t", "patch", "*** Begin", kind="custom"),))
    assert sent(Request("ours", "m", (Message(Role.USER, (Text("a"),)), call)))["messages"][1]["content"][0]["input"] == {"input": "*** Begin"}


@pytest.mark.parametrize(
    ("reasoning", "name", "thinking", "effort"),
    [
        (Reasoning(effort="high"), "claude-opus-4-8", {"type": "adaptive"}, "high"),
        (Reasoning(effort="minimal"), "claude-sonnet-5", {"type": "adaptive"}, "low"),
        (Reasoning(budget=3000), "claude-fable-5", {"type": "adaptive"}, "medium"),
        (Reasoning(effort="high", summary="auto"), "claude-opus-5", {"type": "adaptive", "display": "summarized"}, "high"),
        (Reasoning(enabled=False), "claude-opus-5", {"type": "disabled"}, None),
        (Reasoning(effort="none"), "claude-sonnet-4-5-20250929", None, None),
        (Reasoning(effort="low"), "claude-sonnet-4-5-20250929", {"type": "enabled", "budget_tokens": 2048}, None),
        (Reasoning(budget=500, enabled=True), "claude-3-7-sonnet-20250219", {"type": "enabled", "budget_tokens": 1024}, None),
        (Reasoning(enabled=True), "another-model", {"type": "enabled", "budget_tokens": 8192}, None),
        (Reasoning(effort="enormous"), "claude-opus-5", None, None),
    ],
)
def test_thinking_is_asked_for_as_the_model_knows_it(reasoning: Reasoning, name: str, thinking: Any, effort: Any) -> None:
    request = Request("ours", "m", (Message(Role.USER, (Text("a"),)),), reasoning=reasoning)
    out = sent(request, name)
    assert out.get("thinking") == thinking
    assert out.get("output_config", {}).get("effort") == effort


def test_thinking_makes_room_for_itself_or_is_left_out() -> None:
    def asked(**more: Any) -> Request:
        return Request("ours", "m", (Message(Role.USER, (Text("a"),)),), reasoning=Reasoning(effort="high"), **more)

    assert sent(asked(output_limit=4000), "m")["thinking"]["budget_tokens"] == 2000
    assert "thinking" not in sent(asked(output_limit=1500), "m")
    assert dropped(asked(output_limit=1500), "m") == {"reasoning_effort"}
    forced = asked(tools=(Tool("a"),), tool_choice=ToolChoice("required"))
    assert "thinking" not in sent(forced, "m")
    assert "thinking" not in sent(forced, "claude-opus-5")
    assert "thinking" not in sent(asked(), "m", thinking="none")


@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("claude-opus-4-7", False),
        ("claude-sonnet-5", False),
        ("anthropic/claude-opus-4.8", False),
        ("claude-sonnet-4-6", True),
        ("claude-opus-4-20250514", True),
        ("claude-3-5-sonnet-20241022", True),
        ("claude-haiku-4-5", True),
        ("glm-5", True),
    ],
)
def test_what_tunes_goes_only_to_models_that_take_it(name: str, takes: bool) -> None:
    request = a_chat(temperature=1.5, seed=7, presence_penalty=1, stop=["a", " "])
    out = sent(request, name)
    assert out.get("temperature") == (1 if takes else None)
    assert out["stop_sequences"] == ["a"]
    assert dropped(request, name) == {"seed", "presence_penalty", "stop"} | (set() if takes else {"temperature"})
    assert ("temperature" in sent(request, name, sampling=not takes)) is not takes


def test_temperature_and_top_p_never_go_together_nor_beside_thinking() -> None:
    request = a_chat(temperature=0.5, top_p=0.9)
    assert dropped(request) == {"top_p"}
    assert dropped(a_chat(temperature=0.5, reasoning_effort="low")) == {"temperature"}


# ------------------------------------------------------------------ there and back


PLAIN = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12).filter(lambda t: t.strip() == t)
USER_PARTS = st.lists(
    PLAIN.map(Text) | st.just(Image(media_type="image/png", data="AA==")) | st.just(Image(url="https://example.org/x.png")), min_size=1, max_size=3
)
CALLS = st.lists(st.dictionaries(PLAIN, PLAIN | st.integers(-9, 9), max_size=2), max_size=3)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    """What every format can say: system text, users' texts and pictures, texts and calls of the assistant, their results."""
    out = [Message(Role.SYSTEM, (Text(draw(PLAIN)),))] if draw(st.booleans()) else []
    number = 0
    for _ in range(draw(st.integers(1, 3))):
        out.append(Message(Role.USER, tuple(draw(USER_PARTS))))
        calls = [ToolCall(f"c{number + i}", "look", json.dumps(a)) for i, a in enumerate(draw(CALLS))]
        number += len(calls)
        said = (Text(draw(PLAIN)),) if draw(st.booleans()) or not calls else ()
        out.append(Message(Role.ASSISTANT, (*said, *calls)))
        if calls:
            out.append(Message(Role.TOOL, tuple(ToolResult(c.id, (Text(draw(PLAIN)),)) for c in calls)))
    return tuple([*out, Message(Role.USER, tuple(draw(USER_PARTS)))])


def told(messages: tuple[Message, ...]) -> list[Any]:
    """A conversation as what it says: turns of one side that follow each other are one."""
    out: list[Any] = []
    for message in messages:
        side = "user" if message.role is Role.TOOL else message.role.value
        if not out or out[-1][0] != side:
            out.append([side])
        for part in message.parts:
            if isinstance(part, ToolCall):
                out[-1].append((part.id, part.name, json.loads(part.arguments)))
            elif isinstance(part, ToolResult):
                out[-1].append((part.call_id, [p.text for p in part.parts if isinstance(p, Text)]))
            else:
                out[-1].append(part)
    return out


@given(conversations())
def test_what_this_format_can_say_survives_there_and_back(messages: tuple[Message, ...]) -> None:
    body = sent(Request("ours", "m", messages, tools=(Tool("look", parameters={"type": "object"}),)))
    assert told(read(body).messages) == told(messages)


@given(conversations())
def test_a_conversation_survives_the_way_through_chat(messages: tuple[Message, ...]) -> None:
    request = read(sent(Request("ours", "m", messages)))
    chat = CHAT.write_request(request, "m", {}).body
    back = CHAT.read_request(Inbound("/v1/chat/completions", "", {}, chat))
    again = read(sent(back))

    def joined(turns: list[Any]) -> list[Any]:
        # Chat has one text a message where only text stands.
        return [[t[0], "\n\n".join(p.text for p in t[1:] if isinstance(p, Text)), [p for p in t[1:] if not isinstance(p, Text)]] for t in turns]

    assert joined(told(again.messages)) == joined(told(request.messages))


def test_pictures_of_results_are_shown_behind_all_results_in_chat() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    turns = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "look", "input": {}} for i in "xy"]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "x", "content": [picture]},
                {"type": "tool_result", "tool_use_id": "y", "content": "plain"},
                {"type": "text", "text": "go on"},
            ],
        },
    ]
    out = CHAT.write_request(a_request(messages=turns, tools=[LOOK]), "s", {}).body["messages"]
    assert [m["role"] for m in out] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert out[2]["content"]
    assert out[4]["content"] == [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]
    assert out[5]["content"] == "go on"


# ------------------------------------------------------------------ replies


def written(reply: Reply, usage: Usage | None = None, bench: Any = None) -> dict[str, Any]:
    return MESSAGES.write_reply(Answer("msg_2", "bench/core", 5, reply, usage or reply.usage or Usage(2, 1), bench))


def test_a_reply_is_understood() -> None:
    reply = MESSAGES.read_reply(REPLY, a_request())
    assert reply.parts == (Thinking("hm", signature="c2ln"), Text("a cat"), ToolCall("toolu_1", "look", '{"at":"sky"}'))
    assert (reply.stop, reply.finish) == (Stop.TOOLS, "tool_use")
    assert reply.usage == Usage(input=11, output=7, cache_read=5, cache_write=3)
    assert written(reply) == {**REPLY, "model": "bench/core"}
    assert MESSAGES.read_reply(REPLY, a_chat()).raw is None


@pytest.mark.parametrize(
    ("reason", "called", "stop"),
    [
        ("end_turn", False, Stop.END),
        ("end_turn", True, Stop.TOOLS),
        ("tool_use", True, Stop.TOOLS),
        ("tool_use", False, Stop.END),
        ("max_tokens", True, Stop.LENGTH),
        ("model_context_window_exceeded", True, Stop.LENGTH),
        ("stop_sequence", False, Stop.SEQUENCE),
        ("stop_sequence", True, Stop.TOOLS),
        ("pause_turn", True, Stop.TOOLS),
        ("refusal", True, Stop.FILTER),
        ("something_new", False, Stop.END),
        (None, True, Stop.TOOLS),
        (7, False, Stop.END),
    ],
)
def test_stop_reasons_old_and_new(reason: Any, called: bool, stop: Stop) -> None:
    content = [{"type": "tool_use", "id": "t", "name": "f", "input": {}}] if called else [{"type": "text", "text": "a"}]
    reply = MESSAGES.read_reply({**REPLY, "content": content, "stop_reason": reason}, a_chat())
    assert reply.stop is stop
    assert any(isinstance(p, ToolCall) for p in reply.parts) is called


@pytest.mark.parametrize(
    ("parts", "stop", "reason"),
    [
        ((Text("a"),), Stop.END, "end_turn"),
        ((Text("a"),), None, "end_turn"),
        ((Text("a"),), Stop.LENGTH, "max_tokens"),
        ((Text("a"),), Stop.SEQUENCE, "stop_sequence"),
        ((Text("a"),), Stop.FILTER, "refusal"),
        ((Text("a"),), Stop.TOOLS, "end_turn"),
        ((Refusal("no"),), Stop.END, "refusal"),
        ((ToolCall("c", "f", "{}"),), Stop.END, "tool_use"),
        ((ToolCall("c", "f", "{}"),), Stop.TOOLS, "tool_use"),
    ],
)
def test_stop_reasons_in_this_formats_words(parts: Any, stop: Stop | None, reason: str) -> None:
    assert written(Reply(parts, stop))["stop_reason"] == reason


def test_an_answer_of_another_provider_has_all_that_clients_look_for() -> None:
    parts = (
        Thinking("hm"),
        Thinking(redacted="r"),
        Text("hi"),
        ToolCall("", "look", ""),
        ToolCall("c2", "look", "[1"),
        ToolCall("c3", "patch", "*** x", kind="custom"),
    )
    out = written(Reply(parts, Stop.TOOLS), Usage(10, 4, 3, 2, 1), {"panel": "pan_1"})
    assert (out["id"], out["type"], out["role"], out["model"], out["stop_sequence"]) == ("msg_2", "message", "assistant", "bench/core", None)
    assert out["content"][:3] == [
        {"type": "thinking", "thinking": "hm", "signature": ""},
        {"type": "redacted_thinking", "data": "r"},
        {"type": "text", "text": "hi"},
    ]
    assert out["content"][3]["id"].startswith("toolu_")
    assert [b["input"] for b in out["content"][3:]] == [{}, {"arguments": "[1"}, {"input": "*** x"}]
    assert out["usage"] == {
        "input_tokens": 5,
        "cache_creation_input_tokens": 2,
        "cache_read_input_tokens": 3,
        "output_tokens": 4,
        "output_tokens_details": {"thinking_tokens": 1},
    }
    assert out["bench"] == {"panel": "pan_1"}


def test_a_call_that_was_cut_off_is_not_handed_over() -> None:
    out = written(Reply((Text("a"), ToolCall("c", "f", '{"x": "ha')), Stop.LENGTH))
    assert [b["type"] for b in out["content"]] == ["text"]
    assert out["stop_reason"] == "max_tokens"


@pytest.mark.parametrize(
    ("body", "error", "code"),
    [
        ([], Garbage, "upstream_garbage"),
        ("x", Garbage, "upstream_garbage"),
        ({}, Garbage, "upstream_garbage"),
        ({"content": None}, Garbage, "upstream_garbage"),
        ({"content": [], "stop_reason": "end_turn"}, Empty, "empty_response"),
        ({"content": [{"type": "text", "text": ""}]}, Empty, "empty_response"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, UpstreamError, "upstream_overloaded"),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}, UpstreamError, "rate_limit_exceeded"),
        ({"type": "error", "error": {"type": "billing_error", "message": "pay"}}, UpstreamError, "no_credit"),
        ({"type": "error", "error": {"type": "timeout_error", "message": "late"}}, UpstreamError, "upstream_timeout"),
        ({"type": "error", "error": {"type": "api_error", "message": "broken"}}, UpstreamError, "upstream_error"),
        ({"error": "broken"}, UpstreamError, "upstream_error"),
        ({"type": "error"}, UpstreamError, "upstream_error"),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}}, UpstreamError, "context_too_small"),
    ],
)
def test_a_body_that_is_no_answer_says_what_it_is(body: Any, error: type[UpstreamError], code: str) -> None:
    with pytest.raises(error) as caught:
        MESSAGES.read_reply(body, a_chat())
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("usage", "understood"),
    [
        (None, None),
        ({}, None),
        ("many", None),
        ({"input_tokens": 5, "output_tokens": 2}, Usage(5, 2)),
        ({"input_tokens": -5, "output_tokens": "2"}, None),
        ({"input_tokens": 1, "cache_read_input_tokens": 4, "cache_creation_input_tokens": None, "output_tokens": 2}, Usage(5, 2, 4)),
        ({"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 99}}, Usage(0, 9, 0, 0, 9)),
        ({"input_tokens": True, "output_tokens": 1}, Usage(0, 1)),
    ],
)
def test_usage_is_believed_as_far_as_it_makes_sense(usage: Any, understood: Usage | None) -> None:
    assert MESSAGES.read_usage({"usage": usage}) == understood


@given(bent(REPLY) | JUNK)
def test_any_json_is_a_reply_or_an_upstream_error(body: Any) -> None:
    for request in (a_request(), a_chat()):
        try:
            reply = MESSAGES.read_reply(body, request)
        except UpstreamError as error:
            assert error.code  # noqa: PT017
            continue
        out = written(reply)
        assert (out["type"], out["role"]) == ("message", "assistant")
        assert isinstance(out["stop_reason"], str)
        if fits(body):
            orjson.dumps(out)


def test_errors_have_the_shape_that_clients_read() -> None:
    error = CallerError("context_too_small", "No seat can take it.", field="messages", seats=[{"model": "a"}])
    assert MESSAGES.write_error(error) == {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "No seat can take it.",
            "code": "context_too_small",
            "param": "messages",
            "seats": [{"model": "a"}],
        },
    }


@pytest.mark.parametrize(
    ("code", "status", "kind", "as_status"),
    [
        ("missing_key", 401, "authentication_error", 401),
        ("budget_exceeded", 402, "billing_error", 402),
        ("not_allowed", 403, "permission_error", 403),
        ("model_not_found", 404, "not_found_error", 404),
        ("body_too_large", 413, "request_too_large", 413),
        ("unsupported_encoding", 415, "invalid_request_error", 415),
        ("rate_limit_exceeded", 429, "rate_limit_error", 429),
        ("upstream_error", 502, "api_error", 502),
        ("upstream_overloaded", 503, "overloaded_error", 529),
        ("database_unavailable", 503, "api_error", 503),
        ("upstream_timeout", 504, "timeout_error", 504),
    ],
)
def test_each_error_has_its_type_and_status(code: str, status: int, kind: str, as_status: int) -> None:
    error = CallerError(code, "It did not work.", status=status)
    assert MESSAGES.write_error(error)["error"]["type"] == kind
    assert MESSAGES.status_of(error) == as_status


def test_a_whole_answer_can_be_told_piece_by_piece() -> None:
    assert Chunk(redacted="r").has_content
