"""The bench: every model with its state, what verdicts say of it, its speed, price and limits; and what is done to several at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path

from panels.pages import allowances, door
from panels.pages.door import Refused
from panels.pages.frame import framed, page

STATUSES = ("active", "resting", "retired")
CAPABILITIES = {
    "tools": "Tools",
    "vision": "Vision",
    "audio": "Audio",
    "files": "Files",
    "structured_output": "Structured output",
    "reasoning": "Reasoning",
}
# What the list sorts by, and whether the API begins with the highest.
SORTS = {"alias": False, "seats": True, "useful": True, "wrong": False, "score": True, "ttft": False, "speed": True, "price": False}
FILTERS = ("find", "status", "endpoint", "can", "free", "collection")
MOST_AT_ONCE = 100
MOST_COMPARED = 6
PROBE_KINDS = {"word": "Does it answer?", "perf": "How fast is it?", "drift": "Has it changed?"}
DONE = {
    "retire": ("Retire", "Retired"),
    "restore": ("Restore", "Restored"),
    "probe": ("Probe", "Asked for a probe of"),
    "ad_hoc": ("Set to ad hoc", "Set to ad hoc:"),
    "not_ad_hoc": ("Take out of ad hoc", "In play again:"),
}


def rate_of(said: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A rate of being wrong as {mean, low, high}, which is what an interval is drawn from."""
    return None if said is None else {"mean": said.get("mean", said.get("rate")), "low": said["low"], "high": said["high"]}


def shown(model: dict[str, Any]) -> dict[str, Any]:
    """A model as the templates take it."""
    record, price, speed = model["record"], model["price"], model.get("speed") or {}
    prices = list(price.values())
    return {
        **model,
        "useful": record["usefulness"],
        "wrong": rate_of(record["confidently_wrong"]),
        "is_free": all(amount is not None and float(amount) == 0 for amount in prices),
        "can": [title for name, title in CAPABILITIES.items() if (model["facts"].get(name) or {}).get("value") is True],
        "left": allowances.left_of(model),
        "ttft_s": None if speed.get("ttft_ms") is None else speed["ttft_ms"] / 1000,
        "tokens_per_s": speed.get("tokens_per_s"),
    }


def heads(sort: str) -> dict[str, dict[str, str]]:
    """What each sortable column's head leads to and says: a second press turns the order round."""
    found = {}
    for field, begins_high in SORTS.items():
        is_now, is_turned = sort.removeprefix("-") == field, sort.startswith("-")
        direction = "none" if not is_now else "descending" if begins_high != is_turned else "ascending"
        found[field] = {"sort": f"-{field}" if is_now and not is_turned else field, "direction": direction}
    return found


def asked_of(request: HttpRequest) -> dict[str, str]:
    return {name: request.GET.get(name, "").strip() for name in FILTERS}


@page("read", "POST")
def models(request: HttpRequest) -> HttpResponse:
    """The list; with ?do= the step before something is done to those chosen; by POST it is done."""
    do = request.POST.get("do") if request.method == "POST" else request.GET.get("do")
    if do in DONE:
        return act(request, str(do))
    if field := request.GET.get("options"):
        return options(request, request.GET.get(field, ""))
    asked, sort = asked_of(request), request.GET.get("sort", "") or "alias"
    if sort.removeprefix("-") not in SORTS:
        sort = "alias"
    found = door.read(request, "/bench/models", limit=50, page_token=request.GET.get("page_token"), sort=sort, **asked)
    is_filtered = any(asked.values())
    context = {
        "models": [shown(model) for model in found["data"]],
        "has_scores": any(model["record"]["score"] is not None for model in found["data"]),
        "next": found["next"],
        "total": found.get("total"),
        "sort": sort,
        "heads": heads(sort),
        "asked": asked,
        "is_filtered": is_filtered,
        "statuses": STATUSES,
        "capabilities": CAPABILITIES,
        "endpoints": [one["name"] for one in door.everything(request, "/bench/endpoints", 500)],
        "most_compared": MOST_COMPARED,
    }
    return framed(request, "pages/models.html", context)


def options(request: HttpRequest, find: str) -> HttpResponse:
    """Draws what a field that asks for an alias may suggest."""
    found = door.read(request, "/bench/models", limit=20, find=find)["data"]
    return render(request, "pages/models/options.html", {"aliases": [model["alias"] for model in found]})


# ------------------------------------------------------------------ what is done to several


def act(request: HttpRequest, do: str) -> HttpResponse:
    """Asks for a reason, or shows what it will cost, and then does one thing to each model chosen."""
    given = request.POST if request.method == "POST" else request.GET
    chosen = list(dict.fromkeys(given.getlist("models")))[:MOST_AT_ONCE]
    if not chosen:
        messages.warning(request, "No model was chosen. Tick some in the list first.")
        return redirect("pages:models")
    kind = given.get("kind") if given.get("kind") in PROBE_KINDS else "word"
    reason, wrong = given.get("reason", "").strip(), ""
    if request.method == "POST":
        if do in ("retire", "restore") and not reason:
            wrong = "Say why: whoever comes after you will want to know."
        else:
            return done(request, do, chosen, reason, str(kind))
    context = {
        "do": do,
        "verb": DONE[do][0],
        "chosen": chosen,
        "reason": reason,
        "wrong": wrong,
        "kind": kind,
        "costs": costs(request, chosen) if do == "probe" else None,
        "needs_reason": do in ("retire", "restore"),
    }
    return framed(request, "pages/models/act.html", context, status=400 if wrong else 200)


def costs(request: HttpRequest, chosen: list[str]) -> list[dict[str, Any]]:
    """What each kind of probe would cost for these models. Shape: `cost_usd` is None where no price is known, `left_out` who takes part in none."""
    found = []
    for kind, title in PROBE_KINDS.items():
        said = {one["model"]: one for one in door.read(request, "/bench/probes/estimate", kind=kind)["models"]}
        ours = [said[alias] for alias in chosen if alias in said]
        known = [float(one["cost_usd"]) for one in ours if one["cost_usd"] is not None]
        found.append(
            {
                "kind": kind,
                "title": title,
                "calls": sum(one["calls"] for one in ours),
                "cost_usd": sum(known) if known else None,
                "unpriced": len(ours) - len(known),
                "left_out": [alias for alias in chosen if alias not in said],
            }
        )
    return found


def done(request: HttpRequest, do: str, chosen: list[str], reason: str, kind: str) -> HttpResponse:
    """Does it to each; what one refuses does not hold up the others."""
    went = []
    for alias in chosen:
        try:
            one(request, do, alias, reason, kind)
            went.append(alias)
        except Refused as refused:
            if refused.status == 403:
                raise
            messages.error(request, f"{alias}: {refused.detail}")
    if went:
        named = ", ".join(went[:5]) + (f" and {len(went) - 5} more" if len(went) > 5 else "")
        messages.success(request, f"{DONE[do][1]} {named}.")
    return redirect("pages:model", chosen[0]) if len(chosen) == 1 else redirect("pages:models")


def one(request: HttpRequest, do: str, alias: str, reason: str, kind: str) -> Any:
    """Does one thing to one model. Errors: Refused."""
    if do in ("retire", "restore"):
        return door.call(request, "POST", f"/bench/models/{alias}/{do}", {"reason": reason})
    if do == "probe":
        return door.call(request, "POST", f"/bench/models/{alias}/probe", {"kind": kind})
    return door.call(request, "PATCH", f"/bench/models/{alias}", {"ad_hoc": do == "ad_hoc"})


urlpatterns = [path("models", models, name="models")]
