"""A launch: what was asked for resolved and frozen into a queued run. Nothing is spent here.

mode_missing, mode_conflict     which of request, benchmark and replay
benchmark_not_found, …          404 for what is not there, or not for this caller
subset_retired                  410, with what replaced it
parent_not_replayable           409 while the parent is under way, or was deleted
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from access.caller import Caller
from panels.snapshot import load_snapshot
from suite import canonical, ids
from suite.api.problems import Conflict, Missing, NotYet, Problem, Unprocessable, Wrong, wrong
from suite.grading import every
from suite.models import Backend, Benchmark, Impl, Metadatum, Run, Subset, Task
from suite.running import limits as ceilings
from suite.running import recording, selection, subjects
from suite.running.limits import Limits
from suite.running.selection import Selection
from suite.sandbox import box
from suite.seeing import may_read_benchmark, may_read_run
from suite.versions import latest_impl

FIELDS = (
    "request", "benchmark", "subset", "impl", "replay", "sut", "driver", "phase_models", "harness", "compute", "limits", "constraints", "trials", "hints",
    "metadata", "tags", "idempotency_key", "timeout", "source", "visibility", "priority",
)  # fmt: skip
REPLAY_FIELDS = ("from_run", "only_failed", "task_ids", "subset_version")
HARNESSES = ("benchwright", "inspect", "lmeval", "lighteval", "harbor")
SOURCES = ("manual", "ci", "onboarding", "scheduled")
MOST_TRIALS = 100
LOCAL = "local-bwrap"


@dataclass(frozen=True, slots=True)
class Target:
    """What a run measures by."""

    mode: str
    benchmark: Benchmark
    subset: Subset
    version: int
    impl: Impl
    requested_impl: str
    parent: Run | None
    selection: Selection


def launch(caller: Caller, body: Mapping[str, Any], sweep: str = "") -> Run:
    """Makes a queued run. Errors: Problem."""
    mode = mode_of(body)
    if "agent" in body:
        raise Unprocessable(
            "unknown_field",
            "agent is not a field: use driver for the model that authors, sut for the one under test.",
            [Wrong("/agent", "unknown_field", "Use driver or sut.")],
        )
    harness = body.get("harness") or "benchwright"
    if harness not in HARNESSES:
        raise wrong("/harness", f"must be one of {', '.join(HARNESSES)}.")
    if harness != "benchwright":
        raise NotYet(f"The harness {harness}", "Leave harness out: the server's own graders run a pinned benchmark.")
    if mode == "request":
        raise NotYet("Launching by a request in words", "Name a benchmark, or replay a run: GET /v1/registry/benchmarks lists them.")
    caps = ceilings.read(body.get("limits"), body.get("constraints"))
    metadata = metadata_of(body.get("metadata"))
    cap = ceilings.narrower(caps.run_tasks, limit_of(metadata))
    trials = trials_of(body)
    target = replayed(caller, body["replay"], cap) if mode == "replay" else pinned(caller, body, cap)
    parent = target.parent
    snapshot = load_snapshot()
    sut = body.get("sut")
    if sut is None and parent is not None:
        subject = subjects.Subject.kept(parent.sut)
    elif sut is None:
        raise Unprocessable("sut_missing", "sut says whom the run tests.", [Wrong("/sut", "missing", "is needed.")])
    else:
        subject = subjects.resolve(sut, snapshot)
    subjects.seated(subject, snapshot)
    if trials is None:
        trials = parent.trials if parent is not None else recipe_trials(target.subset)
    if parent is not None and body.get("limits") is None and body.get("constraints") is None:
        caps = ceilings.read(parent.limits)
    merged_metadata = {**(parent.metadata if parent is not None else {}), **metadata}
    return kept(caller, body, target, subject, caps, trials, merged_metadata, backend_of(body.get("compute")), sweep)


def mode_of(body: Mapping[str, Any]) -> str:
    """Tells which of the three ways to launch is meant. Errors: Unprocessable."""
    given = [name for name in ("request", "benchmark", "replay") if body.get(name) is not None]
    if len(given) > 1:
        wrongs = [Wrong(f"/{name}", "mode_conflict", "stands beside another way to launch.") for name in given]
        raise Unprocessable(
            "mode_conflict", f"{' and '.join(given)} exclude each other: a launch has one of request, benchmark and replay.", wrongs, fields=given
        )
    if not given:
        raise Unprocessable("mode_missing", "A launch has one of request, benchmark and replay.", [Wrong("", "mode_missing", "None of them is there.")])
    return given[0]


# ------------------------------------------------------------------ what it measures by


def pinned(caller: Caller, body: Mapping[str, Any], cap: int | None) -> Target:
    """Resolves a benchmark, its subset and an impl."""
    benchmark = find_benchmark(caller, str(body["benchmark"]))
    subset = find_subset(caller, benchmark, body.get("subset"))
    asked = str(body.get("impl") or "")
    impl = find_impl(caller, subset, asked)
    return Target("pinned", benchmark, subset, subset.version, impl, asked, None, selection.choose(subset.pk, subset.version, cap))


def find_benchmark(caller: Caller, asked: str) -> Benchmark:
    name = ids.read(asked, "bm")
    row = (
        Benchmark.objects.filter(pk=name, deleted_at=None).first()
        if name
        else Benchmark.objects.filter(name=asked, deleted_at=None).order_by("created_at").first()
    )
    if row is None or not may_read_benchmark(caller, row):
        raise Missing("benchmark", asked)
    return row


def find_subset(caller: Caller, benchmark: Benchmark, asked: Any) -> Subset:
    """Finds a subset by id or slug; without a name, the benchmark's only one that can be run."""
    live = Subset.objects.filter(benchmark=benchmark, deleted_at=None)
    if asked is None:
        open_ones = list(live.filter(retired_at=None, version__gt=0)[:2])
        if len(open_ones) != 1:
            raise Unprocessable(
                "subset_missing", "The benchmark has more than one subset, or none: name one.", [Wrong("/subset", "missing", "is needed here.")]
            )
        return open_ones[0]
    name = ids.read(str(asked).partition("@")[0], "sub")
    row = live.filter(pk=name).first() if name else live.filter(slug=str(asked)).order_by("-created_at").first()
    if row is None:
        raise Missing("subset", str(asked))
    if row.retired_at is not None:
        raise Problem(
            410,
            "subset_retired",
            f"The subset {row.slug} is retired{': ' + row.retired_because if row.retired_because else ''}.",
            replaced_by=row.replaced_by or None,
        )
    if row.version == 0:
        raise Unprocessable("subset_not_runnable", "The subset has no tasks yet.", [Wrong("/subset", "subset_not_runnable", "has no tasks.")])
    return row


