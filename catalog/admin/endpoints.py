"""Admin pages of endpoints: the key that can be written and never read, limits, the connection test, what it serves."""

from __future__ import annotations

from copy import copy
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from unfold.contrib.filters.admin import ChoicesDropdownFilter
from unfold.enums import ActionVariant
from unfold.widgets import UnfoldAdminPasswordWidget

from access import audit
from access.admin.audited import AuditedAdmin, actor
from access.admin.typed import action, display
from access.secrets import UnusableKey, clean_key
from catalog import candidates, endpoint_keys, layering, served
from catalog.admin import knobs
from catalog.models import Endpoint, Model
from catalog.providers import Listed
from catalog.shape import ShapeError

# "off" does not keep a browser from filling in the admin's own password; this does.
WRITE_ONLY = {"autocomplete": "new-password", "spellcheck": "false", "data-1p-ignore": "", "data-lpignore": "true"}


class KeyField(forms.CharField):
    """A provider's key: typed, never shown again."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(widget=UnfoldAdminPasswordWidget(attrs=WRITE_ONLY, render_value=False), strip=True, max_length=8192, **kwargs)

    def clean(self, value: Any) -> str:
        try:
            return clean_key(super().clean(value) or "")
        except UnusableKey as error:
            raise forms.ValidationError(str(error)) from None


class EndpointForm(knobs.LimitsForm, knobs.QuirksForm, forms.ModelForm):  # type: ignore[misc, type-arg]
    """An endpoint's row, its JSON columns taken apart into fields, and its key."""

    key = KeyField(
        label="New key",
        required=False,
        help_text="Stored encrypted and never shown again. Leave it empty to keep what is stored; Rotate key replaces or forgets it.",
    )

    class Meta:
        model = Endpoint
        fields = ("name", "kind", "base_url", "provider", "key_env")
        labels = {"base_url": "Base URL", "key_env": "Variable"}
        help_texts = {
            "key_env": "Environment variable of the server that holds the key; it wins over a stored key. "
            "Empty: BENCHWARMERS_KEY_ and the endpoint's name in capitals is looked at."
        }

    writer_is_admin = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["initial"] = {**knobs.take_apart(kwargs.get("instance") or Endpoint()), **(kwargs.get("initial") or {})}
        super().__init__(*args, **kwargs)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        knobs.put_together(self, self.instance)
        if not self.errors and not self.writer_is_admin:
            before = Endpoint.objects.filter(pk=self.instance.pk).first() if self.instance.pk else None
            after = copy(self.instance)
            for name in ("name", "base_url", "key_env"):
                setattr(after, name, cleaned.get(name, getattr(after, name)))
            if cleaned.get("key"):
                after.key_sealed = "typed in just now"
            if endpoint_keys.is_at_stake(before, after):
                raise forms.ValidationError(endpoint_keys.AT_STAKE)
        return cleaned


class RotateForm(forms.Form):
    """A new key, or none any more."""

    key = KeyField(label="New key", required=False, help_text="Calls use it from the next request on. Nobody can read it here again.")
    forget = forms.BooleanField(label="Forget the stored key instead", required=False)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors and bool(cleaned.get("key")) == cleaned.get("forget", False):
            raise forms.ValidationError("Type the new key, or tick the box to forget the stored one.")
        return cleaned


