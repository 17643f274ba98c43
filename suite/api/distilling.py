"""Subsets made of what runs failed."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from access import audit
from suite import ids
from suite.api import shapes
from suite.api.problems import Conflict, Missing, wrong
from suite.api.repeats import idempotent
from suite.api.subsets import SLUG
from suite.api.view import View, flag, labels, text, title
from suite.authoring import distilling, graders, inheriting, subsets
from suite.authoring.distilling import Chosen
from suite.models import Benchmark, Run, Subset
from suite.registry import sweeps
from suite.running.targets import find_benchmark, find_run
from suite.seeing import owns

FIELDS = ("runs", "sweep", "rule", "k", "benchmark", "slug", "name", "description", "category", "tags", "rolling", "grader", "copy_impl")
MOST_NAMED = 20
OVER = (Run.Status.OK, Run.Status.FAILED, Run.Status.HALTED)


class Distil(View):
    scopes = {"POST": ("registry:publish",)}

    @idempotent
    def post(self, request: Request) -> Response:
        """Makes a subset of the tasks that all of some runs failed, k of them, or that tell them apart; in a benchmark of the caller's, or a new one.

        With ?dry_run=1 nothing is made: the answer tells how many tasks it would be, and which come first.
        """
        is_dry = self.switched("dry_run")
        body = self.body(FIELDS)
        runs = self.runs(body)
        rule, k = distilling.rule_of(body.get("rule"), body.get("k"), len(runs))
        slug = text(body, "slug", most=120, default="distilled") or "distilled"
        if not SLUG.fullmatch(slug):
            raise wrong("/slug", "is made of letters, digits, dots, dashes and underscores.")
        name, description = title(body), text(body, "description", most=20_000)
        if is_dry:
            return Response(looked_at(runs, rule, k))
        if not name and body.get("benchmark") is None:
            raise wrong("/name", "is needed for a new benchmark; or name a benchmark of yours.", "missing")
        copies = flag(body, "copy_impl", True)
        grader = graders.read(body["grader"]) if body.get("grader") is not None else distilling.grader_of(runs) if copies else None
        recipe = distilling.recipe_of(runs) if copies else {}
        chosen = distilling.choose(runs, rule, k)
        rows = distilling.distil(chosen, rule)
        with transaction.atomic():
            parent = self.benchmark(body, name, description, runs)
            made = subsets.create(parent, slug, name or slug, description, rows, flag(body, "rolling"), grader, self.caller.owner, recipe)
            if grader is not None:
                inheriting.fits(made, grader)
            is_one = copies and grader is None and len({run.impl_id for run in runs}) == 1
            impl = inheriting.inherit(made, runs[0]).pk if is_one else None
            audit.record(self.actor, "subset.distil", f"{parent.name}/{slug}", reason=f"{rule}: {len(rows)} of {chosen.looked_at}")
        told = {**counted(chosen, runs, rule, k, len(rows)), "impl": impl}
        return Response({**shapes.subset(Subset.objects.get(pk=made.pk)), "distilled": told, "parents": parent.parents}, status=201)

    def runs(self, body: dict[str, Any]) -> list[Run]:
        """Reads which runs are looked at: those named, or a sweep's with its anchor. Errors: Problem."""
        if (body.get("runs") is None) == (body.get("sweep") is None):
            raise wrong("/runs", "or sweep must be given, one of them.", "missing")
        if body.get("sweep") is not None:
            asked = text(body, "sweep", most=60, required=True)
            sweep = sweeps.readable(self.caller, ids.read(asked, "swp"))
            if sweep is None:
                raise Missing("sweep", asked)
            runs = sweeps.runs_of(self.caller, sweep)
        else:
            named = body["runs"]
            if not isinstance(named, list) or not 1 <= len(named) <= distilling.MOST_RUNS or not all(isinstance(n, str) for n in named):
                raise wrong("/runs", f"must be a list of 1 to {distilling.MOST_RUNS} run ids.")
            runs = list({run.pk: run for run in [find_run(self.caller, n) for n in named]}.values())
        if going := [run.pk for run in runs if run.status not in OVER]:
            raise Conflict("run_not_over", f"{', '.join(going[:10])} has not ended, or was deleted.", runs=going)
        if not runs:
            raise wrong("/sweep", "has no runs that you may see.")
        return runs

    def benchmark(self, body: dict[str, Any], name: str, description: str, runs: list[Run]) -> Benchmark:
        """Finds the benchmark that the subset joins, or makes one; its parents are those that the tasks came from."""
        sources = list(dict.fromkeys(run.benchmark_id for run in runs))
        if body.get("benchmark") is not None:
            row = find_benchmark(self.caller, text(body, "benchmark", most=200, required=True))
            if not owns(self.caller, row):
                raise Missing("benchmark", row.pk)
            row.parents = list(dict.fromkeys([*row.parents, *(s for s in sources if s != row.pk)]))
            row.updated_at = timezone.now()
            row.save(update_fields=["parents", "updated_at"])
            return row
        now = timezone.now()
        return Benchmark.objects.create(
            id=ids.new_id("bm"),
            name=name,
            description=description,
            category=text(body, "category", most=80),
            tags=labels(body, "tags"),
            parents=sources,
            owner=self.caller.owner,
            team=self.caller.team,
            created_at=now,
            updated_at=now,
        )


def looked_at(runs: list[Run], rule: str, k: int) -> dict[str, Any]:
    """Tells what a distilling would take, with the first names of it."""
    chosen = distilling.choose(runs, rule, k)
    names = distilling.task_ids(chosen)
    return {"object": "distillation", "dry_run": True, **counted(chosen, runs, rule, k, len(names)), "task_ids": names[:MOST_NAMED]}


def counted(chosen: Chosen, runs: list[Run], rule: str, k: int, taken: int) -> dict[str, Any]:
    return {
        "rule": rule,
        "k": None if rule == "failed_by_all" else k,
        "runs": [run.pk for run in runs],
        "taken": taken,
        "looked_at": chosen.looked_at,
        "per_source": chosen.per_source,
    }