def find_impl(caller: Caller, subset: Subset, asked: str) -> Impl:
    """Finds an impl by id or alias (`latest:official`), or makes the one that the subset's grader amounts to. It is frozen on the run."""
    if asked.startswith("latest"):
        row = latest_impl(subset, official=asked == "latest:official")
        if row is None and asked not in ("latest", "latest:official"):
            raise wrong("/impl", "must be an id, latest or latest:official.")
        if row is not None:
            return row
    elif asked:
        name = ids.read(asked, "imp")
        row = Impl.objects.filter(pk=name, deleted_at=None).first() if name else None
        if row is None:
            raise Missing("impl", asked)
        return row
    if subset.grader is None:
        row = latest_impl(subset, official=True)
        if row is None:
            raise Unprocessable(
                "subset_not_runnable",
                "The subset has neither a grader nor an impl: it stands in the catalog only.",
                [Wrong("/subset", "subset_not_runnable", "has no grader.")],
            )
        return row
    return builtin_impl(caller, subset)


def builtin_impl(caller: Caller, subset: Subset) -> Impl:
    """Gives the impl of a built-in grader with its options and the subset's recipe: addressed by all of them, so that another recipe is another impl."""
    recipe = {name: value for name, value in subset.recipe.items() if name != "trials"}
    digest = canonical.digest({"grader": subset.grader, "recipe": recipe, "graders": 1})
    now = timezone.now()
    row, _ = Impl.objects.get_or_create(
        digest=digest,
        defaults={
            "id": ids.content_id("imp", digest),
            "language": "builtin",
            "grader": {**(subset.grader or {}), **recipe},
            "label": f"built-in {(subset.grader or {}).get('kind', 'by kind')}",
            "benchmark_id": subset.benchmark_id,
            "subset": subset,
            "owner": caller.owner,
            "team": caller.team,
            "created_at": now,
            "updated_at": now,
        },
    )
    return row


