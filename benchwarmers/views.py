"""`/livez`, `/readyz` and `/metrics`: what an orchestrator and a monitor ask."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.db.utils import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from access.auth import MayOperate, MissingKey
from access.caller import Caller
from benchwarmers import metrics, probes


@never_cache
@require_safe
def livez(request: HttpRequest) -> HttpResponse:
    """Answers: the process does."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Tells whether calls should be sent here, check by check; 503 where not."""
    checks = probes.run(timezone.now())
    ready = all(check.ok for check in checks.values())
    body = {"status": "ok" if ready else "unavailable", "checks": {name: asdict(check) for name, check in checks.items()}}
    answer = JsonResponse(body, status=200 if ready else 503)
    answer._has_been_logged = True  # type: ignore[attr-defined]  # Django would log each as a server error, and probes come every few seconds
    return answer


class MayWatch(BasePermission):
    """Who may operate, and callers on this machine: the figures tell no prompt, but who spends how much."""

    def has_permission(self, request: Request, view: Any) -> bool:
        caller = request.user
        if not isinstance(caller, Caller):
            raise MissingKey
        return caller.kind == "loopback" or MayOperate().has_permission(request, view)


class AnyAccept(BaseContentNegotiation):
    """Scrapers ask for text types that DRF's own negotiator would answer with 406."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class MetricsView(APIView):
    """Gives the figures in Prometheus' text format."""

    permission_classes = [MayWatch]
    content_negotiation_class = AnyAccept
    schema = None

    def get(self, request: Request) -> HttpResponse:
        try:
            text = metrics.text(timezone.now())
        except DatabaseError:
            return HttpResponse("The database cannot be reached.\n", status=503, content_type="text/plain")
        return HttpResponse(text, content_type="text/plain; version=0.0.4; charset=utf-8")
