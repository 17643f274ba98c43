"""Scorers tried out before anything is run by them."""

from __future__ import annotations

import json
import threading
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from suite.api.impls import find_impl
from suite.api.problems import Problem, Unprocessable, Wrong
from suite.api.subsets import find_subset
from suite.api.view import View
from suite.authoring import rows as authored
from suite.models import Impl, Row, Subset
from suite.running import codehosts, dryrun, needs
from suite.running.lines import Item
from suite.running.selection import choose_ids, rows_of

# Each has a few sandboxes at once, beside the calls that this process answers.
PLACES = threading.BoundedSemaphore(2)


class DryRun(View):
    scopes = {"POST": ("registry:publish",)}

    def post(self, request: Request, impl: str) -> Response:
        """Tries an impl on up to three rows, by the right answer and by an empty one. No model is asked, and nothing is kept."""
        row = find_impl(self, impl)
        body = self.body(("subset", "task_ids", "rows"))
        subset = find_subset(self, str(body["subset"])) if body.get("subset") else row.subset
        items = given(body["rows"], row) if body.get("rows") is not None else chosen(subset, body.get("task_ids"))
        check(row, items)
        if not PLACES.acquire(blocking=False):
            raise Problem(429, "busy", "Other scorers are being tried just now. Ask again in a moment.", retry_after_s=3)
        try:
            return Response(codehosts.tried(row, items))
        finally:
            PLACES.release()


def check(impl: Impl, items: list[Item]) -> None:
    """Looks whether the impl can be tried here. Errors: Unprocessable."""
    kinds = {str((impl.grader or {}).get("kind") or item.kind) for item in items} if impl.language == "builtin" else set()
    needed = needs.of_kinds(kinds)
    if needed.judge:
        raise Unprocessable("dry_run_unsupported", "A judge is a model, and a dry run asks none. Launch it on a few tasks: limits.run.tasks.")
    if impl.language != "builtin" or needed.sandbox:
        needs.check_sandbox()


def given(value: Any, impl: Impl) -> list[Item]:
    """Reads rows that came along. Errors: Unprocessable."""
    found = authored.read(value, impl.grader if impl.language == "builtin" else None, dryrun.MOST_ROWS)
    if not found:
        raise missing()
    items = []
    for i, row in enumerate(found):
        body = json.loads(row.body)
        items.append(Item(i, 1, row.task_id, row.kind, row.cluster, body["input"], body["expected"]))
    return items


def chosen(subset: Subset | None, task_ids: Any) -> list[Item]:
    """Takes rows of a subset: the named ones, else the first. Errors: Unprocessable."""
    if subset is None or subset.version == 0:
        raise missing()
    positions: list[int] = list(range(dryrun.MOST_ROWS))
    if task_ids is not None:
        if not isinstance(task_ids, list) or not 1 <= len(task_ids) <= dryrun.MOST_ROWS or not all(isinstance(t, str) for t in task_ids):
            raise Unprocessable("invalid_request", f"task_ids names 1 to {dryrun.MOST_ROWS} tasks.", [Wrong("/task_ids", "invalid", "is no such list.")])
        positions = list(choose_ids(subset.pk, subset.version, task_ids).positions or ())
    return [item_of(row) for row in rows_of(subset.pk, subset.version).filter(position__in=positions).order_by("position")]


def item_of(row: Row) -> Item:
    body = json.loads(row.body)
    return Item(row.position, 1, row.task_id, row.kind, row.cluster, body["input"], body["expected"])


def missing() -> Unprocessable:
    return Unprocessable("rows_missing", "There are no rows to try it on: name a subset, or send rows.", [Wrong("/rows", "missing", "is needed here.")])
