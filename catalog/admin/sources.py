"""Admin pages of public catalogs: how old what they said is, what went wrong, what was left out and why; and reading them now."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timesince

from access.admin.audited import AuditedAdmin, ReadOnly, moment
from access.admin.typed import display
from catalog import layering, reading, sources
from catalog.models import Source

# A reading takes seconds; one that takes longer goes on without the page.
WAIT_S = 8.0


def title(name: str) -> str:
    """What a catalog is called; its row may be of one whose file is gone."""
    return next((source.title for source in sources.every() if source.name == name), name)


@admin.register(Source)
class SourceAdmin(ReadOnly, AuditedAdmin):
    """What `catalog.reading` wrote of each catalog. Which are read is a setting, catalog.sources."""

    noun = "source"
    list_display = ("title_shown", "is_on", "age", "offers", "skipped_count", "error_shown")
    list_display_links = ("title_shown",)
    ordering = ("name",)
    actions = ("read_now",)
    fields = ("title_shown", "url_shown", "is_on", "age", "changed_shown", "tried_shown", "error_shown", "offers", "version", "skipped_shown")
    readonly_fields = fields

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        Source.objects.bulk_create([Source(name=source.name) for source in sources.every()], ignore_conflicts=True)
        return super().changelist_view(request, extra_context)  # type: ignore[no-any-return]

    def has_read_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("catalog.change_model")

    @admin.action(description="Read now", permissions=["read"])
    def read_now(self, request: HttpRequest, queryset: QuerySet[Source]) -> None:
        """Reads what was ticked, in a thread: a catalog that hangs holds up no page."""
        known = {source.name for source in sources.every()}
        names = [name for name in queryset.values_list("name", flat=True) if name in known]
        now = timezone.now()
        reading.read_aside(names, now, WAIT_S)
        for row in Source.objects.filter(name__in=names):
            self.record(request, "read", row)
            self.say(request, *told(row, now))

    # ------------------------------------------------------------------ what is shown

    @display(description="Catalog", ordering="name")
    def title_shown(self, obj: Source) -> str:
        return title(obj.name)

    @display(description="Read", label={"On": "success", "Off": "info"})
    def is_on(self, obj: Source) -> str:
        known = next((source for source in sources.every() if source.name == obj.name), None)
        return "On" if known is not None and reading.url_of(known)[0] and layering.is_on(obj.name) else "Off"

    @display(description="Address")
    def url_shown(self, obj: Source) -> str:
        return next((reading.url_of(source)[0] for source in sources.every() if source.name == obj.name), "")

    @display(description="Last read", ordering="read_at")
    def age(self, obj: Source) -> str:
        return f"{moment(obj.read_at)} ({timesince(obj.read_at, depth=1)} ago)" if obj.read_at else "Never"

    @display(description="Last change")
    def changed_shown(self, obj: Source) -> str:
        return moment(obj.changed_at)

    @display(description="Last try")
    def tried_shown(self, obj: Source) -> str:
        return moment(obj.tried_at)

    @display(description="Error")
    def error_shown(self, obj: Source) -> str:
        return obj.error

    @display(description="Left out")
    def skipped_count(self, obj: Source) -> str:
        return str(len(obj.skipped)) if obj.skipped else ""

    @display(description="Left out")
    def skipped_shown(self, obj: Source) -> SafeString | str:
        """The catalog's own words stand here: all of it is escaped."""
        lines = [(one.get("entry", ""), one.get("reason", "")) for one in obj.skipped]
        return format_html("<ul>{}</ul>", format_html_join("", "<li><strong>{}</strong> {}</li>", lines)) if lines else "Nothing"


def told(row: Source, now: Any) -> tuple[str, bool]:
    """Says how a reading went, as far as it has come; the second is whether it went well."""
    name = title(row.name)
    if row.leased_until is not None:
        return f"{name} is still being read. Look again in a minute.", True
    if row.read_at == now:
        return f"{name} was read and lists {row.offers:,} models.", True
    return (row.error, False) if row.error and row.tried_at == now else (f"{name} is off, or being read by somebody else.", False)
