"""What exists: endpoints (a base URL and a key), models (a served name at an endpoint), and dated prices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.db.models.functions import Lower
from django.utils import timezone

from catalog import base_urls, gone, limits, names, providers, quirks
from catalog import facts as known_facts
from catalog.shape import ShapeError


def kinds() -> list[tuple[str, str]]:
    """The kinds of provider that files in `catalog/providers` stand for. A callable, so that a new file makes no migration."""
    return [(p.kind, p.title) for p in providers.every()]


def clean_shapes(row: models.Model, exclude: Iterable[str], checks: dict[str, Callable[[Any, str], Any]]) -> None:
    """Puts checked values in place of what was written, so that the admin and roster files hold the same rules. Errors: ValidationError by field."""
    wrong: dict[str, str] = {}
    for field, check in checks.items():
        if field in exclude:
            continue
        try:
            setattr(row, field, check(getattr(row, field), field))
        except ShapeError as error:
            wrong[field] = str(error)
    if wrong:
        raise ValidationError(wrong)


def others(row: models.Model, field: str) -> Iterable[str]:
    """What the table's other rows hold in a field."""
    return type(row)._default_manager.exclude(pk=row.pk).values_list(field, flat=True)


class Endpoint(models.Model):
    """One address that serves models, with its key. Written by an admin or a roster file."""

    name = models.CharField(max_length=200, help_text="For example groq-eu.")
    kind = models.CharField(max_length=40, choices=kinds, default="openai", help_text="Which API it speaks.")
    base_url = models.CharField(max_length=500, help_text="With or without its version part: https://api.groq.com/openai/v1.")
    provider = models.CharField(
        max_length=100, blank=True, help_text="Which provider of the public catalogs it is, by models.dev's id, for example groq. Empty: found by its address."
    )
    key_env = models.CharField(
        max_length=200, blank=True, help_text="Environment variable that holds the key; it wins over a stored key. BENCHWARMERS_KEY_<NAME> is looked at too."
    )
    key_sealed = models.TextField(blank=True, editable=False)
    limits = models.JSONField(
        default=dict, blank=True, help_text='For example {"requests": {"minute": 30, "day": 1000}, "tokens": {"minute": 60000}, "parallel": 4}.'
    )
    quirks = models.JSONField(
        default=dict,
        blank=True,
        help_text='What this server needs said differently: {"token_param": "max_completion_tokens", "system_role": "developer", "stream_options": false}.',
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(Lower("name"), name="catalog_endpoint_name_folded")]

    def __str__(self) -> str:
        return self.name

    def clean_fields(self, exclude: Collection[str] | None = None) -> None:
        super().clean_fields(exclude)
        clean_shapes(
            self,
            exclude or (),
            {
                "name": names.check_endpoint_name,
                "base_url": base_urls.check_base_url,
                "key_env": names.check_key_env,
                "limits": limits.checked,
                "quirks": quirks.checked,
            },
        )
        clean_shapes(self, exclude or (), {"name": lambda name, field: names.check_unique(name, others(self, "name"), field)})


