"""One small question to one model in the cheapest form that it takes, each call on record: what probes, speed and drift have in common.

form ─▶ calls.ask ─▶ Probe row ─▶ ok: the form is remembered
  ▲                      │ refused in words that another form would please, or no room for an answer
  └──────────────────────┘
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from catalog import providers
from catalog.roster import Model
from health import calls, faults, probe_forms
from health.attempt import Attempt
from health.models import Attempt as Row
from health.models import ModelHealth, Probe
from health.probe_forms import Form
from health.resting import LIMIT

TIMEOUT_S = 60.0
MESSAGE_LENGTH = 500
ANSWER_LENGTH = 2000


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What became of one question.

    Shape: `outcome` is ok, failed or unknown, `fault` whose it was (see `health.faults`); `attempt` is the last call's ledger id, empty where none went out:
    then `retry_at` says when one may. `text` is the answer. Units: `cost_pusd` of all `calls` it took, None where a price is unknown.
    """

    model: str
    kind: str
    outcome: str
    fault: str = ""
    attempt: str = ""
    status: str = ""
    http_status: int | None = None
    code: str = ""
    message: str = ""
    latency_ms: int | None = None
    ttft_ms: int | None = None
    output_tokens: int = 0
    tokens_per_s: float | None = None
    cost_pusd: int | None = 0
    calls: int = 0
    text: str = ""
    retry_at: datetime | None = None
    seen: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_ok(self) -> bool:
        return self.outcome == faults.OK


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. Shape: `kind` as a Probe row has it, `prompt` names one of several. Units: `words_tokens` what a good answer takes."""

    kind: str
    text: str
    words_tokens: int = 1
    prompt: str = ""
    stream: bool = False
    temperature: float | None = None
    keeps_answer: bool = False


WORD = Question("word", "Reply with the word OK.")
CONFIRM = Question("confirm", "Reply with the word OK.")


def put(
    model: Model,
    question: Question,
    *,
    purpose: str,
    judge: str,
    batch: str = "",
    minds_rests: bool = True,
    stop: threading.Event = calls.NEVER,
    timeout_s: float = TIMEOUT_S,
) -> ProbeResult:
    """Asks one question, in another form where the first is refused. For a thread of the queue. Errors: DatabaseAway."""
    form = known_form(model)
    tried: set[Form] = set()
    cost: int | None = 0
    result = ProbeResult(model.alias, question.kind, faults.UNKNOWN)
    for count in range(1, probe_forms.MOST_TRIES + 1):
        tried.add(form)
        quirked = replace(model, quirks={**model.quirks, "token_param": form.limit_name}) if form.limit_name else model
        dialect = providers.get(model.endpoint.kind).dialect
        request = probe_forms.request_of(
            form, dialect, model.served_name, question.text, question.words_tokens, model.output_limit, question.stream, question.temperature
        )
        name = request_name(batch, question)
        asked = calls.ask(quirked, request, purpose=purpose, judge=judge, timeout_s=timeout_s, batch=name, minds_rests=minds_rests, stop=stop)
        if asked.attempt is None:
            held = held_back(model, question, asked)
            return replace(held, cost_pusd=cost, calls=count - 1)
        result, following = read(question, form, asked.attempt, asked.reply.raw if asked.reply else None)
        note(question, result, asked.attempt)
        cost = None if cost is None or result.cost_pusd is None else cost + result.cost_pusd
        result = replace(result, cost_pusd=cost, calls=count)
        if following is None or following in tried:
            break
        if stop.is_set():
            return replace(result, retry_at=datetime.now(UTC))
        form = following
    remember(model, result, form)
    return result


def known_form(model: Model) -> Form:
    kept = ModelHealth.objects.filter(pk=model.alias).values_list("probe_form", flat=True).first()
    reasons = model.facts.get("reasoning")
    return probe_forms.remembered(kept or {}, reasons if isinstance(reasons, bool) else None)


def held_back(model: Model, question: Question, asked: calls.Asked) -> ProbeResult:
    """A call that did not go out, since somebody rests or a limit of ours is used up."""
    if asked.rest:
        fault = faults.LIMIT if asked.rest.kind == LIMIT else faults.KEY if asked.rest.scope.startswith("endpoint:") else faults.SERVER
        message = f"It rests until {asked.rest.until:%Y-%m-%d %H:%M} UTC: {asked.rest.reason}"
        return ProbeResult(model.alias, question.kind, faults.UNKNOWN, fault, status="resting", message=message[:MESSAGE_LENGTH], retry_at=asked.rest.until)
    wait_s = asked.denied.wait_s if asked.denied else 60.0
    never = asked.denied is not None and asked.denied.never
    message = "One call alone exceeds a limit of the roster." if never else f"A limit of the roster is used up for {wait_s:.0f} s."
    retry_at = None if never else datetime.now(UTC) + timedelta(seconds=wait_s)
    return ProbeResult(model.alias, question.kind, faults.UNKNOWN, faults.LIMIT, status="limited", message=message, retry_at=retry_at)


def read(question: Question, form: Form, attempt: Attempt, raw: Any) -> tuple[ProbeResult, Form | None]:
    """What a call came to, and the form to try next where another may do better."""
    row = attempt.row()
    judged = faults.judged(row["status"], row["http_status"], row["code"], row["error"])
    following: Form | None = None
    if judged.fault == faults.REQUEST:
        following = probe_forms.after_refusal(form, row["error"], question.temperature is not None)
    elif lacks_room(row, attempt.text):
        following = probe_forms.with_more_room(form)
        judged = faults.Judged(faults.UNKNOWN, faults.REQUEST) if following else faults.Judged(faults.FAILED, faults.SERVER)
    usage = attempt.final_usage()
    seen: dict[str, Any] = (
        {"finish": printable(row["finish_reason"]), "estimated": usage.estimated, "input_tokens": usage.input} if judged.outcome == faults.OK else {}
    )
    if isinstance(raw, Mapping):
        seen |= {name: printable(said)[:100] for name, field_ in SERVED if isinstance(said := raw.get(field_), str) and said}
    result = ProbeResult(
        model=row["model"],
        kind=question.kind,
        outcome=judged.outcome,
        fault=judged.fault,
        attempt=row["id"],
        status=row["status"],
        http_status=row["http_status"],
        code=row["code"],
        message=printable(row["error"]),
        latency_ms=row["latency_ms"],
        ttft_ms=row["ttft_ms"],
        output_tokens=row["output_tokens"],
        tokens_per_s=tokens_per_s(attempt) if question.stream else None,
        cost_pusd=row["cost_pusd"],
        text=attempt.text,
        seen=seen,
    )
    return result, following


# Under which name and build an answer says that it was served.
SERVED = (("served_as", "model"), ("served_as", "modelVersion"), ("fingerprint", "system_fingerprint"))


def lacks_room(row: Mapping[str, Any], text: str) -> bool:
    """An answer that was over before a word of it came: thinking took all the room. Some say so by an empty answer."""
    if text.strip():
        return False
    return bool(row["status"] == "truncated" or (row["code"] == "empty_response" and row["output_tokens"] > 0))


def tokens_per_s(attempt: Attempt) -> float | None:
    """Output tokens a second after the first; None where the answer came in one piece, or was too short to tell."""
    if attempt.first is None or attempt.ended is None:
        return None
    usage = attempt.final_usage()
    # Thinking that was not streamed was over before the first token came.
    tokens = usage.output - (0 if attempt.thought else usage.reasoning) - 1
    seconds = attempt.ended - attempt.first
    return round(tokens / seconds, 1) if tokens >= 4 and seconds > 0.001 else None


def request_name(batch: str, question: Question) -> str:
    """What a call's ledger row says of its errand and question, so that whoever goes on after a death knows which questions are paid for."""
    return f"{batch}/{question.kind}{question.prompt and ':' + question.prompt}"[:80] if batch else ""


