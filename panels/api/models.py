"""Models of the bench: what is known of them, whether they play, and changing that."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from catalog import editing, listing
from catalog.listing import ModelView
from health import condition, learned, rests
from health.condition import Condition
from health.holds import holding
from health.resting import Resting
from panels import figures, records
from panels.api import health_shapes, model_lists, model_shapes, model_story, roster_shapes, shapes
from panels.api.probes import accept_baseline, health_json, probe_model
from panels.api.view import View, answer, not_found, text_of
from panels.api.wording import to_json
from panels.editing import UnknownCollection, read
from panels.figures import Figures, Known
from panels.roster_shape import MODEL
from wire.errors import CallerError

FIELDS = tuple(MODEL)


def shown(model: ModelView, resting: Mapping[str, Resting], left: dict[str, Any], figures: Figures, of: Condition = condition.UNKNOWN) -> dict[str, Any]:
    """One model with what became of it: of two rests the longer one holds it back."""
    held = [r for scope in (f"model:{model.alias}", f"endpoint:{model.endpoint}") if (r := resting.get(scope))]
    rest = max(held, key=lambda r: r.until, default=None) if model.status == "active" else None
    return {
        "alias": model.alias,
        "endpoint": model.endpoint,
        "served_name": model.served_name,
        "status": "resting" if rest else model.status,
        "until": to_json(rest.until) if rest else None,
        "reason": rest.reason if rest else model.reason or None,
        "status_at": to_json(model.status_at),
        "evidence": to_json(model.evidence),
        "ad_hoc": model.ad_hoc,
        "facts": to_json(model.facts),
        "price": model_lists.price_of(model),
        "limits": model.limits,
        "limits_left": {"model": left.get(f"model:{model.id}", {}), "endpoint": left.get(f"endpoint:{model.endpoint_id}", {})},
        "quirks": model.quirks,
        "created_at": to_json(model.created_at),
        "record": to_json(figures),
        **health_json(of),
    }


def with_health(models: list[ModelView], known: Known, resting: Mapping[str, Resting], now: datetime) -> list[dict[str, Any]]:
    scopes = {f"model:{m.id}": m.limits for m in models} | {f"endpoint:{m.endpoint_id}": m.endpoint_limits for m in models}
    force = learned.in_force(now, list(scopes))
    left = rests.left({scope: holding(limits, force.get(scope, {})) for scope, limits in scopes.items()})
    conditions = condition.conditions(m.alias for m in models)
    record = known.of(m.alias for m in models)
    return [shown(model, resting, left, record[model.alias], conditions.get(model.alias, condition.UNKNOWN)) for model in models]


class ModelPaths(View):
    def found(self, alias: str) -> dict[str, Any]:
        model = listing.model(alias) if "\0" not in alias else None
        if model is None:
            raise not_found("model", alias)
        now = timezone.now()
        return with_health([model], figures.of_models(now, model=alias), rests.resting(now), now)[0]

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, editing.UnknownModel):
            exc = not_found("model", str(exc))
        elif isinstance(exc, UnknownCollection):
            exc = not_found("collection", str(exc))
        return super().handle_exception(exc)


class Models(ModelPaths):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="list_models", parameters=[*shapes.PAGE, *model_shapes.LIST], responses=model_shapes.ModelPage)
    def get(self, request: Request) -> Response:
        """Lists models by alias, with status, facts and their sources, limits and what is left of them, and what verdicts say."""
        asked, now = model_lists.wanted(request.query_params), timezone.now()
        known, resting = figures.of_models(now, asked.collection), rests.resting(now)
        page = model_lists.page(asked, known, resting, *self.page_wanted())
        return Response({"data": with_health(page.data, known, resting, now), "next": page.next, "total": page.total})

    @shapes.described(operation_id="add_model", request=roster_shapes.ModelAsked, responses={201: model_shapes.Model})
    def post(self, request: Request) -> Response:
        """Adds a model. Prices among its facts hold from today on."""
        body = self.body(FIELDS)
        # Most endpoints serve a model by the name that it is known by here.
        model = read("models", {"served_name": body.get("alias"), **body}, making=True)
        editing.make_model(model, self.actor)
        return answer(self.found(model["alias"]), status=201)


class Model(ModelPaths):
    """One model by its alias, which may hold slashes: only a POST's path ends in a verb, so an alias that ends in one is no trouble."""

    scopes = {"GET": ("read",)}
    moves = {"retire": editing.retire_model, "restore": editing.restore_model}

    @shapes.described(
        operation_id="get_model",
        parameters=[model_shapes.DAYS, *shapes.PAGE],
        responses={200: model_shapes.ModelWithRecord, 290: model_shapes.History, 291: model_shapes.EventPage},
    )
    def get(self, request: Request, alias: str) -> Response:
        """Shows a model, and what verdicts say of it in each collection."""
        if (story := self.story(alias)) is not None:
            return story
        return answer({**self.found(alias), "records": records.records_of_model(alias, timezone.now()), "prices": listing.prices_of(alias)})

    def story(self, alias: str) -> Response | None:
        """What follows an alias as `/history` or `/evidence`. An alias that ends in one is that model."""
        one, _, verb = alias.rpartition("/")
        if not one or verb not in ("history", "evidence") or "\0" in alias or listing.model(alias) is not None:
            return None
        model, now = listing.model(one), timezone.now()
        if model is None:
            raise not_found("model", one)
        if verb == "history":
            return model_story.history(one, self.request.query_params.get("days", ""), now)
        return model_story.evidence(model, *self.page_wanted(), now)

    @shapes.described(operation_id="change_model", request=roster_shapes.ModelAsked, responses=model_shapes.Model)
    def patch(self, request: Request, alias: str) -> Response:
        """Changes what is given. Facts are merged, a null takes one back that was set by hand; limits and quirks are replaced whole."""
        editing.change_model(alias, read("models", self.body(FIELDS), making=False), self.actor)
        return answer(self.found(alias))

    @shapes.described(operation_id="delete_model", request=None, responses={204: None})
    def delete(self, request: Request, alias: str) -> Response:
        """Takes a model off the bench; its calls and verdicts stay on record. One that a collection seats cannot go."""
        editing.delete_model(alias, self.actor)
        return Response(status=204)

    @shapes.described(
        operation_id="move_model",
        request=health_shapes.ProbeAsked,
        responses={200: model_shapes.Model, 202: health_shapes.ProbeQueued},
        parameters=[roster_shapes.ALIAS_AND_VERB],
    )
    def post(self, request: Request, alias: str) -> Response:
        """Does what follows the alias: `/retire` and `/restore` take a reason, `/probe` a kind (202), `/baseline` takes what answers now as the usual."""
        alias, _, verb = alias.rpartition("/")
        if alias and verb == "probe":
            return probe_model(alias, self.body(("kind",)).get("kind"), self.actor)
        if alias and verb == "baseline":
            self.body(())
            accept_baseline(alias, self.actor)
            return answer(self.found(alias))
        if verb not in self.moves or not alias:
            raise CallerError("not_found", "POST to a model takes /retire, /restore, /probe or /baseline after its alias.", status=404)
        self.moves[verb](alias, text_of(self.body(("reason",)), "reason"), self.actor)
        return answer(self.found(alias))
