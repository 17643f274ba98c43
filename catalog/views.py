"""The one page of this room outside the admin: where providers send a browser back to after a sign-in.

A GET finishes the sign-in, since that is what providers send. Its state is good once and in one session, so nobody else's link does anything.
"""

from __future__ import annotations

from urllib.parse import urlencode, urljoin

from django.conf import settings
from django.contrib.admin.utils import quote
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from access.models import User
from access.people import caller_of_user
from catalog import signing


def callback_url(request: HttpRequest, provider: str) -> str:
    """This server's own address for a provider's callback: the public one where there is one, else the one that it was reached at, which was checked."""
    here = settings.PUBLIC_ORIGIN or request.build_absolute_uri("/")
    return urljoin(here, reverse("signin_callback", args=[provider]))


@never_cache
@require_safe
def signin_callback(request: HttpRequest, provider: str, state: str = "") -> HttpResponse:
    """Finishes the sign-in that the state belongs to, and goes on to its page."""
    user = request.user
    if not isinstance(user, User) or not user.is_active or not caller_of_user(user).may("admin"):
        return refused(request, "Only an admin who is signed in to this server, in this browser and at this address, can finish a sign-in.", 403)
    purpose = request.headers.get("Sec-Purpose", "") + request.headers.get("Purpose", "")
    if request.method == "HEAD" or "prefetch" in purpose.lower():
        return HttpResponse(status=503)  # nobody has come yet
    said = request.GET
    try:
        done = signing.finish(
            provider,
            state or said.get("state", ""),
            said.get("code", ""),
            said.get("error", ""),
            request.session.session_key or "",
            user.get_username(),
            timezone.now(),
        )
    except signing.SignInRefused as error:
        return refused(request, str(error), 400)
    if request.session.pop("first_steps_signin", "") == done.id:
        response = redirect(f"{reverse('pages:start')}?{urlencode({'endpoint': done.endpoint})}")
    else:
        response = redirect("admin:catalog_signin_change", quote(done.id))
    response["Referrer-Policy"] = "no-referrer"  # the address holds the code
    return response


def refused(request: HttpRequest, message: str, status: int) -> HttpResponse:
    response = render(request, "admin/bench/signin_refused.html", {"message": message}, status=status)
    response["Referrer-Policy"] = "no-referrer"
    return response
