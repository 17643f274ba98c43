"""Runs: launched, listed, read, stopped, shared, deleted."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from access import audit
from suite.api import shapes
from suite.api.problems import Conflict, Missing, Problem, Unprocessable, Wrong, wrong
from suite.api.repeats import idempotent
from suite.api.view import View, text
from suite.models import Metadatum, Rescoring, Run, Sample, Task
from suite.registry import admission
from suite.reporting import files
from suite.running import engine, launching, recording, summary
from suite.running.targets import find_run
from suite.seeing import is_admin, owns, readable_runs

FIELDS = (
    "id",
    "status",
    "phase",
    "phases",
    "request",
    "model",
    "sut",
    "summary",
    "cost",
    "metadata",
    "tags",
    "error",
    "halt_reason",
    "links",
    "progress",
    "etag",
    "mode",
    "harness",
    "backend",
    "benchmark_id",
    "benchmark_name",
    "subset_id",
    "subset_slug",
    "subset_version",
    "impl",
    "driver",
    "source",
    "trials",
    "scope",
    "selection",
    "limits",
    "scoring",
    "graded_by",
    "visibility",
    "review_resolution",
    "warnings",
    "halt_note",
    "derived_from",
    "sweep",
    "fingerprint",
    "seed",
    "owner",
    "team",
    "interruptions",
    "created_at",
    "started_at",
    "finished_at",
)
TERMINAL = (Run.Status.OK, Run.Status.FAILED, Run.Status.HALTED, Run.Status.DELETED)
LONGEST_WAIT_S = 60.0
RESOLUTIONS = ("", "accepted", "rejected", "needs_work")


def mine(view: View, asked: str) -> Run:
    """Finds a run that the caller may change. Errors: Missing."""
    run = find_run(view.caller, asked)
    if not owns(view.caller, run):
        raise Missing("run", asked)
    return run


def shown(run: Run, expand: tuple[str, ...] = ()) -> dict[str, Any]:
    if run.status == Run.Status.DELETED:
        return shapes.tombstone(run)
    more: dict[str, Any] = {}
    if "summary" in expand:
        more["summary"] = summary.of(run)
    if "benchmark" in expand:
        more["benchmark"] = shapes.benchmark(run.benchmark)
    if "subset" in expand:
        more["subset"] = shapes.subset(run.subset)
    if "impl" in expand:
        more["impl"] = shapes.impl(run.impl)
    return shapes.run(run, more)


def launch_of(view: View) -> dict[str, Any]:
    """Reads the body of a launch. Errors: Unprocessable naming each field that is none."""
    body = view.body(None)
    if unknown := [name for name in body if name not in launching.FIELDS and name != "agent"]:
        wrongs = [Wrong(f"/{name}", "unknown_field", "There is no such field.") for name in unknown]
        raise Unprocessable("unknown_field", f"A launch has {', '.join(launching.FIELDS)}.", wrongs)
    return body


class Runs(View):
    scopes = {"GET": ("runs:read",), "POST": ("runs:write",)}
    filters = (
        "status",
        "benchmark",
        "subset",
        "impl",
        "visibility",
        "started_at",
        "finished_at",
        "subject",
        "source",
        "tag",
        "sweep",
        "owner",
        "derived_from",
        "metadata",
    )
    asks = ("sort", "expand")
    takes_key_in_body = True

    @idempotent
    def post(self, request: Request) -> Response:
        """Launches a run: a pinned benchmark, or the replay of a run."""
        body = launch_of(self)
        run = launching.launch(self.caller, body)
        engine.ring()
        response = Response(shown(run), status=201)
        response["ETag"] = f'"{run.etag}"'
        response["Location"] = shapes.link(f"/v1/runs/{run.pk}")
        return response

    def get(self, request: Request) -> Response:
        """Lists runs that the caller may read, newest first."""
        rows = readable_runs(self.caller).exclude(status=Run.Status.DELETED).select_related("benchmark", "subset", "impl")
        asked = self.filters_wanted()
        rows = narrowed(rows, asked)
        sort = request.query_params.get("sort", "-created_at")
        fields = {"created_at": ("created_at", "id"), "started_at": ("began_at", "id")}.get(sort.lstrip("-"))
        if fields is None:
            raise Unprocessable("unknown_sort", "Runs are sorted by created_at or started_at.")
        # One that has not begun stands where it was launched.
        rows = rows.annotate(began_at=Coalesce("started_at", "created_at")) if fields[0] == "began_at" else rows
        expand = self.chosen("expand", ("summary",))
        bound = "&".join(f"{name}={','.join(values)}" for name, values in sorted(asked.items())) + sort
        page = self.keyset_page(rows, fields, sort.startswith("-"), bound_to=bound)
        return Response({"data": [shown(row, expand) for row in page.data], "next": page.next})


def narrowed(rows: Any, asked: Mapping[str, list[str]]) -> Any:
    """Applies filters. Errors: Unprocessable."""
    plain = {"status": "status", "visibility": "visibility", "subject": "subject", "source": "source", "sweep": "sweep", "owner": "owner"}
    for name, values in asked.items():
        if name in plain:
            rows = rows.filter(**{f"{plain[name]}__in": [part for value in values for part in value.split(",")]})
        elif name in ("benchmark", "subset", "impl", "derived_from"):
            field = "parent_id" if name == "derived_from" else f"{name}_id"
            rows = rows.filter(**{f"{field}__in": values})
        elif name == "tag":
            # A list in JSON has no portable index; its text has the tag in quotes, and that is looked at once more.
            for value in values:
                rows = rows.filter(pk__in=[pk for pk, tags in rows.values_list("pk", "tags") if value in tags])
        elif name.startswith("metadata."):
            for value in values:
                rows = rows.filter(pk__in=Metadatum.objects.filter(name=name.partition(".")[2], value=value).values("run_id"))
        elif name in ("started_at", "finished_at"):
            for value in values:
                rows = timed(rows, name, value)
        elif name == "metadata":
            raise Unprocessable("unknown_filter", "Say which: filter[metadata.<name>]=<value>.")
    return rows


def timed(rows: Any, field: str, value: str) -> Any:
    """Reads `>2026-11-30T00:00:00Z`, `<…`, or a day."""
    sign = value[:1] if value[:1] in "<>" else ""
    try:
        at = datetime.fromisoformat(value.removeprefix(sign))
        at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # years 1 and 9999 have hours that no other zone's calendar holds
        raise Unprocessable("invalid_filter", f"{field} reads like >2026-11-30T00:00:00Z, <2026-12-01 or 2026-11-30.") from None
    return rows.filter(**{f"{field}__{'gt' if sign == '>' else 'lt'}": at}) if sign else rows.filter(**{f"{field}__date": at.date()})


class OneRun(View):
    scopes = {"GET": ("runs:read",), "PATCH": ("runs:write",), "DELETE": ("runs:write",)}

    def get(self, request: Request, run: str) -> Response:
        """Reads one run; with ?wait=30 not before it has ended or so many seconds went by."""
        row = find_run(self.caller, run)
        expand, fields = self.chosen("expand", ("summary", "benchmark", "subset", "impl")), self.chosen("fields", FIELDS)
        until = time.monotonic() + min(self.wait_wanted(), LONGEST_WAIT_S)
        while row.status not in TERMINAL and (left := until - time.monotonic()) > 0:
            pause(min(left, 0.5))
            row = find_run(self.caller, run)
        found = shown(row, (*expand, "summary") if "summary" in fields else expand)
        response = Response({name: value for name, value in found.items() if not fields or name in (*fields, "object", "id")})
        response["ETag"] = f'"{row.etag}"'
        return response

    def patch(self, request: Request, run: str) -> Response:
        """Changes what is said of a run: who sees it, what a review came to, its metadata. A change of visibility wants If-Match."""
        row = mine(self, run)
        body = self.body(("visibility", "override", "review_resolution", "metadata", "tags"))
        self.matched(row.etag, required="visibility" in body)
        return Response(changed(self, row, body))

    def delete(self, request: Request, run: str) -> Response:
        """Destroys a run's data for good: its id, digests and reason stay. ?confirm=<run id>, or confirm in the body."""
        row = mine(self, run)
        self.matched(row.etag)
        confirm = request.query_params.get("confirm") or (request.data.get("confirm") if isinstance(request.data, dict) else None)
        if confirm not in (row.pk, run):
            raise Unprocessable(
                "confirmation_missing", f"This destroys the run for good. Say so: confirm={row.pk}.", [Wrong("/confirm", "missing", "must be the run's id.")]
            )
        if row.status not in TERMINAL:
            raise Conflict("run_not_over", "The run is under way. Halt it first.")
        if row.status == Run.Status.DELETED:
            return Response(status=204)
        destroy(row)
        audit.record(self.actor, "run.delete", row.pk)
        return Response(status=204)


