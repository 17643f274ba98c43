"""Admin pages of panels: what was asked, what every seat answered, and the verdicts, recorded right at the seat."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST
from unfold.contrib.filters.admin import ChoicesDropdownFilter, FieldTextFilter, RangeDateTimeFilter
from unfold.paginator import InfinitePaginator
from unfold.views import ChangeList
from unfold.widgets import UnfoldAdminRadioSelectWidget, UnfoldAdminTextareaWidget

from access.admin.audited import AuditedAdmin, ReadOnly, actor, caller
from access.admin.typed import display
from access.fields import FieldError
from health import sums
from health.costs import usd_text
from panels import history, lookup, verdicts
from panels.models import Panel, Seat
from wire.errors import CallerError

GOOD = ("ok", "complete", "active")
HALF = ("partial", "truncated", "degraded", "running", "cancelled")


def badge(status: str) -> SafeString:
    """A status as people see it: green, amber or red, and always in words too."""
    return format_html('<span class="bench-badge {}">{}</span>', tone(status), status.replace("_", " "))


def tone(status: str) -> str:
    return "is-good" if status in GOOD else "is-warn" if status in HALF else "is-plain" if status == "skipped" else "is-bad"


class VerdictForm(forms.Form):
    """A verdict as a person types it: claims one a line."""

    useful = forms.ChoiceField(
        label="Useful", choices=[("true", "Yes"), ("false", "No"), ("", "Cannot say")], required=False, widget=UnfoldAdminRadioSelectWidget(radio_style=1)
    )
    real = forms.CharField(
        label="Claims that hold", required=False, widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}), help_text="One a line: what it found that is true."
    )
    false = forms.CharField(
        label="Claims that do not", required=False, widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}), help_text="One a line: what it stated and is wrong."
    )
    note = forms.CharField(label="Note", required=False, widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}))

    def verdict(self) -> dict[str, Any]:
        """The fields as `panels.verdicts` takes them."""
        said = self.cleaned_data
        return {
            "useful": {"true": True, "false": False}.get(said["useful"]),
            "note": said["note"],
            "real": [line.strip() for line in said["real"].splitlines() if line.strip()],
            "false": [line.strip() for line in said["false"].splitlines() if line.strip()],
        }


def form_of(call: str, mine: verdicts.VerdictValue | None, data: Any = None) -> VerdictForm:
    """The form of one seat, filled with what this judge said before."""
    initial = (
        {
            "useful": {True: "true", False: "false"}.get(mine.useful, ""),  # type: ignore[arg-type]
            "real": "\n".join(mine.real),
            "false": "\n".join(mine.false),
            "note": mine.note,
        }
        if mine
        else None
    )
    return VerdictForm(data, initial=initial, prefix=call, use_required_attribute=False)


def judge_call(request: HttpRequest, call: str, form: VerdictForm) -> verdicts.VerdictValue | None:
    """Keeps what the form says in the user's name ; what is refused stands in the form."""
    if not form.is_valid():
        return None
    said = form.verdict()
    try:
        kept = verdicts.record_verdict(actor(request), call, said["useful"], said["note"], said["real"], said["false"], timezone.now())
    except (CallerError, FieldError) as error:
        field = (getattr(error, "field", "") or "").partition("[")[0]
        form.add_error(field if field in form.fields else None, str(error))
        return None
    return kept


class PanelChangeList(ChangeList):  # type: ignore[misc]
    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows: list[Any] = list(self.result_list)  # type: ignore[has-type]
        self.result_list = sum_up(rows)


def sum_up(rows: list[Any]) -> list[Any]:
    """Puts the seats' statuses and the calls' costs beside each panel, in two queries however many there are."""
    ids = [row.pk for row in rows]
    statuses: dict[str, list[str]] = {}
    for panel_id, status in Seat.objects.filter(panel__in=ids).values_list("panel_id", "status"):
        statuses.setdefault(panel_id, []).append(status)
    costs: dict[str, list[int | None]] = {}
    for attempt in sums.attempts_of_panels(ids):
        costs.setdefault(attempt.panel, []).append(attempt.cost_pusd)
    for row in rows:
        row.bench_seats, row.bench_costs = statuses.get(row.pk, []), costs.get(row.pk, [])
    return rows


