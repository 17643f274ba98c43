"""A run's files: listed, described, given as they are; its report; what it cost."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from suite import ids
from suite.api import shapes
from suite.api.problems import Missing, Problem, wrong
from suite.api.view import View
from suite.models import Artifact, Run
from suite.reporting import costs, files, page
from suite.running.targets import find_run
from suite.seeing import owns

RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
LOCKED = "sandbox; default-src 'none'"


def alive(view: View, run: str) -> Run:
    """Finds a run whose data is still there. Errors: Missing."""
    row = find_run(view.caller, run)
    if row.status == Run.Status.DELETED:
        raise Missing("run", run)
    return row


def seen(view: View, run: Run) -> Any:
    """Gives a run's artifacts that the caller may have: a scorer that its owner hides is not among them."""
    rows = Artifact.objects.filter(run=run).select_related("blob").defer("blob__content")
    return rows.exclude(type="task_impl") if run.impl.is_hidden and not owns(view.caller, run.impl) else rows


class Artifacts(View):
    scopes = {"GET": ("artifacts:read",)}
    filters = ("type", "include_versions")

    def get(self, request: Request, run: str) -> Response:
        """Lists a run's files, the newest version of each; ?type=, ?include_versions=true."""
        row = alive(self, run)
        asked = self.filters_wanted()
        types = [part for value in asked.get("type", []) for part in value.split(",")]
        if unknown := [name for name in types if name not in files.TYPES]:
            raise wrong("", f"type knows no {', '.join(unknown)[:80]}. There are: {', '.join(files.TYPES)}.")
        said = asked.get("include_versions", ["false"])[-1].lower()
        if said not in ("true", "false"):
            raise wrong("", "include_versions is true or false.")
        files.ensure(row, types or files.TYPES)
        rows = seen(self, row)
        if types:
            rows = rows.filter(type__in=types)
        if said == "false":
            newest = {maker.type: maker.version for maker in files.makers(row)}
            rows = rows.filter(pk__in=[pk for pk, name, version in rows.values_list("pk", "type", "version") if version == newest.get(name)])
        page_ = self.keyset_page(rows, ("type", "version", "name", "id"), newest_first=False, bound_to=str(asked))
        return Response({"data": [shown(one) for one in page_.data], "next": page_.next})


def shown(row: Artifact) -> dict[str, Any]:
    return {**shapes.artifact(row), "links": {"content": shapes.link(f"/v1/runs/{row.run_id}/artifacts/{row.pk}/content")}}


class OneArtifact(View):
    scopes = {"GET": ("artifacts:read",)}

    def find(self, run: str, artifact: str) -> Artifact:
        row = alive(self, run)
        name = ids.read(artifact, "art")
        found: Artifact | None = seen(self, row).filter(pk=name).first() if name else None
        if found is None:
            raise Missing("artifact", artifact)
        return found

    def get(self, request: Request, run: str, artifact: str) -> Response:
        """Tells of one file of a run: type, size and digest."""
        return Response(shown(self.find(run, artifact)))


class ArtifactContent(OneArtifact):
    def get(self, request: Request, run: str, artifact: str) -> HttpResponse:  # type: ignore[override]
        """Gives a file as it is, to be saved, never shown: with its digest as ETag, whole or a range of it."""
        row = self.find(run, artifact)
        response = sent(request, files.content_of(row.blob), row.blob_id, row.media_type)
        response["Content-Disposition"] = f"attachment; filename=\"{row.name}\"; filename*=UTF-8''{quote(row.name)}"
        response["Content-Security-Policy"] = LOCKED
        return response


def sent(request: Request, content: bytes, digest: str, media_type: str) -> HttpResponse:
    """Answers with bytes, as far as they are wanted. Errors: Problem 416."""
    etag = f'"{digest}"'
    headers = {"ETag": etag, "Accept-Ranges": "bytes", "X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-cache"}
    if etag in [part.strip().removeprefix("W/") for part in request.headers.get("If-None-Match", "").split(",")]:
        return HttpResponse(status=304, headers=headers)
    asked = RANGE.fullmatch(request.headers.get("Range", "").replace(" ", ""))
    fresh = request.headers.get("If-Range", etag) == etag
    if asked is None or not (asked[1] or asked[2]) or not fresh:
        return HttpResponse(content, content_type=media_type, headers=headers)
    size = len(content)
    first = int(asked[1]) if asked[1] else max(0, size - int(asked[2]))
    last = min(int(asked[2]), size - 1) if asked[1] and asked[2] else size - 1
    if first > last:
        raise Problem(416, "range_not_satisfiable", f"The file has {size} bytes.", size=size)
    headers["Content-Range"] = f"bytes {first}-{last}/{size}"
    return HttpResponse(content[first : last + 1], status=206, content_type=media_type, headers=headers)


class Report(View):
    scopes = {"GET": ("runs:read",)}

    def get(self, request: Request, run: str) -> HttpResponse:
        """Gives the run's report as HTML that stands alone. Of a run under way, the results so far."""
        row = alive(self, run)
        if row.status in files.OVER:
            files.ensure(row, ("report",))
            kept = Artifact.objects.select_related("blob").get(run=row, type="report", version=row.scoring)
            response = sent(request, files.content_of(kept.blob), kept.blob_id, kept.media_type)
        else:
            response = HttpResponse(page.written(row), content_type="text/html; charset=utf-8")
        response["Content-Disposition"] = f'inline; filename="{row.pk}.html"'
        response["Content-Security-Policy"] = page.POLICY
        return response


class Cost(View):
    scopes = {"GET": ("runs:read",)}

    def get(self, request: Request, run: str) -> Response:
        """Tells what a run cost, by what its calls were for, with and without a known price."""
        return Response(costs.of(find_run(self.caller, run)))