def there(row: Run) -> Run:
    """Holds off what a deleted run has no more. Errors: Conflict."""
    if row.status == Run.Status.DELETED:
        raise Conflict("run_deleted", "The run was deleted: its id, its digests and the reason are all that is left of it.")
    return row


def pause(seconds: float) -> None:
    import threading

    threading.Event().wait(seconds)


def changed(view: View, row: Run, body: Mapping[str, Any]) -> dict[str, Any]:
    there(row)
    seen, fields = row.etag, []
    if "visibility" in body:
        if body["visibility"] not in Run.Visibility.values:
            raise wrong("/visibility", f"must be one of {', '.join(Run.Visibility.values)}.")
        if body["visibility"] == Run.Visibility.PUBLIC and not view.caller.may("registry:publish"):
            raise Problem(403, "not_allowed", "This needs the scope registry:publish.", required_scope="registry:publish", granted=sorted(view.caller.scopes))
        if row.is_dry and body["visibility"] == Run.Visibility.PUBLIC:
            raise Conflict("dry_run", "No model was asked in this run, so it has nothing to publish.")
        if body["visibility"] == Run.Visibility.PUBLIC != row.visibility:
            if row.status not in TERMINAL:
                raise Conflict("run_not_over", f"The run is {row.status}: it is published once it has ended.")
            admitted(view, row, body)
        row.visibility = body["visibility"]
        fields.append("visibility")
    if "review_resolution" in body:
        row.review_resolution = text(body, "review_resolution", most=40)
        fields.append("review_resolution")
    if "metadata" in body:
        row.metadata = launching.metadata_of(body["metadata"])
        fields.append("metadata")
    if "tags" in body:
        row.tags = launching.tags_of(body["tags"])
        fields.append("tags")
    with transaction.atomic():
        # Of several who saw the same state one changes it; who names none changes whatever there is.
        same = Run.objects.filter(pk=row.pk, **({"etag": seen} if view.request.headers.get("If-Match", "*").strip() != "*" else {}))
        if not same.exclude(status=Run.Status.DELETED).update(etag=F("etag") + 1):
            raise view.mismatch()
        row.save(update_fields=fields)
        if "metadata" in fields:
            Metadatum.objects.filter(run=row).delete()
            Metadatum.objects.bulk_create(
                [Metadatum(run=row, name=n, value=launching.found_by(v)) for n, v in row.metadata.items() if isinstance(v, str | int | float | bool)]
            )
        audit.record(view.actor, "run.change", row.pk, {name: [None, getattr(row, name)] for name in fields if name != "metadata"})
    row.refresh_from_db()
    return shown(row)


