"""The options of a launch, and what a command makes of a run that it launched: follow it, judge it, end by it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from benchwright.cli import gates, kept, output, reattach, watching
from benchwright.cli.session import Exit, Function, Session, pairs

HARNESSES = ("benchwright", "inspect", "lmeval", "lighteval", "harbor")
BUDGET = ("run.cost", "run.model_cost", "phase.cost")
LAUNCH = (
    click.option("--benchmark", metavar="BM", help="A benchmark, by id or name."),
    click.option("--subset", metavar="SUB", help="Its subset, by id or slug; not needed where there is one."),
    click.option("--impl", metavar="IMP", help="A scorer: its id, latest or latest:official."),
    click.option("--replay-from", metavar="RUN", help="The same tasks by the same scorer as that run; @last is the run launched last."),
    click.option("--only-failed", is_flag=True, help="Of a replay: what the parent did not pass."),
    click.option("--task", "task_ids", multiple=True, metavar="ID", help="Of a replay: this task; may be repeated."),
    click.option("--subset-version", metavar="N", help="Of a replay: latest, parent or a number."),
    click.option("--model", metavar="NAME[@ENDPOINT]", help="Whom to test: an alias, what an endpoint serves, or bench/<collection>[:mode]."),
    click.option("--driver", metavar="NAME", help="The model that would author; not the one under test."),
    click.option("--harness", type=click.Choice(HARNESSES), help="What drives the run."),
    click.option("--harness-task", metavar="TASK", help="The task of another harness."),
    click.option("--harness-dataset", metavar="NAME", help="The data set of harbor."),
    click.option("--compute", metavar="BACKEND", help="Where the run is computed."),
    click.option("--limit", type=click.IntRange(1), help="The first so many tasks."),
    click.option("--limit-to", multiple=True, metavar="LEVEL.WHAT=N", help="A ceiling, like run.cost=15 (dollars) or task.duration=60 (seconds)."),
    click.option("--trials", type=click.IntRange(1), help="How often each task is asked."),
    click.option("--metadata", multiple=True, metavar="K=V", help="Kept with the run, and found by it."),
    click.option("--tag", "tags", multiple=True, metavar="TAG"),
    click.option("--source", type=click.Choice(["manual", "ci"]), help="manual without it; ci where the environment has CI."),
    click.option("--idempotency-key", metavar="KEY", help="The same key is the same run; without one the command itself is the key, for 24 hours."),
    click.option("--fresh", is_flag=True, help="Launch anew, even if the same command did so before."),
)
FOLLOW = (
    click.option("--no-wait", is_flag=True, help="Print the run's id and leave."),
    click.option("--gate", "gate_texts", multiple=True, metavar="METRIC=N", help=f"End with 10 unless this holds; metrics: {', '.join(gates.METRICS)}."),
    click.option("--gate-vs", nargs=2, metavar="RUN RULE", help="End with 10 where it is worse than that run: RUN no_regression@alpha=0.05"),
    click.option("--confidence", type=click.FloatRange(0.5, 0.9999), help="Let gates be inconclusive (11) where the interval holds the threshold."),
    click.option("--min-coverage", type=click.FloatRange(0, 1), help="The share of tasks that must be scored; the team's setting without it, else 0.98."),
    click.option("--fail-code", type=click.IntRange(1, 125), default=10, show_default=True, help="The exit code of a gate that fails."),
)


def options(*groups: tuple[Callable[..., Any], ...]) -> Callable[[Function], Function]:
    """Adds options to a command, in their order."""

    def add(function: Function) -> Function:
        return functools.reduce(lambda made, option: option(made), reversed([o for group in groups for o in group]), function)

    return add


def body_of(session: Session, request: tuple[str, ...], said: Mapping[str, Any]) -> dict[str, Any]:
    """Makes a launch of what was typed. Errors: UsageError."""
    import os

    replay = None
    if said["replay_from"]:
        version = said["subset_version"]
        replay = {
            "from_run": kept.run_of(session, said["replay_from"]),
            **({"only_failed": True} if said["only_failed"] else {}),
            **({"task_ids": list(said["task_ids"])} if said["task_ids"] else {}),
            **({"subset_version": int(version) if version.isdecimal() else version} if version else {}),
        }
    elif said["only_failed"] or said["task_ids"] or said["subset_version"]:
        raise click.UsageError("--only-failed, --task and --subset-version belong to --replay-from.")
    metadata = pairs(said["metadata"], "--metadata")
    harness, task, dataset = said["harness"], said["harness_task"], said["harness_dataset"]
    if (task or dataset) and harness in (None, "benchwright"):
        raise click.UsageError("--harness-task and --harness-dataset belong to another --harness.")
    if harness == "harbor":
        metadata |= {**({"harbor_harness": {"dataset": dataset}} if dataset else {}), **({"harbor_task": task} if task else {})}
    elif task:
        metadata[f"{harness}_harness"] = {"task": task}
    if said["limit"] is not None:
        metadata["limit"] = said["limit"]
    body = {
        "request": " ".join(request) or None,
        "benchmark": said["benchmark"],
        "subset": said["subset"],
        "impl": said["impl"],
        "replay": replay,
        "sut": said["model"],
        "driver": said["driver"],
        "harness": harness,
        "compute": said["compute"],
        "limits": limits_of(said["limit_to"]),
        "trials": said["trials"],
        "metadata": metadata or None,
        "tags": list(said["tags"]) or None,
        "source": said["source"] or ("ci" if os.environ.get("CI") else None),
    }
    return {name: value for name, value in body.items() if value is not None}


def limits_of(texts: tuple[str, ...]) -> dict[str, dict[str, Any]] | None:
    """Reads `run.cost=15`. Errors: UsageError."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in pairs(texts, "--limit-to").items():
        level, dot, quantity = name.partition(".")
        if not dot or isinstance(value, bool) or not isinstance(value, int | float):
            raise click.UsageError(f"--limit-to reads like run.cost=15, not {name}={value}.")
        found.setdefault(level, {})[quantity] = value
    return found or None


