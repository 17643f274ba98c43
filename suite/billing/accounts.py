"""Whose money it is, and what was granted: an account is a team, or for people without one themselves.

grants ─▶ limits that every request's reservation meets, beside the month's budgets (`access.budgets`); what is spent of them the ledger's sums say

AccountUnknown   a text that names no account
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import transaction
from django.utils import timezone

from access import audit, budgets
from access.budgets import Limit
from access.caller import Caller
from access.ids import new_id
from health import budgets as money
from health.budgets import Standing
from health.costs import PUSD_PER_USD
from suite.models import Grant, TeamSetting

# What an account had spent when its first grant came: none of it counts against the balance.
BEFORE = "billing.before"
KINDS = ("grant", "adjustment", "refund")
LONGEST = 200


class AccountUnknown(LookupError):
    code = "account_not_found"


@dataclass(frozen=True, slots=True)
class Account:
    """Shape: `kind` is team or owner."""

    kind: str
    name: str

    @property
    def key(self) -> str:
        """How rows name it, as in team:platform."""
        return f"{self.kind}:{self.name}"

    @property
    def limit_key(self) -> tuple[str, str]:
        return self.kind, self.name


def of(caller: Caller) -> Account:
    return Account("team", caller.team) if caller.team else Account("owner", caller.owner)


def read(key: str) -> Account:
    """Reads `team:platform`. Errors: AccountUnknown."""
    kind, _, name = key.partition(":")
    if kind not in ("team", "owner") or not name or len(key) > LONGEST or not name.isprintable():
        raise AccountUnknown(key)
    return Account(kind, name)


def limits() -> list[Limit]:
    """Gives the limit of each account that was granted anything. Two queries."""
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for key, amount in Grant.objects.values_list("team", "amount_usd"):
        sums[key] += amount
    before = dict(TeamSetting.objects.filter(name=BEFORE).values_list("team", "value")) if sums else {}
    return [limit_of(read(key), amount, int(before.get(key, 0))) for key, amount in sorted(sums.items())]


def limit_of(account: Account, amount: Decimal, before_pusd: int) -> Limit:
    return Limit(account.kind, account.name, max(amount, Decimal(0)), budgets.ALERT_AT, is_granted=True, before_pusd=before_pusd)


@dataclass(frozen=True, slots=True)
class Balance:
    """How an account stands. Shape: `cap` is the month's budget, `funds` what was granted; either is None where there is none."""

    account: Account
    cap: Standing | None
    funds: Standing | None
    granted_usd: Decimal
    month: str
    month_spent_pusd: int
    resets_at: datetime

    @property
    def left_pusd(self) -> int | None:
        """What is left of the grants, else of the month's budget; None where neither limits anything. Below nothing where more was spent or taken back."""
        if self.funds is not None:
            return int(self.granted_usd * PUSD_PER_USD) - self.funds.spent_pusd - self.funds.reserved_pusd
        return None if self.cap is None else self.cap.left_pusd

    @property
    def spendable_pusd(self) -> int | None:
        """What the next call may cost at most."""
        found = [max(left, 0) for left in (self.left_pusd, self.cap.left_pusd if self.cap else None) if left is not None]
        return min(found) if found else None


def balance(account: Account, now: datetime) -> Balance:
    """Reads how an account stands."""
    held = budgets.load()
    cap, funds = held.by_name.get(account.limit_key), held.granted.get(account.limit_key)
    free = Limit(account.kind, account.name, Decimal(0))
    *stands, month = money.standings([*([cap] if cap else []), *([funds] if funds else []), free], now)
    return Balance(
        account,
        stands[0] if cap else None,
        stands[-1] if funds else None,
        sum(Grant.objects.filter(team=account.key).values_list("amount_usd", flat=True), Decimal(0)),
        month.month,
        month.spent_pusd,
        month.resets_at,
    )


def grant(account: Account, kind: str, amount_usd: Decimal, note: str, by: str, reference: str | None = None) -> Grant:
    """Grants an account money, or corrects what it has; it holds from the next request on."""
    with transaction.atomic():
        if not Grant.objects.filter(team=account.key).exists():
            # The ledger's sums are read while nothing of this account is limited by them yet.
            said = {"value": str(money.spent_ever(account.kind, account.name)), "changed_by": by[:200], "changed_at": timezone.now()}
            TeamSetting.objects.get_or_create(team=account.key, name=BEFORE, defaults=said)
        row = Grant.objects.create(
            id=new_id("top"), team=account.key, kind=kind, amount_usd=amount_usd, note=note, reference=reference, created_by=by[:200], created_at=timezone.now()
        )
        audit.record(by, f"billing.{kind}", account.key, audit.diff({}, {"amount_usd": amount_usd}), reason=note[:500])
    return row
