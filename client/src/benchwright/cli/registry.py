"""`benchwright sweep` and `benchwright compare`."""

from __future__ import annotations

from typing import Any

import click

from benchwright.cli import kept, output
from benchwright.cli.launching import limits_of
from benchwright.cli.session import Session, shown

SWEEPS = [*output.columns("id", "name", "status", "anchor"), ("runs", output.field("counts.runs")), ("over", output.field("counts.over"))]
PAIRS = [
    ("first", output.field("first")),
    ("second", output.field("second")),
    ("verdict", output.field("verdict")),
    ("difference", lambda p: f"{p['difference']['estimate']:+.1%}" if p.get("difference") else ""),
    ("interval", lambda p: f"{p['difference']['low']:+.1%} to {p['difference']['high']:+.1%}" if p.get("difference") else ""),
    ("p (Holm)", output.field("p_holm")),
    ("wins", output.field("wins")),
    ("losses", output.field("losses")),
    ("ties", output.field("ties")),
]


@click.group()
def sweep() -> None:
    """Many models by one scorer, under one key.

    \b
    benchwright sweep create --anchor @last --model mercury --model venus
    benchwright sweep show swp_…
    """


@sweep.command()
@click.option("--anchor", metavar="RUN", help="The run whose tasks and scorer hold for all.")
@click.option("--benchmark", metavar="BM")
@click.option("--subset", metavar="SUB")
@click.option("--impl", metavar="IMP")
@click.option("--model", "models", multiple=True, required=True, metavar="NAME[@ENDPOINT]")
@click.option("--name")
@click.option("--trials", type=click.IntRange(1))
@click.option("--limit-to", multiple=True, metavar="LEVEL.WHAT=N", help="A ceiling of each run.")
@click.option("--idempotency-key", metavar="KEY")
@shown
def create(session: Session, anchor: str | None, models: tuple[str, ...], limit_to: tuple[str, ...], idempotency_key: str | None, **fields: Any) -> None:
    """Launch a run for each model."""
    made = session.bw.sweeps.create(
        anchor=kept.run_of(session, anchor) if anchor else None,
        models=list(models),
        limits=limits_of(limit_to),
        idempotency_key=idempotency_key,
        **fields,
    )
    output.rows(session, [made], SWEEPS)
    for one in made.get("refused") or []:
        output.note(f"refused: {one.get('sut')}: {one.get('message') or one.get('detail') or one.get('code')}")


@sweep.command("ls")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@shown
def list_sweeps(session: Session, limit: int) -> None:
    """List sweeps, newest first."""
    output.rows(session, session.bw.sweeps.list(), SWEEPS, limit)


@sweep.command()
@click.argument("sweep")
@shown
def show(session: Session, sweep: str) -> None:
    """Show a sweep: its runs, and each compared with the baseline."""
    found = session.bw.sweeps.get(sweep)
    if session.form != "table":
        output.one(session, found)
        return
    output.rows(session, [found], SWEEPS)
    click.echo()
    output.rows(
        session, found.runs, [*output.columns("run", "subject", "status"), ("done", output.field("progress.done")), ("of", output.field("progress.total"))]
    )
    if pairs := (found.get("comparison") or {}).get("pairs") or found.get("pairs"):
        click.echo()
        output.rows(session, pairs, PAIRS)


@click.command()
@click.argument("runs", nargs=-1, required=True)
@shown
def compare(session: Session, runs: tuple[str, ...]) -> None:
    """Compare the first run with each of the others, task by task.

    \b
    benchwright compare run_… run_…
    """
    if len(runs) < 2:
        raise click.UsageError("Name two runs or more.")
    found = session.bw.compare([kept.run_of(session, name) for name in runs])
    if session.form != "table":
        output.one(session, found)
        return
    output.rows(session, found.pairs, PAIRS)
    for pair in found.pairs:
        for caveat in (*pair.get("caveats", []), *([pair["reason"]] if pair.get("reason") else [])):
            output.note(f"{pair.second}: {caveat}")
