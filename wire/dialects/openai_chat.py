"""OpenAI's chat completions, both ways.

Source: https://platform.openai.com/docs/api-reference/chat. Servers that call themselves compatible differ in ways this file bears with:
heartbeats as data, errors inside a 200, a finish reason before the last text, usage on a chunk of its own or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from wire import tool_names
from wire.conversation import (
    Message,
    Reasoning,
    Reply,
    Request,
    Role,
    Stop,
    Text,
    Thinking,
    ToolCall,
    Usage,
)
from wire.dialects import Answer, Dialect, Inbound, Outbound, Route, StreamReader, StreamWriter
from wire.dialects._openai_chat_in import (
    read_choice,
    read_format,
    read_message,
    read_sampling,
    read_tools,
    read_unread,
)
from wire.dialects._openai_chat_out import message_out, whole_choice, write_body
from wire.dialects._openai_chat_reply import FINISHES, STOPS, error_inside, error_out, reply_parts, usage_in, usage_out
from wire.dialects._openai_chat_stream import ChatReader, ChatWriter
from wire.errors import CallerError, Empty, Garbage
from wire.fields import array, missing, model_name, obj, optional_bool, optional_int, optional_text


class OpenAIChat(Dialect):
    name = "openai-chat"
    routes = (Route("POST", "/v1/chat/completions", "ask"), Route("POST", "/chat/completions", "ask"))

    # ------------------------------------------------------------------ towards our callers

    def read_request(self, inbound: Inbound) -> Request:
        body = obj(inbound.body, "the body")
        name = model_name(body)
        if "messages" not in body:
            raise missing("messages")
        messages = array(body["messages"], "messages")
        if not messages:
            raise CallerError("invalid_request", "messages must hold at least one message.", field="messages")
        stream_options = body.get("stream_options")
        limit = optional_int(body, "max_completion_tokens", least=1)
        older = optional_int(body, "max_tokens", least=1)
        return Request(
            dialect=self.name,
            model=name,
            messages=tuple([read_message(m, f"messages[{i}]") for i, m in enumerate(messages)]),
            stream=bool(optional_bool(body, "stream")),
            output_limit=limit if limit is not None else older,
            sampling=read_sampling(body),
            format=read_format(body.get("response_format")),
            tools=read_tools(body.get("tools")),
            tool_choice=read_choice(body.get("tool_choice")),
            reasoning=Reasoning(effort=effort) if (effort := optional_text(body, "reasoning_effort")) else None,
            parallel_tool_calls=optional_bool(body, "parallel_tool_calls"),
            choices=optional_int(body, "n", least=1, most=128) or 1,
            raw=body,
            unread=read_unread(body),
            marks=tuple([f"prompt_cache_key:{mark}" for mark in (optional_text(body, "prompt_cache_key"),) if mark]),
            usage_wanted=stream_options is not None and bool(optional_bool(obj(stream_options, "stream_options"), "include_usage", "stream_options.")),
        )

    def write_reply(self, answer: Answer) -> dict[str, Any]:
        raw = answer.reply.raw
        if isinstance(raw, dict) and isinstance(raw.get("choices"), list):
            body = {
                **raw,
                "id": raw.get("id") or answer.id,
                "object": "chat.completion",
                "created": raw.get("created") or answer.created_s,
                "model": answer.model,
            }
            body["choices"] = [whole_choice(c, i) for i, c in enumerate(raw["choices"])]
            if not isinstance(raw.get("usage"), dict):
                body["usage"] = usage_out(answer.usage)
        else:
            body = {
                "id": answer.id,
                "object": "chat.completion",
                "created": answer.created_s,
                "model": answer.model,
                "choices": [
                    {"index": 0, "message": message_out(answer.reply.parts), "logprobs": None, "finish_reason": FINISHES[answer.reply.stop or Stop.END]}
                ],
                "usage": usage_out(answer.usage),
            }
        if answer.bench is not None:
            body["bench"] = answer.bench
        return body

    def stream_writer(self, request: Request, answer_id: str, created_s: int) -> StreamWriter:
        return ChatWriter(request.model, answer_id, created_s, request.usage_wanted)

    def write_error(self, error: CallerError) -> dict[str, Any]:
        return error_out(error)

    # ------------------------------------------------------------------ towards providers that speak it

    def write_request(self, request: Request, served_name: str, quirks: Mapping[str, Any]) -> Outbound:
        dropped: tuple[str, ...] = ()
        if request.dialect == self.name and request.raw:
            body = dict(request.raw)
        else:
            body, dropped = write_body(request)
        body["model"] = served_name
        body["stream"] = request.stream
        if not body.get("tools"):
            for field in ("tools", "tool_choice", "parallel_tool_calls"):
                body.pop(field, None)
        if request.stream and quirks.get("stream_options", True):
            given = body.get("stream_options")
            body["stream_options"] = {**given, "include_usage": True} if isinstance(given, dict) else {"include_usage": True}
        else:
            body.pop("stream_options", None)
        if not request.stream:
            del body["stream"]
        if (param := quirks.get("token_param")) and request.output_limit is not None:
            for field in ("max_tokens", "max_completion_tokens"):
                body.pop(field, None)
            body[param] = request.output_limit
        if role := quirks.get("system_role"):
            body["messages"] = [{**m, "role": role} if m.get("role") in ("system", "developer") else m for m in body["messages"]]
        for field, value in (quirks.get("defaults") or {}).items():
            body.setdefault(field, value)
        return Outbound(body, dropped=dropped)

    def read_reply(self, body: Any, request: Request) -> Reply:
        if not isinstance(body, dict):
            raise Garbage("The endpoint answered with JSON that is no chat completion.")
        if error := error_inside(body):
            raise error
        choices = body.get("choices")
        if not isinstance(choices, list):
            raise Garbage("The endpoint answered with JSON that is no chat completion.")
        if not choices or not isinstance(choices[0], dict):
            raise Empty("The endpoint answered without a choice.")
        first = choices[0]
        message = first.get("message") or first.get("delta")
        word = first.get("finish_reason")
        finish: str = word if isinstance(word, str) else ""
        parts = reply_parts(message if isinstance(message, dict) else {})
        if request.dialect != self.name and (names := tool_names.back(request)):
            parts = tuple([replace(p, name=names.get(p.name, p.name)) if isinstance(p, ToolCall) else p for p in parts])
        usage = usage_in(body.get("usage"))
        stop = STOPS.get(finish, Stop.END)
        if not parts and stop in (Stop.END, Stop.TOOLS):
            raise Empty("The endpoint answered with nothing in it.")
        return Reply(parts=parts, stop=stop, finish=finish or "stop", usage=usage, raw=body if request.dialect == self.name else None)

    def read_usage(self, body: Mapping[str, Any]) -> Usage | None:
        return usage_in(body.get("usage"))

    def stream_reader(self, request: Request) -> StreamReader:
        same = request.dialect == self.name
        return ChatReader(keep_raw=same, names=None if same else tool_names.back(request))

    def without_thinking(self, request: Request, foreign: Callable[[Thinking], bool]) -> Request:
        cut = super().without_thinking(request, foreign)
        if cut is request or not request.raw:
            return cut
        messages = []
        for message in request.raw["messages"]:
            gone = [f for f in ("reasoning_content", "reasoning") if isinstance(message.get(f), str) and foreign(Thinking(text=message[f]))]
            messages.append({k: v for k, v in message.items() if k not in gone} if gone else message)
        return replace(cut, raw={**request.raw, "messages": messages})

    def with_user_turn(self, request: Request, text: str) -> Request:
        raw = {**request.raw, "messages": [*request.raw["messages"], {"role": "user", "content": text}]} if request.raw else request.raw
        return replace(request, messages=(*request.messages, Message(Role.USER, (Text(text),))), raw=raw)


DIALECT = OpenAIChat()
