"""One run: how it goes, while it goes; its tasks; what can be done with it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import get_script_prefix, path, reverse

from panels.pages import door
from panels.pages.door import Refused
from panels.pages.frame import framed, page
from suite.grading import every
from suite.grading.outcomes import SCORED
from suite.pages.people import is_theirs, may
from suite.pages.runs import shown
from suite.templatetags.suite import OUTCOMES

# What a log of a run tells: all but the tasks' own results, which stand in their table.
TOLD = "RunQueued,PhaseStarted,PhaseCompleted,RunHalting,RunFinished,LimitWarning,TaskRetried,TaskErrored,HostBlocked,Log"
NEWEST_EVENTS = 500
OVER = ("ok", "failed", "halted")
TASK_FILTERS = ("outcome", "kind", "passed", "task_id", "version")
RESOLUTIONS = {"": "not reviewed", "accepted": "accepted", "rejected": "rejected", "needs_work": "needs work"}
VISIBILITIES = {"private": "Only me and admins", "team": "My team", "public": "Everybody here"}


@page("runs:read", "POST")
def run(request: HttpRequest, run: str) -> HttpResponse:
    """Shows a run; asked for by htmx, what changes while it goes; by POST something is done with it."""
    if request.method == "POST":
        return act(request, run)
    found = door.read(request, f"/v1/runs/{run}", expand="summary,subset,impl")
    if found["status"] == "deleted":
        return framed(request, "pages/suite/deleted.html", {"run": found})
    context = live(request, found)
    if request.headers.get("HX-Request") != "true":
        context |= beside(request, found)
    return framed(request, "pages/suite/run.html", context)


def live(request: HttpRequest, found: dict[str, Any]) -> dict[str, Any]:
    """What the part that follows a run needs."""
    summary = found["summary"]
    return {
        "run": {**shown(found), "is_over": found["status"] in OVER},
        "summary": summary,
        "unscored": {name: count for name, count in summary["outcomes"].items() if name not in SCORED},
        "pace": pace(found),
        "is_theirs": is_theirs(request, found) and may(request, "runs:write"),
        "visibilities": VISIBILITIES,
        "resolutions": RESOLUTIONS,
        "events_at": f"{get_script_prefix()}v1/runs/{found['id']}/events?after_seq={last_seq(request, found['id'])}",
        "log": log(request, found["id"]),
    }


def pace(found: dict[str, Any]) -> float | None:
    """Tasks a minute, over the time that a run has had."""
    if not found["started_at"]:
        return None
    end = datetime.fromisoformat(found["finished_at"]) if found["finished_at"] else datetime.now(UTC)
    minutes = (end - datetime.fromisoformat(found["started_at"])).total_seconds() / 60
    return found["progress"]["done"] / minutes if minutes > 0 else None


def last_seq(request: HttpRequest, run: str) -> int:
    return int(door.read(request, f"/v1/runs/{run}/events", limit=1)["last_seq"])


def log(request: HttpRequest, run: str) -> list[dict[str, Any]]:
    """The run's beginning and its newest events, without those of single tasks."""
    first = door.read(request, f"/v1/runs/{run}/events", limit=20, types=TOLD)
    newest = door.read(request, f"/v1/runs/{run}/events", limit=200, types=TOLD, after_seq=max(0, first["last_seq"] - NEWEST_EVENTS))["data"]
    seen = {event["seq"] for event in newest}
    events = [event for event in first["data"] if event["seq"] not in seen] + newest
    return [{**event, "said": said(event)} for event in events]


def said(event: dict[str, Any]) -> str:
    """An event in words."""
    data = event["data"]
    match event["type"]:
        case "RunQueued":
            return f"Queued: {data.get('tasks')} tasks for {data.get('subject')}."
        case "PhaseStarted":
            return f"{data.get('phase')} begins."
        case "PhaseCompleted":
            return f"{data.get('phase')} is done."
        case "RunFinished":
            why = data.get("error") or data.get("halt_reason")
            ended = {"failed": "Failed", "halted": "Halted"}.get(data.get("status", ""), "Finished")
            return f"{ended}: {why}" if why else f"{ended}."
        case "RunHalting":
            return f"Halting: {data.get('halt_reason')}."
        case "Log":
            return str(data.get("message", ""))
        case _:
            told = ", ".join(f"{name} {value}" for name, value in data.items() if value not in (None, "", [], {}))
            return f"{event['type']}: {told}" if told else event["type"]


def beside(request: HttpRequest, found: dict[str, Any]) -> dict[str, Any]:
    """What does not change while a run goes: its tasks' first page, where it comes from, what was made of it, its files."""
    children = door.read(request, "/v1/runs", derived_from=found["id"], limit=20)["data"]
    return {
        **tasks_of(request, found),
        "children": [shown(child) for child in children],
        "rescorings": door.read(request, f"/v1/runs/{found['id']}/rescorings", limit=5)["data"],
        "parent": found["derived_from"],
        "report": f"{get_script_prefix()}v1/runs/{found['id']}/report",
    }


