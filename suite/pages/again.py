"""A run's work again: replayed, with another scorer, or only graded anew."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path

from panels.pages import door
from panels.pages.door import Refused
from panels.pages.frame import framed, page
from suite.pages.forms import as_json, refusal, uploaded
from suite.pages.mending import MOST_CODE, code_of
from suite.pages.people import is_theirs

GOING_ON = ("queued", "running")


@page("runs:write", "POST")
def again(request: HttpRequest, run: str) -> HttpResponse:
    """The ways to run something again; by POST a fork is made, or stored answers are graded anew."""
    found = door.read(request, f"/v1/runs/{run}", expand="impl")
    context: dict[str, Any] = {"run": found, "is_theirs": is_theirs(request, found), "code": code_of(request, found["impl"]), "grader": found["impl"]["grader"]}
    if request.method != "POST":
        return framed(request, "pages/suite/again.html", context)
    post, do = request.POST, request.POST.get("do", "")
    try:
        scorer = scorer_of(request)
        if do == "fork":
            made = door.call(request, "POST", f"/v1/runs/{run}/fork", {**scorer, "label": post.get("label", ""), "description": post.get("description", "")})
            messages.success(request, "The fork is on its way: the same tasks and the same model, with the new scorer.")
            return redirect("pages:run", made["id"])
        told = door.call(request, "POST", f"/v1/runs/{run}/rescore", scorer)
    except Refused as refused:
        if refused.status in (403, 404) and refused.code != "impl_not_found":
            raise
        return framed(request, "pages/suite/again.html", {**context, **refusal(refused), "typed": post, "do": do}, status=refused.status)
    messages.success(request, told_of(told))
    return redirect("pages:run", run)


def told_of(rescoring: dict[str, Any]) -> str:
    """What became of grading again, in a sentence."""
    if rescoring["status"] in GOING_ON:
        return f"The stored answers of {rescoring['tasks']} tasks are being graded again. Once that is done, it is the newest scoring."
    now, no_longer = rescoring["now_passed"], rescoring["now_not"]
    return f"Scoring {rescoring['version']}: of {rescoring['tasks']} tasks {now} pass now that did not, {no_longer} no longer do."


def scorer_of(request: HttpRequest) -> dict[str, Any]:
    """Which scorer a form names: code typed or uploaded, an id, or a built-in grader. Errors: Refused."""
    post = request.POST
    code = uploaded(request, "file", MOST_CODE) or post.get("code", "").replace("\r\n", "\n")
    match post.get("by", ""):
        case "code":
            return {"code": code}
        case "impl":
            return {"impl": post.get("impl", "").strip()}
        case "grader":
            return {"grader": as_json(post.get("grader", ""), "grader")}
        case _:
            return {}


urlpatterns = [path("runs/<str:run>/again", again, name="run_again")]
