"""Money of a team: what is left, what is set, grants, what was spent, and both as files. Exact inside, cents at this border."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from access.fields import FieldError
from access.pages import read_token, token
from access.sheets import Money, Sheet
from health import sums
from health.costs import usd_text
from panels.api.wording import to_json
from suite import ids
from suite.api.problems import Missing, Unprocessable, Wrong, wrong
from suite.api.repeats import idempotent
from suite.api.shapes import money, usd
from suite.api.view import View, text
from suite.billing import accounts, controls, transactions
from suite.billing.accounts import Account
from suite.billing.transactions import Transaction
from suite.models import Grant, Run
from suite.seeing import readable_runs

MOST_CENTS = 100_000_000_00
DAYS, MOST_DAYS = 30, 366
TRANSACTION_COLUMNS = (
    "id", "kind", "created_at", "amount_usd", "amount_cents", "currency", "complete", "billable", "reference_id", "note", "created_by",
)  # fmt: skip
RUN_COLUMNS = (
    "id", "status", "benchmark", "subset", "version", "subject", "owner", "team", "source", "created_at", "finished_at", "tasks", "cost_usd", "complete",
    "billable",
)  # fmt: skip


class Billing(View):
    filters: tuple[str, ...] = ("account",)

    def account(self, asked: str | None = None) -> Account:
        """Whose money is meant: the caller's team's, or without a team the caller's; an admin may name another. Errors: Missing, Unprocessable."""
        own = accounts.of(self.caller)
        if asked is None:
            asked = self.filters_wanted().get("account", [own.key])[-1]
        if asked == own.key:
            return own
        try:
            found = accounts.read(asked)
        except accounts.AccountUnknown:
            raise Unprocessable("invalid_account", "An account reads like team:platform or owner:kim.") from None
        if not self.caller.may("admin"):
            raise Missing("account", asked)
        return found


def dollars(pusd: int | None) -> dict[str, Any] | None:
    return None if pusd is None else {**money(usd(pusd)), "usd": usd_text(pusd)}


def exactly(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount.normalize():f}" if amount else "0"


def cents_of(body: Mapping[str, Any], name: str, *, least: int, most: int = controls.MOST_CENTS) -> int:
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise wrong(f"/{name}", f"must be a whole number of cents from {least} to {most}.")
    return value


# ------------------------------------------------------------------ how it stands


def shown(account: Account) -> dict[str, Any]:
    found = accounts.balance(account, timezone.now())
    said = controls.of(account)
    cap = found.cap
    return {
        "object": "balance",
        "account": {"kind": account.kind, "name": account.name},
        "balance": dollars(found.left_pusd),
        "spendable": dollars(found.spendable_pusd),
        "is_limited": found.spendable_pusd is not None,
        "granted": {**money(found.granted_usd), "usd": exactly(found.granted_usd)} if found.funds is not None else None,
        "spent_of_grants": dollars(found.funds.spent_pusd if found.funds else None),
        "reserved": dollars(max((one.reserved_pusd for one in (found.funds, cap) if one is not None), default=0)),
        "month": found.month,
        "month_spent": dollars(found.month_spent_pusd),
        "monthly_cap": dollars(cap.cap_pusd if cap else None),
        "monthly_left": dollars(cap.left_pusd if cap else None),
        "resets_at": to_json(found.resets_at),
        "auto_refill": {
            "enabled": said.auto_refill_enabled,
            "amount_cents": said.auto_refill_amount_cents,
            "threshold_cents": said.auto_refill_threshold_cents,
        },
        "alert": {"enabled": said.alert_enabled, "at_cap_pct": said.alert_at_cap_pct},
        "billable": False,
    }


class Balance(Billing):
    scopes = {"GET": ("billing:read",)}

    def get(self, request: Request) -> Response:
        """Tells what is left, of which cap and grants, and what was spent this month. Nobody is billed: calls are paid to their providers."""
        return Response(shown(self.account()))