@page("runs:read")
def files(request: HttpRequest, run: str) -> HttpResponse:
    """A run's files and what its calls were for: apart, since the files are made when somebody first asks for them."""
    found = door.read(request, f"/v1/runs/{run}")
    artifacts = door.read(request, f"/v1/runs/{run}/artifacts")["data"] if may(request, "artifacts:read") else []
    cost = door.read(request, f"/v1/runs/{run}/cost")
    context = {"run": found, "artifacts": artifacts, "cost": cost, "api": f"{get_script_prefix()}v1/runs/{run}"}
    return framed(request, "pages/suite/files.html", context)


# ------------------------------------------------------------------ tasks


def tasks_of(request: HttpRequest, found: dict[str, Any]) -> dict[str, Any]:
    asked = {name: value for name in TASK_FILTERS if (value := request.GET.get(name, "").strip())}
    sort = request.GET.get("sort", "") or "position"
    page_ = door.read(request, f"/v1/runs/{found['id']}/tasks", limit=25, sort=sort, page_token=request.GET.get("page_token"), **asked)
    grader = (found.get("subset") or {}).get("grader") or {}
    return {
        "tasks": page_["data"],
        "next": page_["next"],
        "asked": asked,
        "sort": sort,
        "is_filtered": bool(asked),
        "outcomes": OUTCOMES,
        "kinds": () if grader.get("kind") else tuple(every()),
        "scorings": range(1, found["scoring"] + 1) if found["scoring"] > 1 else (),
        "has_trials": found["trials"] > 1,
    }


@page("runs:read")
def tasks(request: HttpRequest, run: str) -> HttpResponse:
    """The run's tasks alone, filtered."""
    if request.headers.get("HX-Request") != "true":
        return redirect(f"{reverse('pages:run', args=[run])}?{request.GET.urlencode()}#tasks")
    found = door.read(request, f"/v1/runs/{run}", expand="subset")
    return framed(request, "pages/suite/tasks.html", {"run": found, **tasks_of(request, found)})


@page("runs:read")
def task(request: HttpRequest, run: str, task: str) -> HttpResponse:
    """One task whole: what was asked, what was expected, what came, and why it was graded so."""
    found = door.read(request, f"/v1/runs/{run}/tasks/{task}/payload")
    around = door.read(request, f"/v1/runs/{run}")
    return framed(request, "pages/suite/task.html", {"run": around, "task": found, "parts": parts_of(found)})


def parts_of(task: dict[str, Any]) -> list[dict[str, Any]]:
    """The input in pieces: texts as texts, the rest as JSON."""
    given = task["input"]
    if not isinstance(given, dict):
        return [{"name": "input", "value": given, "is_text": isinstance(given, str)}]
    return [{"name": name, "value": value, "is_text": isinstance(value, str)} for name, value in given.items()]


# ------------------------------------------------------------------ what a button does


def act(request: HttpRequest, run: str) -> HttpResponse:
    """Does what a button asks for, and shows the run again, or the one that was made. Errors: Refused."""
    here, do, post = reverse("pages:run", args=[run]), request.POST.get("do", ""), request.POST
    try:
        match do:
            case "halt":
                door.call(request, "POST", f"/v1/runs/{run}/halt", {"reason": post.get("reason", "")})
                told = "It is halting. What has ended stays."
            case "requeue":
                made = door.call(request, "POST", f"/v1/runs/{run}/requeue", {})
                told = f"{made['requeued']} tasks are asked again."
            case "share":
                tag = door.read(request, f"/v1/runs/{run}")["etag"]
                door.call(request, "PATCH", f"/v1/runs/{run}", {"visibility": post.get("visibility", "")}, {"If-Match": f'"{tag}"'})
                told = {"private": "Only you and admins see it now."}.get(post.get("visibility", ""), "It is shared, and its benchmark with it.")
            case "review":
                door.call(request, "PATCH", f"/v1/runs/{run}", {"review_resolution": post.get("resolution", "")})
                told = "Kept."
            case "call_off":
                door.call(request, "DELETE", f"/v1/runs/{run}/rescorings/{post.get('rescoring', '')}")
                told = "It is called off. The scoring that was there stays."
            case "delete":
                door.call(request, "DELETE", f"/v1/runs/{run}", None, None, confirm=run)
                messages.success(request, "The run's data is gone. Its id, digests and reason stay.")
                return redirect("pages:runs")
            case _:
                raise Refused(400, "invalid_request", "This page has no such button.")
    except Refused as refused:
        if refused.status in (403, 404):
            raise
        messages.error(request, refused.detail)
        return redirect(here)
    messages.success(request, told)
    return redirect(here)


urlpatterns = [
    path("runs/<str:run>", run, name="run"),
    path("runs/<str:run>/files", files, name="run_files"),
    path("runs/<str:run>/tasks", tasks, name="run_tasks"),
    path("runs/<str:run>/tasks/<str:task>", task, name="task"),
]
