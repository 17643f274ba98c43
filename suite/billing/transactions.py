"""What was granted and what was spent, as one list: grants as they were made, and what each ended run cost, by what it was for.

A view over the ledger: nothing of it is written, so that it says what the ledger says. A run stands at its end; one that is taken up again stands at its
new end, with all that it cost. What people ask besides runs has no line; the balance and the trend count it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import chain, islice
from typing import Any

from django.db.models import Q

from health.costs import PUSD_PER_USD
from health.sums import costs_of_requests
from suite.billing.accounts import KINDS as GRANTS
from suite.billing.accounts import Account
from suite.models import Grant, Run

TRACE, DRIVER, JUDGE, SANDBOX = "trace_debit", "driver_debit", "judge_debit", "sandbox_debit"
# No driver writes anything yet, and this machine's own sandbox costs nothing: of these two there are none.
KINDS = (TRACE, DRIVER, JUDGE, SANDBOX, *GRANTS)
# What a debit is for, by the ledger's purposes.
JUDGING = "judge"
AT_ONCE = 200
ENDED = (Run.Status.OK, Run.Status.FAILED, Run.Status.HALTED, Run.Status.DELETED)


@dataclass(frozen=True, slots=True, order=True)
class Transaction:
    """One line. Shape: ordered by when and id. Units: `amount_usd` US dollars, below nothing where money went; None where a price is unknown."""

    at: datetime
    id: str
    kind: str
    amount_usd: Decimal | None
    reference_id: str = ""
    note: str = ""
    by: str = ""
    complete: bool = True


def listed(account: Account, kind: str = "", after: tuple[datetime, str] | None = None) -> Iterator[Transaction]:
    """Gives an account's lines, newest first, those after a place; reads on only as far as somebody takes. Shape: `kind` "" means all."""
    sources: list[Iterator[Transaction]] = []
    if kind in ("", *GRANTS):
        sources.append(grants(account, kind, after))
    if kind in ("", TRACE, JUDGE):
        sources.append(debits(account, kind, after))
    for one in heapq.merge(*sources, reverse=True):
        if after is None or (one.at, one.id) < after:
            yield one


def grants(account: Account, kind: str, after: tuple[datetime, str] | None) -> Iterator[Transaction]:
    rows = Grant.objects.filter(team=account.key)
    if kind:
        rows = rows.filter(kind=kind)
    if after is not None:
        rows = rows.filter(created_at__lte=after[0])
    for row in rows.order_by("-created_at", "-id").iterator(chunk_size=AT_ONCE):
        yield Transaction(row.created_at, row.pk, row.kind, row.amount_usd, note=row.note, by=row.created_by)


def runs_of(account: Account) -> Any:
    """The runs that an account paid for and that have ended."""
    mine = Q(team=account.name) if account.kind == "team" else Q(team="", owner=account.name)
    return Run.objects.filter(mine, status__in=ENDED, finished_at__isnull=False)


def debits(account: Account, kind: str, after: tuple[datetime, str] | None) -> Iterator[Transaction]:
    rows = runs_of(account).exclude(cost_pusd=0, has_unpriced=False)
    if after is not None:
        rows = rows.filter(finished_at__lte=after[0])
    fields = ("pk", "finished_at", "started_at", "cost_pusd", "has_unpriced", "owner", "impl__grader")
    found = rows.order_by("-finished_at", "-pk").values_list(*fields).iterator(chunk_size=AT_ONCE)
    while chunk := list(islice(found, AT_ONCE)):
        judged = [row for row in chunk if (row[6] or {}).get("kind") == JUDGING or not (row[6] or {}).get("kind")]
        for_judges = (
            costs_of_requests([row[0] for row in judged], JUDGING, min(row[2] or row[1] for row in judged), max(row[1] for row in judged)) if judged else {}
        )
        # Lines of one run have one time: in falling order of their ids, as those that merge them expect.
        yield from sorted(chain.from_iterable(lines_of(row, for_judges.get(row[0], 0), kind) for row in chunk), reverse=True)


def lines_of(row: tuple[Any, ...], for_judges: int, kind: str) -> Iterator[Transaction]:
    run, at, _, cost, has_unpriced, owner, _ = row
    for name, word, amount in ((TRACE, "trace", cost - for_judges), (JUDGE, "judge", for_judges)):
        if kind in ("", name) and (amount or (name == TRACE and has_unpriced)):
            yield Transaction(at, f"txn_{run.removeprefix('run_')}_{word}", name, -Decimal(amount) / PUSD_PER_USD, run, by=owner, complete=not has_unpriced)