def admitted(view: View, row: Run, body: Mapping[str, Any]) -> None:
    """Lets a run be published whose benchmark stood its checks, or whose publishing an admin answers for. Errors: Problem."""
    override = text(body, "override", most=500)
    if override and not is_admin(view.caller):
        raise Problem(403, "not_allowed", "Only an admin publishes in spite of failed checks.", required_scope="admin", granted=sorted(view.caller.scopes))
    found = admission.admit(row, override, view.actor)
    if found["status"] == "overridden":
        audit.record(view.actor, "admission.override", row.benchmark.name, {"run": [None, row.pk]}, override)


def destroy(row: Run) -> None:
    """Takes a run's data away in one go; the row stays as its own tombstone."""
    with transaction.atomic():
        # Whoever grades it again writes nothing more from here on.
        row.rescorings.filter(status__in=Rescoring.OPEN).update(status=Rescoring.Status.CANCELLED)
        files.forget(Q(run=row))
        for model in (Rescoring, Sample, Task, Metadatum):
            model.objects.filter(run=row).delete()
        row.events.all().delete()
        now = timezone.now()
        Run.objects.filter(pk=row.pk).update(
            status=Run.Status.DELETED, deleted_at=now, metadata={}, tags=[], launch={}, hints=None, visibility=Run.Visibility.PRIVATE, etag=F("etag") + 1
        )


class Halt(View):
    scopes = {"POST": ("runs:write",)}

    def post(self, request: Request, run: str) -> Response:
        """Stops a run; what has ended stays readable."""
        row = mine(self, run)
        reason = text(self.body(("reason",)), "reason", most=500)
        if row.status in TERMINAL:
            raise Conflict("run_over", f"The run is {row.status} already.")
        halt(row, "user_requested", reason)
        audit.record(self.actor, "run.halt", row.pk, reason=reason)
        engine.ring()
        row.refresh_from_db()
        return Response(shown(row), status=202)


def halt(row: Run, why: str, note: str = "") -> None:
    """Asks for a run's end. One that nobody has begun ends at once; else whoever works on it sees it within a second."""
    with transaction.atomic(), connection.cursor() as cursor:
        moved = Run.objects.filter(pk=row.pk, status=Run.Status.QUEUED).update(
            status=Run.Status.HALTED, halt_reason=why, halt_note=note, finished_at=timezone.now()
        )
        if moved:
            recording.tell(cursor, row.pk, [("RunFinished", {"status": "halted", "error": None, "halt_reason": why})])
        elif Run.objects.filter(pk=row.pk, status=Run.Status.RUNNING).update(status=Run.Status.HALTING, halt_reason=why, halt_note=note):
            recording.tell(cursor, row.pk, [("RunHalting", {"halt_reason": why, "note": note or None})])


class Publish(View):
    scopes = {"POST": ("registry:publish",)}

    def post(self, request: Request, run: str) -> Response:
        """Shares a run, and with it its benchmark: {"visibility": "team" | "public"}. `override` is an admin's reason in spite of failed checks."""
        row = mine(self, run)
        body = self.body(("visibility", "override"))
        return Response(changed(self, row, {"visibility": "public", **body}))


class Fingerprint(View):
    scopes = {"GET": ("runs:read",)}

    def get(self, request: Request, run: str) -> Response:
        """Gives one digest of all that a run's result depends on: equal ones are comparable."""
        row = find_run(self.caller, run)
        parts = {
            "selection": row.selection.get("digest"),
            "impl": row.impl_id,
            "sut": row.sut,
            "trials": row.trials,
            "harness": row.harness,
            "backend": row.backend,
        }
        return Response({"object": "fingerprint", "run": row.pk, "fingerprint": row.fingerprint, "parts": parts})
