"""A benchmark that was built here, mended in place. What has run stays as it was, and says by its ids what it was scored by.

recipe    the subset stays; the next run has another impl
samples   another subset with the same slug takes the old one's place; the old one retires

external_harness_immutable   409 what an official harness measures is reported as it is
subset_retired               410 what was replaced already
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from access.caller import Caller
from suite import canonical
from suite.api.problems import Conflict, Problem, Unprocessable, Wrong, wrong
from suite.authoring import graders, inheriting, recipes, subsets
from suite.authoring.rows import NewRow
from suite.models import Impl, Row, Run, Subset, Version

MOST_LISTED = 1000


def recipe_state(subset: Subset) -> str:
    """Gives the recipe's ETag."""
    return canonical.digest({"recipe": subset.recipe, "grader": subset.grader, "at": subset.recipe_changed_at and subset.recipe_changed_at.isoformat()})[:32]


def samples_state(subset: Subset) -> str:
    """Gives the ETag of a subset's rows: their version's digest."""
    return str(Version.objects.filter(subset=subset, number=subset.version).values_list("digest", flat=True).first() or "none")


def open_to_change(subset: Subset) -> None:
    """Refuses what is over, or not ours to mend. Errors: Problem 410, Conflict."""
    if subset.retired_at is not None:
        raise Problem(410, "subset_retired", f"The subset {subset.slug} is retired: mend what replaced it.", replaced_by=subset.replaced_by or None)
    if Run.objects.filter(subset=subset).exclude(harness="benchwright").exists():
        raise Conflict(
            "external_harness_immutable", "An external harness measures this benchmark. Its numbers are reported as they are, so there is nothing to mend here."
        )


def change_recipe(caller: Caller, subset: Subset, config: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Changes how a subset is run; null takes a value away. Shape: what changed, as [before, after]. Errors: Problem."""
    open_to_change(subset)
    before = {**subset.recipe, "grader": subset.grader}
    asked = dict(config)
    grader = subset.grader
    if "grader" in asked:
        grader = graders.read(asked.pop("grader"))
        if grader is not None:
            inheriting.fits(subset, grader)
    kept = {name: value for name, value in subset.recipe.items() if name not in asked}
    recipe = recipes.read({**kept, **{name: value for name, value in asked.items() if value is not None}}, "/config")
    recipes.look_at_impl(caller, recipe, "/config/impl")
    after = {**recipe, "grader": grader}
    changed = {name: [before.get(name), after.get(name)] for name in sorted({*before, *after}) if before.get(name) != after.get(name)}
    if changed:
        now = timezone.now()
        subset.recipe, subset.grader, subset.recipe_changed_at, subset.updated_at = recipe, grader, now, now
        subset.save(update_fields=["recipe", "grader", "recipe_changed_at", "updated_at"])
    return changed


@dataclass(frozen=True, slots=True)
class Amended:
    """Shape: task ids by what became of their rows; `new` is the old subset itself where nothing did."""

    old: Subset
    new: Subset
    added: tuple[str, ...]
    changed: tuple[tuple[str, str, str], ...]
    removed: tuple[str, ...]

    def diff(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [{"task_id": t, "change": "changed", "before": old, "after": new} for t, old, new in self.changed]
        found += [{"task_id": t, "change": "added"} for t in self.added]
        found += [{"task_id": t, "change": "removed"} for t in self.removed]
        return found[:MOST_LISTED]


def change_samples(subset: Subset, upserted: Sequence[NewRow], removed: Sequence[str], note: str, by: str) -> Amended:
    """Makes the subset that takes the old one's place: its rows in their order, some other, some gone, new ones behind. Errors: Problem."""
    with transaction.atomic():
        old = Subset.objects.select_for_update().select_related("benchmark").get(pk=subset.pk)
        open_to_change(old)
        rows = {r.task_id: r for r in Row.objects.filter(subset=old).order_by("position")}
        if unknown := [name for name in removed if name not in rows]:
            wrongs = [Wrong(f"/remove/{list(removed).index(name)}", "unknown_task", f"{name[:100]} is no task of it.") for name in unknown[:100]]
            raise Unprocessable("unknown_task", f"There is no task {', '.join(unknown[:10])} in this subset.", wrongs, unknown=unknown[:1000])
        new = {row.task_id: row for row in upserted}
        if both := [name for name in removed if name in new]:
            raise wrong("/remove", f"names {', '.join(both[:10])}, which upsert brings.")
        changed = tuple([(t, rows[t].digest, r.digest) for t, r in new.items() if t in rows and rows[t].digest != r.digest])
        added = tuple([t for t in new if t not in rows])
        if not (changed or added or removed):
            return Amended(old, old, (), (), ())
        gone = set(removed)
        made = [new.get(t) or NewRow(t, r.kind, r.cluster, r.digest, r.body) for t, r in rows.items() if t not in gone]
        made += [new[t] for t in added]
        if not made:
            raise wrong("/remove", "names every task: a subset without any cannot be run. Retire it instead.")
        now = timezone.now()
        retire(old, note, "")
        replacement = subsets.create(old.benchmark, old.slug, old.name, old.description, made, old.rolling, old.grader, by, dict(old.recipe))
        replacement.recipe_changed_at = old.recipe_changed_at
        replacement.save(update_fields=["recipe_changed_at"])
        old.replaced_by = replacement.pk
        old.save(update_fields=["replaced_by"])
        # Code that was made for the old one grades the new one; runs of the old keep naming it themselves.
        Impl.objects.filter(subset=old).update(subset=replacement, updated_at=now)
    return Amended(old, replacement, added, changed, tuple(removed))


def retire(subset: Subset, because: str, replaced_by: str) -> None:
    """Ends a subset for new runs."""
    now = timezone.now()
    subset.retired_at, subset.retired_because, subset.replaced_by, subset.updated_at = now, because[:500], replaced_by, now
    subset.save(update_fields=["retired_at", "retired_because", "replaced_by", "updated_at"])
