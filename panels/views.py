"""The gateway's views: who may call, what was asked, and the road. DRF view classes, called by the lean ASGI entry, async end to end."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from django.conf import settings
from rest_framework import exceptions
from rest_framework.request import Request as DrfRequest
from rest_framework.views import APIView

from access.auth import KeyAuthentication, LoopbackAuthentication, MayAsk, as_caller_error
from access.caller import Caller
from panels import stored
from panels.gateway import Gateway
from panels.serve import serve
from panels.snapshot import Snapshot
from panels.turn import Turn
from wire import dialects, model_list
from wire.dialects import Inbound
from wire.errors import CallerError
from wire.jsontext import LARGE_BYTES, parse_body
from wire.model_list import Listing

# Messages of one conversation, tools of one request. The longest conversations of agents seen hold some thousands.
MOST_ENTRIES = 50_000


class GatewayView(APIView):
    """What all of the gateway's views share. `request` is the lean entry's, with `gateway`, `snapshot`, `keyring`, `out` and `read_body`.

    Errors: CallerError, which the entry writes in `dialect`'s shape.
    """

    authentication_classes = [KeyAuthentication, LoopbackAuthentication]
    permission_classes = [MayAsk]
    dialect: dialects.Dialect = dialects.get("openai-chat")

    async def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        # DRF's own steps of the same names, without its content negotiation: that answers 406 to `Accept: text/event-stream`.
        asked = DrfRequest(request, authenticators=self.get_authenticators())
        try:
            self.perform_authentication(asked)
            self.check_permissions(asked)
        except exceptions.APIException as error:
            raise as_caller_error(error) from None
        caller = asked.user
        assert isinstance(caller, Caller)
        await self.answer(request, caller, *args, **kwargs)

    async def answer(self, request: Any, caller: Caller, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError


class AskView(GatewayView):
    """A dialect's asking paths, in every mode."""

    async def answer(self, request: Any, caller: Caller, *args: Any, **kwargs: Any) -> None:
        if "model=" in request.META["QUERY_STRING"]:
            raise CallerError("invalid_request", "The model is named in the body; a model in the query string is refused.", field="model")
        began = time.monotonic()
        body = await request.read_body()
        # A large body takes its time, which nobody else's call should wait for.
        is_large = len(body) > LARGE_BYTES
        value = await asyncio.to_thread(parse_body, body) if is_large else parse_body(body)
        if is_large:
            refuse_endless(value)
        inbound = Inbound(request.path, request.META["QUERY_STRING"], request.lower_headers, value)
        gateway: Gateway = request.gateway
        if earlier := self.dialect.refers_to(inbound):
            inbound = replace(inbound, earlier=await stored.load(gateway, caller, earlier))
        asked = await asyncio.to_thread(self.dialect.read_request, inbound) if is_large else self.dialect.read_request(inbound)
        turn = Turn(gateway, self.dialect, caller, asked, request.snapshot, request.request_id, request.out, began, request.lower_headers)
        request.turn = turn
        await serve(turn)


def refuse_endless(body: Any) -> None:
    """Refuses a list that would keep the process busy for seconds with entries of next to nothing. Errors: CallerError 400."""
    for name, entries in body.items() if isinstance(body, dict) else ():
        if isinstance(entries, list) and len(entries) > MOST_ENTRIES:
            raise CallerError("invalid_request", f"{name[:60]} holds {len(entries)} entries; at most {MOST_ENTRIES} are read.", field=name[:60])


class KeptView(GatewayView):
    """An answer that was kept under its id: to be read again, or forgotten."""

    async def answer(self, request: Any, caller: Caller, *args: Any, **kwargs: Any) -> None:
        name = self.dialect.refers_to(Inbound(request.path, request.META["QUERY_STRING"], request.lower_headers, None))
        if request.method == "DELETE":
            found = await stored.forget(request.gateway, caller, name) if name else False
            body = self.dialect.write_forgotten(name) if found else None
        else:
            kept = await stored.load(request.gateway, caller, name) if name else None
            body = None if kept is None else self.dialect.write_kept(kept, request.path)
        if body is None:
            raise CallerError("response_not_found", "Nothing is kept under this id for this key. Answers are kept for a day at most.", status=404)
        await request.out.whole(200, [], body)


# ------------------------------------------------------------------ what can be asked


def listings(snapshot: Snapshot, caller: Caller) -> list[Listing]:
    """Every name that a caller may ask for: models that are not retired, and collections in each mode."""
    found = []
    for collection in sorted(snapshot.collections.values(), key=lambda c: c.name):
        if caller.may_ask_collection(collection.name):
            members = [m for a in collection.members if (m := snapshot.models.get(a)) and not m.retired]
            window = max((m.context_window or 0 for m in members), default=0)
            vision = any(m.facts.get("vision") for m in members)
            tools = any(m.facts.get("tools") for m in members)
            thinking = any(m.facts.get("reasoning") for m in members)
            for ending in ("", ":merged", ":route"):
                routes = ending == ":route"  # a panel's answer is a text of its own: no tools, no thinking
                found.append(Listing(f"bench/{collection.name}{ending}", "benchwarmers", 0, window, 0, tools and routes, vision, thinking and routes))
    for model in sorted(snapshot.models.values(), key=lambda m: m.alias):
        if not model.retired and caller.may_ask_model(model.alias):
            facts = model.facts
            found.append(
                Listing(
                    model.alias,
                    model.endpoint.name,
                    context_window=model.context_window or 0,
                    output_limit=model.output_limit or 0,
                    tools=bool(facts.get("tools")),
                    vision=bool(facts.get("vision")),
                    thinking=bool(facts.get("reasoning")),
                )
            )
    return found


