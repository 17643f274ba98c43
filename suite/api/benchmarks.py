"""Benchmarks, to make and to read."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from access import audit
from access.caller import Caller
from suite import ids
from suite.api import shapes
from suite.api.deleting import taken_away
from suite.api.problems import Missing, Unprocessable
from suite.api.repeats import idempotent
from suite.api.view import View, labels, text, title, visibility_is_derived
from suite.models import Benchmark, Subset
from suite.running.targets import find_benchmark
from suite.seeing import owns, readable_benchmarks

FIELDS = ("name", "description", "category", "tags", "parents")
SORTS = {"name": ("name", "id"), "created_at": ("created_at", "id")}


class Benchmarks(View):
    scopes = {"POST": ("registry:publish",)}

    @idempotent
    def post(self, request: Request) -> Response:
        """Makes a benchmark, private until one of its runs is shared."""
        body = self.body(FIELDS)
        now = timezone.now()
        row = Benchmark.objects.create(
            id=ids.new_id("bm"),
            name=title(body, required=True),
            description=text(body, "description", most=20_000),
            category=text(body, "category", most=80),
            tags=labels(body, "tags"),
            parents=labels(body, "parents", longest=60),
            owner=self.caller.owner,
            team=self.caller.team,
            created_at=now,
            updated_at=now,
        )
        audit.record(self.actor, "benchmark.create", row.name)
        return Response(shapes.benchmark(row), status=201)


class OneBenchmark(View):
    scopes = {"GET": ("registry:read",), "PATCH": ("registry:publish",), "DELETE": ("registry:publish",)}

    def mine(self, benchmark: str) -> Benchmark:
        row = find_benchmark(self.caller, benchmark)
        if not owns(self.caller, row):
            raise Missing("benchmark", benchmark)
        return row

    def patch(self, request: Request, benchmark: str) -> Response:
        """Changes what it is called and about; its visibility follows from its runs."""
        row = self.mine(benchmark)
        body = self.body((*FIELDS, "visibility"))
        visibility_is_derived(body, "benchmark")
        if "name" in body:
            row.name = title(body, required=True)
        if "description" in body:
            row.description = text(body, "description", most=20_000)
        if "category" in body:
            row.category = text(body, "category", most=80)
        if "tags" in body:
            row.tags = labels(body, "tags")
        if "parents" in body:
            row.parents = labels(body, "parents", longest=60)
        row.updated_at = timezone.now()
        row.save(update_fields=["name", "description", "category", "tags", "parents", "updated_at"])
        audit.record(self.actor, "benchmark.change", row.name)
        return Response(shapes.benchmark(row))

    def delete(self, request: Request, benchmark: str) -> Response:
        """Takes a benchmark away that nothing was measured by."""
        row = self.mine(benchmark)
        return taken_away(self, row, "benchmark", "Runs refer to this benchmark, and they are history. Hide it by hiding its runs.", row.name)


class RegistryBenchmarks(View):
    scopes = {"GET": ("registry:read",)}
    filters = ("tag", "category", "owner")
    asks = ("sort", "q", "name")

    def get(self, request: Request) -> Response:
        """Lists benchmarks that the caller may see; ?name= finds one by name, ?q= by words of name and description."""
        rows = readable_benchmarks(self.caller)
        asked = self.filters_wanted()
        if "category" in asked:
            rows = rows.filter(category__in=asked["category"])
        if "owner" in asked:
            rows = rows.filter(owner__in=asked["owner"])
        if name := request.query_params.get("name"):
            rows = rows.filter(name=name)
        for word in request.query_params.get("q", "").split()[:10]:
            rows = rows.filter(Q(name__icontains=word) | Q(description__icontains=word))
        for tag in asked.get("tag", []):
            rows = rows.filter(pk__in=[pk for pk, tags in rows.values_list("pk", "tags") if tag in tags])
        sort = request.query_params.get("sort", "-created_at")
        bare = sort.lstrip("-")
        if bare not in SORTS:
            raise Unprocessable("unknown_sort", f"Benchmarks are sorted by {', '.join(SORTS)}.")
        said = {**asked, "name": request.query_params.getlist("name"), "q": request.query_params.getlist("q")}
        bound = "&".join(f"{name}={values}" for name, values in sorted(said.items())) + sort
        page = self.keyset_page(rows, SORTS[bare], sort.startswith("-"), bound_to=bound)
        return Response({"data": [shapes.benchmark(row) for row in page.data], "next": page.next})


class RegistryBenchmark(View):
    scopes = {"GET": ("registry:read",)}
    expandable = ("subsets", "edges")

    def get(self, request: Request, benchmark: str) -> Response:
        """Reads one benchmark; ?expand=subsets with its subsets, edges with the benchmarks that its tasks came from and went to."""
        row = find_benchmark(self.caller, benchmark)
        wanted = self.chosen("expand", self.expandable)
        subsets: Any = None
        if "subsets" in wanted:
            subsets = list(Subset.objects.filter(benchmark=row, deleted_at=None).order_by("created_at"))
        found = shapes.benchmark(row, subsets)
        return Response({**found, "edges": edges_of(self.caller, row)} if "edges" in wanted else found)


def edges_of(caller: Caller, row: Benchmark) -> dict[str, Any]:
    """Gives the benchmarks beside one that the caller may see, by who was derived from whom."""
    seen = readable_benchmarks(caller).exclude(pk=row.pk)
    children = [pk for pk, parents in seen.exclude(parents=[]).values_list("pk", "parents") if row.pk in parents]
    return {
        "derived_from": [{"id": pk, "name": name} for pk, name in seen.filter(pk__in=row.parents).order_by("created_at").values_list("pk", "name")],
        "derived": [{"id": pk, "name": name} for pk, name in seen.filter(pk__in=children).order_by("created_at").values_list("pk", "name")],
    }
