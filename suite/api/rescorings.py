"""Stored outputs graded again: asked for, looked at, called off."""

from __future__ import annotations

import time
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from access import audit
from panels.api.wording import to_json
from suite import ids
from suite.api.again import scorer_of
from suite.api.problems import Conflict, Missing
from suite.api.repeats import idempotent
from suite.api.runs import LONGEST_WAIT_S, mine, pause, there
from suite.api.shapes import link
from suite.api.view import View
from suite.models import Rescoring, Run
from suite.running import engine, rescoring
from suite.running.targets import find_run


def shown(row: Rescoring, rows: bool = False) -> dict[str, Any]:
    """Shape: with `rows` the first tasks whose result is another now."""
    found = {
        "object": "rescoring",
        "id": row.pk,
        "run": row.run_id,
        "impl": row.impl_id,
        "status": row.status,
        "version": row.scoring,
        "tasks": row.total,
        "done": row.done,
        "changed": row.now_passed + row.now_not,
        "now_passed": row.now_passed,
        "now_not": row.now_not,
        "error": {"code": row.error, "message": row.message} if row.error else None,
        "asked_by": row.asked_by,
        "created_at": to_json(row.created_at),
        "finished_at": to_json(row.finished_at),
        "links": {"self": link(f"/v1/runs/{row.run_id}/rescorings/{row.pk}"), "tasks": link(f"/v1/runs/{row.run_id}/tasks?version={row.scoring}")},
    }
    return {**found, "rows": rescoring.changed_rows(row)} if rows else found


def found_of(run: Run, asked: str) -> Rescoring:
    """Finds a rescoring of a run. Errors: Missing."""
    name = ids.read(asked, "rsc")
    row = Rescoring.objects.filter(pk=name, run=run).first() if name else None
    if row is None:
        raise Missing("rescoring", asked)
    return row


class Rescore(View):
    scopes = {"POST": ("runs:write",)}

    @idempotent
    def post(self, request: Request, run: str) -> Response:
        """Grades the stored outputs again, by a grader, an impl or code, without any call of a model. The old scoring stays.

        200 where that is done, 202 where it takes its time: then `links.self` tells how it goes.
        """
        row = there(mine(self, run))
        found = rescoring.ask(self.caller, row, scorer_of(self, row, self.body(("impl", "code", "grader", "label"))) or row.impl)
        audit.record(self.actor, "run.rescore", row.pk, reason=found.impl_id)
        if found.status == Rescoring.Status.OK:
            return Response(shown(found, rows=True))
        engine.ring()
        response = Response(shown(found, rows=True), status=202)
        response["Location"] = link(f"/v1/runs/{row.pk}/rescorings/{found.pk}")
        return response


class Rescorings(View):
    scopes = {"GET": ("runs:read",)}

    def get(self, request: Request, run: str) -> Response:
        """Lists the times that a run's outputs were graded again, newest first."""
        row = find_run(self.caller, run)
        page = self.keyset_page(Rescoring.objects.filter(run=row), ("created_at", "id"))
        return Response({"data": [shown(one) for one in page.data], "next": page.next})


class OneRescoring(View):
    scopes = {"GET": ("runs:read",), "DELETE": ("runs:write",)}

    def get(self, request: Request, run: str, rescoring: str) -> Response:
        """Reads one rescoring; with ?wait=30 not before it has ended or so many seconds went by."""
        row = found_of(find_run(self.caller, run), rescoring)
        until = time.monotonic() + min(self.wait_wanted(), LONGEST_WAIT_S)
        while row.status in Rescoring.OPEN and (left := until - time.monotonic()) > 0:
            pause(min(left, 0.5))
            row = found_of(find_run(self.caller, run), rescoring)
        return Response(shown(row, rows=True))

    def delete(self, request: Request, run: str, rescoring: str) -> Response:
        """Calls a rescoring off; what there was of it goes. A scoring that is made stays."""
        row = found_of(mine(self, run), rescoring)
        if not call_off(row):
            raise Conflict("rescoring_over", f"The rescoring is {row.status} already.")
        audit.record(self.actor, "run.rescore_cancel", row.run_id, reason=row.pk)
        return Response(status=204)


def call_off(row: Rescoring) -> bool:
    return rescoring.give_up(row.pk, "", "", Rescoring.Status.CANCELLED)