def result_of_row(question: Question, row: Row, judged: faults.Judged) -> ProbeResult:
    """A question's result as far as the ledger tells: who asked it has died."""
    tokens, seconds = row.output_tokens - 1, (row.latency_ms - (row.ttft_ms or 0)) / 1000
    is_timed = question.stream and row.ttft_ms is not None and tokens >= 4 and seconds > 0.001
    return ProbeResult(
        model=row.model,
        kind=question.kind,
        outcome=judged.outcome,
        fault=judged.fault,
        attempt=row.pk,
        status=row.status,
        http_status=row.http_status,
        code=row.code,
        message=row.error,
        latency_ms=row.latency_ms,
        ttft_ms=row.ttft_ms,
        output_tokens=row.output_tokens,
        tokens_per_s=round(tokens / seconds, 1) if is_timed else None,
        cost_pusd=row.cost_pusd,
        calls=1,
    )


def note(question: Question, result: ProbeResult, attempt: Attempt) -> None:
    """Keeps the evidence."""
    keep(question, result, attempt.order.model.endpoint.name, attempt.started_at)


def note_row(question: Question, row: Row) -> None:
    """Keeps the evidence that who asked could not keep any more."""
    keep(question, result_of_row(question, row, faults.judged(row.status, row.http_status, row.code, row.error)), row.endpoint, row.started_at)


def keep(question: Question, result: ProbeResult, endpoint: str, at: datetime) -> None:
    Probe.objects.bulk_create(
        [
            Probe(
                attempt=result.attempt,
                model=result.model,
                endpoint=endpoint,
                kind=question.kind,
                prompt=question.prompt,
                at=at,
                outcome=result.outcome,
                fault=result.fault,
                status=result.status,
                http_status=result.http_status,
                code=result.code,
                message=result.message[:MESSAGE_LENGTH],
                latency_ms=result.latency_ms,
                ttft_ms=result.ttft_ms,
                output_tokens=result.output_tokens,
                tokens_per_s=result.tokens_per_s,
                cost_pusd=result.cost_pusd,
                answer=printable(result.text)[:ANSWER_LENGTH] if question.keeps_answer else "",
                seen=dict(result.seen),
            )
        ],
        ignore_conflicts=True,
    )


def printable(text: str) -> str:
    """PostgreSQL takes no NUL in a text, and no database half a surrogate pair."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def remember(model: Model, result: ProbeResult, form: Form) -> None:
    """Keeps when it last answered or failed, and in which form it answered."""
    now = datetime.now(UTC)
    health, _ = ModelHealth.objects.get_or_create(pk=model.alias)
    fields = []
    if result.is_ok:
        health.last_ok_at, fields = now, ["last_ok_at"]
        if health.probe_form != form.as_json():
            health.probe_form = form.as_json()
            fields.append("probe_form")
    elif result.outcome == faults.FAILED:
        health.last_failed_at, fields = now, ["last_failed_at"]
    if fields:
        health.save(update_fields=fields)
