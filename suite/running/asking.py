"""One question down the gateway's own road, its answer taken as values instead of bytes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from access.caller import Caller
from panels.gateway import Gateway
from panels.outcome import SeatResult
from panels.plan import PREFIX
from panels.serve import serve
from panels.snapshot import Snapshot
from panels.turn import Turn
from suite.api.problems import Unprocessable, Wrong
from suite.grading.answers import visible
from suite.grading.contract import Call, Output, Question
from suite.running.subjects import Subject
from wire import dialects
from wire.conversation import Request, Stop, Text, ToolCall
from wire.dialects import Answer, Dialect, Inbound
from wire.errors import CallerError
from wire.jsontext import scrubbed

PURPOSE = "suite"
LATE = "task_duration"
# What a subject's params may set. The rest of a request is the task's.
PARAMS = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "reasoning_effort", "seed", "stop", "frequency_penalty", "presence_penalty")


class Suite(Dialect):
    """Hands the answer over as it is."""

    name = "suite"
    id_prefix = "smp"

    def write_reply(self, answer: Answer) -> dict[str, Any]:
        return {"answer": answer}

    def write_error(self, error: CallerError) -> dict[str, Any]:
        return {"error": error}


SUITE = Suite()


class Tray:
    """Takes a turn's whole reply."""

    def __init__(self) -> None:
        self.started = False
        self.last_write = 0.0
        self.answer: Answer | None = None
        self.headers: dict[str, str] = {}

    async def whole(self, status: int, headers: Sequence[tuple[str, str]], body: Any, content_type: str = "application/json") -> None:
        self.started, self.answer, self.headers = True, body["answer"], dict(headers)

    async def start(self, status: int, headers: Sequence[tuple[str, str]], content_type: str) -> None:
        raise AssertionError("a sample is answered whole")

    async def write(self, data: bytes) -> None:
        raise AssertionError("a sample is answered whole")

    async def end(self) -> None:
        raise AssertionError("a sample is answered whole")


@dataclass(frozen=True, slots=True)
class Said:
    """What a subject answered, or why it did not.

    Shape: `error` is set where nothing came that can be graded; its `retry_after_s` says when to try again, where that is known. `seats` are a panel's own.
    Units: `seconds` from asking to the answer, without waiting for our own limits.
    """

    output: Output
    finish_reason: str = ""
    is_truncated: bool = False
    is_refused: bool = False
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_pusd: int | None = 0
    calls: tuple[str, ...] = ()
    panel: str = ""
    seats: tuple[SeatResult, ...] = ()
    error: CallerError | None = None


Closing = Callable[[Said], Mapping[str, Any]]


def request_of(subject: Subject, question: Question, params: Mapping[str, Any]) -> Request:
    """Makes the request that the gateway would read of an OpenAI chat body. Half a character, which no body can hold, is asked as U+FFFD."""
    body: dict[str, Any] = {"model": subject.asked_as, "messages": list(question.messages)}
    if question.tools:
        body["tools"] = list(question.tools)
    if question.response_format:
        body["response_format"] = dict(question.response_format)
    body |= {name: value for name, value in params.items() if name in PARAMS}
    return read(body)


def read(body: Mapping[str, Any]) -> Request:
    return dialects.get("openai-chat").read_request(Inbound("/v1/chat/completions", "", {}, orjson.loads(orjson.dumps(scrubbed(body)))))


def look_at_params(params: Mapping[str, Any] | None) -> None:
    """Refuses settings that no request could carry: one that is left out in silence would be measured as if it held. Errors: Unprocessable."""
    given = params or {}
    if wrongs := [Wrong(f"/sut/params/{name}", "unknown_field", "is none that a run sets.") for name in given if name not in PARAMS]:
        raise Unprocessable("unknown_field", f"sut.params has {', '.join(PARAMS)}.", wrongs)
    try:
        read({"model": "any", "messages": [{"role": "user", "content": "any"}], **given})
    except CallerError as error:
        where = f"/sut/params/{error.field.partition('[')[0]}" if error.field else "/sut/params"
        raise Unprocessable("invalid_request", f"sut.params: {error.message}", [Wrong(where, "invalid", error.message)]) from None


