"""A run's events as they happen: server-sent events that can be taken up again where they broke off."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from rest_framework.response import Response

from suite.api import shapes
from suite.api.problems import Problem
from suite.api.runs import TERMINAL
from suite.api.tasks import Events
from suite.models import Event, Run
from suite.running.targets import find_run

POLL_S, AT_ONCE = 0.5, 200


async def events(request: HttpRequest, run: str) -> HttpResponseBase:
    """GET /v1/runs/<id>/events: pages of JSON, or with `Accept: text/event-stream` a stream that ends with the run. `Last-Event-ID` or ?after_seq= goes on."""
    if "text/event-stream" not in request.headers.get("Accept", ""):
        answer: HttpResponseBase = await sync_to_async(Events.as_view())(request, run=run)
        return answer
    found = await sync_to_async(admitted)(request, run)
    if not isinstance(found, tuple):
        return found
    response = StreamingHttpResponse(told(*found), content_type="text/event-stream")
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response


# What the pages' door calls: a page is drawn from what there is by now.
events.whole = Events.as_view()  # type: ignore[attr-defined]


def admitted(request: HttpRequest, run: str) -> tuple[str, int] | HttpResponseBase:
    """Lets in who may read the run, by the same steps as its pages. Shape: the run and the number after which to begin, or the refusal."""
    view = Events()
    view.setup(request, run=run)
    asked = view.initialize_request(request)
    view.request = asked
    view.headers = view.default_response_headers
    try:
        view.initial(asked)
        row = find_run(view.caller, run)
        given = request.headers.get("Last-Event-ID") or request.GET.get("after_seq") or "0"
        if not given.isdecimal():
            raise Problem(400, "invalid_request", "Last-Event-ID and after_seq are an event's number.")
        return row.pk, int(given)
    except Exception as error:  # as DRF's own dispatch does
        response: Response = view.finalize_response(asked, view.handle_exception(error))
        response.render()
        return response


def since(run: str, seq: int) -> tuple[list[dict[str, Any]], bool]:
    """Reads what is new. Shape: events, and whether there will be no more."""
    close_old_connections()
    # The status first: what ends a run is told in the transaction that ends it.
    status = Run.objects.filter(pk=run).values_list("status", flat=True).first()
    rows = [shapes.event(row) for row in Event.objects.filter(run_id=run, seq__gt=seq).order_by("seq")[:AT_ONCE]]
    return rows, (status is None or status in TERMINAL) and len(rows) < AT_ONCE


async def told(run: str, seq: int) -> AsyncIterator[bytes]:
    yield b": here\n\n"
    spoken = time.monotonic()
    read = sync_to_async(since, thread_sensitive=False)
    while True:
        rows, is_over = await read(run, seq)
        for row in rows:
            seq, spoken = row["seq"], time.monotonic()
            yield f"id: {seq}\nevent: {row['type']}\ndata: {orjson.dumps(row).decode()}\n\n".encode()
        if is_over:
            return
        if not rows:
            if time.monotonic() - spoken >= settings.KEEPALIVE_S:
                spoken = time.monotonic()
                yield b": still here\n\n"
            await asyncio.sleep(POLL_S)
