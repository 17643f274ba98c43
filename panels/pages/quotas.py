"""Quotas: what is left of every limit, who rests, what budgets have spent, and what somebody should know of."""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import groupby
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.http import urlencode

from panels.pages import door
from panels.pages.door import Refused
from panels.pages.forms import wrong
from panels.pages.frame import framed, page
from panels.pages.sheets import sheet

SCOPES = (
    ("endpoint,model", "Connections and models"),
    ("endpoint", "Connections"),
    ("model", "Models"),
    ("key", "Keys"),
    ("owner,team,collection", "Owners, teams and collections"),
)
NOUNS = {"endpoint": "Connection", "model": "Model", "key": "Key", "owner": "Owner", "team": "Team", "collection": "Collection"}
SOURCES = {
    "hand": "set by hand",
    "header": "told by the provider with its answers",
    "refusal": "learned when the provider refused",
    "shadow": "only reports",
}
RESTS = {"limit": "at its provider's limit", "key": "its key is refused", "overload": "overloaded or out of reach"}
KINDS = ("owner", "team", "collection")
# From this share on a bar says that little is left.
NEARLY = 0.8


@page("read")
def quotas(request: HttpRequest) -> HttpResponse:
    """Lists limits with what is left of each, and who rests."""
    scope = request.GET.get("scope", SCOPES[0][0])
    find = request.GET.get("find", "")
    found = door.read(request, "/bench/quotas", scope=scope, find=find, page_token=request.GET.get("page_token"))
    rests = door.read(request, "/bench/rests", limit=100)
    for rest in rests["data"]:
        rest["noun"], rest["why"] = NOUNS[rest["scope"]], RESTS.get(rest["kind"], "")
    context = {
        "title": "Quotas",
        "tab": "quotas",
        "sheet": sheet("quotas"),
        "rests": rests["data"],
        "more_rests": rests["next"],
        "groups": [
            {"noun": NOUNS[of], "scope": of, "name": name, "rows": [in_words(row) for row in rows]}
            for (of, name), rows in groupby(found["data"], key=lambda row: (row["scope"], row["name"]))
        ],
        "next": found["next"],
        "scopes": SCOPES,
        "scope": scope,
        "find": find,
        "unseen": unseen(request),
    }
    return framed(request, "pages/quotas.html", context)


def in_words(row: dict[str, Any]) -> dict[str, Any]:
    """One limit as the list shows it."""
    is_money = row["measure"] == "usd"
    measure = {"parallel": "calls at once", "usd": "US dollars"}.get(row["measure"], row["measure"])
    window = "" if row["window"] in ("", "parallel") else f"a {row['window']}"
    said = row["provider_remaining"]
    # Others may use the same account: of two counts the smaller one is what is left.
    is_theirs = said is not None and row["left"] is not None and said < row["left"] and row["limit"] is not None
    return {
        **row,
        "is_theirs": is_theirs,
        "is_money": is_money,
        "what": " ".join(said for said in (row["direction"], measure, window) if said),
        "says": SOURCES.get(row["source"], row["source"]),
        **bar(row["limit"] - said if is_theirs else row["used"] if row["used"] is not None else gone(row), row["limit"]),
    }


def gone(row: dict[str, Any]) -> int | None:
    """What is used of a limit that only its provider counts."""
    return None if row["limit"] is None or row["left"] is None else max(0, row["limit"] - row["left"])


def bar(used: Any, limit: Any) -> dict[str, Any]:
    """How full a bar is, in hundredths, and the tone that goes with it. Nothing where one of both is unknown."""
    if used is None or limit is None:
        return {"full": None, "bar_tone": ""}
    share = float(Decimal(used) / Decimal(limit)) if Decimal(limit) else 1.0
    return {"full": round(min(share, 1.0) * 100, 1), "percent": round(share * 100), "bar_tone": "bad" if share >= 1 else "warn" if share >= NEARLY else "good"}


def unseen(request: HttpRequest) -> int:
    return len(door.read(request, "/bench/alerts", unseen="true", limit=100)["data"])


# ------------------------------------------------------------------ budgets


