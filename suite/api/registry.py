"""The registry beside the runs: leaderboards, comparisons, what was covered, how the comparison itself fares."""

from __future__ import annotations

import re

from rest_framework.request import Request
from rest_framework.response import Response

from panels.api.wording import to_json
from suite.api import shapes
from suite.api.problems import Unprocessable, Wrong, wrong
from suite.api.subsets import find_subset
from suite.api.view import View
from suite.models import Row, Run, SelfCheck, Task
from suite.registry import admission, comparing, leaderboards
from suite.running import summary, targets
from suite.running.targets import find_benchmark, find_run
from suite.seeing import readable_runs

MOST_POSITIONS = 1000


class Leaderboard(View):
    scopes = {"GET": ("registry:read",)}

    def get(self, request: Request, subset: str) -> Response:
        """Gives a board for each version and impl; they never mix. `rank` is the range that the intervals allow."""
        row = find_subset(self, subset)
        return Response({"data": leaderboards.boards(self.caller, row), "next": None})


class Admission(View):
    scopes = {"GET": ("registry:read",)}

    def get(self, request: Request, subset: str) -> Response:
        """Tells how the newest version stands the checks of publishing: what the right answer, none, always one and lots come to.

        Each version is tried once with each impl (?impl=), and anew with ?fresh=1: `checked_at` says when.
        """
        is_fresh = self.switched("fresh")
        row = find_subset(self, subset)
        if row.version == 0:
            raise Unprocessable("subset_not_runnable", "The subset has no tasks yet.")
        impl = targets.find_impl(self.caller, row, request.query_params.get("impl", ""))
        return Response({"object": "admission", **admission.tried(row, row.version, impl, fresh=is_fresh)})


class SubsetRuns(View):
    scopes = {"GET": ("registry:read",)}

    def get(self, request: Request, subset: str) -> Response:
        """Lists the runs of a subset that the caller may read, newest first."""
        row = find_subset(self, subset)
        rows = readable_runs(self.caller).filter(subset=row).exclude(status=Run.Status.DELETED).select_related("benchmark", "subset", "impl")
        page = self.keyset_page(rows, ("created_at", "id"))
        return Response({"data": [shapes.run(r) for r in page.data], "next": page.next})


class Compare(View):
    scopes = {"GET": ("runs:read",)}

    def get(self, request: Request) -> Response:
        """Compares runs with the first one named: ?runs=a,b,c. Each pair says better, worse or inconclusive, of the first."""
        names = [name for value in request.query_params.getlist("runs") for name in value.split(",") if name]
        if not 2 <= len(names) <= comparing.MOST_RUNS:
            raise Unprocessable("invalid_request", f"runs names 2 to {comparing.MOST_RUNS} runs, with commas between.", [Wrong("", "invalid", "runs")])
        runs = [find_run(self.caller, name) for name in dict.fromkeys(names)]
        if len(runs) < 2:
            raise wrong("", "runs names one run twice.")
        if going := [run.pk for run in runs if run.status not in (Run.Status.OK, Run.Status.FAILED, Run.Status.HALTED)]:
            raise Unprocessable("run_not_over", f"{', '.join(going)} has not ended yet.")
        pairs = comparing.compare(runs)
        return Response(
            {
                "object": "comparisons",
                "runs": [{**shapes.run(run), "summary": summary.of(run), "kinds": comparing.by_kind(run)} for run in runs],
                "pairs": pairs,
                "flips": comparing.flips(runs[0], runs[1]) if len(runs) == 2 else None,
            }
        )


class Coverage(View):
    scopes = {"GET": ("registry:read",)}

    def get(self, request: Request, benchmark: str) -> Response:
        """Tells which runs cover a range of task positions, and what is left: ?range=0-5&subset=."""
        found = find_benchmark(self.caller, benchmark)
        asked = re.fullmatch(r"(\d{1,9})-(\d{1,9})", request.query_params.get("range", ""))
        if asked is None or not int(asked[1]) <= int(asked[2]) < int(asked[1]) + MOST_POSITIONS:
            raise wrong("", f"range reads like 0-5 and spans at most {MOST_POSITIONS} positions.")
        first, last = int(asked[1]), int(asked[2])
        name = request.query_params.get("subset")
        runs = readable_runs(self.caller).filter(benchmark=found).exclude(status=Run.Status.DELETED)
        if name:
            runs = runs.filter(subset=find_subset(self, name))
        wanted = set(Row.objects.filter(subset__benchmark=found, position__gte=first, position__lte=last).values_list("position", flat=True))
        data = []
        covered: set[int] = set()
        for run in runs.select_related("subset").order_by("-created_at")[:200]:
            there = set(Task.objects.filter(run=run, scoring=run.scoring, position__gte=first, position__lte=last).values_list("position", flat=True))
            if there:
                covered |= there
                data.append(
                    {
                        "run": run.pk,
                        "subject": run.subject,
                        "subset": run.subset_id,
                        "version": run.version,
                        "impl": run.impl_id,
                        "covers": len(there),
                        "holes": sorted(wanted - there)[:200],
                    }
                )
        return Response(
            {"object": "coverage", "benchmark": found.pk, "range": [first, last], "data": data, "uncovered": sorted(wanted - covered), "next": None}
        )


class SelfChecks(View):
    scopes = {"GET": ("registry:read",)}

    def get(self, request: Request) -> Response:
        """Lists how often the comparison called equals different, newest first: what its verdicts are worth here."""
        page = self.keyset_page(SelfCheck.objects.all(), ("created_at", "id"))
        data = [
            {
                "object": "self_check",
                "first": row.first,
                "second": row.second,
                "trials": row.trials,
                "alarms": row.alarms,
                "false_alarm_rate": row.alarms / row.trials,
                "alpha": row.alpha,
                "sound": row.is_sound,
                "at": to_json(row.created_at),
            }
            for row in page.data
        ]
        return Response({"data": data, "next": page.next})
