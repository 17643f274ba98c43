"""What a run's tasks came to: slim rows with a summary of the whole, one task's payload, events."""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from suite import ids
from suite.api import shapes
from suite.api.artifacts import sent
from suite.api.problems import Missing, Problem, Unprocessable, wrong
from suite.api.view import View
from suite.models import Event, Regrade, Rescoring, Row, Run, Sample, Task
from suite.running import recording, summary
from suite.running.targets import find_run

# Names that one request may look for.
MOST_NAMED = 1000
SORTS = {"position": ("position",), "score": ("score", "position"), "duration_ms": ("duration_ms", "position")}


class Tasks(View):
    scopes = {"GET": ("runs:read",)}
    filters = ("passed", "outcome", "version", "kind", "task_id")
    asks = ("sort",)

    def get(self, request: Request, run: str) -> Response:
        """Lists a run's tasks; `summary` is of the whole run, whatever is filtered."""
        row = find_run(self.caller, run)
        asked = self.filters_wanted()
        scoring = self.scoring(row, asked)
        tasks = Task.objects.filter(run=row, scoring=scoring)
        if "passed" in asked:
            said = asked["passed"][-1].lower()
            if said not in ("true", "false"):
                raise wrong("", "passed is true or false.")
            # What was not scored was not passed either: whoever looks for failures wants to see it.
            tasks = tasks.filter(passed=True) if said == "true" else tasks.exclude(passed=True)
        for name in ("outcome", "kind"):
            if name in asked:
                tasks = tasks.filter(**{f"{name}__in": asked[name]})
        if "task_id" in asked:  # by the rows' own index: a run's tasks have none by name
            named = Row.objects.filter(subset=row.subset_id, task_id__in=asked["task_id"]).values_list("position", flat=True)
            tasks = tasks.filter(position__in=list(named[:MOST_NAMED]))
        sort = request.query_params.get("sort", "position")
        fields = SORTS.get(sort.lstrip("-"))
        if fields is None:
            raise Unprocessable("unknown_sort", f"Tasks are sorted by {', '.join(SORTS)}.")
        if fields[0] == "score":
            tasks = tasks.filter(score__isnull=False)
        page = self.keyset_page(tasks, fields, sort.startswith("-"), bound_to=f"{sort}{asked}")
        return Response({"data": [shapes.task(task) for task in page.data], "next": page.next, "summary": summary.of(row, scoring)})

    def scoring(self, run: Run, asked: dict[str, list[str]]) -> int:
        said = asked.get("version", [str(run.scoring)])[-1]
        if said == "latest":
            return run.scoring
        if not said.isdecimal() or not 1 <= int(said) <= run.scoring:
            raise wrong("", f"version must be latest or a number from 1 to {run.scoring}.")
        return int(said)


class Payload(View):
    scopes = {"GET": ("runs:read",)}

    def get(self, request: Request, run: str, task: str) -> Response:
        """Gives a task whole: what was asked, what was expected, and each trial's output and grade; or a range of its bytes."""
        row = find_run(self.caller, run)
        name = ids.read(task, "tsk")
        found = Task.objects.filter(pk=name, run=row).first() if name else None
        if found is None:
            raise Missing("task", task)
        response = Response(payload_of(row, found))
        response.add_post_render_callback(lambda written: self.as_wanted(request, written.content))
        return response

    def as_wanted(self, request: Request, content: bytes) -> HttpResponse:
        """Gives bytes whole or as far as they are wanted. A range is of the bytes as they are, so it is not packed."""
        try:
            response = sent(request, content, hashlib.sha256(content).hexdigest(), "application/json")
        except Problem as error:
            refused: Response = self.finalize_response(request, self.handle_exception(error))
            return cast(HttpResponse, refused.render())
        if response.status_code == 206:
            response["Content-Encoding"] = "identity"
        return response


def payload_of(run: Run, task: Task) -> dict[str, Any]:
    body = json.loads(Row.objects.get(subset_id=run.subset_id, position=task.position).body)
    samples = Sample.objects.filter(run=run, position=task.position).order_by("trial", "superseded")
    made = Regrade.objects.filter(rescoring__run=run, rescoring__scoring=task.scoring, rescoring__status=Rescoring.Status.OK, position=task.position)
    again = {grade.trial: grade for grade in made}
    trials = []
    for sample in samples:
        kept = recording.unpacked(sample.payload)
        trials.append(
            {
                "trial": sample.trial,
                "superseded": sample.superseded > 0,
                "outcome": sample.outcome,
                "score": sample.score,
                "attempts": sample.attempts,
                "calls": sample.calls,
                "panel": sample.panel or None,
                "finish_reason": sample.finish_reason or None,
                "error_class": sample.reason or None,
                "duration_ms": sample.duration_ms,
                "tokens": {"input": sample.input_tokens, "output": sample.output_tokens, "reasoning": sample.reasoning_tokens},
                "tool_calls": kept.pop("calls", []),
                **kept,
                **(of_grade(again[sample.trial]) if sample.trial in again and not sample.superseded else {}),
            }
        )
    first = next((t for t in trials if not t["superseded"]), {})
    return {
        **shapes.task(task),
        "input": body["input"],
        "expected": body["expected"],
        "source": body["source"],
        "output": first.get("output", ""),
        "samples": trials,
    }


def of_grade(grade: Regrade) -> dict[str, Any]:
    """What another scoring says of a trial, in the place of what its run said."""
    kept = recording.unpacked(grade.payload)
    said = {name: kept.get(name, empty) for name, empty in (("answer", ""), ("explanation", ""), ("metadata", {}))}
    return {"outcome": grade.outcome, "score": grade.score, "error_class": grade.reason or None, **said}


class Events(View):
    scopes = {"GET": ("runs:read",)}
    filters = ("after_seq", "types")

    def get(self, request: Request, run: str) -> Response:
        """Lists what happened, by number: ?after_seq=, or ?page_token= as of any list; ?types=."""
        row = find_run(self.caller, run)
        asked = self.filters_wanted()
        limit, token = self.page_wanted()
        after = token or asked.get("after_seq", ["0"])[-1]
        if not (after.isascii() and after.isdigit()):
            raise self.no_token() if token else wrong("", "after_seq must be a whole number.")
        rows = Event.objects.filter(run=row, seq__gt=int(after)).order_by("seq")
        if "types" in asked:
            rows = rows.filter(type__in=[part for value in asked["types"] for part in value.split(",")])
        found = list(rows[: limit + 1])
        more = len(found) > limit
        found = found[:limit]
        return Response({"data": [shapes.event(e) for e in found], "next": str(found[-1].seq) if more else None, "last_seq": row.last_seq})
