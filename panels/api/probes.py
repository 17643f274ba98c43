"""Probes: those that were made, and what a run of them would cost."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from health import condition, drift, probes
from health.condition import Condition, ProbeView
from health.costs import usd_text
from health.errands import ring
from health.estimates import KINDS, Estimate, estimate
from panels.api import health_shapes, shapes
from panels.api.model_lists import speed_of
from panels.api.view import View, answer, listed, not_found
from panels.api.wording import to_json
from wire.errors import CallerError

PROBED = ("word", "short", "long", "confirm", "drift")


class Probes(View):
    scopes = {"GET": ("read",)}

    @shapes.described(
        operation_id="list_probes", parameters=[*shapes.PAGE, health_shapes.OF_MODEL, health_shapes.OF_KIND], responses=shapes.page_of(health_shapes.Probe)
    )
    def get(self, request: Request) -> Response:
        """Lists probes, newest first, each with its outcome and whose fault a failure was."""
        kind = one_of(request.query_params.get("kind", ""), ("", *PROBED))
        page = condition.probes(*self.page_wanted(), request.query_params.get("model", ""), kind)
        return listed(page.mapped(probe_json))


class Estimates(View):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="estimate_probes", parameters=[health_shapes.ESTIMATED_KIND], responses=health_shapes.Estimate)
    def get(self, request: Request) -> Response:
        """Tells what a run of probes would cost, model by model: from what each took last time, else from its tokens and the day's price."""
        return answer(estimate_json(estimate(one_of(request.query_params.get("kind", "") or "word", KINDS))))


def one_of(kind: Any, kinds: tuple[str, ...]) -> str:
    """Errors: CallerError 400."""
    if kind not in kinds:
        raise CallerError("invalid_request", f"kind must be one of {', '.join(k for k in kinds if k)}.", field="kind")
    return str(kind)


def probe_json(probe: ProbeView) -> dict[str, Any]:
    said: dict[str, Any] = to_json(probe)
    return {name: value for name, value in said.items() if name != "cost_pusd"} | {"cost_usd": usd_text(probe.cost_pusd)}


def estimate_json(found: Estimate) -> dict[str, Any]:
    models = [
        {
            "model": m.alias,
            "endpoint": m.endpoint,
            "calls": m.calls,
            "input_tokens": m.input_tokens,
            "output_tokens": m.output_tokens,
            "cost_usd": usd_text(m.cost_pusd),
        }
        for m in found.models
    ]
    return {"kind": found.kind, "cost_usd": usd_text(found.cost_pusd), "unpriced": found.unpriced, "models": models}


def health_json(of: Condition) -> dict[str, Any]:
    """A model's fields `health` and `speed`."""
    health = {
        "last_ok_at": to_json(of.last_ok_at),
        "last_failed_at": to_json(of.last_failed_at),
        "suspect_since": to_json(of.suspect_since),
        "reason": of.reason or None,
        "unlisted_since": to_json(of.unlisted_since),
        "drift": to_json(of.drift),
    }
    kinds = {kind: {**of_kind, "at": to_json(datetime.fromisoformat(of_kind["at"]))} for kind, of_kind in of.speed.items()}
    return {"health": health, "speed": to_json({**speed_of(of.speed), **kinds}) if kinds else None}


# ------------------------------------------------------------------ what is done to a model


def probe_model(alias: str, kind: Any, actor: str) -> Response:
    """Queues a probe of one model. Errors: CallerError 400 and 404."""
    kind = one_of("word" if kind is None else kind, KINDS)
    try:
        queued = probes.request(alias, kind, actor)
    except LookupError:
        raise not_found("model", alias) from None
    except probes.ProbeError as error:
        raise CallerError(error.code, str(error)) from None
    ring()
    body = {"model": alias, "kind": kind, "errand": queued.errand, "new": queued.is_new, "expected_cost_usd": usd_text(queued.expected_cost_pusd)}
    return answer(body, status=202)


def accept_baseline(alias: str, actor: str) -> None:
    """Takes what answers now as the new baseline. Errors: CallerError 400 and 404."""
    try:
        drift.accept(alias, actor)
    except LookupError:
        raise not_found("model", alias) from None
    except probes.ProbeError as error:
        raise CallerError(error.code, str(error)) from None
