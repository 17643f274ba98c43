"""How route mode knows a conversation again: what clients repeat, in every shape they repeat it in."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from access.caller import LOOPBACK, Caller
from panels import memory
from panels.memory import IDLE, Known, Memory, Trail, commit_pins, forget_idle, is_foreign, items_of, look_up, pinned, restored, scope_of, trail_of
from panels.models import Pin
from wire import dialects
from wire.conversation import Message, Part, Request, Role, Text, Thinking, Tool, ToolCall, ToolResult
from wire.dialects import Inbound

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCOPE = "7|core|"
LOOK = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
CALL_ID = "call_8sJd93kfL2mQ"


def chat(messages: list[Any], headers: Any = None, **more: Any) -> tuple[Request, dict[str, str]]:
    body = {"model": "bench/core:route", "messages": messages, **more}
    return dialects.get("openai-chat").read_request(Inbound("/v1/chat/completions", "", headers or {}, body)), headers or {}


def messages(messages: list[Any], headers: Any = None, **more: Any) -> tuple[Request, dict[str, str]]:
    body = {"model": "bench/core:route", "max_tokens": 9, "messages": messages, **more}
    return dialects.get("anthropic-messages").read_request(Inbound("/v1/messages", "", headers or {}, body)), headers or {}


def responses(given: Any, headers: Any = None, **more: Any) -> tuple[Request, dict[str, str]]:
    body = {"model": "bench/core:route", "input": given, **more}
    return dialects.get("openai-responses").read_request(Inbound("/v1/responses", "", headers or {}, body)), headers or {}


class Store:
    """What stands in the table, without one."""

    def __init__(self) -> None:
        self.known: dict[str, Known] = {}

    def learn(self, asked: tuple[Request, dict[str, str]], model: str, *parts: Part, scope: str = SCOPE, at: datetime = NOW) -> list[dict[str, Any]]:
        request, headers = asked
        items = items_of(trail_of(request, headers, scope), request, parts, model, self.known, scope, at)
        for item in items:
            self.known[item["digest"]] = Known(item["kind"], item["model"], item["payload"], datetime.fromisoformat(item["used_at"]))
        return items

    def member(self, asked: tuple[Request, dict[str, str]], scope: str = SCOPE) -> str | None:
        return pinned(trail_of(*asked, scope), self.known)


@pytest.fixture
def store() -> Store:
    return Store()


HI = [{"role": "user", "content": "hi"}]
OTHER = [{"role": "user", "content": "something else entirely"}]


# ------------------------------------------------------------------ marks


def claude(session: str) -> dict[str, Any]:
    """The JSON that Claude Code writes into its requests."""
    return {"metadata": {"user_id": json.dumps({"device_id": "d", "account_uuid": "", "session_id": session})}}


@pytest.mark.parametrize(
    "header", ["x-session-id", "x-session-affinity", "session-id", "session_id", "thread-id", "x-conversation-id", "x-claude-code-session-id"]
)
def test_a_session_header_is_known_again(store: Store, header: str) -> None:
    store.learn(messages(HI, {header: "s1"}, tools=[{"name": "look", "input_schema": {"type": "object"}}]), "a")
    assert store.member(messages(OTHER, {header: "s1"})) == "a"
    assert store.member(messages(OTHER, {header: "s2"})) is None


@pytest.mark.parametrize("field", ["prompt_cache_key", "conversation"])
def test_what_a_body_calls_its_conversation_is_known_again(store: Store, field: str) -> None:
    store.learn(responses("hi", tools=[{"type": "function", "name": "look"}], **{field: "c1"}), "a")
    assert store.member(responses("other", **{field: "c1"})) == "a"
    assert store.member(responses("other", **{field: "c2"})) is None


def test_a_chat_clients_cache_key_is_known_again(store: Store) -> None:
    store.learn(chat(HI, tools=[LOOK], prompt_cache_key="k"), "a")
    assert store.member(chat(OTHER, prompt_cache_key="k")) == "a"


def test_claude_codes_header_and_metadata_mean_the_same_session(store: Store) -> None:
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    store.learn(messages(HI, tools=tools, **claude("s1")), "a")
    assert store.member(messages(OTHER, {"x-claude-code-session-id": "s1"})) == "a"
    assert store.member(messages(OTHER, **claude("s1"))) == "a"


def test_a_sub_agent_has_a_member_of_its_own_and_does_not_move_its_sessions(store: Store) -> None:
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    store.learn(messages(HI, {"x-claude-code-session-id": "s1"}, tools=tools), "a")
    agent = {"x-claude-code-session-id": "s1", "x-claude-code-agent-id": "g1"}
    assert store.member(messages(OTHER, agent)) is None
    store.learn(messages(OTHER, agent, tools=tools), "b")
    assert store.member(messages([{"role": "user", "content": "more"}], agent)) == "b"
    assert store.member(messages([{"role": "user", "content": "more"}], {"x-claude-code-session-id": "s1"})) == "a"


def test_the_clients_own_mark_wins_over_a_header_and_a_header_over_the_body(store: Store) -> None:
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    store.learn(messages(HI, {"x-claude-code-session-id": "s1"}, tools=tools), "by mark")
    store.learn(messages(OTHER, {"x-session-id": "h1"}, tools=tools), "by header")
    store.learn(chat(OTHER, tools=[LOOK], prompt_cache_key="k"), "by body")
    assert store.member(messages(OTHER, {"x-session-id": "h1", "x-claude-code-session-id": "s1"})) == "by mark"
    assert store.member(chat([{"role": "user", "content": "new"}], {"x-session-id": "h1"}, prompt_cache_key="k")) == "by header"


@pytest.mark.parametrize("asked", [chat(HI, {"x-session-id": "s1"}), messages([*HI], {"x-session-id": "s1"}, system="Write a title.")])
def test_a_title_call_does_not_choose_the_member(store: Store, asked: Any) -> None:
    store.learn(asked, "a")
    assert store.member(chat(OTHER, {"x-session-id": "s1"}, tools=[LOOK])) is None


def test_nor_does_it_move_the_member(store: Store) -> None:
    store.learn(chat(OTHER, {"x-session-id": "s1"}, tools=[LOOK]), "a")
    store.learn(chat(HI, {"x-session-id": "s1"}), "b")
    assert store.member(chat([{"role": "user", "content": "third"}], {"x-session-id": "s1"})) == "a"


def test_a_chat_without_tools_is_bound_by_its_first_history(store: Store) -> None:
    store.learn(chat(HI, {"x-session-id": "s1"}), "a")
    grown = [*HI, {"role": "assistant", "content": "hello"}, {"role": "user", "content": "more"}]
    assert store.member(chat(grown, {"x-session-id": "s1"})) == "a"
    store.learn(chat(grown, {"x-session-id": "s1"}), "a")
    assert store.member(chat(OTHER, {"x-session-id": "s1"})) == "a"


# ------------------------------------------------------------------ tool calls


def test_an_id_of_a_call_that_went_out_here_is_known_again(store: Store) -> None:
    store.learn(chat(HI, tools=[LOOK]), "a", ToolCall(CALL_ID, "look", "{}"))
    called = {"role": "assistant", "tool_calls": [{"id": CALL_ID, "type": "function", "function": {"name": "look", "arguments": "{}"}}]}
    cut = [{"role": "user", "content": "(summary)"}, called, {"role": "tool", "tool_call_id": CALL_ID, "content": "x"}]
    assert store.member(chat(cut)) == "a"
    assert store.member(messages([{"role": "user", "content": "(summary)"}, {"role": "assistant", "content": [tool_use(CALL_ID)]}])) == "a"


def tool_use(call_id: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "look", "input": given}


def test_the_latest_call_wins(store: Store) -> None:
    store.learn(chat(HI, tools=[LOOK]), "a", ToolCall(CALL_ID, "look", "{}"))
    store.learn(chat(OTHER, tools=[LOOK]), "b", ToolCall("call_2222222222", "look", "{}"))
    turns = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": [tool_use(CALL_ID)]},
        {"role": "assistant", "content": [tool_use("call_2222222222")]},
    ]
    assert store.member(messages(turns)) == "b"


@pytest.mark.parametrize("call_id", ["call_0", "0", "functions.look:0", "c1", "tool_call_12"])
def test_ids_that_are_counted_belong_to_the_conversation_they_stand_in(store: Store, call_id: str) -> None:
    """Some servers count their calls from 0 in each conversation: nobody may get another's member, let alone its reasoning."""
    store.learn(chat(HI, tools=[LOOK]), "a", Thinking("secret", signature="s"), ToolCall(call_id, "look", "{}"))
    called = {"role": "assistant", "tool_calls": [{"id": call_id, "type": "function", "function": {"name": "look", "arguments": '{"another": 1}'}}]}
    result = {"role": "tool", "tool_call_id": call_id, "content": "x"}
    assert store.member(chat([{"role": "system", "content": "changed"}, *HI, called, result])) == "a"
    other, headers = chat([*OTHER, called, result])
    assert store.member((other, headers)) is None
    assert restored(other, trail_of(other, headers, SCOPE), store.known, "a") is other


