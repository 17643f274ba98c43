"""Admin pages of the ledger. A page reads its own rows only: nothing here counts or sums the whole of it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import ChoicesDropdownFilter, DropdownFilter, FieldTextFilter, RangeDateTimeFilter
from unfold.paginator import InfinitePaginator

from access.admin.audited import AuditedAdmin, ReadOnly
from access.admin.typed import display
from access.sheets import Sheet
from catalog.admin.endpoints import endpoint_names
from health import call_sheet
from health.costs import usd_text
from health.history import row_of
from health.models import Attempt

GOOD = ("ok",)
HALF = ("partial", "truncated", "cancelled")
PURPOSES = ("panel", "merged", "route", "direct", "shadow", "probe", "onboard", "suite", "judge")


class PurposeFilter(DropdownFilter):  # type: ignore[misc]
    title = "purpose"
    parameter_name = "purpose"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(p, p) for p in PURPOSES]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Attempt]) -> QuerySet[Attempt]:
        return queryset.filter(purpose=self.value()) if self.value() else queryset


class EndpointFilter(DropdownFilter):  # type: ignore[misc]
    """Offers the roster's endpoints: to look which ones the ledger holds would read all of it."""

    title = "endpoint"
    parameter_name = "endpoint"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in endpoint_names()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Attempt]) -> QuerySet[Attempt]:
        return queryset.filter(endpoint=self.value()) if self.value() else queryset


class EstimatedFilter(DropdownFilter):  # type: ignore[misc]
    title = "token counts"
    parameter_name = "estimated"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("1", "Estimated"), ("0", "Counted by the provider")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Attempt]) -> QuerySet[Attempt]:
        return queryset.filter(estimated=self.value() == "1") if self.value() in ("0", "1") else queryset


@admin.register(Attempt)
class AttemptAdmin(ReadOnly, AuditedAdmin):
    """Calls. A page reads its own rows only: nothing here counts or sums the whole ledger."""

    noun = "call"
    paginator = InfinitePaginator
    show_full_result_count = False
    list_per_page = 30
    ordering = ("-started_at",)
    sortable_by = ("started_shown",)
    list_display = ("started_shown", "model", "endpoint", "purpose", "status_shown", "tokens_in", "tokens_out", "cost_shown", "seconds_shown", "who")
    list_display_links = ("started_shown",)
    list_filter = (
        ("status", ChoicesDropdownFilter),
        PurposeFilter,
        EndpointFilter,
        ("model", FieldTextFilter),
        ("key_name", FieldTextFilter),
        ("collection", FieldTextFilter),
        EstimatedFilter,
        ("started_at", RangeDateTimeFilter),
    )
    # Exact, for these are indexed; parts of ids would read the whole ledger.
    search_fields = ("id__exact", "call__exact", "panel__exact")
    search_help_text = "A call's or panel's whole id"
    actions = ("export_selected",)
    fieldsets = (
        (None, {"fields": ("started_shown", "status_shown", "model", "served_name", "endpoint", "purpose", "seat", "collection")}),
        ("Who asked", {"fields": ("judge", "key_name", "request")}),
        ("Ids", {"fields": ("call", "panel", "id")}),
        ("Tokens and money", {"fields": ("tokens_in", "tokens_out", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "counted", "cost_shown")}),
        ("How it went", {"fields": ("seconds_shown", "ttft_shown", "http_status", "finish_reason", "code", "error")}),
    )
    readonly_fields = tuple(name for _, options in fieldsets for name in options["fields"])

    @admin.action(description="Export as CSV", permissions=["view"])
    def export_selected(self, request: HttpRequest, queryset: QuerySet[Attempt]) -> Sheet:
        """The selected calls as a sheet; /bench/calls?format=csv gives a whole stretch of time."""
        return call_sheet.sheet(row_of(attempt) for attempt in queryset.order_by("-started_at", "-id"))

    @display(description="At", ordering="started_at")
    def started_shown(self, obj: Attempt) -> str:
        return f"{obj.started_at:%d %b %Y %H:%M:%S}"

    @display(description="Status")
    def status_shown(self, obj: Attempt) -> SafeString:
        tone = "is-good" if obj.status in GOOD else "is-warn" if obj.status in HALF else "is-bad"
        return format_html('<span class="bench-badge {}" title="{}">{}</span>', tone, obj.code, obj.status.replace("_", " "))

    @display(description="Tokens in")
    def tokens_in(self, obj: Attempt) -> str:
        return f"{'≈' if obj.estimated else ''}{obj.input_tokens:,}"

    @display(description="Tokens out")
    def tokens_out(self, obj: Attempt) -> str:
        return f"{'≈' if obj.estimated else ''}{obj.output_tokens:,}"

    @display(description="Counted")
    def counted(self, obj: Attempt) -> str:
        return "estimated here: the provider sent no counts" if obj.estimated else "by the provider"

    @display(description="Cost")
    def cost_shown(self, obj: Attempt) -> str:
        return "unknown" if obj.cost_pusd is None else f"${usd_text(obj.cost_pusd)}"

    @display(description="Seconds")
    def seconds_shown(self, obj: Attempt) -> str:
        return f"{obj.latency_ms / 1000:.2f}"

    @display(description="First token, seconds")
    def ttft_shown(self, obj: Attempt) -> str:
        return "" if obj.ttft_ms is None else f"{obj.ttft_ms / 1000:.2f}"

    @display(description="Who")
    def who(self, obj: Attempt) -> str:
        return f"{obj.judge} ({obj.key_name})" if obj.key_name else obj.judge
