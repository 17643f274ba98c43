"""Ollama's own API, both ways: chat and generate, one JSON object a line.

Source: https://github.com/ollama/ollama/blob/main/docs/api.md. It gives tool calls their arguments as objects and ids only of late, takes images by
their bytes only, and streams unless told not to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from wire.conversation import Message, Reply, Request, Role, Stop, Text, Thinking, Usage
from wire.dialects import Answer, Dialect, Inbound, Outbound, Route, StreamReader, StreamWriter
from wire.dialects._ollama_in import ONLY_GENERATE, Messages, read_format, read_prompt, read_sampling, read_think, read_tools, read_unread
from wire.dialects._ollama_out import message_out, write_body, write_message
from wire.dialects._ollama_stream import LineReader, LineWriter, error_out, head, parts_of, raise_error, read_line, stop_of, tail, usage_in
from wire.errors import CallerError, Empty, Garbage
from wire.fields import missing, model_name, obj, optional_bool, optional_int

GENERATE = "/api/generate"


class Ollama(Dialect):
    name = "ollama"
    routes = (Route("POST", "/api/chat", "ask"), Route("POST", GENERATE, "ask"))
    id_prefix = "oll"
    stream_types = ("application/x-ndjson", "application/ndjson", "application/jsonl")
    takes_image_urls = False

    # ------------------------------------------------------------------ towards our callers

    def read_request(self, inbound: Inbound) -> Request:
        body = obj(inbound.body, "the body")
        name = model_name(body)
        generates = inbound.path.endswith(GENERATE)
        if not generates and "messages" not in body:
            raise missing("messages")
        options = obj(body["options"], "options") if body.get("options") is not None else {}
        limit = optional_int(options, "num_predict", "options.")
        return Request(
            dialect=self.name,
            model=name,
            messages=read_prompt(body) if generates else Messages().read(body["messages"]),
            stream=optional_bool(body, "stream") is not False,
            output_limit=limit if limit is not None and limit > 0 else None,
            sampling=read_sampling(options),
            format=read_format(body.get("format")),
            tools=() if generates else read_tools(body.get("tools")),
            reasoning=read_think(body.get("think")),
            raw=body,
            usage_wanted=True,
            unread=read_unread(body, options),
            stream_form=GENERATE if generates else "",
        )

    def write_reply(self, answer: Answer) -> dict[str, Any]:
        raw = answer.reply.raw
        end = tail(answer.reply.stop, answer.usage)
        if answer.request is not None and answer.request.stream_form:
            body: dict[str, Any] = {"response": answer.reply.text}
            if thought := "".join(p.text for p in answer.reply.parts if isinstance(p, Thinking)):
                body["thinking"] = thought
        elif isinstance(raw, dict) and isinstance(raw.get("message"), dict):
            body = dict(raw)
            end["done_reason"] = raw.get("done_reason") or end["done_reason"]
        else:
            body = {"message": message_out(answer.reply.parts)}
        body = {**head(answer.model, answer.created_s), **body, **end, "model": answer.model}
        if answer.bench is not None:
            body["bench"] = answer.bench
        return body

    def stream_writer(self, request: Request, answer_id: str, created_s: int) -> StreamWriter:
        return LineWriter(request.model, created_s, bool(request.stream_form))

    def write_error(self, error: CallerError) -> dict[str, Any]:
        return error_out(error)

    # ------------------------------------------------------------------ towards providers that speak it

    def write_request(self, request: Request, served_name: str, quirks: Mapping[str, Any]) -> Outbound:
        if request.choices > 1:
            raise CallerError("invalid_request", "n must be 1: this provider gives one answer a call. Ask several times.", field="n")
        dropped: tuple[str, ...] = ()
        if request.dialect == self.name and request.raw:
            body = {k: v for k, v in request.raw.items() if not (request.stream_form and k in ONLY_GENERATE)}
            if request.stream_form:
                body["messages"] = [m for message in request.messages for m in write_message(message, {})]
            if not body.get("tools"):
                body.pop("tools", None)
        else:
            body, dropped = write_body(request, quirks)
        body["model"], body["stream"] = served_name, request.stream
        for field, value in (quirks.get("defaults") or {}).items():
            body.setdefault(field, value)
        return Outbound(body, dropped=dropped)

    def read_reply(self, body: Any, request: Request) -> Reply:
        if not isinstance(body, dict):
            raise Garbage("The endpoint answered with JSON that is no Ollama reply.")
        raise_error(body)
        if not isinstance(body.get("message"), dict) and not isinstance(body.get("response"), str):
            raise Garbage("The endpoint answered with JSON that is no Ollama reply.")
        chunk = read_line(body, 0, custom_tools(request))
        parts, stop = parts_of(chunk), stop_of(body, bool(chunk.tools))
        if not parts and stop is Stop.END:
            raise Empty("The endpoint answered with nothing in it.")
        raw = body if request.dialect == self.name and not request.stream_form else None
        return Reply(parts, stop, str(body.get("done_reason") or "stop"), usage_in(body), raw)

    def read_usage(self, body: Mapping[str, Any]) -> Usage | None:
        return usage_in(body)

    def stream_reader(self, request: Request) -> StreamReader:
        return LineReader(keep_raw=request.dialect == self.name and not request.stream_form, custom=custom_tools(request))

    # ------------------------------------------------------------------ changes to a request

    def without_thinking(self, request: Request, foreign: Callable[[Thinking], bool]) -> Request:
        cut = super().without_thinking(request, foreign)
        if cut is request or not request.raw:
            return cut
        messages = []
        for message in request.raw["messages"]:
            thought = message.get("thinking")
            gone = isinstance(thought, str) and thought and foreign(Thinking(text=thought))
            messages.append({k: v for k, v in message.items() if k != "thinking"} if gone else message)
        return replace(cut, raw={**request.raw, "messages": messages})

    def with_user_turn(self, request: Request, text: str) -> Request:
        raw = request.raw
        if raw and isinstance(raw.get("messages"), list):
            raw = {**raw, "messages": [*raw["messages"], {"role": "user", "content": text}]}
        return replace(request, messages=(*request.messages, Message(Role.USER, (Text(text),))), raw=raw)


DIALECT = Ollama()


def custom_tools(request: Request) -> frozenset[str]:
    """The names of free-form tools, which this format knows as functions with one field."""
    return frozenset(t.name for t in request.tools if t.kind == "custom")
