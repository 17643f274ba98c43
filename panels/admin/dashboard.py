"""The overview: how the bench stands, what the last day cost, what waits for a verdict, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from access.admin.audited import caller
from catalog import status
from health import alerts, spend
from health.costs import usd_text
from health.rests import resting
from panels import lookup, verdicts
from panels.admin.asked import may_see_panels, sum_up, tone, total
from panels.admin.collections import address_of, curl
from panels.models import Collection, Panel

NEWEST = 8
WAITING = 6


@dataclass(frozen=True, slots=True)
class Step:
    """One step from an empty install to a first verdict."""

    title: str
    text: str
    link: str
    label: str
    done: bool
    permission: str


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Fills the overview with what this user may see."""
    now = timezone.now()
    asks = caller(request)
    sees_bench = request.user.has_perm("catalog.view_model")
    own = None if asks.may("operate") else asks
    context["shown"] = {
        "models": models_at(now) if sees_bench else None,
        "day": day_until(now, own) if request.user.has_perm("health.view_attempt") else None,
        "newest": newest(own) if may_see_panels(request) else None,
        "alerts": alerts.alerts(NEWEST, "", unseen_only=True).data if request.user.has_perm("health.view_alert") else None,
        "waiting": waiting(own) if may_see_panels(request) else None,
    }
    steps = steps_of(request, context["shown"]["models"])
    context["steps"] = steps if not all(step.done for step in steps) else []
    context["next_step"] = next((step.title for step in steps if not step.done), "")
    first = Collection.objects.filter(places__place="member").distinct().values_list("name", flat=True).first()
    context["collection"] = first or ""
    context["curl"] = curl(address_of(request), f"bench/{first or 'core'}")
    context["address"] = address_of(request)
    context["title"] = "Overview"
    return context


def models_at(now: Any) -> dict[str, int]:
    """Counts models as they stand: active, resting (at a provider's wish, for a while), retired."""
    counts = status.counts()
    scopes = resting(now)
    rests = sum(f"model:{m.alias}" in scopes or f"endpoint:{m.endpoint}" in scopes for m in status.active()) if scopes else 0
    return {"active": counts.active - rests, "resting": rests, "retired": counts.retired, "endpoints": counts.endpoints, "all": counts.active + counts.retired}


def day_until(now: Any, own: Any) -> dict[str, Any]:
    day = spend.today(now)
    spent = spend.since(day)
    panels = Panel.objects.filter(asked_at__gte=datetime.combine(day, time(), ZoneInfo(settings.BENCH_TIME_ZONE)))
    if own is not None:
        panels = panels.filter(**lookup.asked_by(own))
    return {
        "own": own is not None,
        "panels": panels.count(),
        "calls": spent.calls,
        "failed": spent.failed,
        "cost": usd_text(spent.cost_pusd),
        "unpriced": spent.unpriced,
    }


def newest(own: Any) -> list[dict[str, Any]]:
    rows = Panel.objects.defer("prompt")
    if own is not None:
        rows = rows.filter(**lookup.asked_by(own))
    found = sum_up(list(rows[:NEWEST]))
    return [
        {"panel": p, "tone": tone(p.status), "ok": sum(s == "ok" for s in p.bench_seats), "seats": len(p.bench_seats), "cost": total(p.bench_costs)}
        for p in found
    ]


def waiting(own: Any) -> dict[str, Any]:
    page = verdicts.pending(own, limit=WAITING)
    return {"panels": page.data, "more": page.next is not None}


def steps_of(request: HttpRequest, models: dict[str, int] | None) -> list[Step]:
    """From nothing to a first answer."""
    endpoints = status.counts().endpoints > 0
    some_models = bool(models and models["all"])
    collections = Collection.objects.filter(places__place="member").exists()
    asked = Panel.objects.exists()
    first = status.first_endpoint()
    return [
        Step(
            "Add an endpoint",
            "Where models are served: a base URL and, where it wants one, a key. A local server works too.",
            reverse("admin:catalog_endpoint_add"),
            "Add an endpoint",
            endpoints,
            "catalog.add_endpoint",
        ),
        Step(
            "List its models",
            "See what it serves, and tick the models you want on the bench.",
            reverse("admin:catalog_endpoint_serves", args=[first]) if first else reverse("admin:catalog_endpoint_changelist"),
            "List models",
            some_models,
            "catalog.add_model",
        ),
        Step(
            "Make a collection",
            "The models that answer one kind of question, side by side.",
            reverse("admin:panels_collection_add"),
            "Make a collection",
            collections,
            "panels.add_collection",
        ),
        Step("Ask it", "From any program that talks to OpenAI, Anthropic, Gemini or Ollama; or from a terminal:", "", "", asked, ""),
    ]
