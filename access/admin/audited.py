"""What every page of the admin shares: each write goes to the audit trail, and only there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any, ClassVar, cast
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.admin import ShowFacets
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import conditional_escape, escape
from django.utils.safestring import SafeString, mark_safe
from unfold.admin import ModelAdmin, checkbox

from access import audit
from access.admin.typed import display
from access.caller import Caller
from access.models import User
from access.people import caller_of_user


@cache
def drawn_box() -> tuple[str, str]:
    """What stands before and after the value of a row's box."""
    before, _, after = str(checkbox.render(ACTION_CHECKBOX_NAME, "value-of-a-row")).partition("value-of-a-row")
    return before, after


def caller(request: HttpRequest) -> Caller:
    """Who is signed in. The admin lets nobody else in."""
    assert isinstance(request.user, User)
    return caller_of_user(request.user)


def actor(request: HttpRequest) -> str:
    """Who the audit trail names."""
    return request.user.get_username()


class AuditedAdmin(ModelAdmin):  # type: ignore[misc]
    """A model's pages, whose writes are recorded as `<noun>.add`, `.change`, `.delete` with what each field was and became.

    Django's own log of changes is not kept besides: one trail, in one place.
    """

    noun: ClassVar[str] = ""
    compressed_fields = True
    warn_unsaved_form = True
    list_filter_submit = True
    list_per_page = 40
    show_full_result_count = True
    # Counts beside every filter would read whole tables.
    show_facets = ShowFacets.NEVER

    @display(description=mark_safe(checkbox.render("action_toggle_all", 1)))  # noqa: S308  # unfold's own box above them
    def action_checkbox(self, obj: models.Model) -> SafeString:
        """The box of one row: drawn once and filled in for each, since a page of boxes drawn one by one costs as much as its queries."""
        before, after = drawn_box()
        return mark_safe(f"{before}{escape(str(obj.pk))}{after}")  # noqa: S308  # around the one value, escaped here, stands what the widget drew

    # ------------------------------------------------------------------ what the trail holds

    def audited(self, obj: Any) -> dict[str, Any]:
        """The fields as the trail shows them. Rows with inlines or secrets say theirs themselves."""
        return {field.name: field.value_from_object(obj) for field in obj._meta.concrete_fields if field.editable and not isinstance(field, models.AutoField)}

    def target(self, obj: Any) -> str:
        """How the trail names a row."""
        return str(obj)

    def record(self, request: HttpRequest, action: str, obj: Any, changes: Mapping[str, Any] | None = None, reason: str = "") -> None:
        """Writes one entry of the trail."""
        audit.record(actor(request), f"{self.noun}.{action}", self.target(obj), changes or {}, reason)

    def stored(self, pk: Any) -> dict[str, Any]:
        """What the database holds of a row now, as the trail shows it."""
        row = self.model._default_manager.filter(pk=pk).first()
        return {} if row is None else self.audited(row)

    # ------------------------------------------------------------------ Django's hooks

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool) -> None:
        request._bench_before = self.stored(obj.pk) if change else {}  # type: ignore[attr-defined]
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: ModelForm[Any], formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        changes = audit.diff(request._bench_before, self.stored(form.instance.pk))  # type: ignore[attr-defined]
        if changes or not change:
            self.record(request, "change" if change else "add", form.instance, changes)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        before, target = self.stored(obj.pk), self.target(obj)
        with transaction.atomic():
            super().delete_model(request, obj)
            audit.record(actor(request), f"{self.noun}.delete", target, audit.diff(before, {}))

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        with transaction.atomic():
            for obj in queryset:
                self.delete_model(request, obj)

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> None:
        """The audit trail has it already."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> None:
        """The audit trail has it already."""

    def log_deletions(self, request: HttpRequest, queryset: Any) -> None:
        """The audit trail has it already."""

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Shows the audit trail of this row."""
        obj = self.row(request, object_id)
        if not request.user.has_perm("access.view_auditentry"):
            raise PermissionDenied
        return HttpResponseRedirect(
            f"{reverse('admin:access_auditentry_changelist')}?{urlencode({'action__startswith': f'{self.noun}.', 'target': self.target(obj)})}"
        )

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> HttpResponse:
        context["show_history"] = request.user.has_perm("access.view_auditentry") and not isinstance(self, ReadOnly)
        # One way to save, and one to stay: three buttons of the same kind make people read.
        context["show_save_and_add_another"] = False
        return cast(HttpResponse, super().render_change_form(request, context, *args, **kwargs))

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Help texts are plain text (they say `bench/<name>`); unfold would take them for HTML."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and field.help_text:
            field.help_text = conditional_escape(field.help_text)
        return field

    # ------------------------------------------------------------------ pages of our own

    def row(self, request: HttpRequest, object_id: Any) -> Any:
        """The row of a page's address. Errors: Http404."""
        obj = self.get_object(request, unquote(str(object_id)))
        if obj is None:
            raise Http404(f"There is no such {self.opts.verbose_name}.")
        return obj

    def page(self, request: HttpRequest, template: str, title: str, **context: Any) -> TemplateResponse:
        """A page within the admin's frame."""
        request.current_app = self.admin_site.name
        return TemplateResponse(request, template, {**self.admin_site.each_context(request), "opts": self.opts, "title": title, **context})

    def to_change(self, obj: Any) -> HttpResponseRedirect:
        return HttpResponseRedirect(reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", args=[obj.pk]))

    def say(self, request: HttpRequest, text: str, good: bool = True) -> None:
        messages.add_message(request, messages.SUCCESS if good else messages.ERROR, text)


def moment(at: datetime | None) -> str:
    """A time as every page writes it. UTC."""
    return "" if at is None else f"{at:%d %b %Y %H:%M}"


class ReadOnly:
    """For what is written by the server alone: nobody adds, changes or deletes it here."""

    warn_unsaved_form = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
