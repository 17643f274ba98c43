"""Admin pages of budgets, each with what is spent of it, and of alerts."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import ChoicesDropdownFilter, DropdownFilter
from unfold.paginator import InfinitePaginator
from unfold.views import ChangeList
from unfold.widgets import UnfoldAdminDecimalFieldWidget, UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from access import budgets, fields
from access.admin.audited import AuditedAdmin, ReadOnly, actor
from access.admin.typed import display
from access.models import Budget
from health import alerts
from health import budgets as money
from health.budgets import Standing
from health.costs import usd_text
from health.models import Alert

NEARLY = 80


class BudgetForm(forms.ModelForm):  # type: ignore[type-arg]
    """A budget's fields as people type them; `access.budgets` decides what they may hold."""

    kind = forms.ChoiceField(choices=Budget.Kind.choices, widget=UnfoldAdminSelectWidget)
    name = forms.CharField(max_length=200, widget=UnfoldAdminTextInputWidget, help_text="The owner's, team's or collection's name, for example platform.")
    budget_usd = forms.DecimalField(
        label="Monthly budget, $",
        min_value=0,
        max_digits=14,
        decimal_places=6,
        widget=UnfoldAdminDecimalFieldWidget,
        help_text="US dollars a calendar month, for example 250. What was spent this month before counts. Models of unknown price are then refused.",
    )
    alert_at = forms.CharField(
        label="Alert at, percent",
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="With commas between, for example 50, 80, 100. Empty: 80, 100.",
    )

    class Meta:
        model = Budget
        fields = budgets.FIELDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        row = kwargs.get("instance")
        if row is not None and row.pk is not None:
            said = {"alert_at": ", ".join(str(percent) for percent in row.alert_at), "budget_usd": f"{row.budget_usd.normalize():f}"}
            kwargs["initial"] = {**said, **(kwargs.get("initial") or {})}
        super().__init__(*args, **kwargs)
        if row is not None and row.pk is not None:
            for name in ("kind", "name"):
                del self.fields[name]

    def clean_alert_at(self) -> list[int]:
        said = [part.strip().removesuffix("%").strip() for part in self.cleaned_data["alert_at"].split(",") if part.strip()]
        try:
            return budgets.alerts("alert_at", [int(part) if part.isascii() and part.isdigit() and len(part) < 6 else part for part in said])
        except fields.FieldError as error:
            raise forms.ValidationError(f"Each {error.message}") from None

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if "name" in cleaned:
            try:
                cleaned["name"] = fields.name("name", cleaned["name"])
            except fields.FieldError as error:
                self.add_error("name", f"It {error.message}")
            if (str(cleaned.get("kind")), cleaned["name"]) in budgets.load().by_name:
                self.add_error("name", "It has a budget already. Change that one.")
        return cleaned

    def _post_clean(self) -> None:
        """The room's own rules have looked at every field; Django's would ask a JSON column for JSON."""
        for name in self.fields:
            if name in self.cleaned_data:
                setattr(self.instance, name, self.cleaned_data[name])