# ------------------------------------------------------------------ histories


def test_a_history_is_known_however_a_client_writes_it_again(store: Store) -> None:
    first = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    called = {"id": "x1", "type": "function", "function": {"name": "look", "arguments": '{"b": 1, "a": [1, 2]}'}}
    second = [*first, {"role": "assistant", "content": None, "tool_calls": [called]}, {"role": "tool", "tool_call_id": "x1", "content": "a cat"}]
    store.learn(chat(first), "a")
    store.learn(chat(second), "a")
    rewritten = {"id": "other", "type": "function", "function": {"name": "look", "arguments": '{"a":[1,2],"b":1}'}}
    third = [
        {"role": "developer", "content": "Be brief. "},
        {"role": "user", "content": "hi", "name": "ann"},
        {"role": "assistant", "content": "", "reasoning_content": "dropped or not", "tool_calls": [rewritten]},
        {"role": "tool", "tool_call_id": "other", "content": [{"type": "text", "text": "a cat"}]},
        {"role": "assistant", "content": "It is a cat."},
        {"role": "user", "content": "and now?"},
    ]
    assert store.member(chat(third)) == "a"


def test_moved_cache_marks_change_nothing(store: Store) -> None:
    marked = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
    store.learn(messages([{"role": "user", "content": [marked]}], system=[{**marked, "text": "Be brief."}]), "a")
    later = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}, {"role": "user", "content": [{**marked, "text": "more"}]}]
    assert store.member(messages(later, system="Be brief.")) == "a"


