"""What owners, teams and collections may spend in a calendar month: rows that people set, and how a request finds those that it falls under.

Besides, what owners and teams were granted for good, where that is kept: the room that keeps it registers here.

UnknownBudget   nobody set one under this kind and name
BudgetTaken     there is one already
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from dataclasses import field as empty
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from django.db import IntegrityError, transaction

from access import audit, fields
from access.fields import FieldError
from access.models import Budget, Key

KINDS = tuple(Budget.Kind.values)
ALERT_AT = (80, 100)
MOST_ALERTS = 20
HIGHEST_ALERT = 1000
FIELDS = ("kind", "name", "budget_usd", "alert_at")


class UnknownBudget(LookupError):
    code = "not_found"


class BudgetTaken(Exception):
    code = "in_use"


@dataclass(frozen=True, slots=True)
class Limit:
    """One budget. Shape: `kind` owner, team, collection, or key; `alert_at` percents, rising. Units: US dollars a calendar month of BENCH_TIME_ZONE.

    With `is_granted` it is no month's: all that was granted until now, against all that was spent beyond `before_pusd` (trillionths of a US dollar).
    """

    kind: str
    name: str
    budget_usd: Decimal
    alert_at: tuple[int, ...] = ALERT_AT
    created_at: datetime | None = None
    key_id: int | None = None
    is_granted: bool = False
    before_pusd: int = 0


@dataclass(frozen=True, slots=True)
class Budgets:
    """All budgets but keys', as one request's snapshot holds them. Shape: by kind and name; `granted` those that are no month's."""

    by_name: Mapping[tuple[str, str], Limit]
    granted: Mapping[tuple[str, str], Limit] = empty(default_factory=dict)

    def of(self, owner: str, team: str, collection: str) -> tuple[Limit, ...]:
        """Gives those that one request falls under."""
        if not self.by_name and not self.granted:
            return ()
        names = (("owner", owner), ("team", team), ("collection", collection))
        return tuple([found for held in (self.by_name, self.granted) for name in names if name[1] and (found := held.get(name))])


NONE = Budgets(MappingProxyType({}))

# What is done, in the same transaction, before a budget begins to hold: the room that counts money has to know what was spent already.
beginnings: list[Callable[[str, str, int | None], None]] = []


def on_beginning(function: Callable[[str, str, int | None], None]) -> None:
    """Registers what is called with kind, name and, of a key, its id, when a budget is set or changed. Within the transaction."""
    if function not in beginnings:
        beginnings.append(function)


# Who keeps what was granted.
grants: list[Callable[[], Iterable[Limit]]] = []


def on_grants(function: Callable[[], Iterable[Limit]]) -> None:
    """Registers who tells of grants, one limit for each owner or team that has any. What moves them moves the roster's version, too."""
    if function not in grants:
        grants.append(function)


def begin(kind: str, name: str, key_id: int | None = None) -> None:
    for function in beginnings:
        function(kind, name, key_id)


# ------------------------------------------------------------------ reading


def limit_of(row: Budget) -> Limit:
    return Limit(row.kind, row.name, row.budget_usd, tuple(row.alert_at) or ALERT_AT, row.created_at)


def load() -> Budgets:
    """Reads all of them. One query, and those of whoever keeps grants."""
    rows = Budget.objects.all()
    kept = granted()
    return Budgets(MappingProxyType({(row.kind, row.name): limit_of(row) for row in rows}), kept) if rows or kept else NONE


def granted() -> Mapping[tuple[str, str], Limit]:
    return MappingProxyType({(limit.kind, limit.name): limit for function in grants for limit in function()})


def every() -> list[Limit]:
    """Lists all of them by kind and name, those of live keys and what was granted too. Two queries."""
    keys = Key.objects.filter(revoked_at=None).exclude(budget_usd=None).order_by("name")
    return [
        *(limit_of(row) for row in Budget.objects.all()),
        *(Limit("key", k.name, k.budget_usd, ALERT_AT, k.created_at, k.pk) for k in keys if k.budget_usd is not None),
        *granted().values(),
    ]


