"""Subsets: made with rows, appended to, frozen, read."""

from __future__ import annotations

import re
from typing import Any, cast

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from access import audit
from suite import ids
from suite.api import shapes
from suite.api.deleting import taken_away
from suite.api.problems import Conflict, Missing, wrong
from suite.api.repeats import idempotent
from suite.api.uploads import Json, Lines, Ndjson
from suite.api.view import View, flag, text, title, visibility_is_derived
from suite.authoring import amending, graders, recipes, rows, subsets
from suite.models import Subset, Version
from suite.running.targets import find_benchmark
from suite.seeing import may_read_benchmark, owns, readable_benchmarks

FIELDS = ("slug", "name", "description", "tasks", "rolling", "grader", "recipe")
SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


def find_subset(view: View, asked: str, *, to_change: bool = False) -> Subset:
    """Finds a subset that the caller may read, or change. Errors: Missing."""
    name = ids.read(asked.partition("@")[0], "sub")
    row = Subset.objects.select_related("benchmark").filter(pk=name, deleted_at=None).first() if name else None
    if row is None or not may_read_benchmark(view.caller, row.benchmark) or (to_change and not owns(view.caller, row.benchmark)):
        raise Missing("subset", asked)
    return row


class Subsets(View):
    scopes = {"POST": ("registry:publish",), "GET": ("registry:read",)}

    @idempotent
    def post(self, request: Request, benchmark: str) -> Response:
        """Makes a subset of a benchmark, with at most 1,000 rows; more are appended."""
        parent = find_benchmark(self.caller, benchmark)
        if not owns(self.caller, parent):
            raise Missing("benchmark", benchmark)
        body = self.body(FIELDS)
        slug = text(body, "slug", most=120, required=True)
        if not SLUG.fullmatch(slug):
            raise wrong("/slug", "is made of letters, digits, dots, dashes and underscores.")
        grader = graders.read(body.get("grader"))
        new = rows.read(body.get("tasks") or [], grader)
        rolling, recipe = flag(body, "rolling"), recipes.read(body.get("recipe"), "/recipe")
        recipes.look_at_impl(self.caller, recipe, "/recipe/impl")
        name = title(body) or slug
        made = subsets.create(parent, slug, name, text(body, "description", most=20_000), new, rolling, grader, self.caller.owner, recipe)
        audit.record(self.actor, "subset.create", f"{parent.name}/{slug}")
        return Response(shapes.subset(made), status=201)

    def get(self, request: Request, benchmark: str) -> Response:
        """Lists a benchmark's subsets, the oldest first."""
        parent = find_benchmark(self.caller, benchmark)
        page = self.keyset_page(Subset.objects.filter(benchmark=parent, deleted_at=None), ("created_at", "id"), newest_first=False)
        return Response({"data": shapes.many_subsets(page.data), "next": page.next})


class OneSubset(View):
    scopes = {"PATCH": ("registry:publish",), "DELETE": ("registry:publish",)}

    def patch(self, request: Request, subset: str) -> Response:
        """Changes its words, freezes a rolling one for good, or retires it: it takes no new runs, and may name what took its place."""
        row = find_subset(self, subset, to_change=True)
        body = self.body(("name", "description", "rolling", "retired", "note", "replaced_by", "visibility"))
        visibility_is_derived(body, "subset")
        if "rolling" in body:
            wanted = flag(body, "rolling")
            if wanted and not row.rolling:
                raise Conflict("subset_frozen", "A frozen subset does not thaw: freezing is for good.")
            row.rolling = wanted
        if "name" in body:
            row.name = title(body, required=True)
        if "description" in body:
            row.description = text(body, "description", most=20_000)
        row.updated_at = timezone.now()
        with transaction.atomic():
            row.save(update_fields=["name", "description", "rolling", "updated_at"])
            if "retired" in body:
                self.retire(row, body)
            audit.record(self.actor, "subset.change", f"{row.benchmark.name}/{row.slug}", reason=row.retired_because)
        return Response(shapes.subset(row))

    def retire(self, row: Subset, body: dict[str, Any]) -> None:
        if not flag(body, "retired"):
            raise Conflict("subset_retired" if row.retired_at else "invalid_request", "Retiring is for good: make another subset.")
        by = find_subset(self, str(body["replaced_by"])).pk if body.get("replaced_by") else ""
        if by == row.pk:
            raise wrong("/replaced_by", "names the subset itself.")
        amending.retire(row, text(body, "note", most=500), by)

    def delete(self, request: Request, subset: str) -> Response:
        """Takes a subset away that nothing was measured by."""
        row = find_subset(self, subset, to_change=True)
        return taken_away(self, row, "subset", "Runs refer to this subset, and they are history.", f"{row.benchmark.name}/{row.slug}")


