"""What a report says of a run, as values: read once, so that the page only has to be written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import Count, F, Q

from suite.api.shapes import usd
from suite.grading.outcomes import SCORED, Outcome
from suite.models import Row, Run, Sample, Task, Version
from suite.registry.comparing import by_kind
from suite.reporting import charts
from suite.reporting.texts import expected_of, question_of, visible
from suite.running import recording, summary
from suite.statistics.intervals import wilson

WORST, MOST_CLUSTERS = 20, 15
GOOD_COVERAGE, FEW = 0.98, 100
OUTCOMES = {
    Outcome.PASSED: "The score reached the threshold.",
    Outcome.FAILED: "Answered, and wrong.",
    Outcome.REFUSED: "The model declined.",
    Outcome.UNPARSED: "None of the forms that the task asked for.",
    Outcome.LIMIT: "A ceiling of the task itself was broken.",
    Outcome.TRUNCATED: "Cut off by the output limit; a larger one may mend it.",
    Outcome.JUDGE_FAILED: "The grader could not tell.",
    Outcome.INFRASTRUCTURE: "Never answered: providers, networks, budgets.",
}


def of(run: Run) -> dict[str, Any]:
    told = summary.of(run)
    version = Version.objects.filter(subset_id=run.subset_id, number=run.version).first()
    return {
        "run": run,
        "is_over": run.status in (Run.Status.OK, Run.Status.FAILED, Run.Status.HALTED),
        "summary": told,
        "headline": headline(run, told),
        "figures": figures(run, told),
        "outcomes": outcomes(told),
        "outcomes_chart": charts.stacked([(str(o), told["outcomes"].get(o, 0)) for o in OUTCOMES], "Shares of the outcomes, as in the table"),
        "kinds": rates(by_kind(run)),
        "clusters": clusters(run),
        "trials": trials(run),
        "durations": durations(run),
        "worst": worst(run),
        "caveats": caveats(run, told),
        "facts": facts(run, version),
        "review": review(told.get("review")),
    }


def headline(run: Run, told: Mapping[str, Any]) -> dict[str, Any] | None:
    """Gives the rate with its interval; None while nothing is scored."""
    if told["pass_rate"] is None or told["ci95"] is None:
        return None
    low, high = told["ci95"]
    said = f"{percent(told['pass_rate'])}, 95% interval {percent(low)} to {percent(high)}"
    return {
        "rate": percent(told["pass_rate"]),
        "low": percent(low),
        "high": percent(high),
        "passed": f"{told['passed']:,}",
        "scored": f"{told['scored']:,}",
        "method": f"an interval over {told['clusters']} clusters" if told["clusters"] and told["clusters"] < told["scored"] else "Wilson’s interval",
        "chart": charts.whisker(told["pass_rate"], low, high, said),
    }


def figures(run: Run, told: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Gives a label, a value and what it means, each."""
    tokens = told["tokens"]
    found = [
        ("Coverage", percent(told["coverage"]), f"{told['scored']} of {told['total']} tasks scored"),
        ("Mean score", "–" if told["mean"] is None else f"{told['mean']:.3f}", "of what was scored"),
        ("Cost", dollars(usd(run.cost_pusd)), "of calls with a known price" if run.has_unpriced else "every call priced"),
        ("A task takes", seconds(told["duration_ms_p50"]), f"median; {seconds(told['duration_ms_p95'])} at the 95th percentile"),
        ("Tokens", f"{tokens['input'] + tokens['output']:,}", f"{tokens['input']:,} in, {tokens['output']:,} out"),
    ]
    if run.started_at and run.finished_at:
        found.append(("Ran for", span(run.started_at, run.finished_at), f"{run.trials} trial{'s' if run.trials > 1 else ''} a task"))
    return found


