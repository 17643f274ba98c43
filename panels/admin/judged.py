"""Admin pages of verdicts: the list with its history, a form for a call id, and each collection's record."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import BooleanRadioFilter, FieldTextFilter, RangeDateTimeFilter
from unfold.paginator import InfinitePaginator
from unfold.widgets import UnfoldAdminTextInputWidget

from access.admin.audited import AuditedAdmin
from access.admin.typed import action, display
from panels import records, verdicts
from panels.admin.asked import VerdictForm, judge_call
from panels.beta import Rate
from panels.models import Verdict
from panels.records import Record
from panels.standing import Standing

PAIRS_SHOWN = 30
USEFUL = {True: ("useful", "is-good"), False: ("not useful", "is-bad"), None: ("not said", "is-plain")}


class CallVerdictForm(VerdictForm):
    call = forms.CharField(
        label="Call id",
        max_length=40,
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "call_…", "spellcheck": "false"}),
        help_text="From the heading of an answer, its bench field, or the x-bench-call header.",
    )
    field_order = ("call", "useful", "real", "false", "note")


@admin.register(Verdict)
class VerdictAdmin(AuditedAdmin):
    noun = "verdict"
    paginator = InfinitePaginator
    show_full_result_count = False
    list_per_page = 40
    list_display = ("at_shown", "model", "collection", "useful_shown", "claims_shown", "judge", "note_shown", "replaced_shown")
    list_display_links = ("at_shown",)
    list_filter = (
        ("current", BooleanRadioFilter),
        ("useful", BooleanRadioFilter),
        ("collection", FieldTextFilter),
        ("model", FieldTextFilter),
        ("judge", FieldTextFilter),
        ("at", RangeDateTimeFilter),
    )
    search_fields = ("call__exact", "model__exact", "note")
    search_help_text = "Call id, model, or words of the note"
    actions_list = ("records_page",)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A verdict is replaced by another, never edited."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    # ------------------------------------------------------------------ the list

    @display(description="At", ordering="at")
    def at_shown(self, obj: Verdict) -> str:
        return f"{obj.at:%d %b %Y %H:%M}"

    @display(description="Useful", ordering="useful")
    def useful_shown(self, obj: Verdict) -> SafeString:
        word, tone = USEFUL[obj.useful]
        return format_html('<span class="bench-badge {}">{}</span>', tone, word)

    @display(description="Claims real, false")
    def claims_shown(self, obj: Verdict) -> str:
        return f"{len(obj.real)}, {len(obj.false)}"

    @display(description="Note")
    def note_shown(self, obj: Verdict) -> str:
        return obj.note if len(obj.note) <= 80 else f"{obj.note[:79]}…"

    @display(description="Standing")
    def replaced_shown(self, obj: Verdict) -> str:
        return "current" if obj.current else "replaced"

    # ------------------------------------------------------------------ one verdict, a new one

    def changeform_view(self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        if object_id is None:
            return self.new_page(request)
        obj = self.row(request, object_id)
        if not self.has_view_permission(request, obj):
            raise PermissionDenied
        told = [{"verdict": v, "useful": USEFUL[v.useful]} for v in reversed(verdicts.history_of_call(obj.call))]
        return self.page(
            request,
            "admin/bench/verdict.html",
            f"Verdicts on {obj.model}",
            subtitle=obj.call,
            verdict=obj,
            history=told,
            back=reverse("admin:panels_verdict_changelist"),
            panel_url=panel_url(request, obj.call),
        )

    def new_page(self, request: HttpRequest) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = CallVerdictForm(request.POST if request.method == "POST" else None, initial={"call": request.GET.get("call", "")})
        if form.is_valid() and (kept := judge_call(request, form.cleaned_data["call"].strip(), form)):
            self.say(request, "The verdict is kept.")
            return HttpResponseRedirect(reverse("admin:panels_verdict_change", args=[kept.id]))
        return self.page(request, "admin/bench/verdict_new.html", "Record a verdict", form=form, back=reverse("admin:panels_verdict_changelist"))

    @action(description="Records", url_path="records", icon="leaderboard", permissions=["view"])
    def records_page(self, request: HttpRequest) -> HttpResponse:
        """The record of every collection that was judged, or of one."""
        wanted = request.GET.get("collection")
        names = records.judged_collections()
        shown = wanted if wanted is not None else next((n for n in names if n), names[0] if names else "")
        return self.page(
            request,
            "admin/bench/record.html",
            "Records",
            names=names,
            shown=shown,
            rows=record_rows(shown),
            half_life=half_life_told(records.half_life_days()),
            back=reverse("admin:panels_verdict_changelist"),
        )


def panel_url(request: HttpRequest, call: str) -> str:
    """Where a call's panel stands, for those who may see it."""
    from panels.admin.asked import PanelAdmin
    from panels.models import Panel

    site = admin.site
    panels_admin = PanelAdmin(Panel, site)
    if not panels_admin.has_view_permission(request):
        return ""
    found = panels_admin.get_queryset(request).filter(seats__call=call).first()
    return f"{reverse('admin:panels_panel_change', args=[quote(found.pk)])}#{call}" if found else ""


def record_rows(collection: str) -> list[dict[str, Any]]:
    """A collection's record as the page draws it, the most useful first."""
    return drawn(records.record_of(collection, timezone.now()))


def standing_rows(stands: Standing) -> dict[str, Any]:
    """How a collection stands as its page draws it."""
    together = stands.independence
    pairs = [
        {
            "pair": p,
            "observed": f"{p.both_wrong / p.panels:.0%}",
            "expected": f"{p.expected:.0%}",
            "phi": "" if p.phi is None else f"{p.phi:.2f}",
            "odds": "" if p.odds_ratio is None else f"{p.odds_ratio:.1f} ({p.odds_low:.1f}–{p.odds_high:.1f})",
            "shared": bar(p.shared),
        }
        for p in together.pairs[:PAIRS_SHOWN]
    ]
    left = len(together.pairs) - len(pairs)
    return {"rows": drawn(stands.record), "suggestions": stands.suggestions, "together": together, "pairs": pairs, "pairs_left": left}


def half_life_told(days: float) -> str:
    """Says how verdicts age."""
    return f"A verdict weighs half after {days:g} days." if days else "Verdicts do not age."


def drawn(found: list[Record]) -> list[dict[str, Any]]:
    found = sorted(found, key=lambda r: (-r.useful.mean, r.model))
    return [
        {"record": r, "useful": bar(r.useful), "wrong": bar(r.confidently_wrong), "real": number(r.real), "false": number(r.false), "weight": number(r.weight)}
        for r in found
    ]


def number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def bar(rate: Rate) -> dict[str, Any]:
    """A rate drawn: the interval as a bar, the mean as a mark. Units: percent of the width."""
    low, mean, high = (round(100 * share, 1) for share in (rate.low, rate.mean, rate.high))
    return {
        "low": low,
        "mean": mean,
        "width": round(max(high - low, 0.5), 1),
        "text": f"{mean:.0f}%",
        "interval": f"{low:.0f}–{high:.0f}%",
        "counted": f"{number(rate.counted_yes)} of {number(rate.counted)}",
        "known": rate.counted > 0,
    }
