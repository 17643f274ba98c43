"""Admin pages of collections: who sits, in which order, how long a panel waits, and how to ask it."""

from __future__ import annotations

import json
import shlex
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import TabularInline
from unfold.contrib.filters.admin import ChoicesDropdownFilter
from unfold.enums import ActionVariant
from unfold.forms import PaginationInlineFormSet
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminTextInputWidget

from access.admin.audited import AuditedAdmin, actor
from access.admin.typed import action, display
from catalog import names
from catalog.admin import knobs
from panels import editing, standing
from panels.models import Collection, Member
from panels.roster_shape import SECTIONS


def curl(address: str, asked: str) -> str:
    """A line that asks, ready to paste. The name is quoted twice: as JSON, then for the shell."""
    body = json.dumps({"model": asked, "messages": [{"role": "user", "content": "Say hello."}]}, ensure_ascii=False)
    return (
        f"curl {address}/v1/chat/completions \\\n  -H 'Authorization: Bearer YOUR_KEY' \\\n  -H 'Content-Type: application/json' \\\n  -d {shlex.quote(body)}"
    )


def address_of(request: HttpRequest) -> str:
    """Where this server was reached, path prefix included."""
    return request.build_absolute_uri(reverse("admin:index")).removesuffix("/admin/")


class CollectionForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Collection
        fields = "__all__"
        labels = {
            "timeout_s": "Longest wait, s",
            "wait_max_s": "Wait for our limits, s",
            "quorum": "Quorum",
            "grace_s": "Grace, s",
            "first_token_timeout_s": "Until the first token, s",
            "idle_timeout_s": "Silence in a stream, s",
            "picking": "Who takes a turn or a seat",
            "seats": "Members that sit",
            "failover_on_refusal": "Next member on a refusal",
            "keep_text": "Keep route and direct texts",
        }
        help_texts = {
            "name": "Asked for as bench/ and this name, for example core.",
            "quorum": "Once so many seats have answered, the rest have the grace. Empty: wait for all.",
            "grace_s": "How long the others may take once the quorum has answered.",
            "seats": "How many of the members sit in a panel, for example 3. Empty: all. Who sits says the field above: the first in order, or the record.",
            "explorers": "Seats for the active models that have gone unused longest. 0: none.",
        }

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        cleaned["merge_prompt"] = cleaned.get("merge_prompt") or None
        for field, shape in SECTIONS["collections"].fields.items():
            if field != "name" and cleaned.get(field) is not None:
                knobs.checked(self, field, shape.read, cleaned[field], field)
        return cleaned


class PlaceForm(forms.ModelForm):  # type: ignore[type-arg]
    """One place. A place without a number goes to the end."""

    position = forms.IntegerField(required=False, min_value=0, label="Order", widget=UnfoldAdminIntegerFieldWidget)

    class Meta:
        model = Member
        fields = ("model", "position")

    def clean_position(self) -> int:
        position = self.cleaned_data["position"]
        return LAST if position is None else position

    def has_changed(self) -> bool:
        """A row that was only moved about, with no model in it, is still an empty row."""
        return any(name != "position" for name in self.changed_data) or (self.instance.pk is not None and bool(self.changed_data))


LAST = 1_000_000


class PlaceFormSet(PaginationInlineFormSet):  # type: ignore[misc]
    """The places of one kind; saved, they are numbered from 0 without gaps."""

    place: str

    def save_new(self, form: Any, commit: bool = True) -> Member:
        form.instance.place = self.place
        return super().save_new(form, commit)  # type: ignore[no-any-return]

    def save(self, commit: bool = True) -> Any:
        saved = super().save(commit)
        if commit:
            for number, row in enumerate(Member.objects.filter(collection=self.instance, place=self.place).order_by("position", "id")):
                if row.position != number:
                    Member.objects.filter(pk=row.pk).update(position=number)
        return saved