def outcomes(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Gives each outcome with its place in the rate; those that nobody had as well, for they say something too."""
    done = told["done"] or 1
    return [
        {
            "name": str(o),
            "means": means,
            "count": told["outcomes"].get(o, 0),
            "said": f"{told['outcomes'].get(o, 0):,}",
            "share": percent(told["outcomes"].get(o, 0) / done),
            "counts": o in SCORED,
        }
        for o, means in OUTCOMES.items()
    ]


def rates(found: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for name, row in found.items():
        shown = {"name": visible(name, 120), "passed": row["passed"], "scored": row["scored"], "total": row["total"], "rate": "–", "chart": ""}
        if row["pass_rate"] is not None:
            low, high = row["ci95"]
            said = f"{percent(row['pass_rate'])}, 95% interval {percent(low)} to {percent(high)}"
            shown |= {"rate": percent(row["pass_rate"]), "low": percent(low), "high": percent(high), "chart": charts.whisker(row["pass_rate"], low, high, said)}
        rows.append(shown)
    return rows


def clusters(run: Run) -> list[dict[str, Any]]:
    """Breaks the rate down by cluster, the largest ones."""
    rows = (
        Task.objects.filter(run=run, scoring=run.scoring)
        .exclude(cluster="")
        .values("cluster")
        .annotate(n=Count("id"), scored=Count("id", filter=Q(passed__isnull=False)), passes=Count("id", filter=Q(passed=True)))
        .order_by("-n", "cluster")[:MOST_CLUSTERS]
    )
    found = {}
    for row in rows:
        interval = wilson(row["passes"], row["scored"])
        found[row["cluster"]] = {
            "total": row["n"],
            "scored": row["scored"],
            "passed": row["passes"],
            "pass_rate": interval.estimate if interval else None,
            "ci95": [interval.low, interval.high] if interval else None,
        }
    return rates(found)


def trials(run: Run) -> list[tuple[str, str]]:
    """Tells what several trials of one task come to, where there were several."""
    told = summary.of(run)["trials"]
    if not told:
        return []
    found = []
    for name in told["pass_at"]:
        found.append((f"at least one of {name} passes" if name != "1" else "one trial passes", percent(told["pass_at"][name])))
        if name != "1":
            found.append((f"all of {name} pass", percent(told["pass_hat"][name])))
    if told["majority"] is not None:
        found.append(("most trials pass", percent(told["majority"])))
    return found


def durations(run: Run) -> dict[str, Any] | None:
    values = [ms / 1000 for ms in Task.objects.filter(run=run, scoring=run.scoring).values_list("duration_ms", flat=True).iterator(chunk_size=5000)]
    if len(values) < 5:
        return None
    counts, low, high = charts.spread(values)
    low_said, high_said = seconds(low * 1000), seconds(high * 1000)
    return {"chart": charts.bars(counts, f"How long tasks took, from {low_said} to {high_said}"), "low": low_said, "high": high_said}


def worst(run: Run) -> list[dict[str, Any]]:
    """Gives some tasks that were not passed: wrong ones by score, then what was not scored."""
    rows = Task.objects.filter(run=run, scoring=run.scoring).exclude(passed=True).order_by(F("score").asc(nulls_last=True), "position")[:WORST]
    tasks = list(rows)
    positions = [task.position for task in tasks]
    bodies = {p: json.loads(b) for p, b in Row.objects.filter(subset_id=run.subset_id, position__in=positions).values_list("position", "body")}
    payloads: dict[int, dict[str, Any]] = {}
    # Of several trials the one that says why: a wrong one before one without a score, and both before a right one.
    samples = Sample.objects.filter(run=run, position__in=positions, superseded=0)
    for sample in sorted(samples, key=lambda s: (s.outcome == Outcome.PASSED, s.outcome not in SCORED, s.trial)):
        payloads.setdefault(sample.position, {**recording.unpacked(sample.payload), "is_scored": sample.outcome in SCORED})
    found = []
    for task in tasks:
        body, said = bodies.get(task.position, {"input": None, "expected": None}), payloads.get(task.position, {})
        error = said.get("error") or {}
        found.append(
            {
                "task": task,
                "name": visible(task.task_id, 200),
                "outcome": task.outcome,
                "score": None if task.score is None else f"{task.score:g}",
                "question": visible(question_of(body["input"])),
                "expected": visible(expected_of(body["expected"]), 300),
                "output": visible(str(said.get("output") or "")) or visible(str(error.get("message") or "")),
                "answer": visible(str(said.get("answer") or ""), 200) if said.get("is_scored") else "",
                "why": visible(str(said.get("explanation") or ("" if said.get("is_scored") else task.reason)), 400),
            }
        )
    return found


def caveats(run: Run, told: Mapping[str, Any]) -> list[str]:
    """Says what keeps a reader from believing the number more than it deserves."""
    found = []
    if run.status != Run.Status.OK:
        why = "".join([f": {reason}" for reason in (run.error, run.halt_reason) if reason])
        found.append(f"The run is {run.status}{why}. {told['skipped']} tasks were not asked.")
    if run.scope != "full":
        found.append(f"Only part of the subset was asked ({run.scope}): this rate is never ranked beside whole runs.")
    if told["coverage"] is not None and told["coverage"] < GOOD_COVERAGE:
        found.append(
            f"Coverage is {percent(told['coverage'])}: {told['total'] - told['scored']} tasks say nothing of the subject, and may not be a fair sample of all."
        )
    if told["ci95"] is not None and told["scored"] < FEW:
        half = (told["ci95"][1] - told["ci95"][0]) / 2
        found.append(f"{told['scored']} scored tasks are few: the true rate may well lie {100 * half:.1f} points to either side.")
    if run.has_unpriced:
        found.append("Some calls have no known price, so the cost is a lower bound.")
    if run.interruptions:
        found.append(f"Its process was interrupted {run.interruptions} times; no finished task was asked again.")
    return [*found, *told["warnings"], *run.launch.get("warnings", [])]


def facts(run: Run, version: Version | None) -> list[tuple[str, str]]:
    """Gives all that somebody needs to measure the same again."""
    params = run.sut.get("params") or {}
    return [
        ("Fingerprint", run.fingerprint),
        ("Run", run.pk),
        ("Subject", f"{visible(run.subject, 300)} ({run.sut.get('kind', '')})"),
        ("Parameters", json.dumps(params, sort_keys=True) if params else "none"),
        ("Benchmark", f"{visible(run.benchmark.name, 200)} ({run.benchmark_id})"),
        ("Subset", f"{run.subset.slug} ({run.subset_id}@{run.version})"),
        ("Rows of that version", version.digest if version else "–"),
        ("Selection", f"{run.selection.get('strategy')}, {run.total} tasks, {run.selection.get('digest')}"),
        ("Impl", f"{visible(run.impl.label or run.impl.language, 200)} ({run.impl_id})"),
        ("Scoring", f"{run.scoring}{f' (graded again since it ran, by {run.graded_by})' if run.scoring > 1 else ''}"),
        ("Trials", f"{run.trials}, seed {run.seed}"),
        ("Harness and backend", f"{run.harness}, {run.backend}"),
        ("Limits", json.dumps(run.limits, sort_keys=True) if run.limits else "none"),
        ("Derived from", run.parent_id or "no other run"),
        ("Server", f"Benchwarmers {settings.VERSION}"),
    ]


def review(told: Any) -> list[dict[str, Any]]:
    """Gives the figures of review work by where its faults come from; empty where it was none."""
    found = []
    for origin, row in (told or {}).items():
        shown = {}
        for name, value in row.items():
            one: Mapping[str, Any] = value if isinstance(value, Mapping) else {"rate": value} if isinstance(value, float) else {}
            if one.get("rate") is not None:
                ends = one.get("ci95")
                shown[name] = f"{percent(one['rate'])}{f' ({percent(ends[0])} to {percent(ends[1])})' if ends else ''}"
        found.append(
            {
                "origin": origin,
                "faulty": row["faulty"],
                "clean": row["clean"],
                "pairs": row["pairs"],
                "rows": [(n.replace("_", " "), v) for n, v in shown.items()],
            }
        )
    return found


# ------------------------------------------------------------------ wording


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}%"


def seconds(ms: float | None) -> str:
    if ms is None:
        return "–"
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s" if ms < 120_000 else f"{ms / 60_000:.1f} min"


def span(start: datetime, end: datetime) -> str:
    return seconds((end - start).total_seconds() * 1000)


def dollars(amount: Decimal | None) -> str:
    if amount is None:
        return "–"
    return "$0" if amount == 0 else f"${amount:.2f}" if amount >= 1 else f"${amount:.2g}" if amount >= Decimal("0.0001") else f"${amount:.1e}"
