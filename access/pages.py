"""Pages of a long list by where the last one ended, so that the thousandth page costs what the first does and rows that come or go shift nothing."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any, Generic, TypeVar

from django.db.models import Model, Q, QuerySet

from wire.errors import CallerError

Row = TypeVar("Row", bound=Model)
Item = TypeVar("Item")
Other = TypeVar("Other")

NONE_MADE: Mapping[str, str] = {}
LIMIT = 50
LIMIT_MAX = 500


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Shape: `next` is the token of the next page, None on the last."""

    data: list[Item]
    next: str | None

    def mapped(self, change: Callable[[Item], Other]) -> Page[Other]:
        return Page([change(item) for item in self.data], self.next)


def keyset(rows: QuerySet[Row], fields: Sequence[str], limit: int, page_token: str, newest_first: bool = False) -> Page[Row]:
    """Reads one page of rows in the order of some fields that together are unique. One query.

    Errors: CallerError for a token that is not of this list.
    """
    if page_token:
        made = {f: column.output_field.get_internal_type() for f, column in rows.query.annotations.items() if f in fields}
        rows = rows.filter(_after(fields, read_token(page_token, rows.model, fields, made), "lt" if newest_first else "gt"))
    found = list(rows.order_by(*(f"-{f}" if newest_first else f for f in fields))[: limit + 1])
    if len(found) <= limit:
        return Page(found, None)
    return Page(found[:limit], token([getattr(found[limit - 1], f) for f in fields]))


def sliced(items: Iterable[Item], key: Callable[[Item], tuple[str, ...]], limit: int, page_token: str) -> Page[Item]:
    """Takes one page of a short list that is in memory, in the order of its key, which is unique. Errors: CallerError as `keyset`."""
    found = sorted(items, key=key)
    if page_token:
        after = read_token(page_token, None)
        found = [item for item in found if list(key(item)) > after]
    if len(found) <= limit:
        return Page(found, None)
    return Page(found[:limit], token(key(found[limit - 1])))


def token(values: Sequence[Any]) -> str:
    said = json.dumps([v.isoformat() if isinstance(v, datetime) else v for v in values], ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(said.encode()).decode().rstrip("=")


def read_token(page_token: str, model: type[Model] | None, fields: Sequence[str] = (), made: Mapping[str, str] = NONE_MADE) -> list[Any]:
    """Reads back what `token` wrote: values of a model's fields or of columns that its query made, by their kind; without a model texts.

    Errors: CallerError 400.
    """
    try:
        values = json.loads(base64.urlsafe_b64decode(page_token.encode() + b"=" * (-len(page_token) % 4)))
        if not isinstance(values, list):
            raise ValueError
        if model is None:
            if not all(isinstance(v, str) for v in values):
                raise ValueError
            return values
        return [_typed(made.get(field) or model._meta.get_field(field).get_internal_type(), v) for field, v in zip(fields, values, strict=True)]
    except (ValueError, TypeError, OverflowError, RecursionError, binascii.Error):
        raise CallerError("invalid_request", "page_token is none of this list. Take it from the next field of the page before.", field="page_token") from None


def _typed(kind: str, value: Any) -> Any:
    if kind == "DateTimeField":
        at = datetime.fromisoformat(value)
        if at.tzinfo is None:
            raise ValueError
        return at
    if kind in ("CharField", "TextField"):
        if not isinstance(value, str) or "\0" in value:
            raise ValueError
        return value.encode().decode()  # half a surrogate pair: UnicodeEncodeError, which is a ValueError
    if kind == "FloatField" and isinstance(value, float) and isfinite(value):
        return value
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 62:
        raise ValueError
    return value


def _after(fields: Sequence[str], values: Sequence[Any], beyond: str) -> Q:
    """(a, b) > (x, y) in words that every database has: a > x, or a = x and b > y. The first bound again, so that an index serves."""
    either = Q()
    same = Q()
    for field, value in zip(fields, values, strict=True):
        either |= same & Q(**{f"{field}__{beyond}": value})
        same &= Q(**{field: value})
    return Q(**{f"{fields[0]}__{beyond}e": values[0]}) & either
