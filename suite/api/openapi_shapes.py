"""What this API takes and gives, as the schemas of its OpenAPI description. Written down apart from the views, and held to them by a test."""

from __future__ import annotations

from typing import Any

from access.caller import SCOPES
from suite.grading.outcomes import Outcome
from suite.models import Rescoring, Run
from suite.running.limits import LEVELS

Schema = dict[str, Any]

STR: Schema = {"type": "string"}
INT: Schema = {"type": "integer"}
NUM: Schema = {"type": "number"}
BOOL: Schema = {"type": "boolean"}
ANY: Schema = {}
TIME: Schema = {"type": "string", "format": "date-time"}
USD: Schema = {"type": "string", "description": "US dollars, exact."}
OBJECT: Schema = {"type": "object"}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def maybe(schema: Schema) -> Schema:
    """A value or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def many(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def one_of(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


def made(noun: str, more: Schema | None = None, /, **fields: Schema) -> Schema:
    """An object of the API: `object` says what it is, every field is always there. `more` are fields that come when they are asked for."""
    own = {"object": {"const": noun}, **fields}
    return {"type": "object", "required": list(own), "properties": {**own, **(more or {})}}


def plain(required: tuple[str, ...] = (), /, **fields: Schema) -> Schema:
    return {"type": "object", "required": list(required) or list(fields), "properties": fields}


def body(required: tuple[str, ...] = (), /, **fields: Schema) -> Schema:
    """What a request may say; a field that is none is 422."""
    return {"type": "object", "properties": fields, "additionalProperties": False, **({"required": list(required)} if required else {})}


def page_of(schema: Schema, **more: Schema) -> Schema:
    fields = {"data": many(schema), "next": maybe(STR), "has_more": BOOL, **more}
    return {"type": "object", "required": list(fields), "properties": fields}


NAMED = {"name": STR, "description": STR}
SUT: Schema = {
    "description": "An alias, served@endpoint, bench/<collection>[:mode], or an object.",
    "anyOf": [STR, {"type": "object", "properties": {n: ANY for n in ("model", "provider", "collection", "mode", "params", "retired_too")}}],
}
LIMITS: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        level: {"type": "object", "properties": {q: {"type": "integer" if whole else "number", "exclusiveMinimum": 0} for q, whole in quantities.items()}}
        for level, quantities in LEVELS.items()
    },
}
MONEY = plain(("amount_cents", "currency"), amount_cents=maybe(INT), currency=STR, usd=maybe(USD))
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
ACCOUNT = plain(kind=one_of("team", "owner"), name=STR)

COMPONENTS: dict[str, Schema] = {
    "Problem": {
        "type": "object",
        "description": "RFC 9457. `code` is stable; other members depend on it.",
        "required": ["type", "title", "status", "detail", "code"],
        "properties": {
            "type": STR, "title": STR, "status": INT, "detail": STR, "instance": STR, "code": STR, "request_id": STR, "field": STR,
            "errors": many(plain(pointer=STR, code=STR, message=STR)), "required_scope": STR, "granted": many(STR), "feature": STR,
        },
    },
    "Money": MONEY,
    "Benchmark": made(
        "benchmark", {"subsets": many(ref("Subset"))}, id=STR, **NAMED, category=STR, tags=many(STR), parents=many(STR), owner=STR,
        visibility=one_of("private", "team", "public"), built_in=maybe(STR), admission=ANY, created_at=TIME, updated_at=TIME, links=OBJECT,
    ),
    "Subset": made(
        "subset", id=STR, benchmark=STR, slug=STR, **NAMED, rolling=BOOL, grader=maybe(OBJECT), recipe=OBJECT, version=INT, version_id=maybe(STR),
        digest=maybe(STR), tasks=INT, runnable=BOOL, retired_at=maybe(TIME), retired_because=maybe(STR), replaced_by=maybe(STR), created_at=TIME,
        updated_at=TIME,
    ),
    "SubsetVersion": made("subset_version", id=STR, subset=STR, version=INT, digest=STR, tasks=INT, note=STR, created_by=STR, created_at=TIME),
    "Impl": made(
        "impl", id=STR, digest=STR, language=STR, label=STR, description=STR, benchmark=maybe(STR), subset=maybe(STR), grader=maybe(OBJECT),
        dependencies=OBJECT, from_run=maybe(STR), hidden=BOOL, owner=STR, created_at=TIME, updated_at=TIME,
    ),
    "Run": made(
        "run", {"summary": ref("Summary"), "benchmark": ref("Benchmark"), "subset": ref("Subset")},
        id=STR, status=one_of(*Run.Status.values), phase=maybe(STR), phases=many(OBJECT), mode=STR, request=STR, harness=STR, backend=STR, benchmark_id=STR,
        benchmark_name=STR, subset_id=STR, subset_slug=STR, subset_version=INT, impl=OBJECT, graded_by=STR, model=plain(identifier=STR), sut=OBJECT,
        driver=maybe(STR), source=STR, trials=INT, scope=STR, selection=OBJECT, limits=OBJECT, metadata=OBJECT, tags=many(STR), cost=OBJECT,
        progress=plain(done=INT, total=INT),
        scoring=INT, visibility=one_of("private", "team", "public"), review_resolution=maybe(STR), error=maybe(STR), halt_reason=maybe(STR),
        halt_note=maybe(STR), derived_from=maybe(STR), sweep=maybe(STR), fingerprint=STR, seed=INT, owner=STR, team=maybe(STR), interruptions=INT,
        created_at=TIME, started_at=maybe(TIME), finished_at=maybe(TIME), etag=INT, links=OBJECT,
    ),
    "Tombstone": made(
        "run",
        id=STR, status={"const": "deleted"}, deleted_at=TIME, fingerprint=STR, selection=OBJECT, benchmark_id=STR, subset_id=STR, impl=OBJECT, reason=maybe(STR)
    ),
    "Summary": plain(
        total=INT, done=INT, passed=INT, failed=INT, scored=INT, errored=INT, unscored=INT, truncated=INT, refused=INT, unparsed=INT, judge_failed=INT,
        limit=INT,
        skipped=INT, outcomes=OBJECT, pass_rate=maybe(SHARE), mean=maybe(NUM), coverage=maybe(SHARE), stderr=maybe(NUM), ci95=maybe(many(NUM)),
        clusters=maybe(INT), duration_ms_p50=maybe(INT), duration_ms_p95=maybe(INT), cost_usd=maybe(USD), cost_complete=BOOL, tokens=OBJECT, version=INT,
        warnings=many(STR),
    ),
    "Task": made(
        "task", {"input": ANY, "expected": ANY, "source": ANY, "output": STR, "samples": many(OBJECT)},
        id=STR, task_id=STR, position=INT, kind=maybe(STR), outcome=one_of(*(str(o) for o in Outcome)), score=maybe(NUM), passed=maybe(BOOL), trials=INT,
        trials_passed=INT, trials_scored=INT, error_class=maybe(STR), preview=STR, truncated=BOOL, duration_ms=INT, cost_usd=maybe(USD), input_tokens=INT,
        output_tokens=INT, version=INT,
    ),
    "Rescoring": made(
        "rescoring",
        {"rows": many(plain(task_id=STR, task=STR, before=maybe(BOOL), after=maybe(BOOL), outcome=STR, error_class=maybe(STR)))},
        id=STR, run=STR, impl=STR, status=one_of(*Rescoring.Status.values), version=INT, tasks=INT, done=INT, changed=INT, now_passed=INT, now_not=INT,
        error=maybe(plain(code=STR, message=STR)), asked_by=STR, created_at=TIME, finished_at=maybe(TIME), links=OBJECT,
    ),
    "Event": plain(seq=INT, type=STR, at=TIME, data=OBJECT),
    "Artifact": made("artifact", id=STR, run=STR, type=STR, name=STR, version=INT, media_type=STR, size=INT, digest=STR, created_at=TIME),
    "Fingerprint": made("fingerprint", run=STR, fingerprint=STR, parts=OBJECT),
    "Gate": made(
        "gate", run=STR, status=STR, verdict=one_of("pass", "fail", "inconclusive"), confidence=maybe(NUM), min_coverage=SHARE, coverage=maybe(SHARE),
        rulings=many(
            plain(
                metric=STR, threshold=NUM, more_is_better=BOOL, value=maybe(NUM), interval=maybe(many(NUM)),
                verdict=one_of("pass", "fail", "inconclusive"), reason=STR, warning=maybe(STR),
            )
        ),
    ),
    "Leaderboard": made("leaderboard", subset=STR, version=INT, impl=STR, trials=INT, rows=many(OBJECT)),
    "Comparison": {"type": "object", "required": ["object"], "properties": {"object": {"const": "comparisons"}, "data": many(OBJECT)}},
    "Sweep": {"type": "object", "required": ["object", "id"], "properties": {"object": {"const": "sweep"}, "id": STR}},
    "Me": made(
        "me", user=plain(name=STR, is_person=BOOL), team=maybe(STR), role=maybe(one_of("viewer", "judge", "operator", "admin")),
        scopes=many(one_of(*SCOPES)), token=maybe(plain(id=STR, name=STR, kind=one_of("key", "live", "test"))), default_compute=STR,
        budgets=many(plain(kind=STR, name=STR, budget_usd=USD, spent_usd=USD, reserved_usd=USD, left_usd=USD, resets_at=TIME)),
    ),
    "Doctor": made("doctor", ok=BOOL, checks=many(plain(name=STR, ok=BOOL, hint=STR))),
    "Backend": made("backend", name=STR, kind=STR, is_default=BOOL, available=BOOL, hint=STR, settings=OBJECT),
    "Harness": made("harness", name=STR, title=STR, installed=BOOL, is_default=BOOL, hint=maybe(STR)),
    "Setting": made(
        "setting", key=STR, value=ANY, default=ANY, is_set=BOOL, schema=OBJECT, tells=STR, changed_at=maybe(TIME), changed_by=maybe(STR)
    ),
    "Token": made(
        "token", {"token": {"type": "string", "description": "The token itself, this once."}},
        id=STR, name=STR, owner=STR, kind=one_of("live", "test"), hint=STR, last4=STR, scopes=many(STR), created_at=TIME, expires_at=maybe(TIME),
        last_used_at=maybe(TIME),
    ),
    "Balance": made(
        "balance", account=ACCOUNT, balance=maybe(ref("Money")), spendable=maybe(ref("Money")), is_limited=BOOL, granted=maybe(ref("Money")),
        spent_of_grants=maybe(ref("Money")), reserved=ref("Money"), month=STR, month_spent=ref("Money"), monthly_cap=maybe(ref("Money")),
        monthly_left=maybe(ref("Money")), resets_at=TIME, auto_refill=plain(enabled=BOOL, amount_cents=maybe(INT), threshold_cents=maybe(INT)),
        alert=plain(enabled=BOOL, at_cap_pct=INT), billable={"const": False},
    ),
    "Controls": made(
        "billing_controls", monthly_cap_cents=maybe(INT), auto_refill_enabled=BOOL, auto_refill_amount_cents=maybe(INT),
        auto_refill_threshold_cents=maybe(INT), alert_enabled=BOOL, alert_at_cap_pct=INT,
    ),
    "Topup": made(
        "topup", id=STR, account=STR, kind=one_of("grant", "adjustment", "refund"), status={"const": "completed"}, flow={"const": "manual"},
        checkout_url={"type": "null"}, amount=ref("Money"), note=STR, created_by=STR, created_at=TIME,
    ),
    "Transaction": made(
        "transaction", id=STR, kind=one_of("trace_debit", "driver_debit", "judge_debit", "sandbox_debit", "grant", "adjustment", "refund"), amount=ref("Money"),
        complete=BOOL, billable={"const": False}, reference_id=maybe(STR), note=maybe(STR), created_by=maybe(STR), created_at=TIME,
    ),
    "UsageTrend": made(
        "usage_trend", time_zone=STR, data=many(plain(day=STR, spent=ref("Money"), calls=INT, unpriced_calls=INT, input_tokens=INT, output_tokens=INT))
    ),
    "Row": plain(("task_id", "input", "expected"), task_id=STR, input=ANY, expected=ANY, kind=STR, source=OBJECT, cluster=STR),
    "Launch": body(
        (),
        request=STR, benchmark=STR, subset=STR, impl=STR, replay=body(("from_run",), from_run=STR, only_failed=BOOL, task_ids=many(STR), subset_version=ANY),
        sut=SUT, driver=STR, phase_models=OBJECT, harness=one_of("benchwright", "inspect", "lmeval", "lighteval", "harbor"), compute=STR, limits=LIMITS,
        constraints=body((), max_cost_cents=NUM, max_duration_ms=NUM, max_tasks=INT), trials={"type": "integer", "minimum": 1, "maximum": 100}, hints=ANY,
        metadata=OBJECT, tags=many(STR), idempotency_key=STR, timeout=NUM, source=one_of("manual", "ci", "onboarding", "scheduled"),
        visibility=one_of("private", "team"), priority=INT,
    ),
}  # fmt: skip
