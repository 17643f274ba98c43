"""Admin pages of probes: the evidence, asking for one with its cost shown before, and taking what answers now as the usual."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import ChoicesDropdownFilter, DropdownFilter, FieldTextFilter, RangeDateTimeFilter
from unfold.enums import ActionVariant
from unfold.paginator import InfinitePaginator
from unfold.widgets import UnfoldAdminRadioSelectWidget

from access.admin.audited import AuditedAdmin, ReadOnly, actor, moment
from access.admin.typed import action, display
from catalog.load import load_model
from catalog.models import Model
from health import drift, errands, probes
from health.condition import UNKNOWN, Condition, conditions
from health.costs import usd_text
from health.estimates import KINDS, estimate
from health.models import Probe

KIND_WORDS = {"word": "One word", "perf": "Speed: a short and a long answer", "drift": "A night's fixed questions"}
TONES = {"ok": "is-good", "failed": "is-bad", "unknown": "is-plain"}
STATES = {"learning": "is-plain", "steady": "is-good", "doubtful": "is-warn", "changed": "is-bad"}


def dollars(amount_pusd: int | None) -> str:
    return "price unknown" if amount_pusd is None else f"${usd_text(amount_pusd)}"


class KindForm(forms.Form):
    """Which probe, each with what it should cost."""

    kind = forms.ChoiceField(label="Probe", widget=UnfoldAdminRadioSelectWidget)

    def __init__(self, aliases: list[str], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        models = [model for alias in aliases if (model := load_model(alias)) is not None]
        self.fields["kind"].choices = [(kind, f"{KIND_WORDS[kind]}, {self.cost(kind, models)}") for kind in KINDS]  # type: ignore[attr-defined]
        self.fields["kind"].initial = "word"

    @staticmethod
    def cost(kind: str, models: list[Any]) -> str:
        found = estimate(kind, models)
        if found.cost_pusd is None:
            return "price unknown"
        rest = f", and {found.unpriced} whose price is unknown" if found.unpriced else ""
        return f"about {dollars(found.cost_pusd)}{rest}"


class Probed(AuditedAdmin):
    """What probes add to the pages of models."""

    def condition(self, obj: Model) -> Condition:
        return conditions([obj.alias]).get(obj.alias, UNKNOWN)

    @display(description="Health")
    def health_shown(self, obj: Model) -> SafeString:
        of = self.condition(obj)
        badge = format_html('<span class="bench-badge is-warn">suspect since {}</span><div>{}</div>', moment(of.suspect_since), of.reason)
        lines = [
            ("Last good answer: {}", moment(of.last_ok_at) or "none seen"),
            ("Last failed probe: {}", moment(of.last_failed_at) or "none"),
            *([("Missing from its endpoint's list since {}", moment(of.unlisted_since))] if of.unlisted_since else []),
        ]
        link = f"{reverse('admin:health_probe_changelist')}?{urlencode({'model': obj.alias})}"
        return format_html(
            '{}{}<div><a href="{}">Its probes</a></div>',
            badge if of.suspect_since else "",
            format_html_join("", "<div>{}</div>", ((text.format(value),) for text, value in lines)),
            link,
        )

    @display(description="Speed")
    def speed_shown(self, obj: Model) -> SafeString | str:
        speed = self.condition(obj).speed
        if not speed:
            return "Not measured yet."
        rows = (
            (
                kind,
                "unknown" if one["ttft_ms"] is None else f"{one['ttft_ms'] / 1000:.2f} s to the first token",
                "" if one["tokens_per_s"] is None else f", then {one['tokens_per_s']:g} tokens a second",
                one["of"],
            )
            for kind, one in speed.items()
        )
        return format_html_join("", "<div>{}: {}{} <span class='bench-faint'>(median of {})</span></div>", rows)

    @display(description="Drift")
    def drift_shown(self, obj: Model) -> SafeString | str:
        kept = self.condition(obj).drift
        if kept is None:
            return "No night was asked for yet."
        newest = kept["newest"]
        told = f"newest night {newest['effect']:.2f} further from the baseline than usual" if newest else "the baseline is being learned"
        changed = f", changed since {kept['changed_at'][:10]}" if kept["changed_at"] else ""
        return format_html(
            '<span class="bench-badge {}">{}</span> <span class="bench-faint">{} nights in the baseline, {}{}</span>',
            STATES.get(kept["state"], "is-plain"),
            kept["state"],
            kept["nights"],
            told,
            changed,
        )

    # ------------------------------------------------------------------ asking

    @action(description="Probe now", url_path="probe", icon="stethoscope", permissions=["change"], variant=ActionVariant.DEFAULT)
    def probe(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self.ask_for_probes(request, [self.row(request, object_id)])

    @admin.action(description="Probe now, with the cost shown before", permissions=["change"])
    def probe_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse:
        return self.ask_for_probes(request, list(queryset), name="probe_selected")

    def ask_for_probes(self, request: HttpRequest, rows: list[Model], name: str = "") -> HttpResponse:
        """Shows what it will cost, then queues. The list's action comes here twice: with the selection, then with the kind."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        sent = request.method == "POST" and "kind" in request.POST
        form = KindForm([row.alias for row in rows], request.POST if sent else None)
        if sent and form.is_valid():
            queued = 0
            for row in rows:
                try:
                    queued += probes.request(row.alias, form.cleaned_data["kind"], actor(request)).is_new
                except (probes.ProbeError, LookupError) as error:
                    self.say(request, str(error), good=False)
            if queued:
                errands.ring()
                what = rows[0].alias if len(rows) == 1 else f"{queued} models"
                self.say(request, f"A probe of {what} is queued; what comes of it stands under Probes.")
            return HttpResponseRedirect(request.get_full_path()) if name else self.to_change(rows[0])
        return self.page(
            request,
            "admin/bench/reason.html",
            f"Probe {rows[0].alias if len(rows) == 1 else f'{len(rows)} models'}",
            form=form,
            rows=rows,
            original=rows[0] if len(rows) == 1 else None,
            word="Probe",
            note="A probe is a real call, which its provider may bill. Should it fail because the model is gone, one more call follows before it is retired.",
            action_name=name,
            back=request.get_full_path() if name else reverse("admin:catalog_model_change", args=[rows[0].pk]),
        )

    @action(description="Accept as new baseline", url_path="baseline", icon="flag", permissions=["change"], variant=ActionVariant.DEFAULT)
    def accept_baseline(self, request: HttpRequest, object_id: str) -> HttpResponse:
        row = self.row(request, object_id)
        if not self.has_change_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return self.page(
                request,
                "admin/bench/reason.html",
                f"Accept what answers as {row.alias} now",
                form=forms.Form(),
                rows=[row],
                original=row,
                word="Accept",
                note="The newest night becomes the first of a new baseline; two more are learned from before anything is said again.",
                action_name="",
                back=reverse("admin:catalog_model_change", args=[row.pk]),
            )
        try:
            drift.accept(row.alias, actor(request))
            self.say(request, f"What answers as {row.alias} now is its baseline.")
        except (probes.ProbeError, LookupError) as error:
            self.say(request, str(error), good=False)
        return self.to_change(row)


