"""Usage: the ledger's sums by month."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from access.pages import sliced
from health import sums
from health.costs import usd_text
from panels.api import shapes
from panels.api.view import View, listed
from wire.errors import CallerError

MONTH = re.compile(r"(20[0-9]{2})-(0[1-9]|1[0-2])")
BY = OpenApiParameter("by", str, enum=list(sums.BY), description="What to sum by; model without it.")
OF_MONTH = OpenApiParameter("month", str, description="One month, like 2026-11; all without it.")


class Usage(View):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="list_usage", parameters=[*shapes.PAGE, BY, OF_MONTH], responses=shapes.page_of(shapes.UsageRow))
    def get(self, request: Request) -> Response:
        """Sums calls, tokens and costs by month and model (or key, endpoint, collection …), newest month first."""
        by = request.query_params.get("by", "") or "model"
        if by not in sums.BY:
            raise CallerError("invalid_request", f"by must be one of {', '.join(sums.BY)}.", field="by")
        limit, page_token = self.page_wanted()
        since, until = month_wanted(request.query_params.get("month", ""))
        page = sliced(sums.by_month(by, since, until), newest_first, limit, page_token)
        return listed(page.mapped(lambda row: as_json(row, by)))


def month_wanted(text: str) -> tuple[datetime | None, datetime | None]:
    """Reads ?month=. Errors: CallerError."""
    if not text:
        return None, None
    found = MONTH.fullmatch(text)
    if found is None:
        raise CallerError("invalid_request", "month must be written like 2026-11.", field="month")
    year, month = int(found[1]), int(found[2])
    zone = ZoneInfo(settings.BENCH_TIME_ZONE)
    return datetime(year, month, 1, tzinfo=zone), datetime(year + month // 12, month % 12 + 1, 1, tzinfo=zone)


def as_json(row: sums.Sums, by: str) -> dict[str, Any]:
    return {
        "month": row.month,
        by: row.name,
        "calls": row.calls,
        "failed": row.failed,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
        "cache_read_tokens": row.cache_read_tokens,
        "cache_write_tokens": row.cache_write_tokens,
        "reasoning_tokens": row.reasoning_tokens,
        "estimated_calls": row.estimated,
        "cost_usd": usd_text(row.cost_pusd),
        "unpriced_calls": row.unpriced,
    }


def newest_first(row: sums.Sums) -> tuple[str, str]:
    """A key whose rising order has the newest month first."""
    return str(999_999 - int(row.month.replace("-", ""))), row.name
