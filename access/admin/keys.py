"""Admin pages of gateway keys. The secret is shown once, on the page that answers its making."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from unfold.contrib.filters.admin import DropdownFilter
from unfold.enums import ActionVariant
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminSplitDateTimeWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from access import fields, keys
from access.admin.audited import AuditedAdmin, actor, moment
from access.admin.typed import action, display
from access.caller import SUITE_SCOPES
from access.models import Key

SCOPES = [
    ("ask", "Ask: panels and models"),
    ("judge", "Judge: record verdicts"),
    ("read", "Read: lists, usage, status"),
    ("operate", "Operate: change the bench, see everybody’s panels"),
    ("admin", "Admin: users and keys too"),
    *((scope, f"Suite: {scope}") for scope in SUITE_SCOPES),
]
KEEP = [("", "As the collection says"), ("true", "Yes"), ("false", "No")]
CHANGEABLE = ("name", "owner", "team", "scopes", "collections", "models", "rpm", "tpm", "max_parallel", "budget_usd", "expires_at", "keep_text")


class Lines(forms.CharField):
    """A list typed one entry a line; nothing typed means no list."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "spellcheck": "false"}), **kwargs)

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> list[str] | None:
        lines = [line.strip() for line in (super().clean(value) or "").splitlines()]
        return [line for line in lines if line] or None

    def has_changed(self, initial: Any, data: Any) -> bool:
        return (initial or None) != self.clean(data)


def number(label: str, help_text: str) -> forms.IntegerField:
    return forms.IntegerField(label=label, help_text=help_text, required=False, min_value=1, widget=UnfoldAdminIntegerFieldWidget)


class KeyForm(forms.ModelForm):  # type: ignore[type-arg]
    """A key's fields as people type them; `access.fields` decides what they may hold."""

    name = forms.CharField(max_length=200, widget=UnfoldAdminTextInputWidget, help_text="What uses it, for example review-bot.")
    owner = forms.CharField(
        max_length=200,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="A user's name, or any other. Verdicts and panels by this key are the owner's; empty: the key's own.",
    )
    team = forms.CharField(
        max_length=200,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="Whose budget its calls count against besides the owner's and its own. Empty: no team's.",
    )
    scopes = forms.MultipleChoiceField(choices=SCOPES, initial=list(fields.DEFAULT_SCOPES), widget=UnfoldAdminCheckboxSelectMultipleWidget)
    collections = Lines(help_text="Collections it may ask, one a line, without bench/. With collections or models set, all else is refused.")
    models = Lines(help_text="Aliases it may ask, one a line, or prefixes like meta/*. Both empty: it may ask everything.")
    rpm = number("Requests a minute", "A panel is one request. Empty: no limit.")
    tpm = number("Tokens a minute", "In and out, all seats together. Empty: no limit.")
    max_parallel = number("Calls at once", "Empty: no limit.")
    budget_usd = forms.DecimalField(
        label="Monthly budget, $",
        required=False,
        min_value=0,
        max_digits=14,
        decimal_places=6,
        widget=UnfoldAdminDecimalFieldWidget,
        help_text="US dollars a calendar month, for example 25. Models of unknown price are then refused. Empty: no limit.",
    )
    expires_at = forms.SplitDateTimeField(required=False, widget=UnfoldAdminSplitDateTimeWidget, help_text="UTC. Empty: never.")
    keep_text = forms.ChoiceField(
        label="Keep texts", required=False, choices=KEEP, widget=UnfoldAdminSelectWidget, help_text="Prompts and answers of its route and direct calls."
    )

    class Meta:
        model = Key
        fields = CHANGEABLE

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        row = kwargs.get("instance")
        if row is not None:
            said = {True: "true", False: "false"}.get(row.keep_text, "")
            budget = None if row.budget_usd is None else f"{row.budget_usd.normalize():f}"
            kwargs["initial"] = {"keep_text": said, "budget_usd": budget, **(kwargs.get("initial") or {})}
        super().__init__(*args, **kwargs)

    def clean_keep_text(self) -> bool | None:
        return {"true": True, "false": False}.get(self.cleaned_data["keep_text"])

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        asked = {name: cleaned[name] for name in CHANGEABLE if name in cleaned}
        try:
            fields.checked(asked)
            if asked.get("name") and (self.instance.pk is None or asked["name"] != Key.objects.get(pk=self.instance.pk).name):
                keys.refuse_taken_name(asked["name"])
        except fields.FieldError as error:
            field = error.field.partition("[")[0]
            self.add_error(field if field in self.fields else None, f"It {error.message}")
        if self.instance.pk is None and (ends := cleaned.get("expires_at")) and ends <= timezone.now():
            self.add_error("expires_at", "It must lie in the future.")
        return cleaned

    def _post_clean(self) -> None:
        """The room's own rules have looked at every field; Django's would ask JSON columns for JSON."""
        for name in CHANGEABLE:
            if name in self.cleaned_data:
                setattr(self.instance, name, self.cleaned_data[name])


