"""A scorer taken over from a run: the subset that gets it is graded as the run was, by an impl of the same id."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from suite.api.problems import Conflict, Unprocessable, Wrong
from suite.authoring import graders
from suite.authoring.rows import check_kind
from suite.grading.contract import RowError
from suite.models import Impl, Row, Run, Subset

CODE_RECIPE = ("run_timeout", "trials")


def inherit(subset: Subset, run: Run) -> Impl:
    """Has a subset graded as a run was. Of a built-in grader the options come along, of code its id. Errors: Conflict, Unprocessable."""
    impl = of_run(run)
    said = impl.grader or {}
    recipe = {**{name: said[name] for name in CODE_RECIPE if name in said}, **subset.recipe}
    if impl.language == "builtin":
        if subset.grader is not None:
            return impl
        grader = {name: value for name, value in said.items() if name in graders.FIELDS}
        fits(subset, grader)
        subset.grader = grader
    else:
        recipe["impl"] = impl.pk
    subset.recipe, subset.updated_at = recipe, timezone.now()
    subset.save(update_fields=["grader", "recipe", "updated_at"])
    return impl


def of_run(run: Run) -> Impl:
    """Gives the impl that scored a run. Errors: Conflict where it was a harness without code of ours."""
    if run.harness != "benchwright":
        raise Conflict("no_code", "The run was scored by an external harness: there is no code to keep.")
    return run.impl


def fits(subset: Subset, grader: Mapping[str, Any]) -> None:
    """Looks whether a grader can use a subset's rows. Errors: Unprocessable naming the first that it cannot."""
    for task_id, kind, body in Row.objects.filter(subset=subset).order_by("position").values_list("task_id", "kind", "body").iterator(chunk_size=500):
        row = json.loads(body)
        try:
            check_kind(str(grader.get("kind", "")) or kind, row["input"], row["expected"], grader)
        except RowError as error:
            raise Unprocessable(
                "grader_unfit", f"The grader cannot use the task {task_id}: {error.pointer} {error}", [Wrong("", "grader_unfit", f"{error.pointer} {error}")]
            ) from None
