"""Onboarding: models put on the bench in the background, looked at while it goes on, and cancelled."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.editing import UnknownEndpoint
from health import onboarding
from health.costs import usd_text
from panels.api import shapes, upkeep_shapes
from panels.api.view import View, answer, not_found, text_of
from panels.api.wording import to_json
from wire.errors import CallerError

FIELDS = ("endpoint", "served_names", "mode")
DRY_RUN = OpenApiParameter("dry_run", bool, description="1: only tells what it would cost.")


def shown(one: onboarding.BatchShown, whole: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"batch": one.id, **to_json(one)}
    models = fields.pop("models")
    del fields["id"]
    return {**priced(fields), **({"models": [priced(model) for model in models]} if whole else {})}


def priced(fields: dict[str, Any]) -> dict[str, Any]:
    """Puts the cost into US dollars: null, not 0, where all that is known of it is that calls had no price."""
    pusd = fields["cost_pusd"] or (None if fields["unpriced"] else fields["cost_pusd"])
    return {"cost_usd" if name == "cost_pusd" else name: usd_text(pusd) if name == "cost_pusd" else said for name, said in fields.items()}


class OnboardPaths(View):
    def handle_exception(self, exc: Exception) -> Response:
        match exc:
            case onboarding.UnknownBatch():
                exc = not_found("batch", str(exc))
            case UnknownEndpoint():
                exc = not_found("endpoint", str(exc))
            case onboarding.OnboardError():
                exc = CallerError("invalid_request", str(exc), field=exc.field)
        return super().handle_exception(exc)


class Onboard(OnboardPaths):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="list_batches", parameters=shapes.PAGE, responses=shapes.page_of(upkeep_shapes.Batch))
    def get(self, request: Request) -> Response:
        """Lists batches, the newest first, with how far they are and what they have cost."""
        page = onboarding.batches(*self.page_wanted())
        return Response({"data": [shown(one, whole=False) for one in page.data], "next": page.next})

    @shapes.described(
        operation_id="onboard", request=upkeep_shapes.OnboardAsked, parameters=[DRY_RUN], responses={202: upkeep_shapes.Onboarded, 200: upkeep_shapes.Onboarded}
    )
    def post(self, request: Request) -> Response:
        """Queues models for onboarding.

        202 with the batch; 200 with the batch that has brought them as far before; 409 naming the batch in which all of them are under way.
        With `?dry_run=1` nothing is queued: 200 with what it would cost.
        """
        body = self.body(FIELDS)
        endpoint = text_of(body, "endpoint")
        if request.query_params.get("dry_run", "") not in ("", "0", "false"):
            found = onboarding.expected(endpoint, body.get("served_names"), body.get("mode"))
            return answer(priced(to_json(found)))
        started = onboarding.start(endpoint, body.get("served_names"), body.get("mode"), self.actor)
        said = {"batch": started.batch, "models": started.models, "under_way": started.open, "done": started.done}
        if started.batch:
            return answer(said, status=202)
        if started.done:
            return answer({**said, "batch": min(started.done.values())})
        first = min(started.open.values())
        what = "This model is" if len(started.open) == 1 else f"All {len(started.open)} models are"
        raise CallerError("in_use", f"{what} under way already, in batch {first}. GET /bench/onboard/{first} shows it.", field="served_names", status=409)


class Batch(OnboardPaths):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="get_batch", responses=upkeep_shapes.BatchWhole)
    def get(self, request: Request, batch: str) -> Response:
        """Shows a batch: each model with its stage, its log and its cost as they go."""
        return answer(shown(onboarding.shown(batch), whole=True))

    @shapes.described(operation_id="cancel_batch", request=None, responses=upkeep_shapes.BatchWhole)
    def delete(self, request: Request, batch: str) -> Response:
        """Cancels a batch: what waits never begins, what runs ends at its next step; what is on the bench by then stays. The record stays, too."""
        onboarding.cancel(batch, self.actor)
        return self.get(request, batch)


class BatchCancel(OnboardPaths):
    @shapes.described(operation_id="cancel_batch_by_post", request=None, responses=upkeep_shapes.BatchWhole)
    def post(self, request: Request, batch: str) -> Response:
        """Cancels a batch, as DELETE does."""
        onboarding.cancel(batch, self.actor)
        return answer(shown(onboarding.shown(batch), whole=True))