class RevokeForm(forms.Form):
    reason = forms.CharField(
        required=False, max_length=500, widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}), help_text="Kept in the audit trail. Optional."
    )


def standing(key: Key) -> str:
    """Whether a key still opens anything."""
    if key.revoked_at is not None:
        return "Revoked"
    return "Expired" if key.expires_at is not None and key.expires_at <= timezone.now() else "Active"


class StandingFilter(DropdownFilter):  # type: ignore[misc]
    title = "status"
    parameter_name = "standing"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("active", "Active"), ("expired", "Expired"), ("revoked", "Revoked")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Key]) -> QuerySet[Key]:
        now = timezone.now()
        if self.value() == "active":
            return queryset.filter(revoked_at=None).exclude(expires_at__lte=now)
        if self.value() == "expired":
            return queryset.filter(revoked_at=None, expires_at__lte=now)
        return queryset.exclude(revoked_at=None) if self.value() == "revoked" else queryset


@admin.register(Key)
class KeyAdmin(AuditedAdmin):
    noun = "key"
    form = KeyForm
    search_fields = ("name", "owner", "hint")
    search_help_text = "Name, owner or how the key begins"
    list_display = ("name", "begins", "owner", "standing_shown", "scopes_shown", "limits_shown", "last_used")
    list_filter = (StandingFilter,)
    list_select_related = ("use",)
    actions = ("revoke_selected",)
    actions_detail = ("revoke",)
    readonly_fields = ("begins", "standing_shown", "made_at", "last_used", "scopes_shown", "may_ask", "limits_shown", "ends_at")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        stands = [("Key", {"fields": ("begins", "standing_shown", "made_at", "last_used")})] if obj else []
        if not self.has_change_permission(request, obj):
            return (
                (None, {"fields": ("name", "owner", "team", "scopes_shown", "may_ask")}),
                ("Limits", {"fields": ("limits_shown", "ends_at")}),
                *stands,
            )
        return (
            (None, {"fields": ("name", "owner", "team", "scopes")}),
            ("May ask", {"fields": ("collections", "models")}),
            ("Limits", {"fields": (("rpm", "tpm"), ("max_parallel", "budget_usd"), "expires_at", "keep_text")}),
            *stands,
        )

    # ------------------------------------------------------------------ the list

    @display(description="Begins with")
    def begins(self, obj: Key) -> str:
        return f"{obj.hint}…"

    @display(description="Status", label={"Active": "success", "Expired": "warning", "Revoked": "danger"})
    def standing_shown(self, obj: Key) -> str:
        return standing(obj)

    @display(description="Scopes")
    def scopes_shown(self, obj: Key) -> str:
        return ", ".join(obj.scopes)

    @display(description="Limits")
    def limits_shown(self, obj: Key) -> str:
        said = [
            f"{obj.rpm:,} requests/min" if obj.rpm else "",
            f"{obj.tpm:,} tokens/min" if obj.tpm else "",
            f"{obj.max_parallel} at once" if obj.max_parallel else "",
        ]
        if obj.budget_usd is not None:
            said.append(f"${obj.budget_usd.normalize():f}/month")
        if obj.collections is not None or obj.models is not None:
            said.append(f"{len(obj.collections or []) + len(obj.models or [])} names")
        return ", ".join(s for s in said if s)

    @display(description="May ask")
    def may_ask(self, obj: Key) -> str:
        if obj.collections is None and obj.models is None:
            return "everything"
        return "\n".join([*(f"bench/{name}" for name in obj.collections or []), *(obj.models or [])]) or "nothing"

    @display(description="Expires at")
    def ends_at(self, obj: Key) -> str:
        return moment(obj.expires_at) or "never"

    @display(description="Made")
    def made_at(self, obj: Key) -> str:
        return moment(obj.created_at)

    @display(description="Last used", ordering="use__last_used_at")
    def last_used(self, obj: Key) -> str:
        use = getattr(obj, "use", None)
        return moment(use.last_used_at) if use else "never"

    # ------------------------------------------------------------------ making and changing

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A revoked key is a record; nothing of it changes any more."""
        return super().has_change_permission(request, obj) and not (isinstance(obj, Key) and obj.revoked_at is not None)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Keys are revoked, so that what they did keeps its name."""
        return False

    def save_model(self, request: HttpRequest, obj: Key, form: Any, change: bool) -> None:
        asked = {name: form.cleaned_data[name] for name in CHANGEABLE}
        if change:
            keys.change(obj, asked, actor(request))
        else:
            made, request._bench_secret = keys.mint(**asked, actor=actor(request))  # type: ignore[attr-defined]
            obj.pk, obj.hint, obj.created_at = made.pk, made.hint, made.created_at

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """A key has nothing related, and `access.keys` has told the audit trail."""

    def response_add(self, request: HttpRequest, obj: Key, post_url_continue: str | None = None) -> HttpResponse:
        """Shows the secret in the answer itself: it is kept nowhere, not even in the session, and sending the form again finds the name taken."""
        secret = request._bench_secret  # type: ignore[attr-defined]
        address = request.build_absolute_uri(reverse("admin:index")).removesuffix("/admin/")
        sdk = f'OpenAI(base_url="{address}/v1", api_key="{secret}")'
        back = reverse("admin:access_key_changelist")
        return self.page(request, "admin/bench/key_made.html", f"Key {obj.name}", original=obj, key=obj, secret=secret, sdk=sdk, back=back)

    # ------------------------------------------------------------------ revoking

    @action(description="Revoke", url_path="revoke", icon="block", permissions=["change"], variant=ActionVariant.DANGER)
    def revoke(self, request: HttpRequest, object_id: str) -> HttpResponse:
        obj = self.row(request, object_id)
        if not self.has_change_permission(request, obj):
            raise PermissionDenied
        form = RevokeForm(request.POST if request.method == "POST" else None)
        if form.is_valid():
            keys.revoke(obj, actor(request), form.cleaned_data["reason"])
            self.say(request, f"Key {obj.name} is revoked. Whoever still sends it is refused from now on.")
            return self.to_change(obj)
        return self.page(
            request,
            "admin/bench/reason.html",
            f"Revoke {obj.name}",
            original=obj,
            form=form,
            rows=[obj],
            word="Revoke",
            note="It ends for good, with the next request. This cannot be undone; make another key instead.",
            back=reverse("admin:access_key_change", args=[obj.pk]),
        )

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> Any:
        obj = self.get_object(request, str(object_id))
        return super().get_actions_detail(request, object_id) if obj is not None and obj.revoked_at is None else []

    @admin.action(description="Revoke", permissions=["change"])
    def revoke_selected(self, request: HttpRequest, queryset: QuerySet[Key]) -> None:
        for key in queryset.filter(revoked_at=None):
            keys.revoke(key, actor(request))
        self.say(request, "Revoked. Whoever still sends these keys is refused from now on.")