class Model(models.Model):
    """One model that can be asked. Written by an admin, a roster file or onboarding."""

    class Status(models.TextChoices):
        ACTIVE = "active", "Active"
        RETIRED = "retired", "Retired"

    alias = models.CharField(max_length=200, help_text="The name callers use; any printable characters, not beginning with bench/.")
    endpoint = models.ForeignKey(Endpoint, on_delete=models.PROTECT, related_name="models")
    served_name = models.CharField(max_length=300, help_text="The name the endpoint knows it by.")
    limits = models.JSONField(default=dict, blank=True, help_text="As an endpoint's, for this model alone.")
    facts = models.JSONField(default=dict, blank=True, help_text='Set by hand, over what catalogs say: {"context_window": 131072, "vision": true}.')
    facts_at = models.DateTimeField(null=True, blank=True, editable=False, help_text="When the facts set by hand last changed.")
    listed_facts = models.JSONField(default=dict, blank=True, editable=False, help_text="What the endpoint's own model list says of it.")
    listed_at = models.DateTimeField(null=True, blank=True, editable=False)
    catalog_facts = models.JSONField(
        default=dict, blank=True, editable=False, help_text="What public catalogs say: source by source the facts and since when. Written by the catalog job."
    )
    quirks = models.JSONField(default=dict, blank=True, help_text="As an endpoint's; these win.")
    ad_hoc = models.BooleanField(
        default=False, help_text="Called only where a person or a collection names it: no probe, suite, explorer, shadow or merger turn."
    )
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.ACTIVE)
    status_reason = models.CharField(max_length=500, blank=True)
    status_evidence = models.JSONField(default=dict, blank=True, editable=False)
    status_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["alias"]
        constraints = [
            models.UniqueConstraint(Lower("alias"), name="catalog_model_alias_folded"),
            models.CheckConstraint(condition=models.Q(status__in=["active", "retired"]), name="catalog_model_status_known"),
        ]

    def __str__(self) -> str:
        return self.alias

    def clean_fields(self, exclude: Collection[str] | None = None) -> None:
        super().clean_fields(exclude)
        clean_shapes(
            self,
            exclude or (),
            {
                "alias": names.check_alias,
                "served_name": names.check_served_name,
                "limits": limits.checked,
                "quirks": quirks.checked,
                "facts": known_facts.checked_without_prices,
            },
        )
        clean_shapes(self, exclude or (), {"alias": lambda alias, field: names.check_unique(alias, others(self, "alias"), field)})

    def clean(self) -> None:
        super().clean()
        before = Model.objects.filter(pk=self.pk).values_list("facts", flat=True).first() if self.pk else {}
        if self.facts != before:
            self.facts_at = timezone.now()

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        """Deletes it, and in the same transaction what other rooms know of it under its name."""
        with transaction.atomic():
            done = super().delete(*args, **kwargs)
            gone.model_gone(self.alias)
        return done

    def merged_facts(self) -> dict[str, known_facts.Fact]:
        """What is known of it, by hand over listed over catalogs, each with its source."""
        return known_facts.merged(self.facts, self.listed_facts, self.facts_at, self.listed_at, self.catalog_facts)


class Price(models.Model):
    """What a model costs from one day on, in US dollars per million tokens. A cost uses the price of its day. Written by roster files and admins."""

    model = models.ForeignKey(Model, on_delete=models.CASCADE, related_name="prices")
    since = models.DateField(help_text="First day (UTC) on which it holds.")
    input_usd_per_mtok = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)
    output_usd_per_mtok = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)
    cache_read_usd_per_mtok = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)
    cache_write_usd_per_mtok = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)
    reasoning_usd_per_mtok = models.DecimalField(
        max_digits=14, decimal_places=6, null=True, blank=True, help_text="Empty: reasoning costs what other output does."
    )
    tiers = models.JSONField(
        default=list,
        blank=True,
        help_text='Other prices for long prompts: [{"above_tokens": 200000, "input_usd_per_mtok": "2.5"}]; the last one passed holds.',
    )
    source = models.CharField(max_length=40, default="hand")

    class Meta:
        ordering = ["-since"]
        constraints = [models.UniqueConstraint("model", "since", "source", name="catalog_price_once_a_day")]

    def __str__(self) -> str:
        return f"{self.model} from {self.since}"


class Listing(models.Model):
    """What one endpoint lists: its last good list, and how the newest try to read it went. Written by `catalog.candidates`."""

    endpoint = models.OneToOneField(Endpoint, on_delete=models.CASCADE, primary_key=True, related_name="listing")
    hub = models.CharField(max_length=40, blank=True, help_text="Which hub it was found to be: a file's name in catalog/hubs. Empty: none that is known.")
    served = models.JSONField(default=list, help_text="Of the last good list, in its order: served name, facts, whether it chats.")
    is_whole = models.BooleanField(default=True, help_text="False where the list was cut before its end.")
    listed_at = models.DateTimeField(null=True, help_text="When the last good list was read.")
    tried_at = models.DateTimeField(help_text="When it was last asked.")
    error = models.CharField(max_length=500, blank=True, help_text="Why the newest try failed. Empty: it did not.")

    def __str__(self) -> str:
        return str(self.endpoint)