# ------------------------------------------------------------------ the evidence


class ProbeKindFilter(DropdownFilter):  # type: ignore[misc]
    title = "kind"
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(kind, kind) for kind in ("word", "short", "long", "confirm", "drift")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Probe]) -> QuerySet[Probe]:
        return queryset.filter(kind=self.value()) if self.value() else queryset


@admin.register(Probe)
class ProbeAdmin(ReadOnly, AuditedAdmin):
    """Probes. A page reads its own rows only."""

    noun = "probe"
    paginator = InfinitePaginator
    show_full_result_count = False
    ordering = ("-at",)
    sortable_by = ("at_shown",)
    list_display = ("at_shown", "model", "endpoint", "kind", "outcome_shown", "fault", "seconds_shown", "speed_shown", "cost_shown")
    list_display_links = ("at_shown",)
    list_filter = (("outcome", ChoicesDropdownFilter), ProbeKindFilter, ("model", FieldTextFilter), ("endpoint", FieldTextFilter), ("at", RangeDateTimeFilter))
    search_fields = ("attempt__exact", "model__exact")
    search_help_text = "A model's alias or a call's whole id"
    fieldsets = (
        (None, {"fields": ("at_shown", "model", "endpoint", "kind", "prompt", "outcome_shown", "fault", "call_shown")}),
        ("What came", {"fields": ("status", "http_status", "code", "message", "answer_shown", "seen_shown")}),
        ("How fast, how dear", {"fields": ("seconds_shown", "ttft_shown", "output_tokens", "speed_shown", "cost_shown")}),
    )
    readonly_fields = tuple(name for _, options in fieldsets for name in options["fields"])

    @display(description="At", ordering="at")
    def at_shown(self, obj: Probe) -> str:
        return f"{obj.at:%d %b %Y %H:%M:%S}"

    @display(description="Outcome")
    def outcome_shown(self, obj: Probe) -> SafeString:
        return format_html('<span class="bench-badge {}" title="{}">{}</span>', TONES.get(obj.outcome, "is-plain"), obj.message, obj.outcome)

    @display(description="Call")
    def call_shown(self, obj: Probe) -> SafeString:
        return format_html('<a href="{}">{}</a>', reverse("admin:health_attempt_change", args=[obj.attempt]), obj.attempt)

    @display(description="Answer")
    def answer_shown(self, obj: Probe) -> SafeString | str:
        return format_html('<div class="bench-text">{}</div>', obj.answer) if obj.answer else "not kept"

    @display(description="What else it showed")
    def seen_shown(self, obj: Probe) -> str:
        return ", ".join(f"{name.replace('_', ' ')}: {said}" for name, said in obj.seen.items())

    @display(description="Seconds")
    def seconds_shown(self, obj: Probe) -> str:
        return "" if obj.latency_ms is None else f"{obj.latency_ms / 1000:.2f}"

    @display(description="First token, seconds")
    def ttft_shown(self, obj: Probe) -> str:
        return "" if obj.ttft_ms is None else f"{obj.ttft_ms / 1000:.2f}"

    @display(description="Tokens a second")
    def speed_shown(self, obj: Probe) -> str:
        return "" if obj.tokens_per_s is None else f"{obj.tokens_per_s:g}"

    @display(description="Cost")
    def cost_shown(self, obj: Probe) -> str:
        return dollars(obj.cost_pusd)
