"""What a run's tasks say together: always of the whole run, whatever page or filter is looked at."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models import Avg, Count, Q, Sum

from panels.api.wording import to_json
from suite.api.shapes import usd
from suite.grading.noise import READS_LIKE_ERROR
from suite.grading.outcomes import SCORED, Outcome
from suite.models import Run, Sample, Summary, Task
from suite.review import scores as review
from suite.running import agreeing, recording
from suite.statistics import intervals, reducers
from suite.statistics.intervals import Interval

# A clustered interval needs every score; above this many the plain one of the rate is given, which says so.
MOST_FOR_CLUSTERS = 200_000


# What is kept of runs that have ended; another form of it is summed anew.
FORM = 3
# Of a run that goes on, and is so large that summing it takes its time, a sum may be so old. Units: tasks, seconds.
LARGE, FRESH_S, MOST_RECENT = 5_000, 5.0, 64
recent: dict[tuple[str, int], tuple[float, dict[str, Any]]] = {}


def of(run: Run, scoring: int | None = None) -> dict[str, Any]:
    """Sums up a run's tasks in one scoring, the newest without one."""
    found: dict[str, Any] = whole(run, run.scoring if scoring is None else scoring)["summary"]
    return found


def by_kind(run: Run) -> dict[str, Mapping[str, Any]]:
    """Breaks a run's rate down by kind of task, each with its own interval."""
    found: dict[str, Mapping[str, Any]] = whole(run, run.scoring)["kinds"]
    return found


def whole(run: Run, scoring: int) -> dict[str, Any]:
    """Gives all that is said of a run's tasks together. What has ended is summed once, and kept; of a large one that goes on a sum may be some seconds old."""
    is_over = run.status in recording.TERMINAL
    if is_over:
        kept = Summary.objects.filter(run=run, scoring=scoring, seq=run.last_seq).values_list("body", flat=True).first()
        if kept and kept.get("form") == FORM:
            return dict(kept)
    elif (known := recent.get((run.pk, scoring))) and time.monotonic() - known[0] < FRESH_S:
        return known[1]
    found: dict[str, Any] = {"form": FORM, "summary": summed(run, scoring), "kinds": kinds(run, scoring)}
    if is_over:
        with suppress(DatabaseError), transaction.atomic():  # two who sum at once keep the same
            Summary.objects.update_or_create(run=run, scoring=scoring, defaults={"seq": run.last_seq, "body": found})
    elif found["summary"]["done"] >= LARGE:
        while len(recent) >= MOST_RECENT:
            recent.pop(next(iter(recent)), None)
        recent[(run.pk, scoring)] = (time.monotonic(), found)
    return found


def wholes(runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """Gives the same of many runs, by id, each in its newest scoring. One query for all that are kept."""
    rows = Summary.objects.filter(run_id__in=[run.pk for run in runs]).values_list("run_id", "scoring", "seq", "body")
    kept = {(run_id, scoring, seq): body for run_id, scoring, seq, body in rows if body.get("form") == FORM}
    return {run.pk: kept.get((run.pk, run.scoring, run.last_seq)) or whole(run, run.scoring) for run in runs}


def keep(run_id: str) -> None:
    """Sums up a run that has just ended, so that nobody waits for it who looks."""
    run = Run.objects.filter(pk=run_id).first()
    if run is not None and run.status in recording.TERMINAL:
        whole(run, run.scoring)


def kinds(run: Run, scoring: int) -> dict[str, Mapping[str, Any]]:
    rows = (
        Task.objects.filter(run=run, scoring=scoring)
        .values("kind")
        .annotate(n=Count("id"), scored=Count("id", filter=Q(passed__isnull=False)), passes=Count("id", filter=Q(passed=True)))
        .order_by("kind")
    )
    found: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        interval = intervals.wilson(row["passes"], row["scored"])
        found[row["kind"] or "other"] = {
            "total": row["n"],
            "scored": row["scored"],
            "passed": row["passes"],
            "pass_rate": interval.estimate if interval else None,
            "ci95": [interval.low, interval.high] if interval else None,
        }
    return found


def summed(run: Run, number: int) -> dict[str, Any]:
    tasks = Task.objects.filter(run=run, scoring=number)
    outcomes = {row["outcome"]: row["n"] for row in tasks.values("outcome").annotate(n=Count("id"))}
    odd = Count("id", filter=Q(reason=READS_LIKE_ERROR))
    sums = tasks.aggregate(mean=Avg("score"), cost=Sum("cost_pusd"), input=Sum("input_tokens"), output=Sum("output_tokens"), odd=odd)
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
        "trials": of_trials(run, number),
        "review": review.of(run, number),
        "judges": agreeing.of(run) if number == 1 else None,  # only runs ask them
        "version": number,
        "warnings": warnings_of(outcomes, done, sums["odd"]),
    }


def of_rate(run: Run, scoring: int, passed: int, scored: int, confidence: float = intervals.CONFIDENCE) -> Interval | None:
    """Gives the pass rate's interval: Wilson's, and where tasks come in clusters as wide as those make it."""
    tasks = Task.objects.filter(run=run, scoring=scoring, score__isnull=False)
    if scored == 0 or scored > MOST_FOR_CLUSTERS or not tasks.exclude(cluster="").exists():
        return intervals.wilson(passed, scored, confidence)
    rows = list(tasks.values_list("passed", "cluster", "position"))
    return intervals.rate([bool(p) for p, _, _ in rows], [cluster or position for _, cluster, position in rows], confidence)


def of_trials(run: Run, scoring: int) -> dict[str, Any] | None:
    """Tells what several trials of each task come to, of the tasks all of whose trials were scored; None where each was tried once.

    Shape: `pass_at` k that one of k trials passes, `pass_hat` k that all of them do, `majority` the share of tasks that more than half of the trials passed.
    """
    if run.trials < 2:
        return None
    rows = Task.objects.filter(run=run, scoring=scoring, trials_scored=run.trials).order_by()
    counts = list(rows.values_list("trials_passed").annotate(n=Count("id")))
    tasks = sum(n for _, n in counts)
    found: dict[str, Any] = {"of_each": run.trials, "tasks": tasks, "pass_at": {}, "pass_hat": {}, "majority": None}
    if not tasks:
        return found
    for k in sorted({1, 2, run.trials}):
        found["pass_at"][str(k)] = sum((reducers.pass_at_k(run.trials, passed, k) or 0.0) * n for passed, n in counts) / tasks
        found["pass_hat"][str(k)] = sum((reducers.pass_hat_k(run.trials, passed, k) or 0.0) * n for passed, n in counts) / tasks
    found["majority"] = sum(n for passed, n in counts if passed * 2 > run.trials) / tasks
    return found


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


def warnings_of(outcomes: dict[str, int], done: int, odd: int) -> list[str]:
    found = []
    if done and outcomes.get(Outcome.TRUNCATED, 0) / done > 0.05:
        found.append("More than 5% of the answers were cut off by the output limit: raise max_tokens before comparing this run with others.")
    if done and outcomes.get(Outcome.UNPARSED, 0) / done > 0.2:
        found.append("More than 20% of the answers had none of the forms that were asked for: look at some before trusting the rate.")
    if odd:
        found.append(
            f"{odd} of the scored tasks have an answer that reads like a failed call, not like a model's words (error_class {READS_LIKE_ERROR}): look."
        )
    return found


def finish_reasons(run: Run) -> dict[str, int]:
    return {row["finish_reason"]: row["n"] for row in Sample.objects.filter(run=run, superseded=0).values("finish_reason").annotate(n=Count("id"))}
