"""What became of a panel: seats to status, text, dissent and errors. Pure: attempts in, reply out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from health.attempt import Attempt
from health.costs import usd_text
from panels.plan import Plan, Seat
from panels.seating import Hindrance
from wire.conversation import Usage
from wire.errors import CallerError

NO_USAGE = Usage()
ANSWERED = frozenset({"ok", "partial", "truncated"})


@dataclass(frozen=True, slots=True)
class Try:
    """One upstream call of a seat, as the reply tells it."""

    model: str
    status: int | None
    code: str
    seconds: float
    cost_pusd: int | None


@dataclass(frozen=True, slots=True)
class SeatResult:
    """One seat afterwards. Units: `cost_pusd` trillionths of a US dollar, None where unknown; `retry_after_s` as a provider or our limits said."""

    call: str
    position: int
    model: str
    seat: str
    status: str
    seconds: float = 0.0
    ttft_s: float | None = None
    text: str = ""
    finish_reason: str = ""
    usage: Usage = NO_USAGE
    cost_pusd: int | None = 0
    tries: tuple[Try, ...] = ()
    code: str = ""
    message: str = ""
    retry_after_s: float | None = None
    rest: str = ""  # of a seat skipped because it rests: limit, key or overload
    dropped: tuple[str, ...] = ()  # fields of the request that its provider was not sent

    @property
    def answered(self) -> bool:
        return self.status in ANSWERED and bool(self.text)


def result_of(seat: Seat, attempt: Attempt) -> SeatResult:
    """A seat that was called, as its attempt stands now."""
    status, usage, cost = attempt.final_status(), attempt.final_usage(), attempt.cost()
    return SeatResult(
        call=seat.call,
        position=seat.position,
        model=seat.place.alias,
        seat=seat.place.seat,
        status=status,
        seconds=attempt.seconds,
        ttft_s=attempt.ttft_s,
        text=attempt.text,
        finish_reason=attempt.finish,
        usage=usage,
        cost_pusd=cost,
        tries=(Try(seat.place.alias, attempt.http_status, attempt.code, attempt.seconds, cost),),
        code=attempt.code,
        message=attempt.error,
        retry_after_s=attempt.retry_after_s,
        dropped=attempt.dropped,
    )


def skipped(seat: Seat, hindered: Hindrance) -> SeatResult:
    wait = max((hindered.until - datetime.now(UTC)).total_seconds(), 1.0) if hindered.until else None
    return replace(unasked(seat, "skipped", hindered.code, hindered.message, wait), rest=hindered.kind)


def unasked(seat: Seat, status: str, code: str, message: str, retry_after_s: float | None = None) -> SeatResult:
    """A seat that was never called."""
    return SeatResult(seat.call, seat.position, seat.place.alias, seat.place.seat, status, code=code, message=message, retry_after_s=retry_after_s)


def late(seat: Seat, seconds: float, why: str) -> SeatResult:
    """A seat that the panel no longer waits for; its answer is kept when it comes."""
    return SeatResult(
        seat.call, seat.position, seat.place.alias, seat.place.seat, "timeout", seconds=seconds, cost_pusd=None, code="upstream_timeout", message=why
    )


# ------------------------------------------------------------------ the reply


def panel_status(results: Sequence[SeatResult]) -> str:
    if not any(r.answered for r in results):
        return "failed"
    return "complete" if all(r.status == "ok" for r in results) else "degraded"


def heading(result: SeatResult) -> str:
    return f"## {result.model} · {result.seat} · {result.call}"


def seat_text(result: SeatResult) -> str:
    """One seat's part of the message: heading, answer, and what is wrong with it."""
    body = result.text.strip()
    if result.status == "ok":
        return f"{heading(result)}\n\n{body}"
    note = f"*{result.status}{': ' + result.message if result.message else ''}*"
    return f"{heading(result)}\n\n{body}\n\n{note}" if body else f"{heading(result)}\n\n{note}"


def degraded_line(results: Sequence[SeatResult], why: str = "") -> str:
    """ "" for a panel that is whole."""
    wrong = [r for r in results if r.status != "ok"]
    if not wrong and not why:
        return ""
    answered = sum(r.answered for r in results if r.seat != "merger")
    seats = [r for r in results if r.seat != "merger"]
    told = ", ".join(f"{r.model} {r.status}" for r in wrong)
    return f"*Degraded: {answered} of {len(seats)} seats answered{' (' + told + ')' if told else ''}{'; ' + why if why else ''}.*"


def panel_text(results: Sequence[SeatResult], why: str = "") -> str:
    line = degraded_line(results, why)
    parts = [line] if line else []
    return "\n\n".join([*parts, *(seat_text(r) for r in sorted(results, key=lambda r: r.position))])


def seat_data(result: SeatResult) -> dict[str, Any]:
    """One seat as the contract's section 3 shows it."""
    return {
        "call": result.call,
        "model": result.model,
        "seat": result.seat,
        "status": result.status,
        "seconds": round(result.seconds, 3),
        "ttft_seconds": None if result.ttft_s is None else round(result.ttft_s, 3),
        "text": result.text,
        "finish_reason": result.finish_reason or None,
        "usage": usage_data(result.usage),
        "cost_usd": usd_text(result.cost_pusd),
        "tries": [try_data(t) for t in result.tries],
        "error": {"code": result.code or result.status, "message": result.message} if result.code or result.message else None,
    }