def test_the_longest_known_prefix_wins(store: Store) -> None:
    branch = [*HI, {"role": "assistant", "content": "hello"}]
    store.learn(chat(HI), "a")
    store.learn(chat([*branch, {"role": "user", "content": "left"}]), "b")
    store.learn(chat([*branch, {"role": "user", "content": "right"}]), "c")
    for turn, member in (("left", "b"), ("right", "c"), ("neither", "a")):
        asked = chat([*branch, {"role": "user", "content": turn}, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "on"}])
        assert store.member(asked) == member


def test_another_beginning_is_another_conversation(store: Store) -> None:
    store.learn(chat(HI), "a")
    assert store.member(chat([{"role": "system", "content": "x"}, *HI])) is None
    assert store.member(chat([{"role": "user", "content": "hi!"}])) is None


def test_pictures_count_as_what_they_show(store: Store) -> None:
    def shown(data: str) -> list[Any]:
        return [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}]}]

    store.learn(chat(shown("QUJD")), "a")
    again = [*shown("QUJD"), {"role": "assistant", "content": "a cat"}, {"role": "user", "content": "sure?"}]
    assert store.member(chat(again)) == "a"
    assert store.member(chat(shown("QUJE"))) is None


def test_a_long_history_is_looked_for_from_its_end() -> None:
    turns = [m for i in range(200) for m in ({"role": "user", "content": f"u{i}"}, {"role": "assistant", "content": f"a{i}"})]
    trail = trail_of(*chat([*turns, {"role": "user", "content": "last"}]), SCOPE)
    assert len(trail.prefixes) == memory.PREFIXES
    assert trail.prefixes[0] == trail.whole


