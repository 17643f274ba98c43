"""`benchwright run`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from benchwright.cli import gates, kept, launching, output, watching
from benchwright.cli.session import Exit, Session, pairs, shown
from benchwright.runs import GOING_ON

RUNS = [
    ("run", output.field("id")),
    ("status", output.field("status")),
    ("model", output.field("model.identifier")),
    ("benchmark", output.field("benchmark_name")),
    ("subset", output.field("subset_slug")),
    ("done", lambda run: f"{(run.get('progress') or {}).get('done', '')}/{(run.get('progress') or {}).get('total', '')}"),
    ("scope", output.field("scope")),
    ("shown to", output.field("visibility")),
    ("created", lambda run: str(run.get("created_at") or "")[:16].replace("T", " ")),
]
TASKS = [
    ("task", output.field("task_id")),
    ("outcome", output.field("outcome")),
    ("score", output.field("score")),
    ("ms", output.field("duration_ms")),
    ("why", output.field("error_class")),
    ("answer", output.field("preview")),
    ("id", output.field("id")),
]


class OrLaunch(click.Group):
    """`run` before anything that is no command of its own launches: `run "<request>"`, `run --replay-from …`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["launch", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=OrLaunch)
def run() -> None:
    """Launch runs, watch and read them, do them again.

    \b
    benchwright run --benchmark bm_… --subset small --impl latest:official --model mercury
    benchwright run --replay-from @last --model venus --gate pass_rate=0.90
    benchwright run --replay-from @last --only-failed

    What is no command below launches, so that "run launch" and "run" are the same.
    """


@run.command()
@click.argument("request", nargs=-1)
@launching.options(launching.LAUNCH, launching.FOLLOW)
@shown
def launch(session: Session, request: tuple[str, ...], **said: Any) -> None:
    """Launch a run and follow it to its end.

    \b
    benchwright run launch --benchmark bm_… --model mercury --limit-to run.cost=5
    """
    for text in said["gate_texts"]:
        gates.read(text)
    if said["gate_vs"]:
        gates.read_regression(said["gate_vs"][1])
    body = launching.body_of(session, request, said)
    if not any(body.get(name) for name in ("request", "benchmark", "replay")):
        raise click.UsageError("Say what to run: --benchmark, --replay-from or a request in words. benchwright run --help shows how.")
    made = launching.launch(session, lambda key: session.bw.runs.launch(**body, idempotency_key=key), said["idempotency_key"], said["fresh"])
    launching.follow(session, made, said)


@run.command()
@click.argument("request", nargs=-1)
@launching.options(launching.LAUNCH)
@shown
def preview(session: Session, request: tuple[str, ...], **said: Any) -> None:
    """Show what a launch with these options would send, to whom, and what it would cost. Nothing is launched."""
    output.one(session, session.bw.runs.preview(**launching.body_of(session, request, said)))


@run.command()
@click.argument("run")
@click.option("--only-failed", is_flag=True)
@click.option("--task", "task_ids", multiple=True, metavar="ID")
@click.option("--model", metavar="NAME[@ENDPOINT]")
@click.option("--subset-version", metavar="N")
@click.option("--trials", type=click.IntRange(1))
@click.option("--limit-to", multiple=True, metavar="LEVEL.WHAT=N")
@click.option("--idempotency-key", metavar="KEY")
@click.option("--fresh", is_flag=True)
@launching.options(launching.FOLLOW)
@shown
def replay(session: Session, run: str, **said: Any) -> None:
    """Run the same tasks by the same scorer again: short for run --replay-from.

    \b
    benchwright run replay @last --model venus
    """
    click.get_current_context().invoke(launch, **said, replay_from=run)


@run.command()
@click.argument("run")
@click.option("-m", "--message", "description", required=True, help="What is to change; kept with the fork.")
@click.option("--from-phase", default="atomize", show_default=True)
@click.option("--file", "code_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The scorer to use instead: a task_impl.py.")
@click.option("--impl", metavar="IMP", help="A scorer that is there already.")
@click.option("--grader-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A built-in grader, as JSON.")
@click.option("--label", metavar="TEXT", help="What to call an uploaded scorer.")
@click.option("--idempotency-key", metavar="KEY")
@click.option("--fresh", is_flag=True)
@launching.options(launching.FOLLOW)
@shown
def fork(
    session: Session,
    run: str,
    description: str,
    from_phase: str,
    code_file: Path | None,
    impl: str | None,
    grader_file: Path | None,
    label: str | None,
    **said: Any,
) -> None:
    """Run the same tasks with another scorer.

    \b
    benchwright run fork @last -m "compare sets, not lists" --file task_impl.py
    """
    parent = kept.run_of(session, run)
    more: dict[str, Any] = {
        "impl": impl,
        "label": label,
        "code": code_file.read_text(encoding="utf-8") if code_file else None,
        "grader": json_file(grader_file) if grader_file else None,
    }
    made = launching.launch(
        session,
        lambda key: session.bw.runs.fork(parent, description, from_phase, idempotency_key=key, **more),
        said["idempotency_key"],
        said["fresh"],
    )
    launching.follow(session, made, said)


