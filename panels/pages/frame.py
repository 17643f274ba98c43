"""What all pages share: who may see one, the frame around it, and how a refusal looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from access.models import User
from access.people import caller_of_user
from panels.pages.door import Refused

View = Callable[..., HttpResponse]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the menu. `group` stands above the first of its kind."""

    title: str
    icon: str
    page: str
    scope: str
    group: str = ""


MENU = [
    Entry("Ask", "message-square-text", "pages:ask", "ask"),
    Entry("Pending verdicts", "gavel", "pages:pending", "judge"),
    Entry("Panels", "history", "pages:panels", "read"),
    Entry("Models", "table-2", "pages:models", "read", "Bench"),
    Entry("Collections", "users", "pages:collections", "read"),
    Entry("Discover", "compass", "pages:discover", "read"),
    Entry("Onboarding", "list-plus", "pages:onboarding", "read"),
    Entry("Quotas", "gauge", "pages:quotas", "read", "Spend"),
    Entry("Usage", "chart-column", "pages:usage", "read"),
    Entry("Connect", "plug", "pages:connect", "read", "Server"),
    Entry("Keys", "key-round", "pages:keys", "read"),
    Entry("Settings", "settings", "pages:settings", "read"),
]


def add_to_menu(before: str, entries: Sequence[Entry]) -> None:
    """Puts another room's entries before those of a group; a room says so once, when it starts."""
    place = next(number for number, entry in enumerate(MENU) if entry.group == before)
    MENU[place:place] = entries


def scopes_of(request: HttpRequest) -> frozenset[str]:
    assert isinstance(request.user, User)
    return caller_of_user(request.user).scopes


def menu(request: HttpRequest, scopes: frozenset[str]) -> list[dict[str, Any]]:
    """Gives the entries that a caller may open. The one whose address is the longest beginning of this page's is where we are."""
    here, prefix = request.path_info, settings.FORCE_SCRIPT_NAME or ""
    found = [{"title": e.title, "icon": e.icon, "group": e.group, "address": reverse(e.page)} for e in MENU if e.scope in scopes]
    above = [bare for entry in found if here == (bare := entry["address"].removeprefix(prefix)) or here.startswith(f"{bare}/")]
    nearest = prefix + max(above, key=len) if above else None
    return [{**entry, "is_here": entry["address"] == nearest} for entry in found]


def allowed(scopes: Iterable[str]) -> dict[str, bool]:
    """What templates ask as `may.…`: `runs:write` is `may.runs_write` there."""
    return {scope.replace(":", "_"): True for scope in scopes}


def framed(request: HttpRequest, template: str, context: dict[str, Any] | None = None, status: int = 200) -> HttpResponse:
    """Draws a page in its frame; asked for by htmx, the same template without one (`frame` is empty)."""
    scopes = scopes_of(request)
    around = {
        "menu": menu(request, scopes),
        "may": allowed(scopes),
        "is_part": request.headers.get("HX-Request") == "true",
        "version": settings.VERSION,
    }
    return render(request, template, {**around, **(context or {})}, status=status)


def page(scope: str, *methods: str) -> Callable[[View], View]:
    """Makes a view a page: for people who are signed in and have a scope, by GET and the methods named; what the API refuses becomes a page that says so."""
    taken = ("GET", "HEAD", *methods)

    def around(view: View) -> View:
        @wraps(view)
        def seen(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if not isinstance(request.user, User) or not request.user.is_active:
                if request.headers.get("HX-Request") == "true":
                    # A part of a page cannot sign in: the whole page goes.
                    return HttpResponse(status=401, headers={"HX-Refresh": "true"})
                return redirect_to_login(request.get_full_path(), reverse("admin:login"))
            if request.method not in taken:
                return HttpResponse(status=405, headers={"Allow": ", ".join(taken)})
            if scope not in scopes_of(request):
                return refusal(
                    request,
                    Refused(403, "not_allowed", f"Your role does not open this page: it needs the right to {VERBS[scope]}. An admin can change your role."),
                )
            try:
                return view(request, *args, **kwargs)
            except Refused as refused:
                return refusal(request, refused)

        return never_cache(seen)

    return around


VERBS = {
    "read": "read",
    "ask": "ask",
    "judge": "judge",
    "operate": "operate the bench",
    "admin": "administer",
    "runs:read": "read runs",
    "runs:write": "launch runs",
    "registry:read": "read benchmarks",
    "registry:publish": "make benchmarks",
    "billing:read": "see budgets",
    "billing:write": "change budgets",
}


def refusal(request: HttpRequest, refused: Refused) -> HttpResponse:
    """Shows what the API refused: a page of its own, or, asked for by htmx, a notice."""
    status = refused.status
    if request.headers.get("HX-Request") == "true":
        return render(request, "pages/part/notice.html", {"tone": "bad", "text": refused.detail}, status=status)
    return framed(request, "pages/refused.html", {"refused": refused}, status=status)
