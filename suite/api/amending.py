"""Benchmarks that were built here, mended in place by whoever owns them: how a subset is run, and its rows."""

from __future__ import annotations

import json
from typing import Any

from django.db import transaction
from rest_framework.request import Request
from rest_framework.response import Response

from access import audit
from panels.api.wording import to_json
from suite import ids
from suite.api import shapes
from suite.api.problems import Conflict, Missing, Problem, wrong
from suite.api.view import View, text
from suite.authoring import amending, rows
from suite.models import Row, Subset
from suite.running import targets
from suite.seeing import may_read_benchmark, owns


def built(view: View, slug: str, *, to_change: bool = False) -> Subset:
    """Finds a subset by slug or id among those that the caller may read, or change; the one in use before a retired one. Errors: Missing, Conflict."""
    name = ids.read(slug, "sub")
    live = Subset.objects.filter(deleted_at=None, benchmark__deleted_at=None).select_related("benchmark")
    found = [row for row in (live.filter(pk=name) if name else live.filter(slug=slug).order_by("-created_at")[:200]) if seen(view, row, to_change)]
    in_use = [row for row in found if row.retired_at is None] or found
    own = [row for row in in_use if row.benchmark.owner == view.caller.owner] or in_use
    if not own:
        raise Missing("subset", slug)
    if len({row.benchmark_id for row in own}) > 1:
        raise Conflict("slug_ambiguous", f"Several benchmarks have a subset {slug}. Name it by its id.", subsets=[row.pk for row in own])
    return own[0]


def seen(view: View, row: Subset, to_change: bool) -> bool:
    return owns(view.caller, row.benchmark) if to_change else may_read_benchmark(view.caller, row.benchmark)


def note_of(body: dict[str, Any]) -> str:
    return text(body, "note", most=500, required=True)


class Recipe(View):
    scopes = {"GET": ("registry:read",), "PATCH": ("registry:publish",)}

    def get(self, request: Request, slug: str) -> Response:
        """Reads how a subset is run: its recipe, and its grader."""
        return self.told(built(self, slug))

    def patch(self, request: Request, slug: str) -> Response:
        """Changes how a subset is run, with a note why. Its id stays; the next run is scored by another impl, and what has run keeps its own."""
        row = built(self, slug, to_change=True)
        body = self.body(("config", "note"))
        note = note_of(body)
        if not isinstance(body.get("config"), dict) or not body["config"]:
            raise wrong("/config", 'must be an object such as {"run_timeout": 900}.', "missing" if body.get("config") is None else "invalid")
        with transaction.atomic():
            row = Subset.objects.select_for_update().select_related("benchmark").get(pk=row.pk)
            self.matched(amending.recipe_state(row))
            before = self.impl_of(row)
            changed = amending.change_recipe(self.caller, row, body["config"])
            if changed:
                audit.record(self.actor, "recipe.change", f"{row.benchmark.name}/{row.slug}", changed, note)
        response = self.told(row)
        response.data |= {"changed": changed, "impl_before": before, "note": note}
        return response

    def impl_of(self, row: Subset) -> str | None:
        """Names the impl that the next run without one of its own is scored by."""
        try:
            return targets.find_impl(self.caller, row, "").pk
        except Problem:
            return None

    def told(self, row: Subset) -> Response:
        etag = amending.recipe_state(row)
        config = {**row.recipe, "grader": row.grader}
        response = Response(
            {
                "object": "recipe",
                "subset": row.pk,
                "slug": row.slug,
                "benchmark": row.benchmark_id,
                "config": config,
                "impl": self.impl_of(row),
                "changed_at": to_json(row.recipe_changed_at),
                "retired_at": to_json(row.retired_at),
                "replaced_by": row.replaced_by or None,
                "etag": etag,
            }
        )
        response["ETag"] = f'"{etag}"'
        return response


class Samples(View):
    scopes = {"GET": ("registry:read",), "PATCH": ("registry:publish",)}

    def get(self, request: Request, slug: str) -> Response:
        """Lists a subset's rows whole, in their order."""
        row = built(self, slug)
        page = self.keyset_page(Row.objects.filter(subset=row), ("position",), newest_first=False, bound_to=row.pk)
        etag = amending.samples_state(row)
        told = {"object": "samples", "subset": row.pk, "slug": row.slug, "version": row.version, "etag": etag}
        response = Response({**told, "data": [sample(one) for one in page.data], "next": page.next})
        response["ETag"] = f'"{etag}"'
        return response

    def patch(self, request: Request, slug: str) -> Response:
        """Mends rows, with a note why: another subset with the same slug and recipe takes the place of this one, which retires."""
        row = built(self, slug, to_change=True)
        body = self.body(("upsert", "remove", "note"))
        note = note_of(body)
        upserted = rows.read(body.get("upsert") or [], row.grader, at="/upsert")
        removed = body.get("remove") or []
        if not isinstance(removed, list) or not all(isinstance(name, str) for name in removed) or len(removed) > rows.MOST_ROWS:
            raise wrong("/remove", f"must be a list of at most {rows.MOST_ROWS} task ids.")
        if not upserted and not removed:
            raise wrong("/upsert", "or remove must name a row.", "missing")
        self.matched(amending.samples_state(row))
        with transaction.atomic():
            found = amending.change_samples(row, upserted, list(dict.fromkeys(removed)), note, self.caller.owner)
            if found.new is not found.old:
                changes = {"subset": [found.old.pk, found.new.pk], "rows": [0, len(found.changed) + len(found.added) + len(found.removed)]}
                audit.record(self.actor, "samples.change", f"{row.benchmark.name}/{row.slug}", changes, note)
        new = Subset.objects.get(pk=found.new.pk)
        return Response(
            {
                "object": "samples_change",
                "before": found.old.pk,
                "after": new.pk,
                "subset": shapes.subset(new),
                "counts": {"changed": len(found.changed), "added": len(found.added), "removed": len(found.removed)},
                "diff": found.diff(),
                "note": note,
            }
        )


def sample(row: Row) -> dict[str, Any]:
    body = json.loads(row.body)
    return {
        "task_id": row.task_id,
        "position": row.position,
        "kind": row.kind or None,
        "cluster": row.cluster or None,
        "digest": row.digest,
        "since": row.since,
        "input": body["input"],
        "expected": body["expected"],
        "source": body["source"],
    }