def json_file(path: Path) -> Any:
    """Errors: UsageError for what is no JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise click.UsageError(f"{path} is no JSON: {error}") from None


# ------------------------------------------------------------------ reading


@run.command("ls")
@click.option("--status")
@click.option("--benchmark", metavar="BM")
@click.option("--subset", metavar="SUB")
@click.option("--visibility")
@click.option("--tag")
@click.option("--metadata", multiple=True, metavar="K=V")
@click.option("--started-at", metavar="WHEN", help="Like >2026-11-30T00:00:00Z, or a day.")
@click.option("--finished-at", metavar="WHEN")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@shown
def list_runs(session: Session, metadata: tuple[str, ...], limit: int, **asked: Any) -> None:
    """List runs, newest first.

    \b
    benchwright run ls --status running
    """
    filters = {name: value for name, value in asked.items() if value}
    filters |= {f"metadata.{name}": value for name, value in pairs(metadata, "--metadata").items()}
    output.rows(session, session.bw.runs.list(filters=filters, limit=min(limit, 500)), RUNS, limit)


@run.command()
@click.argument("run")
@shown
def show(session: Session, run: str) -> None:
    """Show one run with what it came to so far."""
    watching.result(session, session.bw.runs.get(kept.run_of(session, run), expand=["summary"]))


@run.command()
@click.argument("run")
@click.option("--passed", type=bool, metavar="true|false")
@click.option("--outcome", metavar="NAME", help="passed, failed, refused, unparsed, limit, truncated, judge_failed or infrastructure.")
@click.option("--sort", metavar="FIELD", help="position, score or duration_ms; -score the other way round.")
@click.option("--version", metavar="N", help="Of several scorings this one.")
@click.option("--limit", type=click.IntRange(1), help="At most so many; all without it.")
@shown
def tasks(session: Session, run: str, passed: bool | None, outcome: str | None, sort: str | None, version: str | None, limit: int | None) -> None:
    """List a run's tasks.

    \b
    benchwright run tasks @last --passed=false --limit 10
    """
    filters = {"outcome": outcome} if outcome else None
    found = session.bw.runs.tasks(kept.run_of(session, run), passed=passed, version=version, sort=sort, limit=min(limit or 500, 500), filters=filters)
    output.rows(session, found, TASKS, limit)


@run.command()
@click.argument("run")
@click.argument("task")
@shown
def task(session: Session, run: str, task: str) -> None:
    """Show one task whole: what was asked, expected and answered. TASK is a tsk_ id, or the task's own id."""
    name = kept.run_of(session, run)
    if not task.startswith("tsk_"):
        rows = session.bw.runs.tasks(name, filters={"task_id": task}, limit=1).page
        if not rows:
            raise click.UsageError(f"{name} has no task {task}.")
        task = rows[0].id
    found = session.bw.runs.payload(name, task)
    if session.form != "table":
        output.one(session, found)
        return
    output.one(session, {name: found.get(name) for name in ("task_id", "outcome", "score", "error_class", "duration_ms")})
    for part in ("input", "expected", "output"):
        value = found.get(part)
        click.echo(f"\n{part}:")
        output.clean(value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False))


@run.command()
@click.argument("run")
@click.option("--after", "after_seq", type=click.IntRange(0), help="Only what came after this number.")
@click.option("--types", metavar="A,B")
@click.option("--limit", type=click.IntRange(1))
@shown
def events(session: Session, run: str, after_seq: int | None, types: str | None, limit: int | None) -> None:
    """List what happened so far."""
    found = session.bw.runs.events(kept.run_of(session, run), after_seq, types.split(",") if types else None)
    output.rows(session, found, [*output.columns("seq", "at", "type"), ("data", output.field("data"))], limit)


@run.command()
@click.argument("run")
@click.option("--after", "after_seq", type=click.IntRange(0))
@shown
def stream(session: Session, run: str, after_seq: int | None) -> None:
    """Follow a run's events until it ends; to a pipe one line of JSON each."""
    name = kept.run_of(session, run)
    if session.form == "table":
        watching.show(session, name)
        watching.result(session, session.bw.runs.get(name, expand=["summary"]))
        return
    for event in session.bw.runs.stream(name, after_seq):
        click.echo(json.dumps(event, ensure_ascii=True))


@run.command()
@click.argument("run")
@click.option("--timeout", type=float, metavar="SECONDS", help="Give up waiting after so long, with 1; the run goes on.")
@launching.options(launching.FOLLOW[1:])
@shown
def wait(session: Session, run: str, timeout: float | None, **said: Any) -> None:
    """Wait for a run's end, and end by what it came to."""
    name = kept.run_of(session, run)
    if timeout is not None:
        session.bw.runs.wait(name, timeout=timeout)
    launching.follow(session, {"id": name}, {**said, "no_wait": False})