class SubsetTasks(View):
    """Rows, by JSON or as NDJSON."""

    scopes = {"POST": ("registry:publish",)}
    parser_classes = [Json, Ndjson]

    @idempotent
    def post(self, request: Request, subset: str) -> Response:
        """Appends rows to a rolling subset, all of them or none. The same row again is nothing new."""
        row = find_subset(self, subset, to_change=True)
        if isinstance(lines := cast(Any, request.data), Lines):
            new = rows.read_lines(lines, row.grader)
        else:
            new = rows.read(self.body(("tasks",)).get("tasks"), row.grader)
        changed, added, there = subsets.append(row.pk, new, self.caller.owner)
        audit.record(self.actor, "subset.append", f"{row.benchmark.name}/{row.slug}", reason=f"{added} rows")
        return Response({**shapes.subset(changed), "added": added, "unchanged": there})


class RegistrySubsets(View):
    scopes = {"GET": ("registry:read",)}
    filters = ("benchmark", "slug", "passes", "retired")
    asks = ("q",)

    def get(self, request: Request) -> Response:
        """Lists subsets of benchmarks that the caller may see, the oldest first; ?q= finds by words of slug and name. `passes`: what runs by itself."""
        asked = self.filters_wanted()
        rows = Subset.objects.filter(deleted_at=None)
        if "benchmark" in asked:
            rows = rows.filter(benchmark__in=[find_benchmark(self.caller, name) for name in asked["benchmark"]])
        else:
            rows = rows.filter(benchmark__in=readable_benchmarks(self.caller))
        if "slug" in asked:
            rows = rows.filter(slug__in=asked["slug"])
        if "retired" in asked:
            rows = rows.filter(retired_at__isnull=not truth("retired", asked["retired"][-1]))
        if "passes" in asked:
            # Not by ~Q: of a recipe that does not say, neither holds.
            marked = Subset.objects.filter(recipe__passes=True).values("pk")
            rows = rows.filter(pk__in=marked) if truth("passes", asked["passes"][-1]) else rows.exclude(pk__in=marked)
        words = request.query_params.get("q", "").split()[:10]
        for word in words:
            rows = rows.filter(Q(slug__icontains=word) | Q(name__icontains=word))
        bound = "&".join(f"{name}={values}" for name, values in sorted({**asked, "q": words}.items()))
        page = self.keyset_page(rows, ("created_at", "id"), newest_first=False, bound_to=bound)
        return Response({"data": shapes.many_subsets(page.data), "next": page.next})


def truth(name: str, said: str) -> bool:
    if said not in ("true", "false"):
        raise wrong("", f"{name} is true or false.")
    return said == "true"


class RegistrySubset(View):
    scopes = {"GET": ("registry:read",)}

    def get(self, request: Request, subset: str) -> Response:
        """Reads one subset."""
        return Response(shapes.subset(find_subset(self, subset)))


class SubsetVersions(View):
    scopes = {"GET": ("registry:read",)}

    def get(self, request: Request, subset: str) -> Response:
        """Lists a subset's versions, newest first."""
        row = find_subset(self, subset)
        page = self.keyset_page(Version.objects.filter(subset=row), ("number",))
        return Response({"data": [shapes.version(v) for v in page.data], "next": page.next})


class SubsetDiff(View):
    scopes = {"GET": ("registry:read",)}

    def get(self, request: Request, subset: str) -> Response:
        """Tells which rows a version has that an earlier one had not: ?from=1&to=3."""
        row = find_subset(self, subset)
        ends = []
        for name, default in (("from", max(row.version - 1, 0)), ("to", row.version)):
            asked = request.query_params.get(name, str(default))
            if not asked.isdecimal() or int(asked) > row.version:
                raise wrong("", f"{name} must be a version from 0 to {row.version}.")
            ends.append(int(asked))
        added = row.rows.filter(since__gt=ends[0], since__lte=ends[1]).order_by("position").values_list("task_id", "digest")
        data = [{"task_id": task_id, "digest": digest, "change": "added"} for task_id, digest in added[:10_000]]
        return Response({"object": "subset_diff", "subset": row.pk, "from": ends[0], "to": ends[1], "data": data, "next": None})
