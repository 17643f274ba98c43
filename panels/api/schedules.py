"""Schedules: when background work runs, changing that, and running it now."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from access.pages import Page, sliced
from health import schedules
from health.costs import usd_text
from panels.api import shapes, upkeep_shapes
from panels.api.view import View, answer, listed, not_found
from panels.api.wording import to_json
from wire.errors import CallerError

FIELDS = ("enabled", "cron", "time_zone")


def shown(one: schedules.Shown) -> dict[str, Any]:
    """One schedule with what a run of it is expected to cost."""
    cost = schedules.cost_of(one.name)
    fields: dict[str, Any] = to_json(one)
    changed_at = fields.pop("changed_at")
    return {**fields, "cost_usd": usd_text(cost.cost_pusd) if cost else None, "unpriced": cost.unpriced if cost else None, "changed_at": changed_at}


class SchedulePaths(View):
    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, schedules.UnknownSchedule):
            exc = not_found("schedule", str(exc))
        elif isinstance(exc, schedules.ScheduleError):
            exc = CallerError("invalid_request", str(exc), field=exc.field)
        return super().handle_exception(exc)


class Schedules(SchedulePaths):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="list_schedules", parameters=shapes.PAGE, responses=shapes.page_of(upkeep_shapes.Schedule))
    def get(self, request: Request) -> Response:
        """Lists schedules by name: whether they are on, when they run next, how the last run went, what one is expected to cost."""
        page = sliced(schedules.every(timezone.now()), lambda one: (one.name,), *self.page_wanted())
        return listed(Page([shown(one) for one in page.data], page.next))


class Schedule(SchedulePaths):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="get_schedule", responses=upkeep_shapes.ScheduleWithRuns)
    def get(self, request: Request, name: str) -> Response:
        """Shows a schedule with its newest runs."""
        one = shown(schedules.shown(name, timezone.now()))
        return answer({**one, "runs": to_json(schedules.runs_of(name))})

    @shapes.described(operation_id="change_schedule", request=upkeep_shapes.ScheduleChange, responses=upkeep_shapes.Schedule)
    def patch(self, request: Request, name: str) -> Response:
        """Changes what is given. The next run is counted from now; what was switched off before it began does not run."""
        return answer(shown(schedules.change(name, self.body(FIELDS), self.actor, timezone.now())))


class ScheduleRun(SchedulePaths):
    @shapes.described(operation_id="run_schedule", request=None, responses={202: upkeep_shapes.Run})
    def post(self, request: Request, name: str) -> Response:
        """Runs a schedule now, whether it is on or not. One that waits already is that run."""
        return answer(schedules.run_now(name, self.actor, timezone.now()), status=202)