@run.command()
@click.argument("run")
@click.option("--type", "kind", metavar="TYPE")
@click.option("--include-versions", is_flag=True)
@shown
def artifacts(session: Session, run: str, kind: str | None, include_versions: bool) -> None:
    """List the files that a run left."""
    output.rows(session, session.bw.runs.artifacts(kept.run_of(session, run), kind, include_versions), output.columns("id", "type", "name", "size", "digest"))


@run.command()
@click.argument("run")
@click.argument("artifact")
@shown
def artifact(session: Session, run: str, artifact: str) -> None:
    """Give one file's bytes, on stdout."""
    output.data(session.bw.runs.artifact_content(kept.run_of(session, run), artifact))


@run.command()
@click.argument("run")
@shown
def report(session: Session, run: str) -> None:
    """Give a run's report as one HTML page.

    \b
    benchwright run report @last > report.html
    """
    output.data(session.bw.runs.report(kept.run_of(session, run)).encode())


@run.command()
@click.argument("run")
@shown
def cost(session: Session, run: str) -> None:
    """Tell what a run cost."""
    output.one(session, session.bw.runs.cost(kept.run_of(session, run)))


@run.command()
@click.argument("run")
@shown
def fingerprint(session: Session, run: str) -> None:
    """Give the digest of all that a result depends on."""
    output.one(session, session.bw.runs.fingerprint(kept.run_of(session, run)))


@run.command("blocked-hosts")
@click.argument("run")
@shown
def blocked_hosts(session: Session, run: str) -> None:
    """Tell which hosts a run was kept from."""
    output.one(session, session.bw.runs.blocked_hosts(kept.run_of(session, run)))


# ------------------------------------------------------------------ changing


@run.command()
@click.argument("run")
@click.option("--visibility", type=click.Choice(["public", "team", "private"]), default="public", show_default=True)
@click.option("--override", metavar="REASON", help="An admin's: publish although the benchmark did not stand its checks.")
@shown
def publish(session: Session, run: str, visibility: str, override: str | None) -> None:
    """Show a run to everybody or the team; its benchmark follows."""
    output.rows(session, [session.bw.runs.publish(kept.run_of(session, run), visibility, override)], RUNS)


@run.command()
@click.argument("run")
@click.option("--reason", metavar="TEXT")
@shown
def halt(session: Session, run: str, reason: str | None) -> None:
    """Stop a run; it stays readable. `kill` is the same."""
    output.rows(session, [session.bw.runs.halt(kept.run_of(session, run), reason)], RUNS)


run.add_command(halt, "kill")


@run.command()
@click.argument("run")
@click.option("--confirm", metavar="RUN", help="The run's id once more: this cannot be taken back.")
@shown
def delete(session: Session, run: str, confirm: str | None) -> None:
    """Destroy a run's data for good.

    \b
    benchwright run delete run_… --confirm run_…
    """
    import sys

    name = kept.run_of(session, run)
    if confirm is None:
        if not sys.stdin.isatty():
            raise click.UsageError(f"This destroys {name} for good. Say so: --confirm {name}")
        confirm = click.prompt(f"This destroys {name} for good. Type its id", err=True)
    if confirm != name:
        raise click.UsageError(f"--confirm must be {name}.")
    session.bw.runs.delete(name)
    output.note(f"{name} is destroyed.")


@run.command()
@click.argument("run")
@click.option("--file", "code_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The scorer to grade by: a task_impl.py.")
@click.option("--impl", metavar="IMP", help="A scorer that is there already.")
@click.option("--grader-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A built-in grader, as JSON.")
@click.option("--label", metavar="TEXT", help="What to call an uploaded scorer.")
@click.option("--idempotency-key", metavar="KEY")
@click.option("--wait/--no-wait", default=True, help="Whether to wait for grading that takes its time.")
@shown
def rescore(session: Session, run: str, code_file: Path | None, impl: str | None, grader_file: Path | None, wait: bool, **said: Any) -> None:
    """Grade the stored outputs again, without any call of a model.

    \b
    benchwright run rescore @last --file task_impl.py
    """
    name = kept.run_of(session, run)
    found = session.bw.runs.rescore(
        name,
        impl=impl,
        code=code_file.read_text(encoding="utf-8") if code_file else None,
        grader=json_file(grader_file) if grader_file else None,
        wait=False,
        **said,
    )
    if wait and found.status in GOING_ON:
        output.note(f"{found.id} grades {found.tasks} tasks again.")
        found = session.bw.runs.wait_for_rescoring(name, found)
    output.one(session, found)
    if found.status not in (*GOING_ON, "ok"):
        output.note(f"{found.id} is {found.status}: {(found.error or {}).get('message', 'it was called off')}")
        raise Exit(1)


@run.command()
@click.argument("run")
@shown
def requeue(session: Session, run: str) -> None:
    """Ask again what failed on the way."""
    name = kept.run_of(session, run)
    output.rows(session, [session.bw.runs.requeue(name)], RUNS)


@run.command()
@click.argument("run")
@shown
def narrate(session: Session, run: str) -> None:
    """Have what happened told in words."""
    output.one(session, session.bw.runs.narrate(kept.run_of(session, run)))
