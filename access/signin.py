"""One-time sign-in links, so that nobody types a password on loopback.

A GET redeems the link: `make run` opens it in a browser with nothing to type or press, and our CSP forbids a page that submits itself. What is
opened without a person's wish is told apart instead: HEAD and a browser's prefetch redeem nothing, and the link ends with its first use.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from access import audit
from access.models import SignInLink, User

VALID_FOR = timedelta(minutes=10)
KEPT_FOR = timedelta(days=1)


def digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def make_link(user: User, base_url: str, now: datetime) -> str:
    """Gives an address that signs the user in once, within ten minutes. Shape: `base_url` with its path prefix, if any."""
    token = secrets.token_urlsafe(32)
    SignInLink.objects.filter(expires_at__lt=now - KEPT_FOR).delete()
    SignInLink.objects.create(digest=digest(token), user=user, expires_at=now + VALID_FOR)
    return f"{base_url.rstrip('/')}/signin/{token}"


def redeem(token: str, now: datetime) -> User | None:
    """Gives the user of a link that is good, and uses it up; of several at once one gets it. None for used, expired and unknown alike."""
    mine = SignInLink.objects.filter(digest=digest(token))
    if not mine.filter(used_at=None, expires_at__gt=now, user__is_active=True).update(used_at=now):
        return None
    return mine.select_related("user").get().user


@never_cache
@require_safe
def signin(request: HttpRequest, token: str) -> HttpResponse:
    """Signs in and goes on to the first page."""
    purpose = request.headers.get("Sec-Purpose", "") + request.headers.get("Purpose", "") + request.headers.get("X-Moz", "")
    if request.method == "HEAD" or "prefetch" in purpose.lower():
        return HttpResponse(status=503)  # a browser throws a failed prefetch away and asks again when the person goes there
    user = redeem(token, timezone.now())
    if user is None:
        return render(request, "access/signin_refused.html", status=403)
    login(request, user, backend="access.backends.RoleBackend")
    audit.record(user.get_username(), "user.signin_link", user.get_username())
    response = redirect("root")
    response["Referrer-Policy"] = "no-referrer"
    return response
