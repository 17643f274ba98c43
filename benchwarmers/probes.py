"""`/livez`, `/readyz` and `/metrics`: what an orchestrator and a monitor ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Max
from django.db.utils import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from access.auth import MayOperate, MissingKey
from access.caller import Caller
from benchwarmers import metrics, schema, serverfile
from health.models import Heartbeat

HEARTBEAT_WITHIN_S = 60
# Lines leave the outbox within 50 ms; this much lies there only when the writer has been unable to for minutes.
OUTBOX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Check:
    """Shape: `detail` names no path and no secret: anybody may ask."""

    ok: bool
    detail: str


@never_cache
@require_safe
def livez(request: HttpRequest) -> HttpResponse:
    """Answers: the process does."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Tells whether calls should be sent here, check by check; 503 where not."""
    checks = run_checks()
    ready = all(c.ok for c in checks.values())
    return JsonResponse({"status": "ok" if ready else "unavailable", "checks": {k: asdict(c) for k, c in checks.items()}}, status=200 if ready else 503)


def run_checks() -> dict[str, Check]:
    """Runs every check that applies; one that the database's absence breaks says so."""
    wanted: dict[str, Callable[[], Check]] = {"server": check_server, "database": check_database, "migrations": check_migrations, "outbox": check_outbox}
    if settings.ONLY != "gateway":
        wanted["queue"] = check_queue
    found = {}
    for name, check in wanted.items():
        try:
            found[name] = check()
        except DatabaseError:
            found[name] = Check(False, "the database cannot be reached")
    return found


def check_server() -> Check:
    server = serverfile.read(settings.HOME)
    return Check(False, "stopping") if server and server.stopping else Check(True, "serving")


def check_database() -> Check:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()
    return Check(True, connection.vendor)


def check_migrations() -> Check:
    now = schema.read()
    if now.pending or now.unknown:
        return Check(False, f"{len(now.pending)} pending, {len(now.unknown)} unknown")
    return Check(True, "in step")


def outbox_bytes() -> int:
    """Units: bytes of ledger lines that are not in the database yet."""
    total = 0
    try:
        for path in settings.OUTBOX_FOLDER.iterdir():
            try:
                total += path.stat().st_size
            except FileNotFoundError:  # drained meanwhile
                continue
    except FileNotFoundError:
        pass
    return total


def check_outbox() -> Check:
    waiting = outbox_bytes()
    return Check(waiting < OUTBOX_BYTES, f"{waiting} bytes waiting")


def heartbeat_age_s() -> float | None:
    """How long ago a queue worker last proved to be at work. None: never."""
    last = Heartbeat.objects.aggregate(last=Max("at"))["last"]
    return None if last is None else (datetime.now(UTC) - last).total_seconds()


def check_queue() -> Check:
    age_s = heartbeat_age_s()
    if age_s is None:
        return Check(False, "no heartbeat yet")
    return Check(age_s < HEARTBEAT_WITHIN_S, f"last heartbeat {max(age_s, 0):.0f} s ago")


# ------------------------------------------------------------------ metrics


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
            text = metrics.text(datetime.now(UTC), outbox_bytes(), heartbeat_age_s())
        except DatabaseError:
            return HttpResponse("The database cannot be reached.\n", status=503, content_type="text/plain")
        return HttpResponse(text, content_type="text/plain; version=0.0.4; charset=utf-8")


prometheus = MetricsView.as_view()
