"""Admin pages of users and of the audit trail."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import ChoicesDropdownFilter, FieldTextFilter, RangeDateTimeFilter
from unfold.forms import AdminPasswordChangeForm
from unfold.paginator import InfinitePaginator
from unfold.widgets import UnfoldAdminRadioSelectWidget

from access import people, signin
from access.admin.audited import AuditedAdmin, ReadOnly, moment
from access.admin.typed import action, display
from access.models import AuditEntry, Role, User

# A role says what a user may do; groups would be a second answer to the same question.
admin.site.unregister(Group)


class UserForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = User
        fields = ("username", "role", "team", "first_name", "last_name", "email", "is_active")
        widgets = {"role": UnfoldAdminRadioSelectWidget()}
        help_texts = {
            "username": "Verdicts and panels are kept under it.",
            "is_active": "Switch off instead of deleting: what the user did keeps its name.",
        }

    def clean(self) -> dict[str, Any]:
        """Somebody must be left who may let others in."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        was_admin = self.instance.pk is not None and people.role_of(User.objects.get(pk=self.instance.pk)) == Role.ADMIN
        if was_admin and (cleaned.get("role") != Role.ADMIN or not cleaned.get("is_active")) and not others_administer(self.instance):
            raise forms.ValidationError("This is the last active admin. Make another user admin first.")
        return cleaned


def others_administer(user: User) -> bool:
    return User.objects.filter(role=Role.ADMIN, is_active=True).exclude(pk=user.pk).exists()


@admin.register(User)
class UserAdmin(AuditedAdmin, DjangoUserAdmin):  # type: ignore[misc, type-arg]
    """Users have a role instead of permissions, and sign in by link; a password is for those who want one."""

    noun = "user"
    form = UserForm
    add_form = UserForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "full_name", "role_shown", "active_shown", "last_seen")
    list_filter = (("role", ChoicesDropdownFilter), "is_active")
    search_fields = ("username", "first_name", "last_name", "email")
    search_help_text = "Name or e-mail"
    ordering = ("username",)
    filter_horizontal = ()
    actions_detail = ("sign_in_link", "set_password")
    readonly_fields = ("username_fixed", "last_seen", "joined")
    fieldsets = (
        (None, {"fields": ("username_fixed", "role", "team", "is_active")}),
        ("Person", {"fields": (("first_name", "last_name"), "email")}),
        ("Dates", {"fields": (("last_seen", "joined"),)}),
    )
    add_fieldsets = (
        (
            None,
            {"fields": ("username", "role", "team", "is_active"), "description": "They sign in with a link that you make on their page next; it works once."},
        ),
        ("Person", {"fields": (("first_name", "last_name"), "email")}),
    )

    @display(description="Name")
    def full_name(self, obj: User) -> str:
        return obj.get_full_name()

    @display(description="Username")
    def username_fixed(self, obj: User) -> str:
        """Panels and verdicts stand under it as text: another name would lose them, or find somebody else's."""
        return obj.username

    @display(description="Last sign-in", ordering="last_login")
    def last_seen(self, obj: User) -> str:
        return moment(obj.last_login) or "never"

    @display(description="Added")
    def joined(self, obj: User) -> str:
        return moment(obj.date_joined)

    @display(description="Role", ordering="role", label={"Viewer": None, "Judge": "info", "Operator": "primary", "Admin": "warning"})
    def role_shown(self, obj: User) -> str:
        return str(Role(people.role_of(obj)).label).partition(":")[0]

    @display(description="Active", boolean=True, ordering="is_active")
    def active_shown(self, obj: User) -> bool:
        return obj.is_active

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        return super(DjangoUserAdmin, self).get_form(request, obj, change=change, **kwargs)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        if not change:
            obj.set_unusable_password()
        # The admin lets in staff only; here everybody has a role, and the role says what they see.
        obj.is_staff = True
        super().save_model(request, obj, form, change)

    def audited(self, obj: User) -> dict[str, Any]:
        return {name: getattr(obj, name) for name in ("username", "role", "team", "first_name", "last_name", "email", "is_active")}

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody removes the account they sit in, nor the last admin."""
        if isinstance(obj, User) and (obj.pk == request.user.pk or (people.role_of(obj) == Role.ADMIN and not others_administer(obj))):
            return False
        return super().has_delete_permission(request, obj)

    def get_actions(self, request: HttpRequest) -> Any:
        """Deleting goes one at a time, where the guards above look at each."""
        found = super().get_actions(request)
        found.pop("delete_selected", None)
        return found

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        response = super().user_change_password(request, id, form_url)
        if request.method == "POST" and response.status_code == 302:
            self.record(request, "password", self.row(request, id), {"password": ["", "set"]})
        return response

    def response_add(self, request: HttpRequest, obj: User, post_url_continue: str | None = None) -> HttpResponse:
        self.say(request, f"User {obj.username} is saved. Make a sign-in link, and send it to them.")
        return self.to_change(obj)

    @action(description="Sign-in link", url_path="sign-in-link", icon="link", permissions=["change"])
    def sign_in_link(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Asks first (a page that is only opened must make nothing), then shows the link once."""
        obj = self.row(request, object_id)
        if not self.has_change_permission(request, obj):
            raise PermissionDenied
        link = ""
        if request.method == "POST" and obj.is_active:
            link = signin.make_link(obj, request.build_absolute_uri(reverse("admin:index")).removesuffix("/admin/"), timezone.now())
            self.record(request, "signin_link_made", obj)
        return self.page(
            request,
            "admin/bench/sign_in_link.html",
            f"Sign-in link for {obj.username}",
            person=obj,
            link=link,
            back=reverse("admin:access_user_change", args=[obj.pk]),
        )

    @action(description="Set password", url_path="set-password", icon="password", permissions=["change"])
    def set_password(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:auth_user_password_change", args=[self.row(request, object_id).pk]))


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly, AuditedAdmin):
    noun = "audit entry"
    paginator = InfinitePaginator
    show_full_result_count = False
    list_display = ("at_shown", "actor", "action", "target", "what_changed", "reason")
    list_display_links = ("at_shown",)
    list_filter = (("actor", FieldTextFilter), ("action", FieldTextFilter), ("at", RangeDateTimeFilter))
    search_fields = ("target", "reason")
    search_help_text = "What was written, or the reason"
    fields = ("at_shown", "actor", "action", "target", "reason", "changes_shown")
    readonly_fields = fields

    @display(description="At", ordering="at")
    def at_shown(self, obj: AuditEntry) -> str:
        return f"{obj.at:%d %b %Y %H:%M:%S}"

    @display(description="Changed")
    def what_changed(self, obj: AuditEntry) -> str:
        return ", ".join(list(obj.changes)[:6])

    @display(description="Changes")
    def changes_shown(self, obj: AuditEntry) -> SafeString | str:
        if not obj.changes:
            return "none"
        rows = format_html_join("", "<tr><th>{}</th><td>{}</td><td>{}</td></tr>", ((name, *told(pair)) for name, pair in obj.changes.items()))
        return format_html(
            '<table class="bench-table is-lines"><thead><tr><th>Field</th><th>Before</th><th>After</th></tr></thead><tbody>{}</tbody></table>', rows
        )


def told(pair: Any) -> tuple[str, str]:
    """One change as two texts, whatever wrote it."""
    before, after = pair if isinstance(pair, list) and len(pair) == 2 else ("", pair)
    return written(before), written(after)


def written(value: Any) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False, indent=1)