def try_data(one: Try) -> dict[str, Any]:
    return {"model": one.model, "status": one.status, "code": one.code or None, "seconds": round(one.seconds, 3), "cost_usd": usd_text(one.cost_pusd)}


def usage_data(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "reasoning_tokens": usage.reasoning,
        "estimated": usage.estimated,
    }


def total_cost(results: Sequence[SeatResult]) -> int | None:
    """A panel sums its seats; one unknown makes the sum unknown."""
    total = 0
    for result in results:
        if result.cost_pusd is None:
            return None
        total += result.cost_pusd
    return total


def total_usage(results: Sequence[SeatResult]) -> Usage:
    return sum((r.usage for r in results), NO_USAGE)


def bench_data(plan: Plan, mode: str, status: str, results: Sequence[SeatResult], seconds: float) -> dict[str, Any]:
    """The `bench` field."""
    return {
        "panel": plan.panel,
        "collection": plan.target.collection.name if plan.target.collection else None,
        "mode": mode,
        "status": status,
        "seats": [seat_data(r) for r in sorted(results, key=lambda r: r.position)],
        "cost_usd": usd_text(total_cost(results)),
        "seconds": round(seconds, 3),
    }


# ------------------------------------------------------------------ when nobody answered


def failed_seats(results: Sequence[SeatResult]) -> list[dict[str, Any]]:
    return [{"call": r.call, "model": r.model, "status": r.status, "code": r.code or r.status, "message": r.message} for r in results]


def failure(results: Sequence[SeatResult]) -> CallerError:
    """The one error of a panel that no seat answered: each seat's model, class and message, the status by what they have in common."""
    listed = failed_seats(results)
    if all(r.status == "skipped" for r in results):
        message = f"No seat can take this request. {told(results)}"
        there = [r for r in results if r.code != "retired"] or list(results)
        # Only what all of them wait for passes with time; of different reasons at least one is the request's own.
        return classed(there, message, listed) if len({family(r) for r in there}) == 1 else CallerError("invalid_request", message, seats=listed)
    asked = [r for r in results if r.status != "skipped"]
    message = f"No seat answered. {told(results)}" if len(results) > 1 else (results[0].message or results[0].status)
    if len({family(r) for r in asked}) > 1:
        return CallerError("upstream_error", message, status=502, seats=listed)
    return classed(asked, message, listed)


def exhausted(results: Sequence[SeatResult]) -> CallerError:
    """The one error of a turn that no candidate took."""
    one = results[0] if len(results) == 1 else None
    message = (one.message or one.status) if one else f"No member answered. {told(results)}"
    able = [r for r in results if r.code not in ("retired", "not_allowed")] or list(results)
    return classed(able, message, failed_seats(results))


def told(results: Sequence[SeatResult]) -> str:
    return "; ".join(f"{r.model}: {r.status}{' (' + r.message + ')' if r.message else ''}" for r in results)


# What all have in common, the HTTP status, and the code where it is another.
COMMON = {
    "limit": (429, "rate_limit_exceeded"),
    "overload": (503, "upstream_overloaded"),
    "timeout": (504, "upstream_timeout"),
    "context_too_small": (400, "context_too_small"),
    "body_too_large": (413, "body_too_large"),
    "invalid_request": (400, "invalid_request"),
    "content_policy": (403, "not_allowed"),
    "not_allowed": (403, "not_allowed"),
    "unfit": (400, "invalid_request"),
    "database_unavailable": (503, "database_unavailable"),
    "cancelled": (409, "cancelled"),
    "empty_response": (502, "empty_response"),
    "upstream_garbage": (502, "upstream_garbage"),
    "upstream_truncated": (502, "upstream_truncated"),
}
UNFIT = frozenset({"no_vision", "no_image_urls", "no_audio", "no_tools", "no_structured_output", "unknown", "retired"})


def family(result: SeatResult) -> str:
    """What kind of failure a seat's is."""
    if result.status == "rate_limited" or result.rest == "limit":
        return "limit"
    if result.code == "upstream_overloaded" or result.rest == "overload":
        return "overload"
    if result.status in ("timeout", "cancelled"):
        return result.status
    return "unfit" if result.code in UNFIT else result.code


def classed(results: Sequence[SeatResult], message: str, listed: list[dict[str, Any]]) -> CallerError:
    """All alike have a status of their own; mixed causes with a known wait are 503, all else is 502."""
    families = {family(r) for r in results}
    waits = [r.retry_after_s for r in results if r.retry_after_s is not None]
    wait = min(waits, default=None)
    if len(families) == 1 and (common := COMMON.get(next(iter(families)))):
        status, code = common
        if status == 400 and code == "invalid_request":
            return CallerError(code, message, seats=listed if len(listed) > 1 else None)
        default = {429: 1.0, 503: 5.0}.get(status)
        return CallerError(code, message, status=status, retry_after_s=wait if wait is not None else default, seats=listed)
    if len(families) > 1 and families <= {"context_too_small", "unfit"}:
        return CallerError("invalid_request", message, seats=listed)
    if len(families) > 1 and wait is not None:
        return CallerError("upstream_overloaded", message, status=503, retry_after_s=wait, seats=listed)
    return CallerError("upstream_error", message, status=502, seats=listed)
