"""What a launch measures by: a pinned benchmark with subset and impl, or what the replay of a run takes over from it.

benchmark_not_found, …          404 for what is not there, or not for this caller
subset_retired                  410, with what replaced it
subset_not_runnable             422 without tasks, or with nothing to grade them
parent_not_replayable           409 while the parent is under way, or was deleted
empty_scope, unknown_task       422 where a replay selects nothing, or names what is no task
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from access.caller import Caller
from suite import canonical, ids
from suite.api.problems import Conflict, Missing, Problem, Unprocessable, Wrong, wrong
from suite.models import Benchmark, Impl, Run, Subset
from suite.running import limits as ceilings
from suite.running import selection
from suite.running.selection import Selection
from suite.seeing import may_read_benchmark, may_read_impl, may_read_run, readable_benchmarks
from suite.versions import latest_impl

REPLAY_FIELDS = ("from_run", "only_failed", "task_ids", "subset_version")


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


def pinned(caller: Caller, body: Mapping[str, Any], cap: int | None) -> Target:
    """Resolves a benchmark, its subset and an impl."""
    benchmark = find_benchmark(caller, str(body["benchmark"]))
    subset = find_subset(caller, benchmark, body.get("subset"))
    asked = str(body.get("impl") or "")
    impl = find_impl(caller, subset, asked)
    version = named_version(subset, body.get("subset"))
    return Target("pinned", benchmark, subset, version, impl, asked, None, selection.choose(subset.pk, version, cap))


def find_benchmark(caller: Caller, asked: str) -> Benchmark:
    """Finds a benchmark by id or name; of several of that name the caller's own, else the oldest that they may read. Errors: Missing."""
    if name := ids.read(asked, "bm"):
        row = Benchmark.objects.filter(pk=name, deleted_at=None).first()
        if row is not None and may_read_benchmark(caller, row):
            return row
        raise Missing("benchmark", asked)
    called = readable_benchmarks(caller).filter(name=asked).order_by("created_at", "id")
    found: Benchmark | None = called.filter(owner=caller.owner).first() or called.first()
    if found is None:
        raise Missing("benchmark", asked)
    return found