@admin.register(Panel)
class PanelAdmin(ReadOnly, AuditedAdmin):
    """Operators see every panel; a judge sees those that were asked in the judge's name."""

    noun = "panel"
    paginator = InfinitePaginator
    show_full_result_count = False
    list_per_page = 40
    list_display = ("asked_at_shown", "collection", "mode", "status_shown", "judge", "seats_shown", "cost_shown", "seconds_shown")
    list_display_links = ("asked_at_shown",)
    list_filter = (
        ("status", ChoicesDropdownFilter),
        ("collection", FieldTextFilter),
        ("judge", FieldTextFilter),
        ("mode", FieldTextFilter),
        ("asked_at", RangeDateTimeFilter),
    )
    search_fields = ("id__exact", "collection__exact")
    search_help_text = "Panel id, call id or collection"

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return PanelChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Panel]:
        rows: QuerySet[Panel] = super().get_queryset(request).defer("prompt")
        asks = caller(request)
        return rows if asks.may("operate") else rows.filter(**lookup.asked_by(asks))

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Panel], search_term: str) -> tuple[QuerySet[Panel], bool]:
        """A call's id is looked up on its own: joined with the rest it would read every seat."""
        of_call = Seat.objects.filter(pk=search_term.strip()).values_list("panel_id", flat=True).first() if search_term else None
        if of_call is not None:
            return queryset.filter(pk=of_call), False
        found: tuple[QuerySet[Panel], bool] = super().get_search_results(request, queryset, search_term)
        return found

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_see_panels(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return may_see_panels(request)

    # ------------------------------------------------------------------ the list

    @display(description="Asked at", ordering="asked_at")
    def asked_at_shown(self, obj: Panel) -> str:
        return f"{obj.asked_at:%d %b %Y %H:%M:%S}"

    @display(description="Status", ordering="status")
    def status_shown(self, obj: Panel) -> SafeString:
        return badge(obj.status)

    @display(description="Seats ok")
    def seats_shown(self, obj: Any) -> str:
        return f"{sum(s == 'ok' for s in obj.bench_seats)} of {len(obj.bench_seats)}"

    @display(description="Cost")
    def cost_shown(self, obj: Any) -> str:
        return total(obj.bench_costs)

    @display(description="Seconds")
    def seconds_shown(self, obj: Panel) -> str:
        return "" if obj.seconds is None else f"{obj.seconds:.1f}"

    # ------------------------------------------------------------------ one panel

    def get_urls(self) -> Any:
        from django.urls import path

        judge = self.admin_site.admin_view(require_POST(self.judge_view))
        return [path("<str:panel_id>/judge/<str:call>/", judge, name="panels_panel_judge"), *super().get_urls()]

    def changeform_view(self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        return self.panel_page(request, self.row(request, object_id))

    def judge_view(self, request: HttpRequest, panel_id: str, call: str) -> HttpResponse:
        """Records the verdict that a seat's form holds; what is refused comes back with the page."""
        obj = self.row(request, panel_id)
        if not request.user.has_perm("panels.add_verdict"):
            raise PermissionDenied
        if not obj.seats.filter(pk=call).exists():
            raise Http404("This panel has no such seat.")
        form = form_of(call, None, request.POST)
        if judge_call(request, call, form) is None:
            return self.panel_page(request, obj, refused={call: form}, status=400)
        self.say(request, "The verdict is kept.")
        return HttpResponseRedirect(reverse("admin:panels_panel_change", args=[quote(obj.pk)]) + f"#{call}")

    def panel_page(self, request: HttpRequest, obj: Panel, refused: dict[str, VerdictForm] | None = None, status: int = 200) -> HttpResponse:
        if not self.has_view_permission(request, obj):
            raise PermissionDenied
        found = history.panel(obj.pk)
        if found is None:
            raise Http404("There is no such panel.")
        judges = request.user.has_perm("panels.add_verdict")
        seats = []
        for seat in found["seats"]:
            mine = next((v for v in seat["verdicts"] if v.judge == actor(request)), None)
            form = (refused or {}).get(seat["call"]) or form_of(seat["call"], mine)
            seats.append(
                {
                    **seat,
                    "tone": tone(seat["status"]),
                    "status_said": seat["status"].replace("_", " "),
                    "form": form if judges and seat["status"] != "skipped" else None,
                    "mine": mine,
                }
            )
        response = self.page(
            request,
            "admin/bench/panel.html",
            f"Panel of {found['collection'] or found['mode']}",
            subtitle=obj.pk,
            panel={**found, "seats": seats},
            tone=tone(found["status"]),
            seconds="still running" if found["seconds"] is None else f"{found['seconds']:.2f}",
            turns=turns(found["prompt"]),
            back=reverse("admin:panels_panel_changelist"),
            refused=refused,
        )
        response.status_code = status
        return response


def may_see_panels(request: HttpRequest) -> bool:
    """Whoever judges sees the panels asked in that name; the query says which."""
    return request.user.is_active and caller(request).may("judge")


def total(costs: list[int | None]) -> str:
    """A sum of exact costs; what has no price makes the sum unknown, as in the gateway's replies."""
    if not costs:
        return ""
    if None in costs:
        return "unknown"
    return f"${usd_text(sum(c for c in costs if c is not None))}"


def turns(prompt: Any) -> list[tuple[str, str]] | None:
    """A kept conversation as role and text; None where retention took it. What is no text is named, or shown as its JSON."""
    if prompt is None:
        return None
    if not isinstance(prompt, list):
        return [("prompt", prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=False, indent=1))]
    return [(str(turn.get("role", "?")), text_of(turn.get("content"))) for turn in prompt if isinstance(turn, dict)]


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_of(part) for part in content)
    if not isinstance(content, dict):
        return "" if content is None else str(content)
    if isinstance(content.get("text"), str):
        return str(content["text"])
    if "data" in content or "url" in content:  # an image or a file: named, for its bytes tell nobody anything here
        return f"[{content.get('type', 'file')} {content.get('name') or content.get('url') or content.get('media_type') or ''}]"
    return json.dumps(content, ensure_ascii=False, indent=1)