def replayed(caller: Caller, replay: Any, cap: int | None) -> Target:
    """Resolves a replay: the parent's impl, and of a frozen subset its version; of a rolling one the latest unless a version is named."""
    if not isinstance(replay, Mapping) or not replay.get("from_run"):
        raise wrong("/replay/from_run", "names the run to replay.", "missing")
    if unknown := [name for name in replay if name not in REPLAY_FIELDS]:
        raise Unprocessable(
            "unknown_field",
            f"replay has {', '.join(REPLAY_FIELDS)}.",
            [Wrong(f"/replay/{name}", "unknown_field", "There is no such field.") for name in unknown],
        )
    parent = find_run(caller, str(replay["from_run"]))
    if parent.status not in (Run.Status.OK, Run.Status.FAILED, Run.Status.HALTED):
        raise Conflict("parent_not_replayable", f"The run {parent.pk} is {parent.status}: it can be replayed once it has ended.")
    subset = parent.subset
    if subset.deleted_at is not None or parent.impl.deleted_at is not None:
        raise Conflict("parent_not_replayable", "The parent's tasks or its impl were deleted.")
    version = version_of(replay.get("subset_version"), parent)
    task_ids, only_failed = replay.get("task_ids"), replay.get("only_failed")
    if task_ids is not None and only_failed:
        raise Unprocessable(
            "mode_conflict", "only_failed and task_ids exclude each other.", [Wrong("/replay/task_ids", "mode_conflict", "stands beside only_failed.")]
        )
    if task_ids is not None:
        if not isinstance(task_ids, list) or not all(isinstance(t, str) for t in task_ids):
            raise wrong("/replay/task_ids", "must be a list of task ids.")
        if not task_ids:
            raise Unprocessable("empty_scope", "task_ids names no task.", [Wrong("/replay/task_ids", "empty_scope", "is empty.")])
        chosen = selection.choose_ids(subset.pk, version, task_ids)
    elif only_failed:
        chosen = selection.choose_failed(parent, subset.pk, version)
    elif version == parent.version and parent.scope != "full":
        positions = parent.selection.get("positions")
        chosen = (
            selection.listed(parent.scope, subset.pk, version, positions)
            if positions is not None
            else selection.choose(subset.pk, version, ceilings.narrower(cap, parent.total))
        )
    else:
        chosen = selection.choose(subset.pk, version, cap)
    return Target("replay", parent.benchmark, subset, version, parent.impl, parent.requested_impl, parent, chosen)


def version_of(asked: Any, parent: Run) -> int:
    newest = parent.subset.version
    if asked is None or asked == "":
        return newest if parent.subset.rolling else parent.version
    if asked == "latest":
        return newest
    if asked == "parent":
        return parent.version
    if isinstance(asked, bool) or not isinstance(asked, int) or not 1 <= asked <= newest:
        raise wrong("/replay/subset_version", f'must be "latest", "parent" or a number from 1 to {newest}.')
    return asked


def find_run(caller: Caller, asked: str) -> Run:
    """Finds a run that the caller may read. Errors: Missing."""
    name = ids.read(asked, "run")
    row = Run.objects.select_related("subset", "impl", "benchmark").filter(pk=name).first() if name else None
    if row is None or not may_read_run(caller, row):
        raise Missing("run", asked)
    return row


# ------------------------------------------------------------------ how it runs


