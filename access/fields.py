"""What a key's fields may hold: one check a field, each with an error that names the field.

FieldError   a value that cannot be kept, and what it should be
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from access.caller import SCOPES

MOST_ENTRIES = 500
DEFAULT_SCOPES = ("ask", "judge")


class FieldError(Exception):
    """Shape: `field` is the field's name as the caller wrote it; the message stands alone and holds no value."""

    code = "invalid_request"

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field, self.message = field, message


def text(field: str, value: object, least: int = 0, most: int = 200) -> str:
    if not isinstance(value, str):
        raise FieldError(field, "must be a text.")
    value = value.strip()
    if not least <= len(value) <= most:
        raise FieldError(field, f"must have {least} to {most} characters.")
    if not value.isprintable():  # lone surrogates and null characters would reach the database otherwise
        raise FieldError(field, "must hold printable characters only.")
    return value


def texts(field: str, value: object) -> list[str]:
    if not isinstance(value, list | tuple):
        raise FieldError(field, "must be a list of texts, or null.")
    if len(value) > MOST_ENTRIES:
        raise FieldError(field, f"must have at most {MOST_ENTRIES} entries.")
    return list(dict.fromkeys(text(f"{field}[{i}]", item, least=1) for i, item in enumerate(value)))


def name(field: str, value: object) -> str:
    return text(field, value, least=1)


def owner(field: str, value: object) -> str:
    return "" if value is None else text(field, value)


def scopes(field: str, value: object) -> list[str]:
    if value is None:
        return list(DEFAULT_SCOPES)
    asked = texts(field, value)
    if not set(asked) <= set(SCOPES):
        raise FieldError(field, f"must be out of {', '.join(SCOPES)}.")
    if not asked:
        raise FieldError(field, "must name at least one scope; a key without any may do nothing.")
    return [scope for scope in SCOPES if scope in asked]


def collections(field: str, value: object) -> list[str] | None:
    if value is None:
        return None
    asked = texts(field, value)
    for i, entry in enumerate(asked):
        if "/" in entry:
            raise FieldError(f"{field}[{i}]", "must be a collection's bare name, without bench/.")
    return asked


def aliases(field: str, value: object) -> list[str] | None:
    return None if value is None else texts(field, value)


def whole(most: int) -> Callable[[str, object], int | None]:
    def check(field: str, value: object) -> int | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):  # True is an int in Python, and a mistake here
            raise FieldError(field, "must be a whole number, or null for no limit.")
        if not 1 <= value <= most:
            raise FieldError(field, f"must be 1 to {most}, or null for no limit.")
        return value

    return check


def dollars(field: str, value: object) -> Decimal | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal) or (isinstance(value, str) and len(value) > 40):
        raise FieldError(field, "must be an amount in US dollars, or null for no limit.")
    try:
        amount = Decimal(str(value))
    except (InvalidOperation, ValueError):
        raise FieldError(field, "must be an amount in US dollars, or null for no limit.") from None
    if not amount.is_finite() or not 0 <= amount < 10**8:
        raise FieldError(field, "must be 0 to 99999999 US dollars.")
    kept = round(amount, 6)
    if amount != kept:
        raise FieldError(field, "must have at most six decimals.")
    return kept


def moment(field: str, value: object) -> datetime | None:
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            value = None
    if not isinstance(value, datetime):
        raise FieldError(field, "must be a time like 2027-01-31T12:00:00Z, or null.")
    if value.tzinfo is None or value.utcoffset() is None:
        raise FieldError(field, "must say its time zone, like 2027-01-31T12:00:00Z.")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise FieldError(field, "lies too far off.") from None


def yes_no_unknown(field: str, value: object) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise FieldError(field, "must be true, false or null.")
    return value


CHECKS: dict[str, Callable[[str, object], Any]] = {
    "name": name,
    "owner": owner,
    "team": owner,
    "scopes": scopes,
    "collections": collections,
    "models": aliases,
    "rpm": whole(2**31 - 1),
    "tpm": whole(2**63 - 1),
    "max_parallel": whole(2**31 - 1),
    "budget_usd": dollars,
    "expires_at": moment,
    "keep_text": yes_no_unknown,
}


def checked(fields: Mapping[str, object]) -> dict[str, Any]:
    """Gives the fields as they are kept. Errors: FieldError for the first that cannot be."""
    for field in fields:
        if field not in CHECKS:
            raise FieldError(str(field)[:60], f"is no field of a key. A key has {', '.join(CHECKS)}.")
    return {field: CHECKS[field](field, value) for field, value in fields.items()}
