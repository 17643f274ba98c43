"""What a deployer can get wrong about who may call."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from access.backends import SHORTEST_ADMIN_TOKEN


@register("security")
def admin_token(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Finds an admin's password that is too short, and a server that others could reach without one."""
    token = settings.ADMIN_TOKEN
    if token and len(token) < SHORTEST_ADMIN_TOKEN:
        return [
            Error(
                f"BENCHWARMERS_ADMIN_TOKEN is shorter than {SHORTEST_ADMIN_TOKEN} characters.",
                hint="Set BENCHWARMERS_ADMIN_TOKEN to a longer random text: openssl rand -hex 24.",
                id="access.E001",
            )
        ]
    if not token and not settings.ON_LOOPBACK:
        return [
            Error(
                f"The server would listen on {settings.HOST}, where other machines reach it, without BENCHWARMERS_ADMIN_TOKEN.",
                hint="Set BENCHWARMERS_ADMIN_TOKEN to 16 or more random characters (openssl rand -hex 24), or BENCH_HOST to 127.0.0.1.",
                id="access.E002",
            )
        ]
    return []
