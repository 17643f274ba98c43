"""One model: what is known of it and from where, how it did, what happened to it; and changing that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse

from panels.pages import allowances, door
from panels.pages.door import Refused
from panels.pages.forms import number
from panels.pages.frame import framed, page
from panels.pages.models import rate_of, shown

TABS = {"": "Overview", "history": "Over time", "evidence": "What happened", "verdicts": "Verdicts", "calls": "Calls"}
SPANS = (30, 90, 365)
# What a fact's form field takes: a whole number, a price, or yes, no and nothing set by hand.
COUNTS = {"context_window": "Context window, tokens", "output_limit": "Longest answer, tokens"}
TRUTHS = {
    "tools": "Calls tools",
    "vision": "Sees images",
    "audio": "Hears audio",
    "files": "Reads documents",
    "structured_output": "Keeps to a JSON schema",
    "reasoning": "Thinks before it answers",
}
PRICES = {
    "input_usd_per_mtok": "Input, $ per million tokens",
    "output_usd_per_mtok": "Output, $ per million tokens",
    "cache_read_usd_per_mtok": "Cache read, $ per million tokens",
    "cache_write_usd_per_mtok": "Cache write, $ per million tokens",
    "reasoning_usd_per_mtok": "Thinking, $ per million tokens",
}
TIERS = {"tiers": "Prices of long prompts"}
FACTS = {**COUNTS, **TRUTHS, **PRICES, **TIERS}
SOURCES = {"hand": "set by hand", "models_dev": "models.dev", "openrouter": "OpenRouter", "freellmapi": "FreeLLMAPI"}


@page("read", "POST")
def model(request: HttpRequest, alias: str) -> HttpResponse:
    """Shows a model; by POST changes it."""
    if request.method == "POST":
        return change(request, alias)
    return draw(request, alias)


def draw(request: HttpRequest, alias: str, refused: Refused | None = None, typed: Mapping[str, str] | None = None, edit: str = "") -> HttpResponse:
    """Draws the page; after a refusal with what was typed."""
    found = door.read(request, f"/bench/models/{alias}")
    tab = request.GET.get("tab", "")
    tab = tab if tab in TABS else ""
    edit = edit or request.GET.get("edit", "")
    context: dict[str, Any] = {
        "alias": alias,
        "model": shown(found),
        "tabs": TABS,
        "tab": tab,
        "edit": edit if edit in ("facts", "limits") else "",
        "refused": refused,
        "wrong": {} if refused is None or not refused.field else {refused.field: refused.detail},
    }
    match tab:
        case "history":
            context |= over_time(request, alias)
        case "evidence":
            context |= what_happened(request, alias)
        case "calls":
            context |= calls(request, alias)
        case "verdicts":
            said = door.read(request, "/bench/verdicts", model=alias, limit=50, page_token=request.GET.get("page_token"))
            context |= {"verdicts": said["data"], "next": said["next"]}
        case _:
            context |= overview(found, context["edit"], typed)
    return framed(request, "pages/model.html", context, status=200 if refused is None else 400)


# ------------------------------------------------------------------ what the tabs show


def overview(found: Mapping[str, Any], edit: str, typed: Mapping[str, str] | None) -> dict[str, Any]:
    facts = [{"name": name, "title": title, **told(found["facts"][name])} for name, title in FACTS.items() if name in found["facts"]]
    records = [{**one, "wrong": rate_of(one["confidently_wrong"])} for one in found["records"]]
    context: dict[str, Any] = {"facts": facts, "records": records, "prices": found.get("prices") or [], "own_limits": own_limits(found)}
    if edit == "facts":
        context["fields"] = fact_fields(found["facts"], typed)
    elif edit == "limits":
        kept = dict(allowances.flat(found["limits"]))
        context["fields"] = [
            {"name": f"limits.{name}", "title": allowances.TITLES[name], "value": kept.get(name, "") if typed is None else typed.get(f"limits.{name}", "")}
            for name in allowances.FIELDS
        ]
    return context


def told(fact: Mapping[str, Any]) -> dict[str, Any]:
    return {**fact, "source": SOURCES.get(fact["source"], fact["source"])}


def own_limits(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    left = dict(allowances.flat(found["limits_left"]["model"]))
    return [
        {"title": allowances.TITLES[name], "limit": limit, "left": left.get(name), "used": limit - left[name] if name in left else None}
        for name, limit in allowances.flat(found["limits"])
    ]


def fact_fields(facts: Mapping[str, Any], typed: Mapping[str, str] | None) -> list[dict[str, Any]]:
    """The form's fields: what was set by hand stands in them, what others say stands beside them."""
    found = []
    for name, title in FACTS.items():
        if name in TIERS:
            continue
        fact = facts.get(name)
        by_hand = by_hand_of(fact)
        found.append(
            {
                "name": f"facts.{name}",
                "title": title,
                "is_truth": name in TRUTHS,
                "value": by_hand if typed is None else typed.get(f"facts.{name}", ""),
                "others": told(fact) if fact is not None and fact["source"] != "hand" else None,
            }
        )
    return found


