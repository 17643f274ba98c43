"""What an account has set: its cap of a month, when that alerts, and allowances that come by themselves when the balance runs low."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.utils import timezone

from access import audit, budgets
from health.costs import pusd
from suite.billing import accounts
from suite.billing.accounts import Account
from suite.models import Grant, TeamSetting

log = logging.getLogger(__name__)

NAME = "billing.controls"
MOST_CENTS = 9_999_999_999  # what a budget's column holds
# An alert that no budget reaches, since a budget is never spent beyond its whole.
NO_ALERT = (budgets.HIGHEST_ALERT,)
CENTS = Decimal(100)


@dataclass(frozen=True, slots=True)
class Controls:
    """Shape: by the contract's names; the cap itself is the account's budget. Units: US cents; percent of the cap."""

    auto_refill_enabled: bool = False
    auto_refill_amount_cents: int | None = None
    auto_refill_threshold_cents: int | None = None
    alert_enabled: bool = True
    alert_at_cap_pct: int = 80

    @property
    def alert_at(self) -> tuple[int, ...]:
        return (self.alert_at_cap_pct,) if self.alert_enabled else NO_ALERT


FIELDS = ("monthly_cap_cents", *(one.name for one in fields(Controls)))


def of(account: Account) -> Controls:
    row = TeamSetting.objects.filter(team=account.key, name=NAME).values_list("value", flat=True).first()
    return Controls(**row) if row else Controls()


def change(account: Account, given: Mapping[str, Any], actor: str) -> Controls:
    """Sets what is given, from the next request on. Shape: `given` is checked; `monthly_cap_cents` None takes the cap away."""
    before = of(account)
    after = Controls(**{**asdict(before), **{name: value for name, value in given.items() if name != "monthly_cap_cents"}})
    with transaction.atomic():
        if after != before:
            said = {"value": asdict(after), "changed_by": actor[:200], "changed_at": timezone.now()}
            TeamSetting.objects.update_or_create(team=account.key, name=NAME, defaults=said)
            audit.record(actor, "billing.controls", account.key, audit.diff(asdict(before), asdict(after)))
        cap(account, given, after, actor)
    refill(account, after)
    return after


def cap(account: Account, given: Mapping[str, Any], controls: Controls, actor: str) -> None:
    """Makes the account's budget say what its controls say."""
    kind, name = account.limit_key
    there = budgets.load().by_name.get(account.limit_key)
    alerts = list(controls.alert_at)
    if "monthly_cap_cents" in given:
        cents = given["monthly_cap_cents"]
        if cents is None:
            if there is not None:
                budgets.delete(kind, name, actor)
            return
        amount = {"budget_usd": Decimal(cents) / CENTS, "alert_at": alerts}
        if there is None:
            budgets.make({"kind": kind, "name": name, **amount}, actor)
        else:
            budgets.change(kind, name, amount, actor)
    elif there is not None and {"alert_enabled", "alert_at_cap_pct"} & set(given):
        budgets.change(kind, name, {"alert_at": alerts}, actor)


# ------------------------------------------------------------------ allowances


def run(now: datetime) -> int:
    """Looks after every account that refills itself; gives how many allowances were granted."""
    count = 0
    for key, value in TeamSetting.objects.filter(name=NAME).values_list("team", "value"):
        count += refill(accounts.read(key), Controls(**value), now)
    return count


def refill(account: Account, controls: Controls, now: datetime | None = None) -> bool:
    """Grants an account its allowance where less is left than it says; tells whether it did. Once a look, so a cap bounds what that comes to."""
    if not controls.auto_refill_enabled or not controls.auto_refill_amount_cents:
        return False
    found = accounts.balance(account, now or timezone.now())
    left = found.left_pusd if found.funds is not None else 0
    if left is None or left >= pusd(Decimal(controls.auto_refill_threshold_cents or 0) / CENTS):
        return False
    number = Grant.objects.filter(team=account.key).count()
    reference = f"refill:{number}:{account.key}"[:80]
    if Grant.objects.filter(reference=reference).exists():  # another process was quicker
        return False
    accounts.grant(account, "grant", Decimal(controls.auto_refill_amount_cents) / CENTS, "Allowance, granted by itself.", "server", reference)
    log.info("An allowance was granted to %s.", account.kind)
    return True
