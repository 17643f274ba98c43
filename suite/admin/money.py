"""Admin pages of grants and of what teams have set: to read, and to grant."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminDecimalFieldWidget, UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from access.admin.audited import AuditedAdmin, ReadOnly, actor, moment
from access.admin.typed import display
from suite.billing import accounts
from suite.models import Grant, TeamSetting


class GrantForm(forms.ModelForm):  # type: ignore[type-arg]
    team = forms.CharField(
        label="Account",
        max_length=accounts.LONGEST,
        widget=UnfoldAdminTextInputWidget,
        help_text="A team, as in team:platform, or somebody without one, as in owner:kim.",
    )
    kind = forms.ChoiceField(choices=[(kind, kind) for kind in accounts.KINDS], widget=UnfoldAdminSelectWidget)
    amount_usd = forms.DecimalField(
        label="US dollars",
        max_digits=14,
        decimal_places=6,
        widget=UnfoldAdminDecimalFieldWidget,
        help_text="For example 50. From the first grant on an account spends no more than it was granted. An adjustment may be below 0.",
    )

    class Meta:
        model = Grant
        fields = ("team", "kind", "amount_usd", "note")

    def clean_team(self) -> str:
        try:
            return accounts.read(self.cleaned_data["team"].strip()).key
        except accounts.AccountUnknown:
            raise forms.ValidationError("It reads like team:platform or owner:kim.") from None

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        amount = cleaned.get("amount_usd", Decimal(1))
        if not amount or (amount < 0 and cleaned.get("kind") != "adjustment"):
            self.add_error("amount_usd", "It must be above 0; only an adjustment may be below.")
        return cleaned


@admin.register(Grant)
class GrantAdmin(AuditedAdmin):
    """Grants are never changed: what was wrong is corrected by an adjustment."""

    noun = "grant"
    form = GrantForm
    list_display = ("team", "kind", "amount", "note", "created_by", "made_at")
    search_fields = ("team", "note")
    list_filter = ("kind",)
    ordering = ("-created_at", "-id")

    @display(description="US dollars", ordering="amount_usd")
    def amount(self, obj: Grant) -> str:
        return f"{obj.amount_usd.normalize():f}"

    @display(description="Made", ordering="created_at")
    def made_at(self, obj: Grant) -> str:
        return moment(obj.created_at)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Grant, form: Any, change: bool) -> None:
        said = form.cleaned_data
        made = accounts.grant(accounts.read(said["team"]), said["kind"], said["amount_usd"], said["note"], actor(request))
        obj.pk = made.pk

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """A grant has nothing related, and `suite.billing` has told the audit trail."""


@admin.register(TeamSetting)
class TeamSettingAdmin(ReadOnly, AuditedAdmin):
    """What teams have set, by `PUT /v1/settings/<key>` and by billing's controls."""

    noun = "team_setting"
    list_display = ("team", "name", "value", "changed_by", "changed_at")
    search_fields = ("team", "name")
