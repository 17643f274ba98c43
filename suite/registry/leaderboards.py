"""Who stands where on a subset: one board for each version and impl, of whole runs alone, each subject by its newest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from access.caller import Caller
from panels.api.wording import to_json
from suite.api.shapes import link, usd
from suite.models import DRY, Run, Subset
from suite.running import summary
from suite.seeing import readable_runs

MOST_ROWS = 200


def boards(caller: Caller, subset: Subset) -> list[dict[str, Any]]:
    """Gives every board of a subset that the caller may see, the newest version first."""
    runs = (
        readable_runs(caller)
        .filter(subset=subset, status=Run.Status.OK, scope="full")
        .exclude(source=DRY)
        .select_related("impl", "benchmark", "subset")
        .order_by("-finished_at")
    )
    groups: dict[tuple[int, str, int], dict[str, Run]] = {}
    for run in runs[:2000]:
        groups.setdefault((run.version, run.graded_by, run.trials), {}).setdefault(run.subject, run)
    found = []
    for (version, impl, trials), by_subject in sorted(groups.items(), key=lambda item: (-item[0][0], item[0][1], item[0][2])):
        theirs = list(by_subject.values())[:MOST_ROWS]
        told = summary.wholes(theirs)
        rows = ranked([row_of(run, told[run.pk]) for run in theirs])
        found.append({"object": "leaderboard", "subset": subset.pk, "version": version, "impl": impl, "trials": trials, "rows": rows})
    return found


def ranked(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Puts rows in order of their rates, each with the range of ranks that it may have."""
    found = sorted(rows, key=lambda row: (-(row["pass_rate"] if row["pass_rate"] is not None else -1), row["subject"]))
    return [{**row, "rank": rank_of(found, i)} for i, row in enumerate(found)]


def row_of(run: Run, whole: Mapping[str, Any]) -> dict[str, Any]:
    """Shape: `whole` is what `summary` says of the run's tasks together."""
    told = whole["summary"]
    return {
        "run": run.pk,
        "subject": run.subject,
        "kind": run.sut.get("kind"),
        "pass_rate": told["pass_rate"],
        "ci95": told["ci95"],
        "mean": told["mean"],
        "coverage": told["coverage"],
        "total": told["total"],
        "cost_usd": to_json(usd(run.cost_pusd)),
        "cost_complete": not run.has_unpriced,
        "duration_ms_p50": told["duration_ms_p50"],
        "kinds": whole["kinds"],
        "derived_from": run.parent_id,
        "visibility": run.visibility,
        "finished_at": to_json(run.finished_at),
        "links": {"dashboard": link(f"/app/runs/{run.pk}")},
    }


def rank_of(rows: list[dict[str, Any]], i: int) -> list[int]:
    """Gives the ranks that a row may really have: whoever's interval lies wholly above it is above it, wholly below it below; the others may be either."""
    mine = rows[i]["ci95"]
    if mine is None:
        return [len(rows), len(rows)]
    others = [row["ci95"] for j, row in enumerate(rows) if j != i and row["ci95"] is not None]
    surely_above = sum(other[0] > mine[1] for other in others)
    surely_below = sum(other[1] < mine[0] for other in others)
    return [1 + surely_above, 1 + len(others) - surely_below]