@admin.register(Endpoint)
class EndpointAdmin(AuditedAdmin):
    noun = "endpoint"
    form = EndpointForm
    search_fields = ("name", "base_url")
    search_help_text = "Name or base URL"
    list_display = ("name", "kind", "base_url", "key_source", "models_count", "limits_shown")
    list_filter = (("kind", ChoicesDropdownFilter),)
    ordering = ("name",)
    actions = ("test_selected",)
    actions_list = ("sign_in",)
    actions_detail = ("serves", "rotate")
    actions_submit_line = ("save_and_test",)
    readonly_fields = ("key_source", "name_fixed", "limits_shown", "quirks_shown")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Readers see what is stored in words: fields that exist in the form alone have no value without it."""
        if not self.writes(request):
            return (
                (None, {"fields": ("name_fixed", "kind", "base_url", "provider")}),
                ("Key", {"fields": ("key_source", "key_env")}),
                ("Limits", {"fields": ("limits_shown", "quirks_shown")}),
            )
        return (
            (None, {"fields": ("name_fixed" if obj else "name", "kind", "base_url", "provider")}),
            ("Key", {"fields": ("key_source", "key", "key_env") if obj else ("key", "key_env")}),
            ("Limits", {"fields": knobs.LIMIT_ROWS, "description": "Upstream calls wait or are refused before they go out. Empty: no limit."}),
            ("Quirks", {"fields": knobs.QUIRK_ROWS, "classes": ("collapse",), "description": "What this server needs said differently."}),
        )

    def writes(self, request: HttpRequest) -> bool:
        return bool(self.has_change_permission(request) or self.has_add_permission(request))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Endpoint]:
        rows: QuerySet[Endpoint] = super().get_queryset(request)
        return rows.annotate(models_total=Count("models"))

    # ------------------------------------------------------------------ the list

    @display(description="Name")
    def name_fixed(self, obj: Endpoint) -> str:
        """Names stand in the ledger as text: one that changed would cut a record in two."""
        return obj.name

    @display(description="Key comes from")
    def key_source(self, obj: Endpoint) -> str:
        return endpoint_keys.where_key_comes_from(obj)

    @display(description="Models", ordering="models_total")
    def models_count(self, obj: Any) -> int:
        return int(obj.models_total)

    @display(description="Limits")
    def limits_shown(self, obj: Endpoint) -> str:
        return knobs.said(obj.limits)

    @display(description="Quirks")
    def quirks_shown(self, obj: Endpoint) -> str:
        return knobs.pairs(obj.quirks)

    # ------------------------------------------------------------------ writing

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        form.writer_is_admin = request.user.has_perm("access.change_key")  # only admins may say where a key goes
        return form

    def save_model(self, request: HttpRequest, obj: Endpoint, form: Any, change: bool) -> None:
        if key := form.cleaned_data.get("key"):
            endpoint_keys.set_key(obj, key)
        super().save_model(request, obj, form, change)
        if {"base_url", "provider"} & set(form.changed_data):
            layering.apply_offers(timezone.now(), obj.models.values_list("pk", flat=True))

    def audited(self, obj: Endpoint) -> dict[str, Any]:
        """Of the key only whether there is one."""
        return {
            "name": obj.name,
            "kind": obj.kind,
            "base_url": obj.base_url,
            "provider": obj.provider,
            "key_env": obj.key_env,
            "key": audit.is_set(obj.key_sealed),
            "limits": obj.limits,
            "quirks": obj.quirks,
        }

    def response_add(self, request: HttpRequest, obj: Endpoint, post_url_continue: str | None = None) -> HttpResponse:
        if "_popup" in request.POST:
            return super().response_add(request, obj, post_url_continue)  # type: ignore[no-any-return]
        self.say(request, f"Endpoint {obj.name} is saved. Tick the models you want of it.")
        return HttpResponseRedirect(reverse("admin:catalog_endpoint_serves", args=[obj.pk]))

    # ------------------------------------------------------------------ what can be done with one

    @admin.action(description="Test the connection", permissions=["change"])
    def test_selected(self, request: HttpRequest, queryset: QuerySet[Endpoint]) -> None:
        for endpoint in queryset[:MOST_TESTED]:
            self.tell_test(request, endpoint)
        if queryset.count() > MOST_TESTED:
            self.say(request, f"The first {MOST_TESTED} were tested; tick fewer for the others.", good=False)

    @action(description="Save and test the connection", permissions=["change"])
    def save_and_test(self, request: HttpRequest, obj: Endpoint) -> None:
        """Tests once the form's transaction is over: held open for a slow endpoint, it would keep everybody else from writing."""
        transaction.on_commit(lambda: self.tell_test(request, obj))

    def tell_test(self, request: HttpRequest, endpoint: Endpoint) -> None:
        """Asks the endpoint once, and says how it went."""
        tested = served.test_connection(endpoint)
        self.say(request, f"{tested.message} ({tested.latency_ms} ms)" if tested.ok else tested.message, good=tested.ok)

    @action(description="List models", url_path="serves", icon="format_list_bulleted_add", permissions=["change"], variant=ActionVariant.PRIMARY)
    def serves(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Asks the endpoint what it serves and lets models be ticked; those that are on the bench are marked."""
        obj = self.row(request, object_id)
        if not self.has_change_permission(request, obj) or not request.user.has_perm("catalog.add_model"):
            raise PermissionDenied
        back = reverse("admin:catalog_endpoint_change", args=[obj.pk])
        if request.method == "POST":
            return self.add_ticked(request, obj, back)
        found = candidates.refresh(obj.name)
        problem, listed = (f"Endpoint {obj.name}: {found.error}", []) if found.error else ("", list(found.models))
        return self.page(
            request,
            "admin/bench/serves.html",
            f"What {obj.name} serves",
            original=obj,
            endpoint=obj,
            problem=problem,
            listed=listed_rows(obj, listed),
            back=back,
            again=request.path,
            by_hand=f"{reverse('admin:catalog_model_add')}?endpoint={obj.pk}",
        )

    def add_ticked(self, request: HttpRequest, obj: Endpoint, back: str) -> HttpResponse:
        picked = request.POST.getlist("pick")
        if not picked:
            self.say(request, "No model was ticked, so none was added.", good=False)
            return HttpResponseRedirect(request.path)
        try:
            added = candidates.add(obj.name, picked, actor(request))
        except ShapeError as error:
            self.say(request, f"Nothing was added: {error}", good=False)
            return HttpResponseRedirect(request.path)
        if not added:
            self.say(request, "They are on the bench already; nothing was added.")
            return HttpResponseRedirect(back)
        self.say(request, f"Added {', '.join(added[:5])}{f' and {len(added) - 5} more' if len(added) > 5 else ''}. Next: seat them in a collection.")
        return HttpResponseRedirect(f"{reverse('admin:catalog_model_changelist')}?endpoint__id__exact={obj.pk}")

    @action(description="Sign in with a provider", url_path="sign-in", icon="login", permissions=["sign_in"])
    def sign_in(self, request: HttpRequest) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:catalog_signin_start"))

    def has_sign_in_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """What comes of it is a key, which is an admin's."""
        return bool(request.user.has_perm("access.change_key"))

    @action(description="Rotate key", url_path="rotate-key", icon="key", permissions=["change"])
    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        obj = self.row(request, object_id)
        if not self.has_change_permission(request, obj):
            raise PermissionDenied
        form = RotateForm(request.POST if request.method == "POST" else None)
        if form.is_valid():
            endpoint_keys.set_key(obj, form.cleaned_data["key"], actor(request))
            self.say(request, f"Endpoint {obj.name} has its new key." if form.cleaned_data["key"] else f"The stored key of {obj.name} is forgotten.")
            return self.to_change(obj)
        source = endpoint_keys.where_key_comes_from(obj)
        return self.page(
            request,
            "admin/bench/reason.html",
            f"Rotate the key of {obj.name}",
            original=obj,
            form=form,
            rows=[obj],
            word="Save the key",
            note=f"Its key comes from {source}, which wins over a stored one. Change it there." if source.startswith("variable") else f"Its key now: {source}.",
            back=reverse("admin:catalog_endpoint_change", args=[obj.pk]),
        )


MOST_TESTED = 20


def listed_rows(endpoint: Endpoint, listed: list[Listed]) -> list[dict[str, Any]]:
    """What the endpoint lists as the page shows it, with the aliases of those on the bench already. One query."""
    taken: dict[str, list[dict[str, str]]] = {}
    for pk, alias, served_name in Model.objects.filter(endpoint=endpoint).values_list("pk", "alias", "served_name"):
        taken.setdefault(served_name, []).append({"name": alias, "url": reverse("admin:catalog_model_change", args=[pk])})
    return [
        {
            "served_name": one.served_name,
            "chat": one.chat,
            "taken": taken.get(one.served_name),
            "context": knobs.tokens(one.facts.get("context_window")),
            "can": ", ".join(label.lower() for name, label in knobs.FLAGS.items() if one.facts.get(name)),
            "input": knobs.dollars(one.facts.get("input_usd_per_mtok")),
            "output": knobs.dollars(one.facts.get("output_usd_per_mtok")),
        }
        for one in listed
    ]


def endpoint_names() -> list[str]:
    """For the filters of other rooms' lists."""
    return list(Endpoint.objects.order_by("name").values_list("name", flat=True))