def metadata_of(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or len(value) > 100:
        raise wrong("/metadata", "must be an object of at most 100 fields.")
    for name in value:
        if not name or len(name) > 80:
            raise wrong("/metadata", "has names of 1 to 80 characters.")
    if len(canonical.kept(value)) > 64 * 1024:
        raise wrong("/metadata", "is larger than 64 KiB.", "too_long")
    return dict(value)


def limit_of(metadata: Mapping[str, Any]) -> int | None:
    """Reads metadata.limit, which caps tasks. Errors: Unprocessable; 0 is refused, since loaders elsewhere took it for all."""
    value = metadata.get("limit")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise wrong("/metadata/limit", "must be a whole number from 1 on.")
    return value


def trials_of(body: Mapping[str, Any]) -> int | None:
    value = body.get("trials")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_TRIALS:
        raise wrong("/trials", f"must be a whole number from 1 to {MOST_TRIALS}.")
    return value


def recipe_trials(subset: Subset) -> int:
    value = subset.recipe.get("trials", 1)
    return value if isinstance(value, int) and 1 <= value <= MOST_TRIALS else 1


def backend_of(asked: Any) -> str:
    """Finds a backend that an admin set up. Errors: Unprocessable."""
    names = list(Backend.objects.values_list("name", "is_default"))
    if asked is None:
        return next((name for name, is_default in names if is_default), LOCAL)
    if asked != LOCAL and asked not in [name for name, _ in names]:
        raise Unprocessable(
            "backend_unknown",
            f"There is no backend {str(asked)[:80]}. There are: {', '.join([LOCAL, *(n for n, _ in names)])}.",
            [Wrong("/compute", "backend_unknown", "is none.")],
        )
    return str(asked)


def kept(
    caller: Caller,
    body: Mapping[str, Any],
    target: Target,
    subject: subjects.Subject,
    caps: Limits,
    trials: int,
    metadata: Mapping[str, Any],
    backend: str,
    sweep: str,
) -> Run:
    if target.impl.language != "builtin" and (missing := box.trouble()):
        raise Unprocessable(
            "sandbox_unavailable", f"The impl is code, and there is no sandbox to run it in: {missing}", [Wrong("/impl", "sandbox_unavailable", missing)]
        )
    kind = (target.impl.grader or {}).get("kind")
    if target.impl.language == "builtin" and kind and kind not in every():
        raise Unprocessable("grader_unknown", f"This server has no grader {kind}.", [Wrong("/impl", "grader_unknown", "is none of this server's.")])
    source = body.get("source") or "manual"
    if source not in SOURCES:
        raise wrong("/source", f"must be one of {', '.join(SOURCES)}.")
    seed = secrets.randbits(53)
    now = timezone.now()
    run = Run(
        id=ids.new_id("run"),
        mode=target.mode,
        launch={name: value for name, value in body.items() if name != "idempotency_key"},
        benchmark=target.benchmark,
        subset=target.subset,
        version=target.version,
        impl=target.impl,
        requested_impl=target.requested_impl,
        subject=subject.name[:300],
        sut=subject.said(),
        driver=str(body.get("driver") or "")[:300],
        backend=backend,
        source=source,
        limits=caps.said(),
        trials=trials,
        metadata=dict(metadata),
        tags=tags_of(body.get("tags")),
        hints=body.get("hints"),
        selection=target.selection.said(seed),
        scope=target.selection.scope,
        parent=target.parent,
        sweep=sweep,
        seed=seed,
        owner=caller.owner,
        team=caller.team,
        key_id=caller.key_id,
        total=target.selection.total,
        created_at=now,
    )
    run.fingerprint = fingerprint(run)
    with transaction.atomic():
        run.save(force_insert=True)
        Metadatum.objects.bulk_create(
            [
                Metadatum(run=run, name=name, value=str(recording.safe(value))[:300])
                for name, value in metadata.items()
                if isinstance(value, str | int | float | bool)
            ]
        )
        from django.db import connection

        with connection.cursor() as cursor:
            recording.tell(cursor, run.pk, [("RunQueued", {"subject": run.subject, "tasks": run.total})])
    run.refresh_from_db(fields=["last_seq", "etag"])
    return run


def tags_of(value: Any) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > 50 or not all(isinstance(tag, str) and 0 < len(tag) <= 80 for tag in value):
        raise wrong("/tags", "must be a list of at most 50 texts of 1 to 80 characters.")
    return list(dict.fromkeys(value))


def fingerprint(run: Run) -> str:
    """Makes one digest of all that a run's result depends on but chance: equal ones are comparable."""
    return canonical.digest(
        {
            "selection": run.selection["digest"],
            "impl": run.impl.digest,
            "sut": run.sut,
            "trials": run.trials,
            "harness": run.harness,
            "backend": run.backend,
            "graders": 1,
        }
    )


def task_count(run: Run) -> int:
    return Task.objects.filter(run=run, scoring=run.scoring).count()
