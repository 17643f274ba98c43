"""A run as it goes on, told on stderr, and what it came to, on stdout."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from benchwright.cli import output
from benchwright.cli.session import Session


def show(session: Session, run: str) -> None:
    """Tells of a run until it ends. Ctrl-C leaves it running."""
    try:
        told(session, run)
    except KeyboardInterrupt:
        output.note(f"{run} goes on. Look again: benchwright run stream {run}   Stop it: benchwright run halt {run}")
        raise


def told(session: Session, run: str) -> None:
    is_terminal = sys.stderr.isatty()
    total = done = passed = tenths = 0
    output.note(f"{run}  {session.bw.base_url}")
    for event in session.bw.runs.stream(run):
        data = event.get("data") or {}
        if event.type == "RunQueued":
            total, done, passed = int(data.get("tasks") or 0), 0, 0
        elif event.type in ("PhaseStarted", "PhaseCompleted"):
            line(is_terminal, f"{event.type}: {data.get('phase')}")
        elif event.type == "MaterializeTaskResult":
            done += 1
            score = data.get("score")
            passed += data.get("outcome") == "passed" if data.get("outcome") else isinstance(score, int | float) and score >= 1.0
            said = f"{done}/{total or '?'} done, {passed} passed"
            if is_terminal:
                click.echo(f"\r\x1b[K{said}", err=True, nl=False)
            elif total and done * 10 // total > tenths:
                tenths = done * 10 // total
                output.note(said)
        elif event.type in ("RunHalting", "LimitWarning", "HostBlocked") or (event.type == "RunFinished" and data.get("status") != "ok"):
            said = data.get("status") or event.type
            why = ". ".join(str(part) for part in (data.get("error") or data.get("halt_reason") or data.get("limit"), data.get("note")) if part)
            line(is_terminal, f"{said}{f': {why}' if why else ''}")
    if is_terminal:
        click.echo("\r\x1b[K", err=True, nl=False)


def line(is_terminal: bool, text: str) -> None:
    if is_terminal:
        click.echo("\r\x1b[K", err=True, nl=False)
    output.note(text)


def result(session: Session, run: Any, rulings: Sequence[dict[str, str]] = ()) -> None:
    """Puts out a run that has ended, with its summary and its gates."""
    if session.form != "table":
        output.one(session, {**run, **({"gates": list(rulings)} if rulings else {})})
        return
    summary = run.get("summary") or {}
    low_high = summary.get("ci95")
    shown = [
        ("run", run["id"]),
        ("status", run["status"] + (f" ({run['halt_reason']})" if run.get("halt_reason") else "")),
        ("error", run.get("error")),
        ("model", (run.get("model") or {}).get("identifier")),
        ("pass rate", f"{output.share(summary.get('pass_rate'))}  {summary.get('passed')}/{summary.get('scored')}" if summary.get("scored") else None),
        ("95% interval", f"{low_high[0]:.1%} to {low_high[1]:.1%}" if low_high else None),
        ("coverage", output.share(summary.get("coverage"))),
        ("not scored", ", ".join(f"{name} {summary[name]}" for name in ("errored", "truncated", "judge_failed", "skipped") if summary.get(name)) or None),
        ("cost", f"${summary.get('cost_usd')}" if summary.get("cost_usd") is not None else None),
        ("page", (run.get("links") or {}).get("dashboard")),
    ]
    output.one(session, {name: value for name, value in shown if value})
    for warning in summary.get("warnings") or []:
        output.note(f"warning: {warning}")
