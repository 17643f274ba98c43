"""Admin pages of models: facts set by hand beside what the endpoint's list says, dated prices, retiring and restoring."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.validators import MinValueValidator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.admin import TabularInline
from unfold.contrib.filters.admin import ChoicesDropdownFilter, RelatedDropdownFilter
from unfold.enums import ActionVariant
from unfold.widgets import UnfoldAdminTextareaWidget

from access.admin.audited import AuditedAdmin, actor
from access.admin.typed import action, display
from catalog import facts, layering, prices, roster, sources, status
from catalog.admin import knobs
from catalog.models import Model, Price
from catalog.shape import ShapeError


class ModelForm(knobs.LimitsForm, knobs.QuirksForm, knobs.FactsForm, forms.ModelForm):  # type: ignore[misc, type-arg]
    """A model's row, its JSON columns taken apart into fields."""

    class Meta:
        model = Model
        fields = ("alias", "endpoint", "served_name", "ad_hoc")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["initial"] = {**knobs.take_apart(kwargs.get("instance") or Model()), **(kwargs.get("initial") or {})}
        super().__init__(*args, **kwargs)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        knobs.put_together(self, self.instance)
        return cleaned


class ReasonForm(forms.Form):
    """Why a model is retired or restored, and what was seen."""

    reason = forms.CharField(
        label="Reason",
        max_length=status.REASON_LENGTH,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}),
        help_text="Callers read it where they ask for a retired model. For example: answers in the wrong language since 3 May.",
    )
    evidence = forms.CharField(
        label="Evidence",
        required=False,
        max_length=4000,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text="Call ids, links, numbers: what somebody would need to see it too. Optional.",
    )


class TiersField(forms.JSONField):
    """Prices of long prompts, typed as JSON; empty where there are none."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs["widget"] = UnfoldAdminTextareaWidget(attrs={"rows": 2, "spellcheck": "false"})
        super().__init__(**kwargs)

    def prepare_value(self, value: Any) -> Any:
        return super().prepare_value(value) if value else ""

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(initial or None, data or None)

    def clean(self, value: Any) -> Any:
        try:
            return facts.tiers(super().clean(value) or [], facts.TIERS)
        except ShapeError as error:
            raise forms.ValidationError(str(error)) from None


class PriceForm(forms.ModelForm):  # type: ignore[type-arg]
    """One dated price. What the endpoint's list said stays as it said it; a price set by hand goes over it."""

    class Meta:
        model = Price
        fields = ("since", *prices.COLUMNS, facts.TIERS)
        labels = {name: column.replace("_", " ").capitalize() for name, column in prices.COLUMNS.items()}
        field_classes = {facts.TIERS: TiersField}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        row = kwargs.get("instance")
        if row is not None:
            kwargs["initial"] = {name: prices.text(amount) for name, amount in prices.amounts(row).items()} | (kwargs.get("initial") or {})
        super().__init__(*args, **kwargs)
        self.fields["since"].initial = prices.today
        for name, field in self.fields.items():
            field.disabled = row is not None and row.pk is not None and row.source != facts.HAND
            if name in prices.COLUMNS:
                field.validators.append(MinValueValidator(0))


class PriceInline(TabularInline):  # type: ignore[misc]
    model = Price
    form = PriceForm
    extra = 0
    hide_title = True
    verbose_name_plural = "Prices, US dollars per million tokens"
    fields = (
        "since",
        "input_usd_per_mtok",
        "output_usd_per_mtok",
        "cache_read_usd_per_mtok",
        "cache_write_usd_per_mtok",
        "reasoning_usd_per_mtok",
        "tiers",
        "source",
    )
    readonly_fields = ("source",)