class ModelsView(GatewayView):
    """`GET /v1/models` and `/v1/models/<name>`, in the shape that the caller's headers tell."""

    prefix = "/v1/models"
    shapes: Sequence[tuple[str, Callable[..., Any], Callable[..., Any]]] = (
        ("HTTP_ANTHROPIC_VERSION", model_list.anthropic, model_list.anthropic_one),
        ("HTTP_X_GOOG_API_KEY", model_list.gemini, model_list.gemini_one),
        ("", model_list.openai, model_list.openai_one),
    )

    async def answer(self, request: Any, caller: Caller, *args: Any, **kwargs: Any) -> None:
        every = listings(request.snapshot, caller)
        many, one = next((many, one) for header, many, one in self.shapes if not header or header in request.META)
        name = unquote(request.raw_path[len(self.prefix) :].lstrip("/"))
        if not name:
            await request.out.whole(200, [], many(every))
            return
        await request.out.whole(200, [], one(named(every, name.removeprefix("models/"))))


def named(every: Sequence[Listing], name: str) -> Listing:
    found = next((i for i in every if i.name == name), None)
    if found is None:
        raise CallerError("model_not_found", f"There is no model or collection {name!r} that you may ask.", status=404, field="model")
    return found


class GeminiModelsView(ModelsView):
    dialect = dialects.get("gemini")
    prefix = "/v1beta/models"
    shapes = (("", model_list.gemini, model_list.gemini_one),)


class OllamaTagsView(GatewayView):
    async def answer(self, request: Any, caller: Caller, *args: Any, **kwargs: Any) -> None:
        await request.out.whole(200, [], model_list.ollama(listings(request.snapshot, caller)))


class OllamaShowView(GatewayView):
    async def answer(self, request: Any, caller: Caller, *args: Any, **kwargs: Any) -> None:
        body = parse_body(await request.read_body())
        name = (body.get("model") or body.get("name")) if isinstance(body, dict) else None
        if not isinstance(name, str):
            raise CallerError("invalid_request", "model must be a string.", field="model")
        every = listings(request.snapshot, caller)
        await request.out.whole(200, [], model_list.ollama_show(named(every, name)))


class OllamaVersionView(GatewayView):
    async def answer(self, request: Any, caller: Caller, *args: Any, **kwargs: Any) -> None:
        await request.out.whole(200, [], {"version": settings.VERSION})


# ------------------------------------------------------------------ which view answers a path


def view_of(dialect: dialects.Dialect, route: dialects.Route) -> type[GatewayView]:
    view = KeptView if route.operation in ("get", "delete") else AskView
    return type(f"{type(dialect).__name__}{view.__name__}", (view,), {"dialect": dialect})


def exact_paths() -> dict[tuple[str, str], type[GatewayView]]:
    """Method and path to view: each dialect's own paths, then the lists."""
    from panels.api.asking import Ask, Estimate  # they are GatewayViews themselves
    from panels.mcp.view import McpView

    found: dict[tuple[str, str], type[GatewayView]] = {
        **{(method, path): McpView for method in ("POST", "DELETE") for path in ("/mcp", "/v1/mcp")},
        ("POST", "/bench/ask"): Ask,
        ("POST", "/bench/estimate"): Estimate,
        ("GET", "/v1/models"): ModelsView,
        ("GET", "/v1beta/models"): GeminiModelsView,
        ("GET", "/api/tags"): OllamaTagsView,
        ("POST", "/api/show"): OllamaShowView,
        ("GET", "/api/version"): OllamaVersionView,
    }
    for dialect in dialects.every():
        for route in dialect.routes:
            if not route.prefix:
                found[route.method, route.path] = view_of(dialect, route)
    return found


def prefixes() -> list[tuple[str, str, tuple[str, ...], type[GatewayView]]]:
    """Method, path prefix, what the path must end in (nothing: whatever it ends in) and view, longest first where one is inside another."""
    return [
        ("GET", "/v1/models/", (), ModelsView),
        ("GET", "/v1beta/models/", (), GeminiModelsView),
        *((route.method, route.path, route.endings, view_of(dialect, route)) for dialect in dialects.every() for route in dialect.routes if route.prefix),
    ]


def patterns() -> list[tuple[str, re.Pattern[str], type[GatewayView]]]:
    """Method, whole path and view of what stands among Django's paths."""
    from panels.api.asking import CancelCall, CancelPanel, Compare

    return [
        ("POST", re.compile(r"/bench/calls/[^/]+/cancel"), CancelCall),
        ("POST", re.compile(r"/bench/panels/[^/]+/cancel"), CancelPanel),
        ("POST", re.compile(r"/bench/panels/[^/]+/compare"), Compare),
    ]