def by_hand_of(fact: Mapping[str, Any] | None) -> str:
    """What a fact's field holds: "" where nobody set it by hand."""
    if fact is None or fact["source"] != "hand":
        return ""
    return {True: "yes", False: "no"}[fact["value"]] if isinstance(fact["value"], bool) else str(fact["value"])


def over_time(request: HttpRequest, alias: str) -> dict[str, Any]:
    """The charts: a day a point, a week a point where the stretch is long."""
    days = int(said) if (said := request.GET.get("days", "")) in map(str, SPANS) else 30
    found = door.read(request, f"/bench/models/{alias}/history", days=days)
    points = found["days"] if days <= 90 else weeks(found["days"])
    return {
        "charts": charts(points, "a day" if days <= 90 else "a week"),
        "days": days,
        "spans": SPANS,
        "is_empty": not any(p["calls"] or p["useful"] or p["not_useful"] or p["ttft_ms"] for p in points),
    }


def weeks(days: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sums days up to weeks: counts are added, times and speeds are means of the days that have one, latency by its calls."""
    found = []
    for start in range(0, len(days), 7):
        part = days[start : start + 7]
        calls = sum(day["calls"] for day in part)
        row: dict[str, Any] = {"day": part[0]["day"], "calls": calls}
        for name in ("failed", "input_tokens", "output_tokens", "cache_read_tokens", "useful", "not_useful"):
            row[name] = sum(day[name] for day in part)
        costs = [float(day["cost_usd"]) for day in part if day["cost_usd"] is not None]
        row["cost_usd"] = sum(costs) if costs else None
        row["latency_ms"] = sum(day["latency_ms"] * day["calls"] for day in part if day["latency_ms"] is not None) / calls if calls else None
        for name in ("ttft_ms", "tokens_per_s"):
            known = [day[name] for day in part if day[name] is not None]
            row[name] = sum(known) / len(known) if known else None
        found.append(row)
    return found


def charts(points: list[dict[str, Any]], each: str) -> list[dict[str, Any]]:
    """What each chart draws. Shape: as the tag `chart` takes it; a chart without any figure is left out."""

    def rows(*names: str, divided: float = 1) -> list[list[Any]]:
        return [[p["day"], *(None if p[name] is None else round(float(p[name]) / divided, 4) for name in names)] for p in points]

    answered = [[p["day"], p["calls"] - p["failed"], p["failed"]] for p in points]
    found: list[dict[str, Any]] = [
        {"title": f"Calls {each}", "kind": "bar", "columns": ["Day", "Answered", "Failed"], "rows": answered, "unit": "", "stacked": True},
        {
            "title": f"Cost {each}",
            "kind": "bar",
            "columns": ["Day", "US dollars"],
            "rows": [[p["day"], None if p["cost_usd"] is None else float(p["cost_usd"])] for p in points],
            "unit": "$",
        },
        {
            "title": f"Tokens {each}",
            "kind": "bar",
            "columns": ["Day", "Input", "Output"],
            "rows": rows("input_tokens", "output_tokens"),
            "unit": "",
            "stacked": True,
        },
        {"title": "Time a call took", "kind": "line", "columns": ["Day", "Seconds, mean"], "rows": rows("latency_ms", divided=1000), "unit": "s"},
        {"title": "First token, speed probes", "kind": "line", "columns": ["Day", "Seconds"], "rows": rows("ttft_ms", divided=1000), "unit": "s"},
        {"title": "Speed, speed probes", "kind": "line", "columns": ["Day", "Tokens a second"], "rows": rows("tokens_per_s"), "unit": ""},
        {
            "title": f"Verdicts {each}",
            "kind": "bar",
            "columns": ["Day", "Useful", "Not useful"],
            "rows": rows("useful", "not_useful"),
            "unit": "",
            "stacked": True,
        },
    ]
    return [one for one in found if any(cell for row in one["rows"] for cell in row[1:])]


def what_happened(request: HttpRequest, alias: str) -> dict[str, Any]:
    found = door.read(request, f"/bench/models/{alias}/evidence", limit=50, page_token=request.GET.get("page_token"))
    probes = door.read(request, "/bench/probes", limit=20, model=alias)["data"]
    # Good probes stand in their own table: here they would bury what matters.
    events = [event for event in found["data"] if (event["kind"], event["what"]) != ("probe", "ok")]
    return {"events": events, "was_well": bool(found["data"]), "next": found["next"], "probes": probes}


def calls(request: HttpRequest, alias: str) -> dict[str, Any]:
    status = request.GET.get("status", "")
    found = door.read(request, "/bench/calls", limit=50, page_token=request.GET.get("page_token"), model=alias, status=status)
    return {"calls": found["data"], "next": found["next"], "status": status}


# ------------------------------------------------------------------ what a form does


def change(request: HttpRequest, alias: str) -> HttpResponse:
    """Does what a form on the page asks for, and shows the page again with what came of it."""
    here, do = reverse("pages:model", args=[alias]), request.POST.get("do", "")
    typed = {name: str(value) for name, value in request.POST.items()}
    try:
        match do:
            case "facts":
                facts = facts_typed(typed, door.read(request, f"/bench/models/{alias}")["facts"])
                if facts:
                    door.call(request, "PATCH", f"/bench/models/{alias}", {"facts": facts})
                said = "Kept." if facts else "Nothing was changed."
            case "limits":
                kept = door.read(request, f"/bench/models/{alias}")["limits"]
                door.call(request, "PATCH", f"/bench/models/{alias}", {"limits": allowances.typed(typed, kept)})
                said = "The limits hold from the next call on."
            case "ad_hoc" | "not_ad_hoc":
                door.call(request, "PATCH", f"/bench/models/{alias}", {"ad_hoc": do == "ad_hoc"})
                said = "It is called only where somebody names it." if do == "ad_hoc" else "It is probed and may explore again."
            case "baseline":
                door.call(request, "POST", f"/bench/models/{alias}/baseline", {})
                said = "What answers now is the new baseline."
            case "delete":
                door.call(request, "DELETE", f"/bench/models/{alias}")
                messages.success(request, f"{alias} is off the bench. Its calls and verdicts stay on record.")
                return redirect("pages:models")
            case _:
                raise Refused(400, "invalid_request", "This page has no such button.")
    except Refused as refused:
        if refused.status in (403, 404):
            raise
        return draw(request, alias, refused, typed, do)
    messages.success(request, said)
    return redirect(here)


def facts_typed(typed: Mapping[str, str], kept: Mapping[str, Any]) -> dict[str, Any]:
    """Gives the facts that a form changes; a field that was emptied takes back what was set by hand."""
    found: dict[str, Any] = {}
    for name in FACTS:
        said = typed.get(f"facts.{name}")
        if said is None or said.strip() == by_hand_of(kept.get(name)):
            continue
        text = said.strip()
        if not text:
            found[name] = None
        elif name in TRUTHS:
            found[name] = {"yes": True, "no": False}.get(text, text)
        elif name in COUNTS:
            found[name] = number(text.replace(",", "").replace(" ", ""))
        else:
            found[name] = text
    return found


urlpatterns = [path("models/<path:alias>", model, name="model")]