# ------------------------------------------------------------------ scope and age


def test_everything_is_within_one_key_and_collection(store: Store) -> None:
    key = replace(LOOPBACK, kind="key", key_id=7)
    scopes = [scope_of(key, "core"), scope_of(key, "other"), scope_of(replace(key, key_id=8), "core"), scope_of(Caller("user", "ann", frozenset()), "core")]
    assert len(set(scopes)) == 4
    asked = chat(HI, {"x-session-id": "s1"}, tools=[LOOK])
    store.learn(asked, "a", ToolCall(CALL_ID, "look", "{}"), scope=scopes[0])
    assert [store.member(asked, scope=s) for s in scopes] == ["a", None, None, None]


def test_what_nobody_came_back_to_for_a_day_is_forgotten() -> None:
    trail = trail_of(*chat(HI), SCOPE)
    stored = {trail.whole: Known("prefix", "a", "", NOW)}
    assert Memory().known(trail.digests, stored, NOW + IDLE - timedelta(seconds=1))
    assert not Memory().known(trail.digests, stored, NOW + IDLE)


def test_what_this_process_wrote_itself_is_known_before_the_table_knows_it() -> None:
    request, headers = chat(HI)
    trail, mine = trail_of(request, headers, SCOPE), Memory()
    mine.note(items_of(trail, request, (), "b", {}, SCOPE, NOW))
    assert pinned(trail, mine.known(trail.digests, {}, NOW)) == "b"
    older = {trail.whole: Known("prefix", "a", "", NOW - timedelta(minutes=1))}
    newer = {trail.whole: Known("prefix", "c", "", NOW + timedelta(minutes=1))}
    assert pinned(trail, mine.known(trail.digests, older, NOW)) == "b"
    assert pinned(trail, mine.known(trail.digests, newer, NOW)) == "c"


def test_what_stands_there_already_is_not_written_each_turn(store: Store) -> None:
    asked = chat(HI, {"x-session-id": "s1"}, tools=[LOOK])
    assert len(store.learn(asked, "a")) == 2
    assert store.learn(asked, "a", at=NOW + timedelta(minutes=9)) == []
    assert len(store.learn(asked, "a", at=NOW + timedelta(minutes=11))) == 2
    assert len(store.learn(asked, "b", at=NOW + timedelta(minutes=12))) == 2


def test_digests_tell_nothing_of_what_they_stand_for(store: Store) -> None:
    items = store.learn(chat(HI, {"x-session-id": "very-secret-session"}, tools=[LOOK]), "a", Text("secret words"))
    assert "secret" not in json.dumps(items)


# ------------------------------------------------------------------ thinking


def foreign(store: Store, asked: tuple[Request, dict[str, str]], model: str) -> list[bool]:
    trail = trail_of(*asked, SCOPE)
    return [is_foreign(p, trail, store.known, model) for m in asked[0].messages for p in m.parts if isinstance(p, Thinking)]


def thought(**block: Any) -> tuple[Request, dict[str, str]]:
    return messages([*HI, {"role": "assistant", "content": [block, {"type": "text", "text": "ok"}]}, {"role": "user", "content": "more"}])