class Controls(Billing):
    scopes = {"GET": ("billing:read",), "PATCH": ("billing:write",)}

    def get(self, request: Request) -> Response:
        """Shows the cap, its alert, and the allowance."""
        return Response(self.said(self.account()))

    @idempotent
    def patch(self, request: Request) -> Response:
        """Sets the month's cap, when it alerts, and the allowance that comes when little is left; from the next request on."""
        account = self.account()
        given = self.read(self.body(controls.FIELDS))
        after = {**asdict(controls.of(account)), **given}
        if after["auto_refill_enabled"] and not after["auto_refill_amount_cents"]:
            raise wrong("/auto_refill_amount_cents", "must say how much each allowance is, where auto_refill_enabled is true.", "missing")
        try:
            controls.change(account, given, self.actor)
        except FieldError as error:
            raise wrong("/monthly_cap_cents", error.message) from None
        return Response(self.said(account))

    def read(self, body: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in body.items():
            if name in ("auto_refill_enabled", "alert_enabled"):
                if not isinstance(value, bool):
                    raise wrong(f"/{name}", "must be true or false.")
                found[name] = value
            elif name == "alert_at_cap_pct":
                if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 100:
                    raise wrong(f"/{name}", "must be a whole number of percent from 1 to 100.")
                found[name] = value
            else:
                found[name] = None if value is None else cents_of(body, name, least=1 if name == "auto_refill_amount_cents" else 0)
        return found

    def said(self, account: Account) -> dict[str, Any]:
        cap = accounts.balance(account, timezone.now()).cap
        return {"object": "billing_controls", "monthly_cap_cents": money(usd(cap.cap_pusd))["amount_cents"] if cap else None, **asdict(controls.of(account))}


# ------------------------------------------------------------------ grants


def topup(row: Grant) -> dict[str, Any]:
    return {
        "object": "topup",
        "id": row.pk,
        "account": row.team,
        "kind": row.kind,
        "status": "completed",
        "flow": "manual",
        "checkout_url": None,
        "amount": {**money(row.amount_usd), "usd": exactly(row.amount_usd)},
        "note": row.note,
        "created_by": row.created_by,
        "created_at": to_json(row.created_at),
    }


class Topups(Billing):
    scopes = {"GET": ("billing:read",), "POST": ("billing:write",)}

    @idempotent
    def post(self, request: Request) -> Response:
        """Grants an account money, at once and without a payment. `kind` adjustment corrects, also downwards; refund gives back."""
        body = self.body(("amount_cents", "flow", "kind", "note", "account"))
        account = self.account(text(body, "account", most=accounts.LONGEST) or None)
        kind = body.get("kind") or "grant"
        if kind not in accounts.KINDS:
            raise wrong("/kind", f"must be one of {', '.join(accounts.KINDS)}.")
        if body.get("flow") not in (None, "hosted", "manual"):
            raise wrong("/flow", "must be hosted or manual; either way no payment is made.")
        cents = cents_of(body, "amount_cents", least=-MOST_CENTS if kind == "adjustment" else 1, most=MOST_CENTS)
        if not cents:
            raise wrong("/amount_cents", "must not be 0.")
        row = accounts.grant(account, kind, Decimal(cents) / 100, text(body, "note", most=300), self.actor)
        return Response(topup(row), status=201)

    def get(self, request: Request) -> Response:
        """Lists what an account was granted, newest first."""
        account = self.account()
        page = self.keyset_page(Grant.objects.filter(team=account.key), ("created_at", "id"), bound_to=account.key)
        return Response({"data": [topup(row) for row in page.data], "next": page.next})


class Topup(Billing):
    scopes = {"GET": ("billing:read",)}

    def get(self, request: Request, topup_id: str) -> Response:
        """Shows one grant."""
        name = ids.read(topup_id, "top")
        row = Grant.objects.filter(pk=name).first() if name else None
        if row is None or (row.team != accounts.of(self.caller).key and not self.caller.may("admin")):
            raise Missing("topup", topup_id)
        return Response(topup(row))


# ------------------------------------------------------------------ what was spent


def line(one: Transaction) -> dict[str, Any]:
    return {
        "object": "transaction",
        "id": one.id,
        "kind": one.kind,
        "amount": {**money(one.amount_usd), "usd": exactly(one.amount_usd)},
        "complete": one.complete,
        "billable": False,
        "reference_id": one.reference_id or None,
        "note": one.note or None,
        "created_by": one.by or None,
        "created_at": to_json(one.at),
    }


class Transactions(Billing):
    scopes = {"GET": ("billing:read",)}
    filters = ("account", "kind")

    def get(self, request: Request) -> Response:
        """Lists grants and what each ended run cost, newest first; ?filter[kind]= one kind."""
        account = self.account()
        kinds = self.filters_wanted().get("kind", [])
        if len(kinds) > 1 or any("," in kind for kind in kinds):
            raise Unprocessable("invalid_filter", "kind is one kind; ask once for each, or leave it out for all.")
        kind = kinds[0] if kinds else ""
        if kinds and kind not in transactions.KINDS:
            raise Unprocessable("invalid_filter", f"kind is one of {', '.join(transactions.KINDS)}.")
        bound = f"{account.key}&{kind}"
        limit, bare = self.bare_token(bound)
        found = list(islice(transactions.listed(account, kind, place(bare)), limit + 1))
        last = found[limit - 1] if len(found) > limit else None
        return Response({"data": [line(one) for one in found[:limit]], "next": self.signed_token(token([last.at, last.id]) if last else None, bound)})


def place(bare: str) -> tuple[datetime, str] | None:
    """Reads where the page before ended, of a token that was signed here."""
    if not bare:
        return None
    at, name = read_token(bare, None)
    return datetime.fromisoformat(at), name


class UsageTrend(Billing):
    scopes = {"GET": ("billing:read",)}
    filters = ("account", "days")

    def get(self, request: Request) -> Response:
        """Tells what each of the last days cost, runs and all else, oldest first; days without calls too."""
        account = self.account()
        asked = self.filters_wanted().get("days", [str(DAYS)])[-1]
        if not (asked.isascii() and asked.isdigit() and len(asked) <= 4 and 1 <= int(asked) <= MOST_DAYS):
            raise wrong("", f"days must be a whole number from 1 to {MOST_DAYS}.")
        today = timezone.now().astimezone(ZoneInfo(settings.BENCH_TIME_ZONE)).date()
        days = [today - timedelta(days=back) for back in range(int(asked) - 1, -1, -1)]
        found = {one.period: one for one in sums.days_of(account.kind, account.name, days)}
        data = [
            {
                "day": f"{day}",
                "spent": dollars(one.cost_pusd or 0 if one else 0),
                "calls": one.calls if one else 0,
                "unpriced_calls": one.unpriced if one else 0,
                "input_tokens": one.input_tokens if one else 0,
                "output_tokens": one.output_tokens if one else 0,
            }
            for day in days
            for one in [found.get(f"{day}")]
        ]
        return Response({"object": "usage_trend", "time_zone": settings.BENCH_TIME_ZONE, "data": data})


class Export(Billing):
    scopes = {"GET": ("billing:read",)}
    filters = ("account", "type")

    def get(self, request: Request) -> HttpResponseBase:
        """Gives all transactions, or all runs of the account that the caller may read, as CSV that a spreadsheet may open."""
        account = self.account()
        wanted = self.filters_wanted().get("type", ["transactions"])[-1]
        if wanted == "transactions":
            return Sheet("transactions", TRANSACTION_COLUMNS, transaction_rows(account))
        if wanted == "runs":
            runs = readable_runs(self.caller).filter(pk__in=transactions.runs_of(account).values("pk")).select_related("benchmark", "subset")
            return Sheet("runs", RUN_COLUMNS, run_rows(runs.order_by("-finished_at", "-pk")))
        raise Unprocessable("invalid_filter", "type is transactions or runs.", [Wrong("", "invalid", "type")])


def transaction_rows(account: Account) -> Iterator[tuple[Any, ...]]:
    for one in transactions.listed(account):
        cents = money(one.amount_usd)["amount_cents"]
        yield one.id, one.kind, one.at, Money(exactly(one.amount_usd)), cents, "USD", one.complete, False, one.reference_id, one.note, one.by


def run_rows(runs: Any) -> Iterator[tuple[Any, ...]]:
    run: Run
    for run in runs.iterator(chunk_size=500):
        cost = Money(exactly(usd(run.cost_pusd)))
        named = (run.pk, run.status, run.benchmark.name, run.subset.slug, run.version, run.subject, run.owner, run.team, run.source)
        yield (*named, run.created_at, run.finished_at, run.total, cost, not run.has_unpriced, False)
