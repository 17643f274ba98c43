"""What a plan reserves before anything goes out: the key's own limits for the whole request, and each seat's endpoint and model limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from django.conf import settings

from catalog.roster import Model
from health import budgets as money
from health.attempt import Attempt
from health.costs import most_pusd, pusd
from health.holds import FOREGROUND, call_holds, shadow_holds
from health.limits import TOTAL, Caps
from health.reserve import Ask, Denied, Hold
from panels.outcome import SeatResult
from panels.plan import Plan
from wire.conversation import Usage
from wire.errors import CallerError

DEFAULT_OUTPUT_LIMIT = 4096
# How long after a call must have ended its permit still stands; then a sweep counts the call as lost.
MARGIN_S = 60


def output_limit(plan: Plan, model: Model) -> int:
    """Tokens that an answer may have: what was asked for, else the model's own limit, else 4,096."""
    return plan.request.output_limit or model.output_limit or DEFAULT_OUTPUT_LIMIT


def worst_cost(plan: Plan, model: Model, read_besides: int = 0) -> int | None:
    """Units: trillionths of a US dollar; None where a price is unknown; `read_besides` tokens of input that are not the caller's own."""
    usage = Usage(input=plan.tokens + read_besides, output=output_limit(plan, model))
    return most_pusd(usage, model.price_on(plan.asked_at.date()))


def key_ask(plan: Plan, models: Sequence[Model], deadline_s: float, mergers: Sequence[Model] = ()) -> Ask | None:
    """The key's limits and all budgets: one request, the tokens and the worst cost of all that will be called. None where nothing limits the request.

    Shape: one of `mergers` will be called besides, and reads what all of `models` may have said.
    Errors: CallerError 402 `price_unknown` where a budget cannot be kept because a price is unknown.
    """
    caller = plan.caller
    if not caller.is_limited and not plan.budgets:
        return None
    scope = f"key:{caller.key_id}"
    holds = []
    answers = sum(output_limit(plan, m) for m in models)
    if caller.rpm is not None:
        holds.append(Hold(scope, "requests", 1, Caps(minute=caller.rpm)))
    if caller.max_parallel is not None:
        holds.append(Hold(scope, "parallel", 1, Caps(parallel=caller.max_parallel)))
    if caller.tpm is not None:
        merging = max((plan.tokens + answers + output_limit(plan, m) for m in mergers), default=0)
        holds.append(Hold(scope, "tokens", len(models) * plan.tokens + answers + merging, Caps(minute=caller.tpm)))
    if caller.budget_usd is not None or plan.budgets:
        costs = {m.alias: worst_cost(plan, m) for m in models}
        merge_costs = {m.alias: worst_cost(plan, m, answers) for m in mergers}
        if unknown := sorted({alias for alias, cost in (*costs.items(), *merge_costs.items()) if cost is None}):
            whose = money.said(plan.budgets, caller.budget_usd is not None)
            raise CallerError(
                "price_unknown",
                f"{whose} cannot be kept: the price of {', '.join(unknown)} is unknown. Set it on the model, or ask what has a price.",
                status=402,
            )
        total = sum(costs[m.alias] or 0 for m in models) + max((cost or 0 for cost in merge_costs.values()), default=0)
        zone = settings.BENCH_TIME_ZONE
        if caller.budget_usd is not None:
            holds.append(Hold(scope, "pusd", total, Caps(month=pusd(caller.budget_usd), zone=zone)))
        for limit in plan.budgets:
            most = pusd(limit.budget_usd)
            caps = Caps(total=most, zone=zone) if limit.is_granted else Caps(month=most, zone=zone)
            holds.append(Hold(money.scope_of(limit), "pusd", total, caps))
    return Ask(plan.panel, tuple(holds), plan.asked_at + timedelta(seconds=deadline_s + MARGIN_S), {"id": plan.panel, "panel": plan.panel})


def seat_ask(plan: Plan, attempt: Attempt) -> Ask | None:
    """An endpoint's and a model's limits for one call. None where neither has any."""
    model, order = attempt.order.model, attempt.order
    amount = plan.tokens + output_limit(plan, model)
    holds, shadow = call_holds(model, amount), shadow_holds(model, amount)
    if not holds and not shadow:
        return None
    expires_at = attempt.started_at + timedelta(seconds=order.timeout_s + MARGIN_S)
    return Ask(order.id, holds, expires_at, attempt.stub(), shadow, background=order.purpose not in FOREGROUND)


def now(ask: Ask, attempt: Attempt, patience_s: float) -> Ask:
    """The reservation as it is asked for at this moment: after a wait the call begins, and its permit ends, later. Units: seconds that it still waits."""
    return replace(ask, expires_at=datetime.now(UTC) + timedelta(seconds=attempt.order.timeout_s + MARGIN_S), patience_s=max(patience_s, 0.0))


# ------------------------------------------------------------------ the truth afterwards


def seat_truth(ask: Ask, attempt: Attempt) -> dict[str, int]:
    usage = attempt.final_usage()
    return truth(ask, 1 if attempt.sent else 0, usage.input + usage.output, attempt.cost() or 0)


def key_truth(ask: Ask, results: Sequence[SeatResult]) -> dict[str, int]:
    asked = any(r.tries for r in results)
    return truth(ask, 1 if asked else 0, sum(r.usage.input + r.usage.output for r in results), sum(r.cost_pusd or 0 for r in results))


def truth(ask: Ask, requests: int, tokens: int, cost: int) -> dict[str, int]:
    amounts = {"requests": requests, "tokens": tokens, "pusd": cost, "parallel": 0}
    return {f"{h.scope}|{h.measure}": amounts[h.measure] for h in (*ask.holds, *ask.shadow)}


# ------------------------------------------------------------------ refusals


def key_refusal(denied: Denied) -> CallerError:
    """What a caller hears whose key is at its limit. A key's own limits are never waited for."""
    if denied.measure == "pusd":
        whose = money.whose(denied.scope)
        span = "" if denied.window == TOTAL else " for the month"
        return CallerError("budget_exceeded", f"{whose[0].upper()}{whose[1:]}{span} does not cover this request.", status=402)
    if denied.never:
        return CallerError("invalid_request", f"This request alone exceeds the key's limit of {denied.measure} a {denied.window}.")
    if denied.measure == "parallel":
        return CallerError("too_many_parallel", "This key has as many calls under way as it may have.", status=429, retry_after_s=denied.wait_s)
    return CallerError("rate_limit_exceeded", f"This key's {denied.measure} of this {denied.window} are used up.", status=429, retry_after_s=denied.wait_s)


def limit_message(model: Model, denied: Denied) -> str:
    whose = f"endpoint {model.endpoint.name}" if denied.scope.startswith("endpoint:") else f"model {model.alias}"
    if denied.window == "parallel":
        return f"The {whose} has as many calls under way as its limit allows."
    if denied.never:
        return f"This call alone exceeds the limit of {denied.measure} a {denied.window} of the {whose}."
    return f"The limit of {denied.measure} a {denied.window} of the {whose} is used up; it frees in {denied.wait_s:.0f} s."