class PlaceInline(TabularInline):  # type: ignore[misc]
    model = Member
    form = PlaceForm
    formset = PlaceFormSet
    place: str = ""
    extra = 0
    fields = ("model", "position")
    autocomplete_fields = ("model",)
    ordering_field = "position"
    hide_title = True
    ordering = ("position", "id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Member]:
        rows: QuerySet[Member] = super().get_queryset(request)
        return rows.filter(place=self.place).select_related("model")

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        formset = super().get_formset(request, obj, **kwargs)
        formset.place = self.place
        return formset


class MemberInline(PlaceInline):
    place = Member.Place.MEMBER.value
    verbose_name = "member"
    verbose_name_plural = "Members, in order: drag, or number them. A model may sit twice."


class MergerInline(PlaceInline):
    place = Member.Place.MERGER.value
    verbose_name = "merger"
    verbose_name_plural = "Mergers: the first that answers writes the merged reply"


class CloneForm(forms.Form):
    name = forms.CharField(max_length=200, widget=UnfoldAdminTextInputWidget, help_text="Asked for as bench/ and this name.")

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        knobs.check_name(self, "name", names.check_collection_name, Collection.objects.values_list("name", flat=True))
        return cleaned


@admin.register(Collection)
class CollectionAdmin(AuditedAdmin):
    noun = "collection"
    form = CollectionForm
    inlines = (MemberInline, MergerInline)
    search_fields = ("name", "description", "shape")
    search_help_text = "Name, description or shape"
    list_display = ("name_and_description", "members_shown", "explorers", "mergers_shown", "picking_shown", "waits_shown")
    list_filter = (("picking", ChoicesDropdownFilter),)
    ordering = ("name",)
    actions_detail = ("ask_it", "record_page", "clone")
    readonly_fields = ("name_fixed",)
    fieldsets = (
        (None, {"fields": ("name", "description", "shape", ("picking", "seats"), "explorers")}),
        (
            "How long a panel waits",
            {
                "fields": (("timeout_s", "wait_max_s"), ("quorum", "grace_s"), ("first_token_timeout_s", "idle_timeout_s")),
                "description": "A panel replies when every seat has answered, or once a quorum has and the grace is over. Later answers are still kept.",
            },
        ),
        (
            "Merged and route",
            {
                "fields": ("merge_prompt", "failover_on_refusal", "shadow_share"),
                "description": "For bench/<name>:merged and bench/<name>:route.",
                "classes": ("collapse",),
            },
        ),
        ("Texts", {"fields": ("keep_text",), "classes": ("collapse",)}),
    )

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fixed = (None, {"fields": ("name_fixed", "description", "shape", ("picking", "seats"), "explorers")})
        return (fixed, *self.fieldsets[1:]) if obj else self.fieldsets

    def get_queryset(self, request: HttpRequest) -> QuerySet[Collection]:
        rows: QuerySet[Collection] = super().get_queryset(request)
        return rows.prefetch_related(Prefetch("places", Member.objects.order_by("position", "id").select_related("model")))

    # ------------------------------------------------------------------ the list

    @display(description="Collection", header=True, ordering="name")
    def name_and_description(self, obj: Collection) -> list[str]:
        return [obj.name, obj.description]

    def chips(self, obj: Collection, place: str) -> SafeString | str:
        """The places of one kind in order, retired models struck out. Long rows are cut: the form has them all."""
        found = [p.model for p in obj.places.all() if p.place == place]
        shown = [
            format_html('<span class="bench-chip {}" title="{}">{}</span>', "is-out" if m.status == "retired" else "", m.alias, m.alias) for m in found[:6]
        ]
        if len(found) > 6:
            shown.append(format_html('<span class="bench-faint">and {} more</span>', len(found) - 6))
        return format_html("{}" * len(shown), *shown) if shown else ""

    @display(description="Members in order")
    def members_shown(self, obj: Collection) -> SafeString | str:
        return self.chips(obj, "member") or format_html('<span class="bench-badge is-warn">{}</span>', "nobody")

    @display(description="Mergers")
    def mergers_shown(self, obj: Collection) -> SafeString | str:
        return self.chips(obj, "merger")

    @display(description="Picking", ordering="picking")
    def picking_shown(self, obj: Collection) -> str:
        return f"{obj.picking}, {obj.seats} at a time" if obj.seats else obj.picking

    @display(description="Waits")
    def waits_shown(self, obj: Collection) -> str:
        return f"{obj.timeout_s} s" + (f", or {obj.quorum} answers + {obj.grace_s} s" if obj.quorum else "")

    @display(description="Name")
    def name_fixed(self, obj: Collection) -> str:
        """Names stand in panels, verdicts and keys as text: one that changed would cut a record in two. A clone gets another."""
        return obj.name

    # ------------------------------------------------------------------ writing

    def audited(self, obj: Collection) -> dict[str, Any]:
        fields = super().audited(obj)
        rows = Member.objects.filter(collection=obj).order_by("position", "id").values_list("place", "model__alias")
        return {**fields, "members": [alias for place, alias in rows if place == "member"], "mergers": [alias for place, alias in rows if place == "merger"]}

    # ------------------------------------------------------------------ pages of one collection

    def has_clone_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """unfold asks with the row, which Django's own question about adding does not take; a dotted permission would make it ask the database at start."""
        return bool(self.has_add_permission(request))

    @action(description="Ask it", url_path="ask", icon="forum", permissions=["view"])
    def ask_it(self, request: HttpRequest, object_id: str) -> HttpResponse:
        obj = self.row(request, object_id)
        where = address_of(request)
        ways = [
            ("Every answer, side by side", f"bench/{obj.name}", curl(where, f"bench/{obj.name}")),
            ("One merged answer", f"bench/{obj.name}:merged", curl(where, f"bench/{obj.name}:merged")),
            ("One member, with tools", f"bench/{obj.name}:route", curl(where, f"bench/{obj.name}:route")),
        ]
        return self.page(
            request,
            "admin/bench/ask.html",
            f"Ask {obj.name}",
            collection=obj,
            original=obj,
            ways=ways,
            address=where,
            back=reverse("admin:panels_collection_change", args=[obj.pk]),
        )

    @action(description="Record", url_path="record", icon="leaderboard", permissions=["view"])
    def record_page(self, request: HttpRequest, object_id: str) -> HttpResponse:
        from panels.admin.judged import half_life_told, standing_rows

        obj = self.row(request, object_id)
        if request.method == "POST":
            return self.take_up(request, obj)
        stands = standing.standing(editing.found(obj.name), timezone.now())
        return self.page(
            request,
            "admin/bench/record.html",
            f"Record of {obj.name}",
            **standing_rows(stands),
            half_life=half_life_told(stands.half_life_days),
            may_change=self.has_change_permission(request, obj),
            collection=obj,
            original=obj,
            back=reverse("admin:panels_collection_change", args=[obj.pk]),
        )

    def take_up(self, request: HttpRequest, obj: Collection) -> HttpResponse:
        """Does what the record suggests, on a click and never by itself."""
        if not self.has_change_permission(request, obj):
            raise PermissionDenied
        kind, _, model = request.POST.get("suggestion", "").partition(":")
        try:
            one = standing.take_up(obj.name, kind, model, timezone.now(), actor(request))
        except standing.NotSuggested as error:
            self.message_user(request, str(error), messages.WARNING)
        else:
            self.say(request, f"{one.model} is now {'the last member' if one.kind == 'promote' else 'no member any more'} of {obj.name}.")
        return HttpResponseRedirect(reverse("admin:panels_collection_record_page", args=[obj.pk]))

    @action(description="Clone", url_path="clone", icon="content_copy", permissions=["clone"], variant=ActionVariant.DEFAULT)
    def clone(self, request: HttpRequest, object_id: str) -> HttpResponse:
        obj = self.row(request, object_id)
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = CloneForm(request.POST if request.method == "POST" else None)
        if form.is_valid():
            like = {field: editing.listed(getattr(editing.found(obj.name), field)) for field in editing.FIELDS}
            editing.make({**like, "name": form.cleaned_data["name"]}, actor(request))
            copy = Collection.objects.get(name=form.cleaned_data["name"])
            self.say(request, f"Collection {copy.name} is a copy of {obj.name}. Change what should differ.")
            return self.to_change(copy)
        return self.page(
            request,
            "admin/bench/reason.html",
            f"Clone {obj.name}",
            original=obj,
            form=form,
            rows=[obj],
            word="Clone",
            back=reverse("admin:panels_collection_change", args=[obj.pk]),
        )