class BudgetChangeList(ChangeList):  # type: ignore[misc]
    """Adds how they stand to the rows of one page, in five queries."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows: list[Any] = list(self.result_list)  # type: ignore[has-type]
        found = money.standings([budgets.limit_of(row) for row in rows], timezone.now())
        for row, standing in zip(rows, found, strict=True):
            row.bench_standing = standing
        self.result_list = rows


def standing_of(obj: Any) -> Standing:
    found = getattr(obj, "bench_standing", None)
    return found or money.standings([budgets.limit_of(obj)], timezone.now())[0]


@admin.register(Budget)
class BudgetAdmin(AuditedAdmin):
    noun = "budget"
    form = BudgetForm
    list_display = ("name", "kind_shown", "amount", "spent", "left", "share", "alerts_shown")
    list_filter = (("kind", ChoicesDropdownFilter),)
    search_fields = ("name",)
    search_help_text = "Owner, team or collection"
    readonly_fields = ("kind_shown", "name_shown", "amount", "alerts_shown", "spent", "left", "begins_anew")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return BudgetChangeList

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return ((None, {"fields": ("kind", "name", "budget_usd", "alert_at")}),)
        may = self.has_change_permission(request, obj)
        return (
            (None, {"fields": ("kind_shown", "name_shown", *(("budget_usd", "alert_at") if may else ("amount", "alerts_shown")))}),
            ("This month", {"fields": ("spent", "left", "begins_anew")}),
        )

    @display(description="Of", ordering="kind")
    def kind_shown(self, obj: Budget) -> str:
        return obj.kind

    @display(description="Name")
    def name_shown(self, obj: Budget) -> str:
        return obj.name

    @display(description="Budget", ordering="budget_usd")
    def amount(self, obj: Budget) -> str:
        return f"${obj.budget_usd.normalize():f} a month"

    @display(description="Spent")
    def spent(self, obj: Budget) -> str:
        found = standing_of(obj)
        held = f" and ${usd_text(found.reserved_pusd)} reserved" if found.reserved_pusd else ""
        return f"${usd_text(found.spent_pusd)}{held}"

    @display(description="Left")
    def left(self, obj: Budget) -> str:
        return f"${usd_text(standing_of(obj).left_pusd)}"

    @display(description="Share")
    def share(self, obj: Budget) -> SafeString:
        found = standing_of(obj)
        percent = 100 * found.spent_pusd // found.cap_pusd if found.cap_pusd else 100
        tone = "is-bad" if percent >= 100 else "is-warn" if percent >= NEARLY else "is-good"
        return format_html('<span class="bench-badge {}">{}%</span>', tone, percent)

    @display(description="Alerts at")
    def alerts_shown(self, obj: Budget) -> str:
        return ", ".join(f"{percent}%" for percent in obj.alert_at)

    @display(description="Begins anew")
    def begins_anew(self, obj: Budget) -> str:
        return f"{standing_of(obj).resets_at:%d %b %Y %H:%M}"

    def save_model(self, request: HttpRequest, obj: Budget, form: Any, change: bool) -> None:
        given = {name: form.cleaned_data[name] for name in form.fields}
        if change:
            budgets.change(obj.kind, obj.name, given, actor(request))
        else:
            made = budgets.make(given, actor(request))
            obj.pk = budgets.row_of(made.kind, made.name).pk

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """A budget has nothing related, and `access.budgets` has told the audit trail."""

    def delete_model(self, request: HttpRequest, obj: Budget) -> None:
        budgets.delete(obj.kind, obj.name, actor(request))


class SeenFilter(DropdownFilter):  # type: ignore[misc]
    title = "seen"
    parameter_name = "seen"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("no", "Nobody has seen it"), ("yes", "Somebody has")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Alert]) -> QuerySet[Alert]:
        return queryset.filter(seen_at__isnull=self.value() == "no") if self.value() in ("no", "yes") else queryset


@admin.register(Alert)
class AlertAdmin(ReadOnly, AuditedAdmin):
    noun = "alert"
    paginator = InfinitePaginator
    show_full_result_count = False
    list_display = ("at_shown", "kind", "subject", "message", "seen_shown")
    list_display_links = ("at_shown",)
    list_filter = (SeenFilter,)
    search_fields = ("subject",)
    search_help_text = "What it is about"
    fields = ("at_shown", "kind", "subject", "message", "seen_shown")
    readonly_fields = fields
    actions = ("see_selected",)

    @display(description="At", ordering="at")
    def at_shown(self, obj: Alert) -> str:
        return f"{obj.at:%d %b %Y %H:%M}"

    @display(description="Seen")
    def seen_shown(self, obj: Alert) -> SafeString | str:
        if obj.seen_at is None:
            return format_html('<span class="bench-badge is-warn">{}</span>', "new")
        return f"{obj.seen_at:%d %b %H:%M} by {obj.seen_by}"

    def has_see_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("health.change_alert")

    @admin.action(description="Mark as seen", permissions=["see"])
    def see_selected(self, request: HttpRequest, queryset: QuerySet[Alert]) -> None:
        for alert in queryset.filter(seen_at=None):
            alerts.see(alert.pk, actor(request))
        self.say(request, "Marked as seen.")
