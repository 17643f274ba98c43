"""The server's status: what runs here, and how its background work stands."""

from __future__ import annotations

from django.conf import settings
from django.db import connection
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from health import pulse, schedules
from panels.api import server_shapes, shapes
from panels.api.view import View, answer


class Status(View):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="get_status", responses=server_shapes.Status)
    def get(self, request: Request) -> Response:
        """Tells the version, the address, the database and how queue and outbox stand."""
        return answer(
            {
                "version": settings.VERSION,
                "url": settings.PUBLIC_URL or request.build_absolute_uri("/").rstrip("/"),
                "mode": settings.ONLY or "full",
                "database": connection.vendor,
                "queue": pulse.queue(timezone.now()),
                "outbox": pulse.outboxes(),
                "schedules": [
                    {"name": s.name, "enabled": s.enabled, "next_run_at": s.next_run_at, "last_state": s.last_run.state if s.last_run else None}
                    for s in schedules.every(timezone.now())
                ],
            }
        )