def find(kind: str, name: str) -> Limit:
    """Errors: UnknownBudget."""
    return limit_of(row_of(kind, name))


def row_of(kind: str, name: str) -> Budget:
    row = Budget.objects.filter(kind=kind, name=name).first() if kind in KINDS and name.isprintable() else None
    if row is None:
        raise UnknownBudget(f"{kind} {name}")
    return row


# ------------------------------------------------------------------ writing


def alerts(field: str, value: object) -> list[int]:
    """Checks percents; None and an empty list mean the usual ones. Errors: FieldError."""
    if value is None:
        return list(ALERT_AT)
    if not isinstance(value, list | tuple) or len(value) > MOST_ALERTS:
        raise FieldError(field, f"must be a list of at most {MOST_ALERTS} percents, like [50, 80, 100].")
    for i, one in enumerate(value):
        if isinstance(one, bool) or not isinstance(one, int) or not 1 <= one <= HIGHEST_ALERT:
            raise FieldError(f"{field}[{i}]", f"must be a whole number of percent from 1 to {HIGHEST_ALERT}.")
    return sorted(set(value)) or list(ALERT_AT)


def amount(field: str, value: object) -> Decimal:
    found = fields.dollars(field, value)
    if found is None:
        raise FieldError(field, "must be an amount in US dollars. Delete the budget to have no limit.")
    return found


def kind_of(field: str, value: object) -> str:
    if value not in KINDS:
        raise FieldError(field, f"must be one of {', '.join(KINDS)}. A key's own budget stands on the key.")
    return str(value)


CHECKS: dict[str, Callable[[str, object], Any]] = {"kind": kind_of, "name": fields.name, "budget_usd": amount, "alert_at": alerts}


def make(given: Mapping[str, object], actor: str) -> Limit:
    """Sets a budget, from the next request on; what was spent this month before counts. Errors: FieldError, BudgetTaken."""
    for field in ("kind", "name", "budget_usd"):
        if field not in given:
            raise FieldError(field, "is missing.")
    kept = {field: CHECKS[field](field, value) for field, value in {"alert_at": None, **given}.items()}
    try:
        with transaction.atomic():
            row = Budget.objects.create(**kept)
            begin(row.kind, row.name)
            audit.record(actor, "budget.add", str(row), audit.diff({}, kept))
    except IntegrityError:
        raise BudgetTaken(f"There is a budget of the {kept['kind']} {kept['name']} already. Change that one.") from None
    return limit_of(row)


def change(kind: str, name: str, given: Mapping[str, object], actor: str) -> Limit:
    """Changes the amount or when it alerts, from the next request on. Errors: UnknownBudget, FieldError."""
    for field in ("kind", "name"):
        if field in given:
            raise FieldError(field, "cannot be changed. Delete this budget and make another.")
    kept = {field: CHECKS[field](field, value) for field, value in given.items()}
    with transaction.atomic():
        row = Budget.objects.select_for_update().get(pk=row_of(kind, name).pk)
        before = {field: getattr(row, field) for field in kept}
        moved = [field for field in kept if kept[field] != before[field]]
        if moved:
            for field in moved:
                setattr(row, field, kept[field])
            row.save(update_fields=moved)
            begin(row.kind, row.name)
            audit.record(actor, "budget.change", str(row), audit.diff(before, kept))
    return limit_of(row)


def delete(kind: str, name: str, actor: str) -> None:
    """Takes a budget away, from the next request on. Errors: UnknownBudget."""
    with transaction.atomic():
        row = row_of(kind, name)
        before = {field: getattr(row, field) for field in FIELDS}
        said = str(row)
        row.delete()
        audit.record(actor, "budget.delete", said, audit.diff(before, {}))
