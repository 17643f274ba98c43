"""`benchwright bench`: what one makes and corrects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from benchwright.cli import output
from benchwright.cli.run import RUNS, json_file
from benchwright.cli.session import Session, pairs, shown

File = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
BENCHMARKS = output.columns("id", "name", "category", "tags", "visibility", "owner")
SUBSETS = output.columns("id", "slug", "tasks", "version", "rolling", "runnable", "replaced_by")
IMPLS = output.columns("id", "label", "language", "subset", "owner", "created_at")


@click.group()
def bench() -> None:
    """Make benchmarks, subsets and scorers; correct them.

    \b
    benchwright bench create "My mirror" --category tool-use --tag function-calling
    benchwright bench subset create bm_… --slug v1 --file tasks.jsonl --grader-file grader.json
    benchwright bench impl create sub_… --file task_impl.py --label "strict v1"
    """


@bench.command()
@click.argument("name")
@click.option("--description")
@click.option("--category")
@click.option("--tag", "tags", multiple=True)
@click.option("--parent", "parents", multiple=True, metavar="BM", help="A benchmark that it derives from.")
@click.option("--idempotency-key", metavar="KEY")
@shown
def create(session: Session, name: str, tags: tuple[str, ...], parents: tuple[str, ...], **more: Any) -> None:
    """Make a benchmark, private until one of its runs is published."""
    output.rows(session, [session.bw.benchmarks.create(name=name, tags=list(tags) or None, parents=list(parents) or None, **more)], BENCHMARKS)


@bench.command("ls")
@click.option("--tag")
@click.option("--find", "q", metavar="WORDS")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@shown
def list_benchmarks(session: Session, tag: str | None, q: str | None, limit: int) -> None:
    """List benchmarks that you may see."""
    output.rows(session, session.bw.registry.benchmarks.list(tag=tag, q=q, limit=min(limit, 500)), BENCHMARKS, limit)


@bench.command()
@click.argument("benchmark")
@shown
def show(session: Session, benchmark: str) -> None:
    """Show a benchmark with its subsets."""
    found = session.bw.registry.benchmarks.get(benchmark, expand="subsets")
    output.one(session, found)
    if session.form == "table":
        click.echo()
        output.rows(session, found.subsets, SUBSETS)


@bench.command()
@click.argument("benchmark")
@click.option("--name")
@click.option("--description")
@click.option("--category")
@shown
def update(session: Session, benchmark: str, **patch: Any) -> None:
    """Change what a benchmark is called and about."""
    output.rows(session, [session.bw.benchmarks.update(benchmark, **{k: v for k, v in patch.items() if v is not None})], BENCHMARKS)


@bench.command()
@click.argument("benchmark")
@shown
def delete(session: Session, benchmark: str) -> None:
    """Take a benchmark away that nothing was measured by."""
    session.bw.benchmarks.delete(benchmark)
    output.note(f"{benchmark} is deleted.")


@bench.command("range")
@click.argument("benchmark")
@click.argument("positions", metavar="FIRST-LAST")
@click.option("--subset", metavar="SUB")
@shown
def coverage(session: Session, benchmark: str, positions: str, subset: str | None) -> None:
    """Show which runs cover a range of tasks, and what none does.

    \b
    benchwright bench range bm_… 0-5
    """
    found = session.bw.registry.benchmarks.coverage(benchmark, positions, subset)
    if session.form != "table":
        output.one(session, found)
        return
    output.rows(session, found.data, output.columns("run", "subject", "version", "covers", "holes"))
    output.note(f"covered by no run: {output.said(found.uncovered) or 'none'}")


# ------------------------------------------------------------------ subsets


@bench.group()
def subset() -> None:
    """Rows, in versions."""


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Reads rows, one JSON object a line. Errors: UsageError naming the line."""
    with click.open_file(str(path), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise click.UsageError(f"{path}, line {number} is no JSON: {error}") from None
                if not isinstance(row, dict):
                    raise click.UsageError(f"{path}, line {number} is no object.")
                yield row


@subset.command("create")
@click.argument("benchmark")
@click.option("--slug", required=True)
@click.option("--name")
@click.option("--description")
@click.option("--file", "file", type=File, help="Rows as JSONL; - is standard input.")
@click.option("--grader-file", type=File, help="The grader, as JSON; without one an impl is needed.")
@click.option("--rolling", is_flag=True, help="Rows may be appended later.")
@click.option("--idempotency-key", metavar="KEY")
@shown
def create_subset(session: Session, benchmark: str, file: Path | None, grader_file: Path | None, rolling: bool, **more: Any) -> None:
    """Make a subset of a benchmark. However many rows: above 1,000 they go up as a stream, before a frozen subset is frozen."""
    from benchwright.authoring import MOST_TASKS

    tasks = list(lines(file)) if file else []
    grader = json_file(grader_file) if grader_file else None
    subsets = session.bw.subsets
    if len(tasks) <= MOST_TASKS:
        made = subsets.create(benchmark=benchmark, tasks=tasks, rolling=rolling, grader=grader, **more)
    else:
        made = subsets.create(benchmark=benchmark, rolling=True, grader=grader, **more)
        made = subsets.append_tasks(made, tasks)
        made = made if rolling else subsets.update(made, rolling=False)
    output.rows(session, [made], SUBSETS)


@subset.command()
@click.argument("subset")
@click.option("--file", "file", type=File, required=True)
@click.option("--idempotency-key", metavar="KEY")
@shown
def append(session: Session, subset: str, file: Path, idempotency_key: str | None) -> None:
    """Append rows to a rolling subset, all or none."""
    found = session.bw.subsets.append_tasks(subset, list(lines(file)), idempotency_key)
    output.rows(session, [found], [*SUBSETS, *output.columns("added", "unchanged")])


@subset.command("ls")
@click.argument("benchmark")
@shown
def list_subsets(session: Session, benchmark: str) -> None:
    """List a benchmark's subsets."""
    output.rows(session, session.bw.subsets.list(benchmark), SUBSETS)


@subset.command()
@click.argument("subset")
@shown
def freeze(session: Session, subset: str) -> None:
    """Freeze a rolling subset, for good."""
    output.rows(session, [session.bw.subsets.update(subset, rolling=False)], SUBSETS)


@subset.command("delete")
@click.argument("subset")
@shown
def delete_subset(session: Session, subset: str) -> None:
    """Take a subset away that nothing was measured by."""
    session.bw.subsets.delete(subset)
    output.note(f"{subset} is deleted.")


@subset.command()
@click.argument("subset")
@shown
def board(session: Session, subset: str) -> None:
    """Show a subset's boards: one for each version, scorer and number of trials."""
    boards = list(session.bw.registry.subsets.leaderboard(subset))
    if session.form != "table":
        output.rows(session, boards, [])
        return
    for one in boards:
        output.note(f"version {one.get('version')}, {one.get('impl')}, trials {one.get('trials')}")
        output.rows(
            session,
            one["rows"],
            [
                ("rank", lambda r: output.span(r.get("rank"))),
                *output.columns("subject"),
                ("pass rate", lambda r: output.share(r.get("pass_rate"))),
                *output.columns("run"),
            ],
        )


@subset.command()
@click.argument("subset")
@click.option("--impl", metavar="IMP")
@click.option("--fresh", is_flag=True, help="Try it anew, also where it was tried before.")
@shown
def admission(session: Session, subset: str, impl: str | None, fresh: bool) -> None:
    """Tell how a subset stands the checks of publishing: by the right answer, none, always one and lots."""
    output.one(session, session.bw.registry.subsets.admission(subset, impl, fresh=fresh))


@subset.command()
@click.option("--rule", type=click.Choice(["failed_by_all", "k_of_n", "discriminating"]), default="failed_by_all", show_default=True)
@click.option("--k", type=click.IntRange(1))
@click.option("--benchmark", metavar="BM", help="Where the new subset goes.")
@click.option("--slug")
@click.option("--name")
@click.option("--sweep", metavar="SWP", help="The runs of a sweep, in place of some by name.")
@click.option("--dry-run", is_flag=True, help="Only tell how many tasks it would be.")
@click.argument("runs", nargs=-1)
@shown
def distill(session: Session, runs: tuple[str, ...], rule: str, sweep: str | None, dry_run: bool, **fields: Any) -> None:
    """Make a subset of the tasks that runs failed, or that tell them apart.

    \b
    benchwright bench subset distill run_… run_… --dry-run
    benchwright bench subset distill run_… run_… --benchmark bm_… --slug hard-v1
    benchwright bench subset distill --sweep swp_… --rule discriminating --name "What tells them apart"
    """
    from benchwright.cli import kept

    if bool(runs) == bool(sweep):
        raise click.UsageError("Name runs, or a sweep by --sweep.")
    chosen = [kept.run_of(session, r) for r in runs] or None
    output.one(session, session.bw.subsets.distill(runs=chosen, sweep=sweep, rule=rule, dry_run=dry_run, **fields))


@subset.command("runs")
@click.argument("subset")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@shown
def subset_runs(session: Session, subset: str, limit: int) -> None:
    """List every run of a subset."""
    output.rows(session, session.bw.registry.subsets.runs(subset), RUNS, limit)


# ------------------------------------------------------------------ scorers


@bench.group()
def impl() -> None:
    """Scorers as code."""


@impl.command("create")
@click.argument("subset")
@click.option("--file", "file", type=File, required=True, help="A task_impl.py.")
@click.option("--label")
@click.option("--description")
@click.option("--hidden", is_flag=True, help="Nobody else may read the code.")
@click.option("--idempotency-key", metavar="KEY")
@shown
def create_impl(session: Session, subset: str, file: Path, **more: Any) -> None:
    """Keep a scorer for a subset."""
    with click.open_file(str(file), encoding="utf-8") as opened:
        code = opened.read()
    output.rows(session, [session.bw.impls.create(subset=subset, code=code, **more)], IMPLS)


@impl.command("ls")
@click.argument("subset")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@shown
def list_impls(session: Session, subset: str, limit: int) -> None:
    """List a subset's scorers, newest first."""
    output.rows(session, session.bw.impls.list(subset), IMPLS, limit)


@impl.command()
@click.argument("impl")
@shown
def code(session: Session, impl: str) -> None:
    """Give a scorer's code, on stdout."""
    output.text(session.bw.impls.code(impl))


@impl.command("dry-run")
@click.argument("impl")
@shown
def dry_run(session: Session, impl: str) -> None:
    """Try a scorer on a few rows, without any call of a model."""
    output.one(session, session.bw.impls.dry_run(impl))


@impl.command("from-run")
@click.argument("run")
@click.option("--benchmark", metavar="BM")
@click.option("--subset", metavar="SUB")
@click.option("--label")
@shown
def from_run(session: Session, run: str, **fields: Any) -> None:
    """Keep the scorer of a run for another subset."""
    from benchwright.cli import kept

    output.rows(session, [session.bw.impls.create_from_run(from_run=kept.run_of(session, run), **fields)], IMPLS)


@impl.command("delete")
@click.argument("impl")
@shown
def delete_impl(session: Session, impl: str) -> None:
    """Take a scorer away that graded nothing."""
    session.bw.impls.delete(impl)
    output.note(f"{impl} is deleted.")


# ------------------------------------------------------------------ corrections


@bench.group()
def recipe() -> None:
    """How a benchmark of yours is run; old runs keep what they had."""


@recipe.command("show")
@click.argument("slug")
@shown
def show_recipe(session: Session, slug: str) -> None:
    """Show the recipe as it is."""
    output.one(session, session.bw.built.recipe(slug))


@recipe.command("set")
@click.argument("slug")
@click.option("--set", "values", multiple=True, required=True, metavar="K=V")
@click.option("--note", required=True, help="Why; it is kept.")
@shown
def set_recipe(session: Session, slug: str, values: tuple[str, ...], note: str) -> None:
    """Change the recipe.

    \b
    benchwright bench recipe set my-bench --set run_timeout=900 --set trials=3 --note 'it boots slower than 240 s'
    """
    etag = session.bw.built.recipe(slug).get("etag")
    output.one(session, session.bw.built.set_recipe(slug, pairs(values, "--set"), note, if_match=etag))


@bench.group()
def samples() -> None:
    """The rows of a benchmark of yours; a change makes a new subset, and the old one retires."""


@samples.command("show")
@click.argument("slug")
@click.option("--limit", type=click.IntRange(1))
@shown
def show_samples(session: Session, slug: str, limit: int | None) -> None:
    """Show the rows as they are."""
    output.rows(session, session.bw.built.samples(slug), output.columns("task_id", "input", "expected"), limit)


@samples.command("set")
@click.argument("slug")
@click.option("--upsert-file", type=File, help="Rows to add or to put in the place of those with the same task_id, as JSONL.")
@click.option("--remove", multiple=True, metavar="TASK_ID")
@click.option("--note", required=True, help="Why; it is kept.")
@shown
def set_samples(session: Session, slug: str, upsert_file: Path | None, remove: tuple[str, ...], note: str) -> None:
    """Change rows.

    \b
    benchwright bench samples set my-bench --upsert-file fix.jsonl --note 'q2 pointed at the wrong frame'
    """
    if upsert_file is None and not remove:
        raise click.UsageError("Say what changes: --upsert-file or --remove.")
    rows = list(lines(upsert_file)) if upsert_file else []
    etag = session.bw.built.samples(slug, limit=1).raw.get("etag")
    output.one(session, session.bw.built.set_samples(slug, note, rows, list(remove), if_match=etag))
