"""What a list of panels may be asked for, read from a query string."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from panels.looking import LOOKED_THROUGH, Filters
from panels.models import Panel
from wire.errors import CallerError

MODES = ("panel", "merged", "route", "direct")
VERDICTS = ("none", "some")
WORDS_MAX, CHARACTERS_MAX = 10, 200
PARAMETERS = [
    OpenApiParameter("collection", str, description="Only panels of this collection."),
    OpenApiParameter("mode", str, enum=MODES),
    OpenApiParameter("status", str, enum=Panel.Status.values),
    OpenApiParameter("judge", str, description="Who asked."),
    OpenApiParameter("model", str, description="An alias that sat there."),
    OpenApiParameter("find", str, description=f"Words of the prompt, all of which must stand there, in the newest {LOOKED_THROUGH} panels at most."),
    OpenApiParameter("since", str, description="A day, or a time in ISO form."),
    OpenApiParameter("until", str, description="A day, which is included, or a time in ISO form."),
    OpenApiParameter("verdict", str, enum=VERDICTS, description="none: nobody judged any seat; some: somebody did."),
]


def filters_of(request: Request) -> Filters:
    """Errors: CallerError that names the parameter."""

    def said(name: str) -> str:
        return str(request.query_params.get(name, "")).replace("\0", "\ufffd")

    since, until = moment(said("since"), "since"), moment(said("until"), "until", is_end=True)
    if since and until and until <= since:
        raise CallerError("invalid_request", "until must not lie before since.", field="until")
    return Filters(
        collection=said("collection"),
        mode=one_of(said("mode"), MODES, "mode"),
        status=one_of(said("status"), Panel.Status.values, "status"),
        judge=said("judge"),
        model=said("model"),
        verdict=one_of(said("verdict"), VERDICTS, "verdict"),
        since=since,
        until=until,
        find=words_of(said("find")),
    )


def one_of(said: str, there: Any, field: str) -> str:
    if said and said not in there:
        raise CallerError("invalid_request", f"{field} must be one of {', '.join(there)}.", field=field)
    return said


def words_of(said: str) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(said.split()))
    if len(words) > WORDS_MAX or len(said) > CHARACTERS_MAX:
        raise CallerError("invalid_request", f"find takes at most {WORDS_MAX} words of together {CHARACTERS_MAX} characters.", field="find")
    return words


def moment(said: str, field: str, is_end: bool = False) -> datetime | None:
    """Reads a day in BENCH_TIME_ZONE, or a time; a day that ends something is included."""
    if not said:
        return None
    zone = ZoneInfo(settings.BENCH_TIME_ZONE)
    try:
        if len(said) == len("2026-11-29"):
            day = date.fromisoformat(said) + timedelta(days=1 if is_end else 0)
            return datetime(day.year, day.month, day.day, tzinfo=zone)
        # A plus in a query string is a space unless somebody wrote it as %2B.
        at = datetime.fromisoformat(said.replace(" ", "+") if "T" in said else said)
        found = at if at.tzinfo else at.replace(tzinfo=zone)
        found = found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise CallerError("invalid_request", f"{field} must be a day like 2026-11-29, or a time like 2026-11-29T12:00:00Z.", field=field) from None
    return found
