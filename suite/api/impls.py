"""Scorers: kept by content, read back, named."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from access import audit
from suite import ids
from suite.api import shapes
from suite.api.deleting import taken_away
from suite.api.problems import Missing, Unprocessable, wrong
from suite.api.repeats import idempotent
from suite.api.subsets import find_subset
from suite.api.view import View, flag, text
from suite.authoring import impls, inheriting
from suite.models import Impl, Run
from suite.running.targets import find_benchmark, find_run
from suite.seeing import may_read_impl, owns, readable_runs


def find_impl(view: View, asked: str, *, to_change: bool = False) -> Impl:
    """Finds an impl that the caller may read: their own, their benchmarks', or one that scored a run which they may read. Errors: Missing."""
    name = ids.read(asked, "imp")
    row = Impl.objects.select_related("benchmark").filter(pk=name, deleted_at=None).first() if name else None
    if row is not None and (owns(view.caller, row) if to_change else may_read_impl(view.caller, row)):
        return row
    raise Missing("impl", asked)


class Impls(View):
    scopes = {"GET": ("registry:read",), "POST": ("registry:publish",)}
    filters = ("subset", "benchmark", "language")

    def get(self, request: Request) -> Response:
        """Lists the impls of a subset or a benchmark, newest first: ?subset= or ?benchmark=, perhaps ?language=."""
        asked = self.filters_wanted()
        rows = Impl.objects.filter(deleted_at=None).select_related("benchmark")
        if "subset" in asked:
            subsets = [find_subset(self, name) for name in asked["subset"]]
            # What a subset took over from elsewhere stands in its recipe; a built-in grader's is one for all subsets, so that runs alone tell of it.
            taken = [str(subset.recipe.get("impl") or "") for subset in subsets]
            used = readable_runs(self.caller).filter(subset__in=subsets).values("impl")
            rows = rows.filter(Q(subset__in=subsets) | Q(pk__in=taken) | Q(pk__in=used))
        elif "benchmark" in asked:
            rows = rows.filter(benchmark__in=[find_benchmark(self.caller, name) for name in asked["benchmark"]])
        else:
            raise Unprocessable("filter_missing", "Say whose impls: subset=sub_… or benchmark=bm_….")
        if "language" in asked:
            rows = rows.filter(language__in=asked["language"])
        page = self.keyset_page(rows, ("created_at", "id"), bound_to=str(sorted(asked.items())))
        return Response({"data": [shapes.impl(row) for row in page.data], "next": page.next})

    @idempotent
    def post(self, request: Request) -> Response:
        """Keeps a scorer. The same bytes are the same impl: then 200, not 201."""
        body = self.body(("benchmark", "subset", "label", "language", "code", "description", "hidden"))
        subset = find_subset(self, str(body["subset"]), to_change=True) if body.get("subset") else None
        benchmark = find_benchmark(self.caller, str(body["benchmark"])) if body.get("benchmark") else subset.benchmark if subset else None
        code = text(body, "code", most=impls.MOST_BYTES, required=True)
        label, description = text(body, "label", most=200), text(body, "description", most=20_000)
        row, is_new = impls.create(self.caller, code, text(body, "language", most=20, default="python"), label, description, benchmark, subset)
        if subset is not None and subset.recipe.get("impl") not in (None, row.pk):
            # What is made for a subset now counts before what it took over from elsewhere.
            subset.recipe = {**subset.recipe, "impl": row.pk}
            subset.save(update_fields=["recipe"])
        if is_new:
            if flag(body, "hidden"):
                row.is_hidden = True
                row.save(update_fields=["is_hidden"])
            audit.record(self.actor, "impl.create", row.pk)
        return Response(shapes.impl(row), status=201 if is_new else 200)


class ImplsFromRun(View):
    scopes = {"POST": ("registry:publish",)}

    @idempotent
    def post(self, request: Request) -> Response:
        """Keeps the impl that a run was scored by, under a name of its own for another subset."""
        body = self.body(("from_run", "benchmark", "subset", "label", "description"))
        run = find_run(self.caller, text(body, "from_run", most=60, required=True))
        subset = find_subset(self, str(body["subset"]), to_change=True) if body.get("subset") else None
        if body.get("benchmark") and subset is not None and find_benchmark(self.caller, str(body["benchmark"])).pk != subset.benchmark_id:
            raise wrong("/subset", "is none of that benchmark's.")
        label, description = text(body, "label", most=200), text(body, "description", most=20_000)
        with transaction.atomic():
            impl = inheriting.inherit(subset, run) if subset is not None else inheriting.of_run(run)
            if owns(self.caller, impl):
                impl.label, impl.description = label or impl.label, description or impl.description
                impl.from_run, impl.updated_at = impl.from_run or run.pk, timezone.now()
                impl.save(update_fields=["label", "description", "from_run", "updated_at"])
            audit.record(self.actor, "impl.from_run", impl.pk, reason=run.pk)
        return Response({**shapes.impl(impl), "from_run": run.pk, "subset": subset.pk if subset else impl.subset_id}, status=201)


class OneImpl(View):
    scopes = {"GET": ("registry:read",), "PATCH": ("registry:publish",), "DELETE": ("registry:publish",)}

    def get(self, request: Request, impl: str) -> Response:
        """Reads one impl: its grader, or its code's digest and what it depends on."""
        return Response(shapes.impl(find_impl(self, impl)))

    def patch(self, request: Request, impl: str) -> Response:
        """Changes what it is called. Its content never changes."""
        row = find_impl(self, impl, to_change=True)
        body = self.body(("label", "description", "hidden"))
        if "label" in body:
            row.label = text(body, "label", most=200)
        if "description" in body:
            row.description = text(body, "description", most=20_000)
        if "hidden" in body:
            row.is_hidden = flag(body, "hidden")
        row.updated_at = timezone.now()
        row.save(update_fields=["label", "description", "is_hidden", "updated_at"])
        return Response(shapes.impl(row))

    def delete(self, request: Request, impl: str) -> Response:
        """Takes an impl away that no run was scored by."""
        row = find_impl(self, impl, to_change=True)
        return taken_away(self, row, "impl", "Runs were scored by this impl, and they are history.", row.pk)


class ImplCode(View):
    scopes = {"GET": ("registry:read",)}

    def get(self, request: Request, impl: str) -> HttpResponse:
        """Gives the code as text, to whoever may read a run that it scored, unless its owner hides it."""
        row = find_impl(self, impl)
        if row.language == "builtin" or (row.is_hidden and not owns(self.caller, row)):
            raise Missing("impl", impl, "code_not_found")
        response = HttpResponse(row.code.encode("utf-8", "surrogatepass"), content_type="text/plain; charset=utf-8")
        response["X-Content-Type-Options"] = "nosniff"
        response["Content-Disposition"] = 'attachment; filename="task_impl.py"'
        return response


class ImplRuns(View):
    scopes = {"GET": ("registry:read",)}

    def get(self, request: Request, impl: str) -> Response:
        """Lists the runs that an impl scored, newest first."""
        row = find_impl(self, impl)
        rows = readable_runs(self.caller).filter(impl=row).exclude(status=Run.Status.DELETED).select_related("benchmark", "subset")
        page = self.keyset_page(rows, ("created_at", "id"))
        return Response({"data": [shapes.run(r) for r in page.data], "next": page.next})
