"""A team's money: what is left of grants and of the month's cap, where it went, and, for admins, how much there is."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import get_script_prefix, path, reverse
from django.utils.http import urlencode

from panels.pages import door
from panels.pages.door import Refused
from panels.pages.frame import framed, page
from suite.pages.forms import refusal

KINDS = {
    "trace_debit": "asking",
    "judge_debit": "judging",
    "driver_debit": "authoring",
    "sandbox_debit": "sandbox",
    "grant": "grant",
    "adjustment": "correction",
    "refund": "refund",
}
GRANTED = ("grant", "adjustment", "refund")
# What the API calls each field of these forms.
NAMES = {
    "monthly_cap_cents": "cap",
    "amount_cents": "amount",
    "auto_refill_amount_cents": "refill",
    "auto_refill_threshold_cents": "threshold",
    "alert_at_cap_pct": "alert_at",
}


@page("billing:read", "POST")
def money(request: HttpRequest) -> HttpResponse:
    """Shows an account, one's own or, for admins, another; by POST admins grant, or set the cap, its alert and the allowance."""
    account = request.GET.get("account", "").strip()
    if request.method == "POST":
        return change(request, account)
    return draw(request, account)


def draw(request: HttpRequest, account: str, **more: Any) -> HttpResponse:
    only = {"account": account}
    kind = request.GET.get("kind", "") if request.GET.get("kind") in KINDS else ""
    found = door.read(request, "/v1/billing/transactions", limit=25, page_token=request.GET.get("page_token"), kind=kind, **only)
    trend = door.read(request, "/v1/billing/usage-trend", days=30, **only)["data"]
    context = {
        "title": "Budget",
        "account": account,
        "balance": door.read(request, "/v1/billing/balance", **only),
        "controls": controls(request, account),
        "transactions": [{**one, "says": KINDS.get(one["kind"], one["kind"])} for one in found["data"]],
        "next": found["next"],
        "kinds": KINDS,
        "kind": kind,
        "granted": GRANTED,
        "trend": [[one["day"], float(one["spent"]["usd"] or 0)] for one in trend],
        "trend_columns": ["Day", "US dollars"],
        "has_trend": any(one["calls"] for one in trend),
        "unpriced": sum(one["unpriced_calls"] for one in trend),
        "sheets": [(name, sheet(name, account)) for name in ("transactions", "runs")],
        "once": uuid4().hex,
    }
    refused = more.get("refused")
    return framed(request, "pages/suite/money.html", {**context, **more}, status=refused.status if refused else 200)


def sheet(name: str, account: str) -> str:
    return f"{get_script_prefix()}v1/billing/export?{urlencode({'type': name, **({'account': account} if account else {})})}"


def controls(request: HttpRequest, account: str) -> dict[str, Any]:
    """What is set, in dollars as the forms have it."""
    found = door.read(request, "/v1/billing/controls", account=account)
    named = {"cap": "monthly_cap_cents", "refill": "auto_refill_amount_cents", "threshold": "auto_refill_threshold_cents"}
    return {**found, **{name: "" if found[field] is None else f"{found[field] / 100:.2f}" for name, field in named.items()}}


def change(request: HttpRequest, account: str) -> HttpResponse:
    """Does what one of the forms asks for. Errors: Refused."""
    post = request.POST
    try:
        match post.get("do", ""):
            case "grant":
                body = {
                    "amount_cents": cents(post.get("amount", "")),
                    "kind": post.get("kind", "grant"),
                    "note": post.get("note", ""),
                    "account": account or None,
                }
                said = {name: value for name, value in body.items() if value is not None}
                door.call(request, "POST", "/v1/billing/topups", said, {"Idempotency-Key": post.get("once") or uuid4().hex})
                told = "It is entered, and holds from the next request on."
            case "controls":
                body = {
                    "monthly_cap_cents": cents(post.get("cap", "")),
                    "alert_enabled": "alert" in post,
                    "alert_at_cap_pct": whole(post.get("alert_at", "")),
                    "auto_refill_enabled": "auto" in post,
                    "auto_refill_amount_cents": cents(post.get("refill", "")),
                    "auto_refill_threshold_cents": cents(post.get("threshold", "")),
                }
                door.call(request, "PATCH", "/v1/billing/controls", body, account=account)
                told = "It holds from the next request on."
            case _:
                raise Refused(400, "invalid_request", "This page has no such button.")
    except Refused as refused:
        if refused.status != 422:
            raise
        return draw(request, account, **refusal(refused, **NAMES), typed=post)
    messages.success(request, told)
    query = f"?{urlencode({'account': account})}" if account else ""
    return redirect(f"{reverse('pages:money')}{query}")


def cents(said: str) -> int | str | None:
    """Reads an amount of dollars as whole cents; what is none goes on as it was typed: the API says what is wrong with it."""
    text = said.strip().removeprefix("$")
    if not text:
        return None
    head, dot, tail = text.partition(".")
    if head.removeprefix("-").isdecimal() and (not dot or (tail.isdecimal() and len(tail) <= 2)) and len(text) < 16:
        amount = int(f"{head}{tail:0<2}")
        return amount
    return text


def whole(said: str) -> int | str | None:
    text = said.strip()
    return int(text) if text.isdecimal() and len(text) < 6 else text or None


urlpatterns = [path("suite/budget", money, name="money")]