async def ask(
    gateway: Gateway,
    snapshot: Snapshot,
    caller: Caller,
    request: Request,
    request_id: str,
    purpose: str = PURPOSE,
    within_s: float | None = None,
    closing: Closing | None = None,
    stops: Sequence[str] = (),
) -> Said:
    """Asks once and waits for the whole answer. Failures are values: whoever asked decides whether to ask again.

    Shape: `closing` is called with an answer at the moment when its call is recorded, and gives what stands in the same outbox line: what it makes of the
    answer is kept with what the answer cost, or neither is. `stops` end what the subject says, not what it thinks before.
    Units: `within_s` seconds from the call's going out, which waits for our own limits precede.
    """
    began = time.monotonic()
    tray = Tray()
    turn = Turn(gateway, SUITE, caller, request, snapshot, request_id, tray, began)
    turn.purpose = purpose
    said: Said | None = None

    def beside(answer: Answer) -> Mapping[str, Any]:
        nonlocal said
        said = answered(gathered(turn, None), answer, stops)
        return closing(said) if closing else {}

    turn.beside = beside
    try:
        if within_s is None:
            await serve(turn)
        else:
            await within(turn, within_s)
    except CallerError as refused:
        if said is None:
            return gathered(turn, refused)
    except TimeoutError:
        if said is None:
            late = CallerError(LATE, f"There was no answer within {within_s:.1f} s.", status=504)
            return replace(gathered(turn, late), cost_pusd=None)
    return said if said is not None else gathered(turn, None)


async def within(turn: Turn, seconds: float) -> None:
    """Serves a turn within a time that begins when its call goes out; a panel's, whose seats go out one by one, at once. Errors: TimeoutError, CallerError."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as deadline:
        if turn.request.model.startswith(PREFIX):
            deadline.reschedule(loop.time() + seconds)
        else:
            turn.goes_out = lambda: deadline.reschedule(loop.time() + seconds)
        await serve(turn)


def gathered(turn: Turn, error: CallerError | None) -> Said:
    """Sums up what a turn's calls came to. A single seat's own seconds are without what it waited for; a panel's are those of its slowest way."""
    results = tuple(turn.results)
    costs = [r.cost_pusd for r in results]
    seconds = results[0].seconds if len(results) == 1 and results[0].tries else turn.upstream_s
    return Said(
        Output(""),
        seconds=seconds,
        input_tokens=sum(r.usage.input for r in results),
        output_tokens=sum(r.usage.output for r in results),
        reasoning_tokens=sum(r.usage.reasoning for r in results),
        cost_pusd=None if None in costs else sum(cost or 0 for cost in costs),
        calls=tuple(dict.fromkeys([r.call for r in results if r.tries])),
        panel=turn.panel,
        seats=results,
        error=error,
    )


def stops_of(subject: Subject, params: dict[str, Any]) -> tuple[str, ...]:
    """Takes the words at which an answer ends out of a request: a provider would stop at them while a model still thinks aloud. Of a panel they stay there."""
    if subject.kind == "collection" or "stop" not in params:
        return ()
    value = params.pop("stop")
    return tuple(word for word in (value if isinstance(value, list) else [value]) if isinstance(word, str) and word)


def answered(said: Said, answer: Answer, stops: Sequence[str] = ()) -> Said:
    """Reads an answer's words, up to the first that ends it."""
    reply = answer.reply
    text = "".join([part.text for part in reply.parts if isinstance(part, Text)])
    calls = tuple([Call(part.name, part.arguments) for part in reply.parts if isinstance(part, ToolCall)])
    seen, broke_off = visible(text)
    end = min((at for word in stops if (at := seen.find(word)) >= 0), default=-1)
    return replace(
        said,
        output=Output(seen if end < 0 else seen[:end], calls),
        finish_reason=(reply.finish or str(reply.stop)) if end < 0 else "stop",
        is_truncated=end < 0 and (reply.stop is Stop.LENGTH or broke_off),
        is_refused=reply.stop in (Stop.FILTER, Stop.REFUSAL),
    )
