"""What a run's tasks say together: always of the whole run, whatever page or filter is looked at."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.db.models import Avg, Count, Sum

from panels.api.wording import to_json
from suite.api.shapes import usd
from suite.grading.outcomes import SCORED, Outcome
from suite.models import Run, Sample, Task
from suite.review import scores as review
from suite.running import agreeing
from suite.statistics import intervals
from suite.statistics.intervals import Interval

# A clustered interval needs every score; above this many the plain one of the rate is given, which says so.
MOST_FOR_CLUSTERS = 200_000


def of(run: Run, scoring: int | None = None) -> dict[str, Any]:
    """Sums up a run's tasks in one scoring, the newest without one."""
    number = run.scoring if scoring is None else scoring
    tasks = Task.objects.filter(run=run, scoring=number)
    outcomes = {row["outcome"]: row["n"] for row in tasks.values("outcome").annotate(n=Count("id"))}
    sums = tasks.aggregate(mean=Avg("score"), cost=Sum("cost_pusd"), input=Sum("input_tokens"), output=Sum("output_tokens"))
    passed = outcomes.get(Outcome.PASSED, 0)  # of the same look: while a run goes on, another would find more
    scored = sum(n for outcome, n in outcomes.items() if outcome in SCORED)
    done = sum(outcomes.values())
    interval = of_rate(run, number, passed, scored)
    p50, p95 = percentiles(run, number, done)
    return {
        "total": run.total,
        "done": done,
        "passed": passed,
        "failed": scored - passed,
        "scored": scored,
        "errored": outcomes.get(Outcome.INFRASTRUCTURE, 0),
        "unscored": done - scored,
        "truncated": outcomes.get(Outcome.TRUNCATED, 0),
        "refused": outcomes.get(Outcome.REFUSED, 0),
        "unparsed": outcomes.get(Outcome.UNPARSED, 0),
        "judge_failed": outcomes.get(Outcome.JUDGE_FAILED, 0),
        "limit": outcomes.get(Outcome.LIMIT, 0),
        "skipped": run.total - done,
        "outcomes": outcomes,
        "pass_rate": passed / scored if scored else None,
        "mean": sums["mean"],
        "coverage": scored / run.total if run.total else None,
        "stderr": interval.stderr if interval else None,
        "ci95": [max(0.0, interval.low), min(1.0, interval.high)] if interval else None,
        "clusters": interval.clusters if interval else None,
        "duration_ms_p50": p50,
        "duration_ms_p95": p95,
        "cost_usd": to_json(usd(run.cost_pusd)),
        "cost_complete": not run.has_unpriced,
        "tokens": {"input": sums["input"] or 0, "output": sums["output"] or 0},
        "review": review.of(run, number),
        "judges": agreeing.of(run),
        "version": number,
        "warnings": warnings_of(outcomes, done),
    }


def of_rate(run: Run, scoring: int, passed: int, scored: int, confidence: float = intervals.CONFIDENCE) -> Interval | None:
    """Gives the pass rate's interval: Wilson's, or where tasks come in clusters the mean's, which is wider."""
    tasks = Task.objects.filter(run=run, scoring=scoring, score__isnull=False)
    if scored == 0 or scored > MOST_FOR_CLUSTERS or not tasks.exclude(cluster="").exists():
        return intervals.wilson(passed, scored, confidence)
    rows = list(tasks.values_list("passed", "cluster", "position"))
    return intervals.mean([float(bool(p)) for p, _, _ in rows], [cluster or position for _, cluster, position in rows], confidence)


def percentiles(run: Run, scoring: int, done: int) -> tuple[int | None, int | None]:
    """Reads two quantiles of the durations by their place, which an index of the run's tasks makes cheap."""
    if not done:
        return None, None
    found = []
    with connection.cursor() as cursor:
        for share in (0.5, 0.95):
            place = min(done - 1, int(share * done))
            cursor.execute(
                "SELECT duration_ms FROM suite_task WHERE run_id = %s AND scoring = %s ORDER BY duration_ms LIMIT 1 OFFSET %s", [run.pk, scoring, place]
            )
            row = cursor.fetchone()
            found.append(row[0] if row else None)
    return found[0], found[1]


def warnings_of(outcomes: dict[str, int], done: int) -> list[str]:
    found = []
    if done and outcomes.get(Outcome.TRUNCATED, 0) / done > 0.05:
        found.append("More than 5% of the answers were cut off by the output limit: raise max_tokens before comparing this run with others.")
    if done and outcomes.get(Outcome.UNPARSED, 0) / done > 0.2:
        found.append("More than 20% of the answers had none of the forms that were asked for: look at some before trusting the rate.")
    return found


def finish_reasons(run: Run) -> dict[str, int]:
    return {row["finish_reason"]: row["n"] for row in Sample.objects.filter(run=run, superseded=0).values("finish_reason").annotate(n=Count("id"))}
