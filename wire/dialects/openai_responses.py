"""OpenAI's Responses, both ways.

Source: https://platform.openai.com/docs/api-reference/responses. What is shared with chat completions (images, error shapes) is read by that file's functions;
items, tools and streams have files of their own beside this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from wire import tool_names
from wire.conversation import Format, Message, Reasoning, Refusal, Reply, Request, Role, Sampling, Stop, Text, Thinking, Tool, ToolCall
from wire.dialects import Answer, Dialect, Inbound, Outbound, Route, StreamReader, StreamWriter
from wire.dialects._openai_chat_reply import error_out
from wire.dialects._responses_items import OURS, Items, read_output, read_reasoning, write_output
from wire.dialects._responses_out import ENCRYPTED, as_demanded, sendable, with_system_role, write_body
from wire.dialects._responses_reader import ResponsesReader
from wire.dialects._responses_reply import ending, error_in, response_head, stop_of, usage_in, usage_out
from wire.dialects._responses_tools import read_choice, read_tools, shown
from wire.dialects._responses_writer import ResponsesWriter
from wire.errors import CallerError, Empty, Garbage
from wire.fields import array, missing, model_name, obj, optional_bool, optional_int, optional_number, optional_text, text, wrong

PATH = "/v1/responses"
PREVIOUS = "previous_response_id"
# What is understood here, or means nothing to an answer: all else that another format's provider is asked without is named as dropped.
UNDERSTOOD = frozenset(
    {
        *("model", "input", "instructions", "stream", "max_output_tokens", "temperature", "top_p", "tools", "tool_choice", "parallel_tool_calls"),
        *("reasoning", "text", "include", "store", PREVIOUS, "background", "prompt", "metadata", "client_metadata", "user", "safety_identifier"),
        *("stream_options", "prompt_cache_key", "truncation"),
    }
)
HEADERS = ("openai-beta",)
COUNTED = frozenset({"input", "instructions", "model", "parallel_tool_calls", "reasoning", "text", "tool_choice", "tools", "truncation"})


class OpenAIResponses(Dialect):
    name = "openai-responses"
    routes = (
        Route("POST", PATH, "ask"),
        Route("POST", "/responses", "ask"),
        Route("POST", f"{PATH}/input_tokens", "count"),
        Route("GET", f"{PATH}/", "get", prefix=True),
        Route("DELETE", f"{PATH}/", "delete", prefix=True),
    )
    id_prefix = "resp"

    # ------------------------------------------------------------------ towards our callers

    def refers_to(self, inbound: Inbound) -> str:
        """The response that the request goes on from: named as such, in the path, or by the last of its items that is only referred to."""
        if inbound.body is None:
            name = inbound.path.removeprefix(f"{PATH}/").split("/")[0]
            return name if name.startswith(f"{self.id_prefix}_") else ""
        if not isinstance(inbound.body, dict):
            return ""
        if isinstance(previous := inbound.body.get(PREVIOUS), str) and previous:
            return previous
        items = inbound.body.get("input")
        for item in reversed(items if isinstance(items, list) else []):
            if isinstance(item, dict) and item.get("type") == "item_reference" and (ours := OURS.fullmatch(str(item.get("id")))):
                return f"{self.id_prefix}_{ours[1]}"
        return ""

    def read_request(self, inbound: Inbound) -> Request:
        body = obj(inbound.body, "the body")
        name = model_name(body)
        if optional_bool(body, "background"):
            raise CallerError("invalid_request", "background is not offered: leave it out, and stream the answer if it takes long.", field="background")
        given = input_items(body)
        earlier = inbound.earlier if isinstance(inbound.earlier, dict) else {}
        kept = earlier.get("items")
        kept = kept if isinstance(kept, list) else []
        previous = optional_text(body, PREVIOUS)
        if previous and not earlier:
            raise CallerError(
                "previous_response_not_found",
                "There is no response kept under this previous_response_id for this key. Send the whole conversation as input.",
                field=PREVIOUS,
            )
        tools = read_tools(body.get("tools"))
        choice = read_choice(body.get("tool_choice"), tools)
        items = Items({i["id"]: i for i in kept if isinstance(i, dict) and isinstance(i.get("id"), str)})
        before = items.read(kept, "previous") if previous else ()
        items.messages = []
        said = items.read(given, "input")
        if not (before or said):
            raise CallerError("invalid_request", "input must hold at least one message.", field="input")
        instructions = optional_text(body, "instructions")
        lead = (Message(Role.SYSTEM, (Text(instructions),)),) if instructions else ()
        whole = [*([continued(i) for i in kept] if previous else []), *resolved(given, items)]
        raw = {**body, "input": whole} if previous or items.resolved else body
        reasoning, summary = read_reasoning_wish(body.get("reasoning"))
        form, verbosity = read_format(body.get("text"))
        return Request(
            dialect=self.name,
            model=name,
            messages=(*lead, *before, *said),
            stream=bool(optional_bool(body, "stream")),
            output_limit=optional_int(body, "max_output_tokens", least=1),
            sampling=Sampling(temperature=optional_number(body, "temperature"), top_p=optional_number(body, "top_p")),
            format=form,
            tools=once(tools, items.tools),
            tool_choice=choice,
            reasoning=reasoning,
            parallel_tool_calls=optional_bool(body, "parallel_tool_calls"),
            raw=raw,
            usage_wanted=True,
            headers={k: inbound.headers[k] for k in HEADERS if k in inbound.headers} or None,
            marks=read_marks(body),
            operation="count" if inbound.path.endswith("/input_tokens") else "ask",
            unread=(*items.unread, *summary, *verbosity, *read_unread(body)),
            only_here=(*items.only_here, *(("prompt",) if body.get("prompt") is not None else ())),
        )

    def write_count(self, tokens: int) -> dict[str, Any]:
        return {"object": "response.input_tokens", "input_tokens": tokens}

    def write_reply(self, answer: Answer) -> dict[str, Any]:
        request = answer.request
        known = shown(request.tools) if request and request.dialect == self.name else {}
        body = response_head(request, answer.id, answer.model, answer.created_s)
        raw = answer.reply.raw
        if isinstance(raw, dict) and isinstance(raw.get("output"), list):
            own = {name: body[name] for name in ("id", "object", "created_at", "model", PREVIOUS, "store")}
            body = {**body, **raw, **own}
            if not isinstance(body.get("status"), str):
                body["status"] = "completed"
        else:
            cut = answer.reply.stop in (Stop.LENGTH, Stop.FILTER)
            body |= {**ending(answer.reply.stop), "output": write_output(answer.reply.parts, answer.id, known, cut)}
        if not isinstance(body.get("usage"), dict):
            body["usage"] = usage_out(answer.usage)
        if answer.bench is not None:
            body["bench"] = answer.bench
        return body

    def stream_writer(self, request: Request, answer_id: str, created_s: int) -> StreamWriter:
        known = shown(request.tools) if request.dialect == self.name else {}
        return ResponsesWriter(response_head(request, answer_id, request.model, created_s), known)

    def to_keep(self, request: Request, answer: Answer) -> tuple[str, Any] | None:
        raw = request.raw or {}
        if raw.get("store") is False or request.dialect != self.name:
            return None
        reply = self.write_reply(replace(answer, request=request))
        return answer.id, {"items": [*input_items(raw), *reply["output"]], "input": len(input_items(raw)), "reply": reply}

    def marks_of(self, request: Request, answer_id: str) -> tuple[str, ...]:
        return () if (request.raw or {}).get("store") is False else (f"{PREVIOUS}:{answer_id}",)

    def write_kept(self, kept: Any, path: str) -> dict[str, Any]:
        rest = path.removeprefix(f"{PATH}/").partition("/")[2]
        if not rest:
            return dict(kept["reply"])
        if rest != "input_items":
            raise CallerError("not_found", "Of a response there is itself and its input_items.", status=404)
        items = list(reversed(kept["items"][: kept["input"]]))
        ids = [i.get("id") for i in items]
        return {"object": "list", "data": items, "first_id": ids[0] if ids else None, "last_id": ids[-1] if ids else None, "has_more": False}

    def write_forgotten(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "response", "deleted": True}

    def write_error(self, error: CallerError) -> dict[str, Any]:
        return error_out(error)

    # ------------------------------------------------------------------ towards providers that speak it

    def write_request(self, request: Request, served_name: str, quirks: Mapping[str, Any]) -> Outbound:
        own = request.dialect == self.name
        dropped: tuple[str, ...] = ()
        if own and request.raw:
            body = {**request.raw, "input": [i for item in input_items(request.raw) for i in sendable(item)]}
            if isinstance(request.raw.get("input"), str):
                body["input"] = request.raw["input"]
            if role := quirks.get("system_role"):
                body["input"] = with_system_role(body["input"], role)
        else:
            body, dropped = write_body(request, str(quirks.get("system_role") or "system"), own)
        for name in (PREVIOUS, "background"):
            body.pop(name, None)
        body["model"] = served_name
        if request.stream:
            body["stream"] = True
        else:
            body.pop("stream", None)
            body.pop("stream_options", None)
        if not body.get("tools"):
            for name in ("tools", "tool_choice", "parallel_tool_calls"):
                body.pop(name, None)
        for name, value in (quirks.get("defaults") or {}).items():
            body.setdefault(name, value)
        if quirks.get("input_list") and isinstance(body.get("input"), str):
            body["input"] = input_items(body)
        refused = as_demanded(body, request, quirks)
        return Outbound(body, dict(request.headers or {}) if own else {}, tuple(dict.fromkeys([*dropped, *refused])))

    def write_count_request(self, request: Request, served_name: str, quirks: Mapping[str, Any]) -> Outbound | None:
        try:
            outbound = self.write_request(request, served_name, quirks)
        except CallerError:
            return None
        return replace(outbound, body={k: v for k, v in outbound.body.items() if k in COUNTED})

    def read_count(self, body: Any) -> int | None:
        tokens = body.get("input_tokens") if isinstance(body, dict) else None
        return tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0 else None

    def read_reply(self, body: Any, request: Request) -> Reply:
        if not isinstance(body, dict):
            raise Garbage("The endpoint answered with JSON that is no response.")
        if error := error_in(body):
            raise error
        output = body.get("output")
        if body.get("status") in ("failed", "cancelled"):
            raise Garbage(f"The endpoint's response is {body['status']} and says no more.")
        if not isinstance(output, list) or body.get("status") in ("queued", "in_progress"):
            raise Garbage("The endpoint answered with JSON that is no finished response.")
        parts = read_output(output)
        if request.dialect != self.name and (names := tool_names.back(request)):
            parts = tuple([replace(p, name=names.get(p.name, p.name)) if isinstance(p, ToolCall) else p for p in parts])
        called = any(isinstance(p, ToolCall) for p in parts)
        stop, finish = stop_of(body, called, any(isinstance(p, Refusal) for p in parts))
        if not parts and stop is Stop.END:
            raise Empty("The endpoint answered with nothing in it.")
        return Reply(parts, stop, finish, usage_in(body.get("usage")), body if request.dialect == self.name else None)

    def read_usage(self, body: Mapping[str, Any]) -> Any:
        return usage_in(body.get("usage"))

    def stream_reader(self, request: Request) -> StreamReader:
        same = request.dialect == self.name
        return ResponsesReader(keep_raw=same, names=None if same else tool_names.back(request))

    def without_thinking(self, request: Request, foreign: Callable[[Thinking], bool]) -> Request:
        cut = super().without_thinking(request, foreign)
        if cut is request or not request.raw:
            return cut
        kept = [i for i in input_items(request.raw) if not (isinstance(i, dict) and i.get("type") == "reasoning" and foreign(read_reasoning(i)))]
        return replace(cut, raw={**request.raw, "input": kept})

    def with_user_turn(self, request: Request, text: str) -> Request:
        turn = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        raw = {**request.raw, "input": [*input_items(request.raw), turn]} if request.raw else request.raw
        return replace(request, messages=(*request.messages, Message(Role.USER, (Text(text),))), raw=raw)


DIALECT = OpenAIResponses()


# ------------------------------------------------------------------ requests in


def input_items(body: Mapping[str, Any]) -> list[Any]:
    """The input as items. Errors: CallerError where it is neither text nor a list."""
    given = body.get("input")
    if given is None:
        if body.get(PREVIOUS) or body.get("prompt") is not None:
            return []
        raise missing("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": given}]}]
    if not isinstance(given, list):
        raise wrong("input", "a string or a list of items", given)
    return given


def once(given: Iterable[Tool], found: Iterable[Tool]) -> tuple[Tool, ...]:
    """The tools that were given, and those that stand among the items: a search may have found one of them again."""
    known = {t.name for t in given}
    return (*given, *{t.name: t for t in found if t.name not in known}.values())


def read_marks(body: Mapping[str, Any]) -> tuple[str, ...]:
    conversation = body.get("conversation")
    named = conversation.get("id") if isinstance(conversation, dict) else conversation
    if named is not None:
        named = text(named, "conversation")
    found = (("prompt_cache_key", optional_text(body, "prompt_cache_key")), ("conversation", named), (PREVIOUS, optional_text(body, PREVIOUS)))
    return tuple([f"{name}:{value}" for name, value in found if value])


def read_unread(body: Mapping[str, Any]) -> list[str]:
    """The fields that nothing was understood of, by name."""
    found = [name for name, value in body.items() if name not in UNDERSTOOD and value is not None]
    if body.get("truncation") not in (None, "disabled"):
        found.append("truncation")
    include = body.get("include")
    if include is not None and any(i != ENCRYPTED for i in array(include, "include")):
        found.append("include")
    return [name[:60] for name in found if name.isprintable() and name.isascii()]


def read_reasoning_wish(value: Any) -> tuple[Reasoning | None, tuple[str, ...]]:
    """How hard to think, and what of it only tunes."""
    if value is None:
        return None, ()
    given = obj(value, "reasoning")
    effort = optional_text(given, "effort", "reasoning.")
    summary = optional_text(given, "summary", "reasoning.") or optional_text(given, "generate_summary", "reasoning.")
    wish = Reasoning(effort=effort, enabled=False if effort == "none" else None, summary=summary) if effort or summary else None
    return wish, ("reasoning.summary",) if summary else ()


def read_format(value: Any) -> tuple[Format | None, tuple[str, ...]]:
    """The promised shape, and what of the field only tunes."""
    if value is None:
        return None, ()
    given = obj(value, "text")
    unread = ("text.verbosity",) if optional_text(given, "verbosity", "text.") else ()
    if given.get("format") is None:
        return None, unread
    form = obj(given["format"], "text.format")
    kind = text(form.get("type"), "text.format.type")
    if kind == "json_object":
        return Format("json"), unread
    if kind != "json_schema":
        return None, unread
    inner = form.get("json_schema")
    form, path = (inner, "text.format.json_schema") if isinstance(inner, dict) and "schema" not in form else (form, "text.format")
    schema = form.get("schema")
    if schema is None:
        raise missing(f"{path}.schema")
    return Format("schema", obj(schema, f"{path}.schema"), optional_text(form, "name", f"{path}."), optional_bool(form, "strict", f"{path}.")), unread


def resolved(given: list[Any], items: Items) -> list[Any]:
    """The items with what they refer to in its place, where it is known here."""
    return [
        continued(items.resolved[i["id"]]) if isinstance(i, dict) and i.get("type") == "item_reference" and i.get("id") in items.resolved else i for i in given
    ]


def continued(item: Any) -> Any:
    """A kept item as a later request says it again: without the id that only its own provider may know it by."""
    return {k: v for k, v in item.items() if k not in ("id", "status")} if isinstance(item, dict) else item