def test_thinking_is_known_by_its_signature_its_sealed_block_or_its_text(store: Store) -> None:
    store.learn(chat(HI), "a", Thinking("hm", signature="s1"), Thinking(redacted="r1"))
    for asked in (
        thought(type="thinking", thinking="changed by the client", signature="s1"),
        thought(type="redacted_thinking", data="r1"),
        chat([*HI, {"role": "assistant", "content": "ok", "reasoning_content": "hm"}, {"role": "user", "content": "more"}]),
    ):
        assert foreign(store, asked, "a") == [False]
        assert foreign(store, asked, "b") == [True]


def test_thinking_of_unknown_origin_is_not_foreign(store: Store) -> None:
    assert foreign(store, thought(type="thinking", thinking="hm", signature="elsewhere"), "b") == [False]


def turn_with_calls(*ids: str, thinking: str = "") -> tuple[Request, dict[str, str]]:
    calls = [{"id": i, "type": "function", "function": {"name": "look", "arguments": "{}"}} for i in ids]
    said = {"role": "assistant", "content": None, "tool_calls": calls, **({"reasoning_content": thinking} if thinking else {})}
    return chat([*HI, said, *[{"role": "tool", "tool_call_id": i, "content": "x"} for i in ids]])


@pytest.mark.parametrize("echoed", ["", "hm"])
def test_reasoning_that_a_client_cannot_echo_is_put_back_before_its_calls(store: Store, echoed: str) -> None:
    first, second = "call_1111111111", "call_2222222222"
    said = (
        Thinking("hm", signature="s1"),
        Thinking(redacted="r1"),
        ToolCall(first, "look", "{}", signature="g1"),
        ToolCall(second, "look", "{}", signature="g2"),
    )
    store.learn(chat(HI, tools=[LOOK]), "a", *said)
    request, headers = turn_with_calls(first, second, thinking=echoed)
    parts = restored(request, trail_of(request, headers, SCOPE), store.known, "a").messages[1].parts
    assert [type(p) for p in parts] == [Thinking, Thinking, ToolCall, ToolCall]
    assert [(p.signature, p.redacted) for p in parts[:2] if isinstance(p, Thinking)] == [("s1", ""), ("", "r1")]
    assert [p.signature for p in parts[2:] if isinstance(p, ToolCall)] == ["g1", "g2"]
    assert restored(request, trail_of(request, headers, SCOPE), store.known, "b") is request


# ------------------------------------------------------------------ the table


def item(name: str, model: str, at: datetime = NOW, payload: str = "") -> dict[str, Any]:
    return {"digest": name, "kind": "mark", "model": model, "payload": payload, "used_at": at.isoformat()}


def commit(*items: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        commit_pins(cursor, items)


@pytest.mark.django_db
def test_the_latest_word_stands_in_the_table_whoever_writes_first() -> None:
    later = NOW + timedelta(seconds=1)
    commit(item("one", "a", NOW, "kept"), item("two", "b", later))
    commit(item("one", "c", later), item("two", "d", NOW))
    known = look_up(["one", "two", "three"])
    assert {name: (k.model, k.payload) for name, k in known.items()} == {"one": ("c", "kept"), "two": ("b", "")}


@pytest.mark.django_db
def test_idle_pins_are_deleted() -> None:
    commit(item("old", "a", NOW - IDLE - timedelta(seconds=1)), item("new", "a", NOW))
    forget_idle(NOW)
    assert list(Pin.objects.values_list("digest", flat=True)) == ["new"]


def test_a_request_of_ours_without_anything_to_know_it_by_has_an_empty_trail() -> None:
    request = Request("openai-chat", "x", (Message(Role.ASSISTANT, (Text("hi"), ToolCall("", "look", ""))), Message(Role.SYSTEM, ())), tools=(Tool("look"),))
    trail = trail_of(request, {}, SCOPE)
    assert isinstance(trail, Trail)
    assert trail.pins == []
    assert trail_of(replace(request, messages=(Message(Role.TOOL, (ToolResult("", ()),)),)), {}, SCOPE).prefixes