def launch(session: Session, call: Callable[[str], Any], key: str | None, is_fresh: bool) -> Any:
    """Launches, or follows the run that the same command launched before. Shape: `call` takes the Idempotency-Key."""
    from benchwright.errors import APIError

    # @last is another run after each launch: what it stands for now is part of what is meant.
    named = (kept.LAST, f"--replay-from={kept.LAST}")
    meant = [part.replace(kept.LAST, kept.run_of(session, kept.LAST)) if part in named else part for part in session.arguments]
    digest = "" if key else reattach.digest_of(meant, Path.cwd())
    sent = key or reattach.key_of(session, digest, is_fresh=is_fresh)
    try:
        run = call(sent)
    except APIError as error:
        if key or not error.is_replayed:
            raise
        # The server keeps a refusal too, and what it refused may be mended by now.
        run = call(reattach.key_of(session, digest, is_fresh=True))
    if session.bw.was_replayed:
        output.note(f"re-attached to {run.id}" + ("" if key else "; --fresh launches anew"))
    kept.launched(session, run.id)
    return run


def follow(session: Session, run: Any, said: Mapping[str, Any]) -> None:
    """Watches a run to its end, rules by its gates, prints it, and ends the program by what it came to."""
    wanted = [gates.read(text) for text in said["gate_texts"]]
    alpha = gates.read_regression(said["gate_vs"][1]) if said["gate_vs"] else None
    if said["no_wait"]:
        if wanted or alpha is not None:
            raise click.UsageError("A gate needs the run's end: leave out --no-wait.")
        output.one(session, run) if session.output in ("json", "ndjson", "yaml") else click.echo(run["id"])
        return
    watching.show(session, run["id"])
    ended = session.bw.runs.get(run["id"], expand=["summary"])
    rulings: list[gates.Ruling] = []
    confidence = said["confidence"]
    if ended.status == "ok" and wanted:
        rulings, confidence = gates.ruled(session, run["id"], wanted, confidence, said["min_coverage"])
    if ended.status == "ok" and alpha is not None:
        pair = session.bw.compare([run["id"], kept.run_of(session, said["gate_vs"][0])]).pairs[0]
        rulings.append(gates.rule_regression(pair, alpha, confidence))
    watching.result(session, ended, [r.said() for r in rulings])
    for ruling in rulings:
        output.note(f"gate {ruling.gate}: {ruling.verdict}. {ruling.reason}")
        if ruling.warning:
            output.note(f"warning: {ruling.warning}")
    code = code_of(ended, gates.together(rulings), said["fail_code"])
    if code:
        raise Exit(code)


def code_of(run: Any, verdict: str, fail_code: int) -> int:
    """Gives the exit code of a run that has ended."""
    if run["status"] != "ok":
        why = str(run.get("halt_reason") or "")
        return 12 if why == "team_budget_exceeded" or why.removeprefix("limit_exceeded:") in BUDGET else 1
    return {gates.PASS: 0, gates.FAIL: fail_code, gates.UNSURE: 11}[verdict]
