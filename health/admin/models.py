"""Admin pages of models: the roster's, with what happened to a model beside what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.views import ChangeList

from access.admin.audited import moment
from access.admin.typed import display
from catalog.admin.models import ModelAdmin as RosterModelAdmin
from catalog.models import Model
from health.admin.probes import Probed
from health.models import ModelHealth, ModelUse
from health.resting import Resting
from health.rests import resting


def rest_of(model: Model, held: Mapping[str, Resting]) -> Resting | None:
    """Until when a model is left alone: itself, or its whole endpoint."""
    both = [r for scope in (f"model:{model.alias}", f"endpoint:{model.endpoint.name}") if (r := held.get(scope))]
    return max(both, key=lambda rest: rest.until) if both else None


class ModelChangeList(ChangeList):  # type: ignore[misc]
    """Adds rests and seats to the rows of one page, in three queries."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows: list[Any] = list(self.result_list)  # type: ignore[has-type]
        held = resting(timezone.now())
        aliases = [m.alias for m in rows]
        uses = {u.model: u for u in ModelUse.objects.filter(model__in=aliases)}
        suspects = dict(ModelHealth.objects.filter(model__in=aliases).exclude(suspect_since=None).values_list("pk", "suspect_reason"))
        for row in rows:
            row.bench_rest, row.bench_use, row.bench_suspect = rest_of(row, held), uses.get(row.alias), suspects.get(row.alias)
        self.result_list = rows


admin.site.unregister(Model)
# The queue's own pages write past the audit trail, and show payloads that mean nothing to people.
for queue_model in apps.get_app_config("django_q").get_models():
    if admin.site.is_registered(queue_model):
        admin.site.unregister(queue_model)


@admin.register(Model)
class ModelAdmin(Probed, RosterModelAdmin):
    """The roster's page of models with what this room adds: who rests until when, when a model last sat, how often."""

    list_display = (
        "alias_and_name",
        "endpoint",
        "status_shown",
        "context_shown",
        "abilities",
        "price_in",
        "price_out",
        "last_seated",
        "seats",
    )

    actions = (*RosterModelAdmin.actions, "probe_selected")  # type: ignore[assignment]
    actions_detail = (*RosterModelAdmin.actions_detail, "probe", "accept_baseline")  # type: ignore[assignment]
    readonly_fields = (*RosterModelAdmin.readonly_fields, "health_shown", "speed_shown", "drift_shown")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        sets = super().get_fieldsets(request, obj)
        if obj is None:
            return sets
        return (*sets[:1], ("Health", {"fields": ("health_shown", "speed_shown", "drift_shown")}), *sets[1:])

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> Any:
        """A baseline is accepted where there is one, and an ad hoc model is not probed."""
        found = super().get_actions_detail(request, object_id)
        row = self.get_object(request, str(object_id))
        kept = ModelHealth.objects.filter(pk=row.alias).values_list("drift", flat=True).first() if row else None
        unwanted = {*(["probe"] if row is None or row.ad_hoc else []), *([] if kept else ["baseline"])}
        return [a for a in found if a.path not in unwanted]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return ModelChangeList

    @display(description="Status", ordering="status")
    def status_shown(self, obj: Any) -> SafeString:
        if obj.status == Model.Status.RETIRED:
            return format_html('<span class="bench-badge is-bad" title="{}">retired</span>', obj.status_reason)
        if rest := obj.bench_rest:
            return format_html('<span class="bench-badge is-warn" title="{}">resting until {}</span>', rest.reason, until(rest.until))
        if obj.bench_suspect is not None:
            return format_html('<span class="bench-badge is-warn" title="{}">suspect</span>', obj.bench_suspect)
        extra = format_html(' <span class="bench-badge is-plain">{}</span>', "ad hoc") if obj.ad_hoc else ""
        return format_html('<span class="bench-badge is-good">active</span>{}', extra)

    @display(description="Last seated")
    def last_seated(self, obj: Any) -> str:
        return moment(obj.bench_use.last_seated_at) if obj.bench_use else "never"

    @display(description="Seats")
    def seats(self, obj: Any) -> str:
        return f"{obj.bench_use.seats:,}" if obj.bench_use else "0"

    def status_story(self, obj: Model) -> SafeString:
        story = super().status_story(obj)
        rest = rest_of(obj, resting(timezone.now()))
        if rest is None or obj.status == Model.Status.RETIRED:
            return story
        return format_html(
            '{} <span class="bench-badge is-warn">resting until {}</span><div class="bench-faint">{}</div>', story, until(rest.until), rest.reason
        )

    status_story.short_description = "Status"  # type: ignore[attr-defined]


def until(moment: datetime) -> str:
    """A time of today as its hour, any other with its day. UTC."""
    return f"{moment:%H:%M}" if moment.date() == timezone.now().date() else f"{moment:%d %b %H:%M}"