def find_subset(caller: Caller, benchmark: Benchmark, asked: Any) -> Subset:
    """Finds a subset by id or slug; without a name, the benchmark's only one that can be run."""
    live = Subset.objects.filter(benchmark=benchmark, deleted_at=None)
    if asked is None:
        open_ones = list(live.filter(retired_at=None, version__gt=0)[:2])
        if len(open_ones) != 1:
            raise Unprocessable(
                "subset_missing", "The benchmark has more than one subset that can be run, or none: name one.", [Wrong("/subset", "missing", "is needed here.")]
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


def named_version(subset: Subset, asked: Any) -> int:
    """Reads the version of `sub_…@<n>`; without one it is the newest. Errors: Missing."""
    _, at, number = str(asked or "").partition("@")
    if not at:
        return subset.version
    if not (number.isascii() and number.isdigit() and len(number) < 10 and 1 <= int(number) <= subset.version):
        raise Missing("subset", str(asked))
    return int(number)


def find_impl(caller: Caller, subset: Subset, asked: str) -> Impl:
    """Finds an impl by id or alias (`latest`, `latest:official`); without a word the subset's own: what its recipe names, its grader, its newest code.

    It is frozen on the run. Errors: Missing, Unprocessable.
    """
    if asked and not asked.startswith("latest"):
        row = live_impl(asked)
        if row is None or not may_read_impl(caller, row):
            raise Missing("impl", asked)
        return row
    if asked not in ("", "latest", "latest:official"):
        raise wrong("/impl", "must be an id, latest or latest:official.")
    row = latest_impl(subset, official=asked == "latest:official") if asked else None
    row = row or live_impl(str(subset.recipe.get("impl", "")))
    if row is not None:
        return by_recipe(row, subset)
    if subset.grader is not None:
        return builtin_impl(caller.owner, caller.team, subset)
    row = latest_impl(subset, official=True)
    if row is None:
        raise Unprocessable(
            "subset_not_runnable",
            "The subset has neither a grader nor an impl: it stands in the catalog only.",
            [Wrong("/subset", "subset_not_runnable", "has no grader.")],
        )
    return by_recipe(row, subset)


def live_impl(asked: str) -> Impl | None:
    name = ids.read(asked, "imp")
    return Impl.objects.select_related("benchmark").filter(pk=name, deleted_at=None).first() if name else None


def counted(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Gives what of a recipe bears on results, and so on an impl's content: who runs it by the clock does not."""
    return {name: value for name, value in recipe.items() if name not in ("passes", "impl")}


def by_recipe(impl: Impl, subset: Subset) -> Impl:
    """Gives the impl that some code amounts to under a recipe that was edited: the same code with another recipe is another impl."""
    recipe = counted(subset.recipe)
    if impl.language == "builtin" or subset.recipe_changed_at is None or (impl.grader or {}) == recipe:
        return impl
    content = {"language": impl.language, "code": impl.code, "dependencies": impl.dependencies, "recipe": recipe}
    digest = canonical.digest(content)
    if Impl.objects.filter(digest=digest).exclude(subset=subset).exists():  # another subset's, or another author's
        digest = canonical.digest({**content, "subset": subset.pk})
    now = timezone.now()
    row, _ = Impl.objects.get_or_create(
        digest=digest,
        defaults={
            "id": ids.content_id("imp", digest),
            "language": impl.language,
            "code": impl.code,
            "grader": recipe,
            "dependencies": impl.dependencies,
            "label": impl.label,
            "description": impl.description,
            "benchmark_id": subset.benchmark_id,
            "subset": subset,
            "from_run": impl.from_run,
            "is_hidden": impl.is_hidden,
            "owner": impl.owner,
            "team": impl.team,
            "created_at": now,
            "updated_at": now,
        },
    )
    return row


def builtin_impl(owner: str, team: str, subset: Subset) -> Impl:
    """Gives the impl of a built-in grader with its options and the subset's recipe: addressed by all of them, so that another recipe is another impl."""
    recipe = counted(subset.recipe)
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
            "owner": owner,
            "team": team,
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
    if not isinstance(only_failed, bool | None):
        raise wrong("/replay/only_failed", "must be true or false.")
    if task_ids is not None and only_failed:
        raise Unprocessable(
            "mode_conflict", "only_failed and task_ids exclude each other.", [Wrong("/replay/task_ids", "mode_conflict", "stands beside only_failed.")]
        )
    if task_ids is not None:
        if not isinstance(task_ids, list) or not all(isinstance(t, str) for t in task_ids):
            raise wrong("/replay/task_ids", "must be a list of task ids.")
        if not task_ids:
            raise Unprocessable("empty_scope", "task_ids names no task.", [Wrong("/replay/task_ids", "empty_scope", "is empty.")])
        chosen = selection.choose_ids(subset.pk, version, task_ids, cap)
    elif only_failed:
        chosen = selection.choose_failed(parent, subset.pk, version, cap)
    elif (positions := parent.selection.get("positions")) is not None:
        chosen = selection.choose_again(parent.scope, subset.pk, version, positions, cap)
    elif parent.scope != "full":
        chosen = selection.choose(subset.pk, version, ceilings.narrower(cap, parent.total))
    else:
        chosen = selection.choose(subset.pk, version, cap if cap is not None else cap_of(parent))
    return Target("replay", parent.benchmark, subset, version, parent.impl, parent.requested_impl, parent, chosen)


def cap_of(parent: Run) -> int | None:
    """Reads how many tasks a run was launched to ask at the most: rows appended since may be more than that."""
    asked = parent.metadata.get("limit")
    return ceilings.narrower(ceilings.read(parent.limits).run_tasks, asked if isinstance(asked, int) and not isinstance(asked, bool) else None)


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