@admin.register(Model)
class ModelAdmin(AuditedAdmin):
    """What the roster knows of models. What happened to them (rests, seats) a room to the right adds."""

    noun = "model"
    list_per_page = 30
    form = ModelForm
    inlines = (PriceInline,)
    search_fields = ("alias", "served_name", "endpoint__name")
    search_help_text = "Alias, served name or endpoint"
    list_display: tuple[str, ...] = ("alias_and_name", "endpoint", "status_shown", "context_shown", "abilities", "price_in", "price_out")
    list_filter: tuple[Any, ...] = (("status", ChoicesDropdownFilter), ("endpoint", RelatedDropdownFilter), "ad_hoc")
    list_select_related = ("endpoint",)
    ordering = ("alias",)
    autocomplete_fields = ("endpoint",)
    actions = ("retire_selected", "restore_selected")
    actions_detail = ("retire", "restore")
    readonly_fields = (
        "status_story",
        "alias_fixed",
        "facts_shown",
        "limits_shown",
        "quirks_shown",
        *(f"listed_{name}" for name in (*knobs.SIZES, *knobs.FLAGS)),
    )

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if not self.has_change_permission(request) and not self.has_add_permission(request):
            # Fields that exist in the form alone have no value without it: readers see what is stored in words.
            listed = tuple(f"listed_{name}" for name in (*knobs.SIZES, *knobs.FLAGS))
            return (
                (None, {"fields": ("status_story", "alias_fixed", "endpoint", "served_name", "ad_hoc")}),
                ("Facts", {"fields": ("facts_shown", *listed)}),
                ("Limits", {"fields": ("limits_shown", "quirks_shown")}),
            )
        first = ("alias_fixed" if obj else "alias", "endpoint", "served_name", "ad_hoc")
        rows = knobs.FACT_ROWS if obj else tuple(f"fact_{name}" for name in (*knobs.SIZES, *knobs.FLAGS))
        return (
            (None, {"fields": ("status_story", *first) if obj else first}),
            ("Facts", {"fields": rows, "description": "What you set here wins over what the endpoint's own list says, and that over public catalogs."}),
            ("Limits", {"fields": knobs.LIMIT_ROWS, "classes": ("collapse",), "description": "For this model alone, besides its endpoint's."}),
            (
                "Quirks",
                {"fields": knobs.QUIRK_ROWS, "classes": ("collapse",), "description": "What must be said differently to it. These win over its endpoint's."},
            ),
        )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Model]:
        rows: QuerySet[Model] = super().get_queryset(request)
        return rows.prefetch_related("prices")

    # ------------------------------------------------------------------ the list

    @display(description="Model", header=True, ordering="alias")
    def alias_and_name(self, obj: Model) -> list[str]:
        return [obj.alias, obj.served_name if obj.served_name != obj.alias else ""]

    @display(description="Status", ordering="status", label={"Active": "success", "Retired": "danger", "Ad hoc": "info"})
    def status_shown(self, obj: Model) -> str:
        return "Retired" if obj.status == Model.Status.RETIRED else "Ad hoc" if obj.ad_hoc else "Active"

    @display(description="Context")
    def context_shown(self, obj: Model) -> str:
        return knobs.tokens(self.fact(obj, "context_window"))

    @display(description="Can")
    def abilities(self, obj: Model) -> SafeString | str:
        can = [label.lower() for name, label in (("vision", "Vision"), ("tools", "Tools")) if self.fact(obj, name)]
        return ", ".join(can)

    @display(description="$/M in")
    def price_in(self, obj: Model) -> str:
        price = self.price_now(obj)
        return knobs.dollars(prices.text(price.input) if price else None)

    @display(description="$/M out")
    def price_out(self, obj: Model) -> str:
        price = self.price_now(obj)
        return knobs.dollars(prices.text(price.output) if price else None)

    @staticmethod
    def price_now(obj: Model) -> roster.Price | None:
        """What a call costs today: hand over list, as the ledger reckons."""
        return next((p for p in prices.timeline(obj.prices.all()) if p.since <= prices.today()), None)

    @staticmethod
    def fact(obj: Model, name: str) -> Any:
        """A fact as it holds: by hand over listed over catalogs."""
        found = obj.merged_facts().get(name)
        return None if found is None else found.value

    # ------------------------------------------------------------------ the form

    @display(description="Alias")
    def alias_fixed(self, obj: Model) -> str:
        """Aliases stand in the ledger, in verdicts and in keys as text: one that changed would cut a record in two."""
        return obj.alias

    def listed(self, obj: Model, name: str) -> SafeString:
        """What the endpoint's list and the catalogs say of one fact, each with its source and date."""
        return format_html_join("", "<div>{}</div>", [(said,) for said in (self.by_the_list(obj, name), *self.by_catalogs(obj, name))])

    @staticmethod
    def by_catalogs(obj: Model, name: str) -> list[SafeString]:
        found = []
        for source in sources.every():
            said = obj.catalog_facts.get(source.name, {})
            if name in said.get("facts", {}):
                since = facts.moment(said["since"].get(name))
                date = f"{since:%d %b %Y}" if since else ""
                value = knobs.fact(said["facts"][name])
                found.append(format_html('<strong>{}</strong> <span class="bench-faint">says {} of {}, {}</span>', value, source.title, said["offer"], date))
        return found

    @staticmethod
    def by_the_list(obj: Model, name: str) -> SafeString:
        if obj.listed_at is None:
            return format_html('<span class="bench-faint">{}</span>', "The list has not been read.")
        if name not in obj.listed_facts:
            return format_html('<span class="bench-faint">{}</span>', "The list says nothing.")
        said = knobs.fact(obj.listed_facts[name])
        return format_html('<strong>{}</strong> <span class="bench-faint">says {}’s list, {}</span>', said, obj.endpoint.name, f"{obj.listed_at:%d %b %Y}")

    @display(description="Set by hand")
    def facts_shown(self, obj: Model) -> str:
        return knobs.pairs(obj.facts)

    @display(description="Limits")
    def limits_shown(self, obj: Model) -> str:
        return knobs.said(obj.limits)

    @display(description="Quirks")
    def quirks_shown(self, obj: Model) -> str:
        return knobs.pairs(obj.quirks)

    @display(description="Context window, listed")
    def listed_context_window(self, obj: Model) -> SafeString:
        return self.listed(obj, "context_window")

    @display(description="Output limit, listed")
    def listed_output_limit(self, obj: Model) -> SafeString:
        return self.listed(obj, "output_limit")

    @display(description="Tools, listed")
    def listed_tools(self, obj: Model) -> SafeString:
        return self.listed(obj, "tools")

    @display(description="Vision, listed")
    def listed_vision(self, obj: Model) -> SafeString:
        return self.listed(obj, "vision")

    @display(description="Structured output, listed")
    def listed_structured_output(self, obj: Model) -> SafeString:
        return self.listed(obj, "structured_output")

    @display(description="Reasoning, listed")
    def listed_reasoning(self, obj: Model) -> SafeString:
        return self.listed(obj, "reasoning")

    @display(description="Status")
    def status_story(self, obj: Model) -> SafeString:
        retired = obj.status == Model.Status.RETIRED
        badge = format_html('<span class="bench-badge {}">{}</span>', "is-bad" if retired else "is-good", obj.get_status_display())
        if not obj.status_at:
            return badge
        by, seen = obj.status_evidence.get("by", ""), obj.status_evidence.get("seen", "")
        return format_html(
            '{} <span class="bench-faint">since {} by {}</span><div>{}</div>{}',
            badge,
            f"{obj.status_at:%d %b %Y %H:%M}",
            by or "?",
            obj.status_reason,
            format_html('<div class="bench-faint bench-text">{}</div>', seen) if seen else "",
        )

    def audited(self, obj: Model) -> dict[str, Any]:
        priced = {f"price since {p.since} ({p.source})": {n: t for n, v in prices.amounts(p).items() if (t := prices.text(v))} for p in obj.prices.all()}
        return {
            "alias": obj.alias,
            "endpoint": obj.endpoint.name,
            "served_name": obj.served_name,
            "ad_hoc": obj.ad_hoc,
            "facts": obj.facts,
            "limits": obj.limits,
            "quirks": obj.quirks,
            **priced,
        }

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        if not change or {"endpoint", "served_name"} & set(form.changed_data):
            layering.apply_offers(timezone.now(), [form.instance.pk])

    # ------------------------------------------------------------------ retire and restore

    @action(description="Retire", url_path="retire", icon="do_not_disturb_on", permissions=["change"], variant=ActionVariant.DANGER)
    def retire(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self.move(request, [self.row(request, object_id)], retiring=True)

    @action(description="Restore", url_path="restore", icon="settings_backup_restore", permissions=["change"], variant=ActionVariant.PRIMARY)
    def restore(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self.move(request, [self.row(request, object_id)], retiring=False)

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> Any:
        """Of the two the one that makes sense."""
        row = self.get_object(request, str(object_id))
        unwanted = "restore" if row is None or row.status == Model.Status.ACTIVE else "retire"
        return [a for a in super().get_actions_detail(request, object_id) if a.path != unwanted]

    @admin.action(description="Retire, with a reason", permissions=["change"])
    def retire_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse | None:
        return self.move(request, list(queryset), retiring=True, name="retire_selected")

    @admin.action(description="Restore, with a reason", permissions=["change"])
    def restore_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse | None:
        return self.move(request, list(queryset), retiring=False, name="restore_selected")

    def move(self, request: HttpRequest, rows: list[Model], retiring: bool, name: str = "") -> HttpResponse:
        """Asks for the reason, then moves. The list's action comes here twice: with the selection, then with the reason."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        sent = request.method == "POST" and "reason" in request.POST
        form = ReasonForm(request.POST if sent else None)
        if sent and form.is_valid():
            moved = 0
            for row in rows:
                try:
                    seen = {"seen": form.cleaned_data["evidence"]} if form.cleaned_data["evidence"] else {}
                    (status.retire if retiring else status.restore)(row, form.cleaned_data["reason"], actor(request), seen)
                    moved += 1
                except status.StatusError as error:
                    self.say(request, str(error), good=False)
            if moved:
                names = rows[0].alias if moved == 1 and len(rows) == 1 else f"{moved} models"
                self.say(
                    request,
                    f"{names} {'retired. Their seats are skipped from now on.' if retiring else 'back in play.'}".replace(
                        "Their", "Its" if moved == 1 else "Their"
                    ),
                )
            if name:
                return HttpResponseRedirect(request.get_full_path())
            return self.to_change(rows[0])
        word = "Retire" if retiring else "Restore"
        return self.page(
            request,
            "admin/bench/reason.html",
            f"{word} {rows[0].alias if len(rows) == 1 else f'{len(rows)} models'}",
            form=form,
            rows=rows,
            original=rows[0] if len(rows) == 1 else None,
            word=word,
            action_name=name,
            back=request.get_full_path() if name else reverse("admin:catalog_model_change", args=[rows[0].pk]),
        )
