"""Estimates of tokens: near for prose, never nothing for something."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.conversation import File, Image, Message, Request, Role, Text, Thinking, Tool, ToolCall, ToolResult
from wire.estimate import IMAGE_TOKENS, request_tokens, text_tokens


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", 0, 0),
        ("a", 1, 1),
        ("The quick brown fox jumps over the lazy dog.", 9, 13),
        ("x" * 4000, 1000, 1000),
        ("Скажи мне, как дела сегодня?", 12, 28),
        ("请告诉我今天的天气怎么样", 9, 18),
        ("🙂🙂🙂🙂", 4, 8),
        ("naïve café", 3, 5),
    ],
)
def test_a_text_counts_about_what_tokenizers_count(text: str, least: int, most: int) -> None:
    assert least <= text_tokens(text) <= most


@given(st.text(max_size=200))
def test_no_text_that_is_there_counts_nothing(text: str) -> None:
    assert text_tokens(text) >= (1 if text else 0)
    assert text_tokens(text) <= 2 * len(text) + 1


@given(st.text(max_size=80), st.text(max_size=80))
def test_more_text_is_never_less(one: str, two: str) -> None:
    assert text_tokens(one + two) >= max(text_tokens(one), text_tokens(two)) - 1


def ask(*messages: Message, tools: tuple[Tool, ...] = ()) -> int:
    return request_tokens(Request("openai-chat", "m", messages, tools=tools))


def test_every_kind_of_part_counts() -> None:
    empty = ask(Message(Role.USER, ()))
    for part in (
        Text("hello"),
        Thinking("hm"),
        Image(url="https://example.org/a.png"),
        File("file", data="QUJD" * 100),
        ToolCall("1", "weather", "{}"),
        ToolResult("1", (Text("sunny"),)),
    ):
        assert ask(Message(Role.USER, (part,))) > empty
    assert ask(Message(Role.USER, (ToolResult("1", (Image(data="QUJD"),)),))) >= IMAGE_TOKENS
    assert ask(Message(Role.USER, ()), tools=(Tool("weather", "tells it", {"type": "object"}),)) > empty
