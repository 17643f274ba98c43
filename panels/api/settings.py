"""Settings that people change while the server runs, and beside them facts of the server that its environment sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import connection
from rest_framework.request import Request
from rest_framework.response import Response

from access import preferences
from access.pages import sliced
from panels.api import shapes, upkeep_shapes
from panels.api.view import View, answer, listed, not_found
from wire.errors import CallerError

# What a fact of the server is, by name. Of secrets only whether they are set.
FACTS: dict[str, tuple[str, Callable[[], Any]]] = {
    "server.version": ("Which release this is.", lambda: settings.VERSION),
    "server.database": ("sqlite or postgresql. DATABASE_URL sets it.", lambda: connection.vendor),
    "server.broker": ("What the queue is rung through: the database, or Redis. REDIS_URL sets it.", lambda: "redis" if settings.REDIS_URL else "database"),
    "server.host": ("The address it listens on. BENCH_HOST sets it.", lambda: settings.HOST),
    "server.port": ("The port. BENCH_PORT sets it.", lambda: settings.PORT),
    "server.on_loopback": ("Whether only this machine can reach it, and asks without a key.", lambda: settings.ON_LOOPBACK),
    "server.workers": ("Web processes. BENCH_WORKERS sets them.", lambda: settings.WORKERS),
    "server.max_calls": ("Gateway calls at once in one web process. BENCH_MAX_CALLS sets it.", lambda: settings.MAX_CALLS),
    "server.allowed_hosts": ("Names that requests may carry in Host. BENCH_ALLOWED_HOSTS adds to them.", lambda: list(settings.ALLOWED_HOSTS)),
    "server.allowed_origins": ("Origins whose pages may call the gateway. BENCH_ALLOWED_ORIGINS sets them.", lambda: list(settings.ALLOWED_ORIGINS)),
    "server.trusted_proxies": ("Whose X-Forwarded headers are believed. BENCH_TRUSTED_PROXIES sets them.", lambda: [str(n) for n in settings.TRUSTED_PROXIES]),
    "server.public_url": ("The address behind a proxy. BENCH_PUBLIC_URL sets it.", lambda: settings.PUBLIC_URL or None),
    "server.time_zone": ("Whose midnights budgets and schedules keep. BENCH_TIME_ZONE sets it.", lambda: settings.BENCH_TIME_ZONE),
    "server.keep_text_days": ("How long prompts and answers are kept. BENCH_KEEP_TEXT_DAYS sets it.", lambda: settings.KEEP_TEXT_DAYS),
    "server.max_body_mb": ("The largest request body. BENCH_MAX_BODY_MB sets it.", lambda: settings.MAX_BODY_BYTES // 1024 // 1024),
    "server.admin_token_is_set": ("Whether BENCHWARMERS_ADMIN_TOKEN is set; never what it is.", lambda: bool(settings.ADMIN_TOKEN)),
    "server.secret_keys": ("How many keys seal and unseal secrets. BENCHWARMERS_SECRET_KEYS sets them.", lambda: len(settings.SECRET_KEYS)),
}


def every() -> list[dict[str, Any]]:
    """All of them by name, what can be changed and what cannot."""
    fixed = {"default": None, "writable": False, "changed_at": None, "changed_by": ""}
    found = [{"name": name, "value": read(), "tells": tells, **fixed} for name, (tells, read) in FACTS.items()]
    return found + [shown(one) for one in preferences.shown()]


def shown(one: preferences.Shown) -> dict[str, Any]:
    return {
        "name": one.name,
        "value": one.value,
        "default": one.default,
        "tells": one.tells,
        "writable": True,
        "changed_at": one.changed_at,
        "changed_by": one.changed_by,
    }


class Settings(View):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="list_settings", parameters=shapes.PAGE, responses=shapes.page_of(upkeep_shapes.Setting))
    def get(self, request: Request) -> Response:
        """Lists settings by name, with their defaults and who changed them."""
        return listed(sliced(every(), lambda one: (one["name"],), *self.page_wanted()))


class Setting(View):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="get_setting", responses=upkeep_shapes.Setting)
    def get(self, request: Request, name: str) -> Response:
        """Shows a setting."""
        found = next((one for one in every() if one["name"] == name), None)
        if found is None:
            raise not_found("setting", name)
        return answer(found)

    @shapes.described(operation_id="change_setting", request=upkeep_shapes.SettingChange, responses=upkeep_shapes.Setting)
    def patch(self, request: Request, name: str) -> Response:
        """Changes a setting from now on; null puts its default back."""
        body = self.body(("value",))
        if name in FACTS:
            raise CallerError("invalid_request", f"{name} is a fact of this server, set by its environment: {FACTS[name][0]}", field="name")
        if name not in preferences.registered:
            raise not_found("setting", name)
        if "value" not in body:
            raise CallerError("invalid_request", "value must be given; null puts the default back.", field="value")
        try:
            return answer(shown(preferences.change(name, body["value"], self.actor)))
        except preferences.PreferenceError as error:
            raise CallerError("invalid_request", f"value {error.message}", field="value") from None
