"""The conversation's values: frozen, and true about what they hold."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire import conversation
from wire.conversation import File, Image, Message, Reply, Request, Role, Text, Thinking, ToolResult, Usage

USAGES = st.builds(Usage, *[st.integers(0, 10**6)] * 5, st.booleans())


def test_every_value_is_frozen_and_slotted() -> None:
    values = [v for v in vars(conversation).values() if dataclasses.is_dataclass(v)]
    assert len(values) > 12
    for value in values:
        assert value.__dataclass_params__.frozen, value
        assert hasattr(value, "__slots__"), value


@given(USAGES, USAGES, USAGES)
def test_usage_adds_up_in_any_order_and_stays_estimated_once_it_is(a: Usage, b: Usage, c: Usage) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert (a + b).estimated == (a.estimated or b.estimated)
    assert (a + b).input == a.input + b.input
    assert a + Usage() == a


def ask(*parts: conversation.Part) -> Request:
    return Request("openai-chat", "m", (Message(Role.USER, parts),))


def test_images_and_files_are_found_inside_tool_results_too() -> None:
    image, file = Image(data="QUJD"), File("audio", data="QUJD")
    assert ask(Text("a"), image).has_images
    assert ask(ToolResult("1", (Text("a"), ToolResult("2", (image,))))).has_images
    assert ask(ToolResult("1", (file,))).has_files
    assert not ask(Text("a"), file).has_images
    assert not ask(Text("a"), image).has_files


def test_a_text_is_its_text_parts_only() -> None:
    parts = (Thinking("hm"), Text("a"), Image(data="x"), Text("b"))
    assert Message(Role.ASSISTANT, parts).text == "ab"
    assert Reply(parts, None).text == "ab"


def test_a_request_shows_no_body_in_its_repr() -> None:
    assert "secret" not in repr(Request("openai-chat", "m", (), raw={"messages": "secret"}))
    with pytest.raises(dataclasses.FrozenInstanceError):
        ask().model = "x"  # type: ignore[misc]
