"""How many tokens a text probably is, where nobody counted: for fitting prompts, for reserving, and for calls that broke off."""

from __future__ import annotations

from wire.conversation import File, Image, Request, Text, Thinking, ToolCall, ToolResult, each_part

IMAGE_TOKENS = 1_500  # most providers count 85 to 1,600 for one image; the high end keeps a reservation honest
MESSAGE_TOKENS = 4  # role and separators


def text_tokens(text: str) -> int:
    """About four characters a token in ASCII, about one a token beyond it; never 0 for a text that is there."""
    if not text:
        return 0
    if text.isascii():
        return (len(text) + 3) // 4
    wide = len(text.encode("utf-8", "replace")) - len(text)
    beyond = min(len(text), (wide + 1) // 2)
    return max(1, (len(text) - beyond) // 4 + beyond)


def request_tokens(request: Request) -> int:
    """A request's input, tools and images included."""
    total = 3
    for message in request.messages:
        total += MESSAGE_TOKENS
        for part in each_part(message.parts):
            if isinstance(part, Text | Thinking):
                total += text_tokens(part.text)
            elif isinstance(part, Image):
                total += IMAGE_TOKENS
            elif isinstance(part, File):
                total += max(1, len(part.data) // 6)
            elif isinstance(part, ToolCall):
                total += text_tokens(part.name) + text_tokens(part.arguments) + MESSAGE_TOKENS
            elif isinstance(part, ToolResult):
                total += MESSAGE_TOKENS
    for tool in request.tools:
        total += text_tokens(tool.name) + text_tokens(tool.description) + text_tokens(str(dict(tool.parameters or {}))) + MESSAGE_TOKENS
    return total
