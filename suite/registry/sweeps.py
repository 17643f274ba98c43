"""What a sweep came to: each of its runs, who stands where, and what of it is more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from access.caller import Caller
from panels.api.wording import to_json
from suite.api.shapes import link
from suite.models import Run, Sweep
from suite.registry import comparing
from suite.registry.leaderboards import ranked, row_of
from suite.running import summary
from suite.seeing import is_admin, readable_runs

OVER = (Run.Status.OK, Run.Status.FAILED, Run.Status.HALTED)


def readable(caller: Caller, pk: str) -> Sweep | None:
    """Finds a sweep for its owner, and for whoever may read one of its runs."""
    sweep = Sweep.objects.filter(pk=pk).first()
    if sweep is None or sweep.owner == caller.owner or is_admin(caller):
        return sweep
    return sweep if readable_runs(caller).filter(sweep=pk).exclude(status=Run.Status.DELETED).exists() else None


def runs_of(caller: Caller, sweep: Sweep) -> list[Run]:
    """Gives the anchor where there is one, then the sweep's own runs in order, as far as the caller may read them."""
    rows = readable_runs(caller).exclude(status=Run.Status.DELETED).select_related("benchmark", "subset", "impl")
    anchor = rows.filter(pk=sweep.anchor) if sweep.anchor else rows.none()
    return [*anchor, *rows.filter(sweep=sweep.pk).order_by("created_at", "id")]


def told(caller: Caller, sweep: Sweep, *, whole: bool) -> dict[str, Any]:
    """Shape: `whole` with the board and the comparison; each pair is of the baseline, the anchor or the first run, with another."""
    runs = runs_of(caller, sweep)
    own = [run for run in runs if run.pk != sweep.anchor]
    refused = sweep.launch.get("refused", [])
    found: dict[str, Any] = {
        "object": "sweep",
        "id": sweep.pk,
        "name": sweep.launch.get("name") or None,
        "status": status_of(own),
        "anchor": sweep.anchor or None,
        "benchmark_id": runs[0].benchmark_id if runs else None,
        "subset_id": runs[0].subset_id if runs else None,
        "counts": {"runs": len(own), "over": sum(run.status in OVER for run in own), "refused": len(refused)},
        "runs": [entry(run) for run in own],
        "refused": refused,
        "owner": sweep.owner,
        "created_at": to_json(sweep.created_at),
        "links": {"self": link(f"/v1/sweeps/{sweep.pk}")},
    }
    return {**found, **board(runs)} if whole else found


def status_of(runs: Sequence[Run]) -> str:
    """Sums up its runs: running, then ok where all are, failed where none is, else partial."""
    if any(run.status not in OVER for run in runs):
        return "running"
    good = sum(run.status == Run.Status.OK for run in runs)
    return "ok" if good == len(runs) else "partial" if good else "failed"


def entry(run: Run) -> dict[str, Any]:
    return {
        "run": run.pk,
        "sut": run.sut,
        "subject": run.subject,
        "status": run.status,
        "error": run.error or None,
        "halt_reason": run.halt_reason or None,
        "progress": {"done": run.done, "total": run.total},
        "links": {"self": link(f"/v1/runs/{run.pk}"), "dashboard": link(f"/app/runs/{run.pk}")},
    }


def board(runs: Sequence[Run]) -> dict[str, Any]:
    """Ranks the runs that ended well, each group that measured the same by itself, and compares all with the baseline."""
    good = [run for run in runs if run.status == Run.Status.OK]
    told = summary.wholes(good)
    groups: dict[tuple[int, str, int, str], list[Run]] = {}
    for run in good:
        groups.setdefault((run.version, run.graded_by, run.trials, str(run.selection.get("digest"))), []).append(run)
    boards = [
        {"version": version, "impl": impl, "trials": trials, "scope": rows[0].scope, "rows": ranked([row_of(run, told[run.pk]) for run in rows])}
        for (version, impl, trials, _), rows in groups.items()
    ]
    pairs = comparing.compare(good) if len(good) > 1 else []
    return {"boards": boards, "baseline": good[0].pk if good else None, "pairs": pairs}
