"""What every reply of Django's stack carries, and what is believed of a request's way here.

The gateway's own entry brings the same by itself: it uses `API_HEADERS`, `access.ids.request_id` and `access.door.approach`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, JsonResponse

from access import door
from access.ids import request_id
from panels.views import GatewayView
from wire import problem
from wire.errors import CallerError


def policy(script: str = "'self'", style: str = "'self'") -> str:
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src {script}",
            f"style-src {style}",
            "img-src 'self' data:",
            "object-src 'none'",
            "frame-ancestors 'none'",
            "base-uri 'self'",
            "form-action 'self'",
        )
    )


CONTENT_POLICY = policy()
# The admin's pages (django-unfold) are driven by Alpine, which evaluates expressions in attributes, and carry their colours in a <style>
# element; neither can be had with a hash or nonce. Inline scripts stay forbidden there too. https://alpinejs.dev/advanced/csp
ADMIN_POLICY = policy(script="'self' 'unsafe-eval'", style="'self' 'unsafe-inline'")

API_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Content-Security-Policy": CONTENT_POLICY,
}


# What browsers ask for: here a foreign Host gets Django's page.
PAGES = re.compile(r"/(?:(?:app|admin|registry|signins?|static)(?:/.*)?)?", re.DOTALL)


class SecurityHeadersMiddleware:
    """Stands first, so that whatever stands behind it sees the caller's own scheme and host, and no reply leaves without these headers.

    Sync on purpose: were it async, each of Django's own middleware behind it would hop to a thread of its own.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        settle_approach(request)
        request.request_id = request_id(request.META.get("HTTP_X_REQUEST_ID"))  # type: ignore[attr-defined]
        response = refused_host(request) or self.get_response(request)
        for name, value in API_HEADERS.items():
            response.headers.setdefault(name, value)
        if request.path_info.startswith("/admin/"):
            response.headers["Content-Security-Policy"] = ADMIN_POLICY
        response.headers["X-Request-Id"] = request.request_id  # type: ignore[attr-defined]
        return response


def foreign_host() -> CallerError:
    return CallerError("not_allowed", "This server does not answer to that Host. BENCH_ALLOWED_HOSTS names those it does.", status=403)


def refused_host(request: HttpRequest) -> HttpResponse | None:
    """Refuses a Host that is not this server's, in the form of the path's other errors. None where the Host is allowed, and for pages."""
    path = request.path_info
    if PAGES.fullmatch(path):
        return None
    try:
        request.get_host()
    except DisallowedHost:
        error = foreign_host()
    else:
        return None
    if not path.startswith(("/v1/", "/bench/")):
        return JsonResponse(GatewayView.dialect.write_error(error), status=error.status)
    body = problem.problem(error)
    if path.startswith("/v1/"):
        body |= {"instance": request.path, "request_id": request.request_id}  # type: ignore[attr-defined]
    return JsonResponse(body, status=error.status, content_type=problem.CONTENT_TYPE)


def settle_approach(request: HttpRequest) -> None:
    """Puts the caller's scheme, host and address in place where a trusted proxy tells them; takes what proxies say out, whoever said it.

    That something was forwarded stays on record, since such a request needs a key also on loopback.
    """
    meta = request.META
    way = door.approach(meta.get("REMOTE_ADDR", ""), request.scheme or "http", meta, settings.TRUSTED_PROXIES)
    meta[door.WAS_FORWARDED] = way.forwarded
    if not way.forwarded:
        return
    for name in [n for n in meta if n.startswith("HTTP_X_FORWARDED") or n == "HTTP_FORWARDED"]:
        del meta[name]
    meta["REMOTE_ADDR"] = way.address
    if way.host:
        meta["HTTP_HOST"] = way.host
    # Where each kind of request keeps its scheme: an ASGI scope, a WSGI environ.
    if hasattr(request, "scope"):
        request.scope = {**request.scope, "scheme": way.scheme}
    meta["wsgi.url_scheme"] = way.scheme
