"""Admin pages of backends: where scorers and model code run, and what their sandboxes may use."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone
from unfold.widgets import UnfoldAdminSelectWidget

from access.admin.audited import AuditedAdmin
from access.admin.typed import display
from suite import backends
from suite.models import Backend


class BackendForm(forms.ModelForm):  # type: ignore[type-arg]
    kind = forms.ChoiceField(choices=[(kind, kind) for kind in backends.KINDS], widget=UnfoldAdminSelectWidget)

    class Meta:
        model = Backend
        fields = ("name", "kind", "settings", "is_default")

    def clean_settings(self) -> dict[str, int]:
        try:
            return backends.check(self.cleaned_data["settings"] or {})
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None


@admin.register(Backend)
class BackendAdmin(AuditedAdmin):
    """A launch names a backend by `compute`; one is the default. This machine's own sandbox, local-bwrap, is there without a row."""

    noun = "backend"
    form = BackendForm
    list_display = ("name", "kind", "is_default", "standing", "caps")
    search_fields = ("name",)

    @display(description="Status", label={"Ready": "success", "Not available": "danger"})
    def standing(self, obj: Backend) -> str:
        return "Not available" if backends.trouble(obj.kind) else "Ready"

    @display(description="Sandbox")
    def caps(self, obj: Backend) -> str:
        return ", ".join(f"{name} {value}" for name, value in {**backends.defaults(), **backends.caps_of(obj.name)}.items())

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("name",) if obj is not None else ()

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if not change:
            obj.created_at = timezone.now()
        super().save_model(request, obj, form, change)
        if obj.is_default:
            Backend.objects.exclude(pk=obj.pk).update(is_default=False)