@page("read")
def budgets(request: HttpRequest) -> HttpResponse:
    """Shows what each budget has spent this month: owners', teams', collections', and keys' own."""
    found = door.read(request, "/bench/budgets", page_token=request.GET.get("page_token"))
    for one in found["data"]:
        one |= {"noun": NOUNS[one["kind"]], **of_budget(one["spent_usd"], one["reserved_usd"], one["budget_usd"])}
        one["edit"] = f"{reverse('pages:budget')}?{urlencode({'kind': one['kind'], 'name': one['name']})}"
    of_keys = door.read(request, "/bench/quotas", scope="key", limit=500)
    keys = [one | of_budget(one["used"], "0", one["limit"]) for one in of_keys["data"] if one["measure"] == "usd"]
    context = {"title": "Quotas", "tab": "budgets", "budgets": found["data"], "next": found["next"], "keys": keys, "unseen": unseen(request)}
    return framed(request, "pages/quotas/budgets.html", context)


def of_budget(spent: str, reserved: str, limit: str) -> dict[str, Any]:
    used = Decimal(spent) + Decimal(reserved)
    return bar(used, Decimal(limit))


@page("operate", "POST")
def budget(request: HttpRequest) -> HttpResponse:
    """Sets a budget, or, named in the query, changes or deletes one: names may be anything."""
    kind, name = request.GET.get("kind", ""), request.GET.get("name", "")
    there = door.read(request, f"/bench/budgets/{kind}/{name}") if kind in KINDS and name else None
    if request.method != "POST":
        return budget_form(
            request, {"kind": kind, **there, "alert_at": ", ".join(map(str, there["alert_at"]))} if there else {"kind": "owner", "alert_at": "80, 100"}, there
        )
    try:
        if there and "delete" in request.POST:
            door.call(request, "DELETE", f"/bench/budgets/{kind}/{name}")
            messages.success(request, f"The budget of {kind} {name} is gone. Nothing stops its calls any more.")
            return redirect("pages:budgets")
        limits = {"budget_usd": request.POST.get("budget_usd", "").strip(), "alert_at": percents(request.POST.get("alert_at", ""))}
        if there:
            door.call(request, "PATCH", f"/bench/budgets/{kind}/{name}", limits)
        else:
            kind, name = request.POST.get("kind", ""), request.POST.get("name", "").strip()
            door.call(request, "POST", "/bench/budgets", {"kind": kind, "name": name, **limits})
    except Refused as refused:
        return budget_form(request, request.POST.dict(), there, refused)
    messages.success(request, f"The budget of {kind} {name} holds from the next request on.")
    return redirect("pages:budgets")


def budget_form(request: HttpRequest, form: dict[str, Any], there: dict[str, Any] | None, refused: Refused | None = None) -> HttpResponse:
    context = {"title": "Change a budget" if there else "Set a budget", "form": form, "there": there, "kinds": [(kind, NOUNS[kind]) for kind in KINDS]}
    if refused:
        context |= wrong(refused)
    elif not there:
        context["names"] = sorted({one["name"] for one in door.read(request, "/bench/collections", limit=500)["data"]})
    return framed(request, "pages/quotas/budget.html", context, status=refused.status if refused else 200)


def percents(said: str) -> list[int | str]:
    """Reads percents with commas or spaces between; what is no number goes on as it is: the API says what is wrong with it."""
    return [int(one) if one.isascii() and one.isdigit() and len(one) < 6 else one for one in re.split(r"[\s,;%]+", said) if one]


# ------------------------------------------------------------------ alerts


@page("read", "POST")
def alerts(request: HttpRequest) -> HttpResponse:
    """Lists alerts, those that nobody has seen first of all; operators note that they have."""
    if request.method == "POST":
        wanted = request.POST.getlist("alert")[:100]
        for one in wanted:
            door.call(request, "POST", f"/bench/alerts/{one}/seen")
        messages.success(request, "Noted as seen." if len(wanted) == 1 else f"{len(wanted)} alerts are noted as seen.")
        return redirect(request.get_full_path())
    show = request.GET.get("show", "unseen")
    found = door.read(request, "/bench/alerts", unseen="" if show == "all" else "true", page_token=request.GET.get("page_token"))
    context = {"title": "Quotas", "tab": "alerts", "alerts": found["data"], "next": found["next"], "show": show, "unseen": unseen(request)}
    return framed(request, "pages/quotas/alerts.html", context)


urlpatterns = [
    path("quotas", quotas, name="quotas"),
    path("quotas/budgets", budgets, name="budgets"),
    path("quotas/budget", budget, name="budget"),
    path("quotas/alerts", alerts, name="alerts"),
]