class Source(models.Model):
    """One public catalog: when it was read, what it said of itself, and why not where it could not be read. Written by `catalog.reading`."""

    name = models.CharField(max_length=40, primary_key=True, help_text="The file's name in catalog/sources.")
    etag = models.CharField(max_length=300, blank=True)
    last_modified = models.CharField(max_length=100, blank=True)
    digest = models.CharField(max_length=64, blank=True, help_text="SHA-256 of the body that was last taken over.")
    version = models.CharField(max_length=100, blank=True, help_text="What the catalog calls its own version.")
    read_at = models.DateTimeField(null=True, help_text="When its content was last taken over or found unchanged.")
    changed_at = models.DateTimeField(null=True, help_text="When its content last changed.")
    tried_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=500, blank=True, help_text="Why the last try failed. Empty: it did not.")
    skipped = models.JSONField(default=list, help_text="Entries of the last reading that were left out, each with the reason; at most 100.")
    offers = models.PositiveIntegerField(default=0)
    reader = models.PositiveSmallIntegerField(default=0, help_text="The version of our reading of it, so that a newer one reads the same body again.")
    doubted_at = models.DateTimeField(null=True, help_text="Since when it has lost most of its offers, which is not believed on the first day.")
    leased_until = models.DateTimeField(null=True, help_text="While it is being read: until when nobody else reads it.")

    def __str__(self) -> str:
        return self.name


class Offer(models.Model):
    """One model as one public catalog says that one provider serves it. Written by `catalog.reading`, never by hand."""

    source = models.CharField(max_length=40)
    provider = models.CharField(max_length=100, help_text="models.dev's id of the provider where there is one, else the source's own.")
    served_name = models.CharField(max_length=300)
    title = models.CharField(max_length=300, blank=True)
    facts = models.JSONField(default=dict, help_text="By the roster's fact names, prices apart.")
    prices = models.JSONField(default=dict, help_text="By the roster's price names, decimal text; tiers as a price's row has them.")
    free = models.BooleanField(default=False, help_text="It costs nothing there, within limits.")
    own_app = models.BooleanField(default=False, help_text="Free only to the provider's own app.")
    limits = models.JSONField(default=dict, help_text="What the source says of its limits, in a roster's shape.")
    about = models.JSONField(default=dict, help_text="What else the source tells: released, updated, knowledge, open weights, rank, notes.")
    digest = models.CharField(max_length=64, help_text="Of what the source says, so that an unchanged offer is not written again.")
    first_seen_at = models.DateTimeField(db_index=True)
    seen_at = models.DateTimeField(help_text="When the source last listed it.")
    gone_at = models.DateTimeField(null=True, help_text="When the source stopped listing it.")

    class Meta:
        ordering = ["source", "provider", "served_name"]
        constraints = [models.UniqueConstraint(fields=["source", "provider", "served_name"], name="catalog_offer_once")]
        indexes = [models.Index(fields=["served_name"], name="catalog_offer_served")]


class KnownProvider(models.Model):
    """One provider of models as a public catalog tells it: where its API is and which kind it speaks. Written by `catalog.reading`."""

    source = models.CharField(max_length=40)
    provider = models.CharField(max_length=100)
    title = models.CharField(max_length=200, blank=True)
    base_url = models.CharField(max_length=500, blank=True)
    kind = models.CharField(max_length=40, blank=True, help_text="The roster's kind, empty where it is not known.")
    key_env = models.CharField(max_length=200, blank=True, help_text="The variable that its users keep its key in.")
    doc = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "provider"], name="catalog_known_provider_once")]


class SignIn(models.Model):
    """One sign-in at a provider: under way, or held by an endpoint. Tokens stand sealed. Written by `catalog.signins`."""

    class State(models.TextChoices):
        OPEN = "open"
        DONE = "done"
        FAILED = "failed"

    id = models.CharField(max_length=40, primary_key=True)
    provider = models.CharField(max_length=40, help_text="The file's name in catalog/signins.")
    flow = models.CharField(max_length=16, help_text="code or device.")
    endpoint = models.ForeignKey(Endpoint, null=True, on_delete=models.CASCADE, related_name="sign_ins")
    endpoint_name = models.CharField(max_length=200, help_text="The endpoint that is made or renewed by it.")
    state = models.CharField(max_length=16, choices=State.choices, default=State.OPEN)
    state_digest = models.CharField(max_length=64, blank=True, db_index=True, help_text="Of the random state that comes back with the browser.")
    sealed = models.TextField(blank=True, editable=False, help_text="Sealed JSON: verifier or device code while open; tokens afterwards.")
    account = models.CharField(max_length=200, blank=True)
    message = models.CharField(max_length=500, blank=True)
    started_by = models.CharField(max_length=200)
    started_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, help_text="While open: until when it can be finished. Afterwards: when its token ends.")
    next_poll_at = models.DateTimeField(null=True)
    refreshed_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "sign-in"
