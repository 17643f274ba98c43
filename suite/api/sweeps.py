"""Sweeps: many subjects through one thing under one key."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, OuterRef, Q
from rest_framework.request import Request
from rest_framework.response import Response

from access import audit
from suite import ids
from suite.api import shapes
from suite.api.problems import Missing
from suite.api.repeats import idempotent
from suite.api.view import View, title
from suite.models import Run, Sweep
from suite.registry import sweeps
from suite.running import engine, sweeping
from suite.seeing import is_admin, readable_runs


class Sweeps(View):
    scopes = {"GET": ("runs:read",), "POST": ("runs:write",)}
    filters = ("anchor", "owner")
    takes_key_in_body = True

    @idempotent
    def post(self, request: Request) -> Response:
        """Launches a run for each of `models`, all by the anchor's tasks and impl or by a pinned benchmark."""
        body = self.body(sweeping.FIELDS)
        title(body)
        sweep = sweeping.create(self.caller, body)
        audit.record(self.actor, "sweep.create", sweep.pk)
        engine.ring()
        response = Response(sweeps.told(self.caller, sweep, whole=False), status=201)
        response["Location"] = shapes.link(f"/v1/sweeps/{sweep.pk}")
        return response

    def get(self, request: Request) -> Response:
        """Lists sweeps that the caller may read, newest first."""
        rows: Any = Sweep.objects.all()
        if not is_admin(self.caller):
            shared = readable_runs(self.caller).filter(sweep=OuterRef("pk")).exclude(status=Run.Status.DELETED)
            rows = rows.filter(Q(owner=self.caller.owner) | Exists(shared))
        asked = self.filters_wanted()
        for name in self.filters:
            if name in asked:
                rows = rows.filter(**{f"{name}__in": asked[name]})
        page = self.keyset_page(rows, ("created_at", "id"), bound_to=str(asked))
        return Response({"data": [sweeps.told(self.caller, row, whole=False) for row in page.data], "next": page.next})


class OneSweep(View):
    scopes = {"GET": ("runs:read",)}

    def get(self, request: Request, sweep: str) -> Response:
        """Reads a sweep: its runs, a board of those that ended well, and each compared with the baseline, p values after Holm."""
        name = ids.read(sweep, "swp")
        row = sweeps.readable(self.caller, name) if name else None
        if row is None:
            raise Missing("sweep", sweep)
        return Response(sweeps.told(self.caller, row, whole=True))
