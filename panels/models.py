"""Who sits and who answered: collections with ordered members, panels with their seats, verdicts."""

from __future__ import annotations

from collections.abc import Collection as Names

from django.db import models
from django.db.models.functions import Lower

from access.caller import Caller
from catalog import names
from catalog.models import Model, clean_shapes, others


class Collection(models.Model):
    """A named set of models for one kind of work. Written by an admin or a roster file."""

    class Picking(models.TextChoices):
        FIXED = "fixed", "Fixed: members in order"
        RECORD = "record", "Record: verdicts decide"

    name = models.CharField(max_length=200, help_text="Asked for as bench/<name>.")
    description = models.CharField(max_length=1000, blank=True, help_text="What it is for, for example: adversarial review.")
    shape = models.CharField(max_length=40, default="review", help_text="Shape of the work: review, design, enumeration …")
    members: models.ManyToManyField[Model, Member] = models.ManyToManyField(Model, through="Member", related_name="+")
    picking = models.CharField(max_length=16, choices=Picking.choices, default=Picking.FIXED)
    seats = models.PositiveIntegerField(null=True, blank=True, help_text="How many of the members sit in a panel, for example 3. Empty: all of them.")
    explorers = models.PositiveIntegerField(default=1, help_text="Seats for the models that have gone unused longest.")
    timeout_s = models.PositiveIntegerField(default=300, help_text="Seconds a panel waits for its seats at most.")
    first_token_timeout_s = models.PositiveIntegerField(default=60, help_text="Seconds until a streamed upstream call must have said something.")
    idle_timeout_s = models.PositiveIntegerField(default=120, help_text="Seconds of silence inside an upstream stream.")
    quorum = models.PositiveIntegerField(null=True, blank=True, help_text="Once so many seats have answered, the rest have grace_s more. Empty: wait for all.")
    grace_s = models.PositiveIntegerField(default=20, help_text="Seconds.")
    wait_max_s = models.PositiveIntegerField(default=30, help_text="Seconds a seat may wait for our own endpoint and model limits.")
    failover_on_refusal = models.BooleanField(default=False)
    shadow_share = models.FloatField(default=0, help_text="Share of route turns that other members answer too, 0 to 1.")
    keep_text = models.BooleanField(null=True, blank=True, help_text="Keep route and direct texts too. Unknown: panels only.")
    merge_prompt = models.TextField(null=True, blank=True, help_text="Instead of the merger's usual instructions.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(Lower("name"), name="panels_collection_name_folded"),
            models.CheckConstraint(condition=models.Q(picking__in=["fixed", "record"]), name="panels_collection_picking_known"),
        ]

    def __str__(self) -> str:
        return self.name

    def clean_fields(self, exclude: Names[str] | None = None) -> None:
        super().clean_fields(exclude)
        clean_shapes(self, exclude or (), {"name": names.check_collection_name})
        clean_shapes(self, exclude or (), {"name": lambda name, field: names.check_unique(name, others(self, "name"), field)})


class Member(models.Model):
    """One place in a collection: a member's seat or a merger's turn, in order. A model may stand there twice."""

    class Place(models.TextChoices):
        MEMBER = "member", "Member"
        MERGER = "merger", "Merger"

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="places")
    model = models.ForeignKey(Model, on_delete=models.PROTECT, related_name="+")
    place = models.CharField(max_length=16, choices=Place.choices, default=Place.MEMBER)
    position = models.PositiveIntegerField(default=0, db_index=True)

    class Meta:
        ordering = ["position", "id"]

    def __str__(self) -> str:
        return f"{self.model} ({self.place})"


class Panel(models.Model):
    """One question to a collection, and what became of it. Written by `panels.record` from the outbox."""

    class Status(models.TextChoices):
        RUNNING = "running"
        COMPLETE = "complete"
        DEGRADED = "degraded"
        FAILED = "failed"

    id = models.CharField(max_length=40, primary_key=True)
    asked_at = models.DateTimeField(db_index=True)
    collection = models.CharField(max_length=200, blank=True, db_index=True)
    mode = models.CharField(max_length=16, help_text="panel, merged, or direct and route where their texts are kept.")
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.RUNNING)
    judge = models.CharField(max_length=200, db_index=True, help_text="Who asked.")
    key_id = models.BigIntegerField(null=True)
    key_name = models.CharField(max_length=200, blank=True)
    request = models.CharField(max_length=80, blank=True, help_text="The request's id.")
    prompt = models.TextField(null=True, help_text="JSON: the conversation as it was asked. Empty once retention took it.")
    seed = models.BigIntegerField(default=0, help_text="What broke ties between explorers, drew from beliefs and shuffled answers for the merger.")
    merge_order = models.JSONField(null=True, help_text="Call ids in the order in which the merger read them.")
    picked = models.JSONField(null=True, help_text="Where the record decided: each member's belief and draw, and whose turn it was.")
    seconds = models.FloatField(null=True)
    dialect = models.CharField(max_length=32, blank=True)

    class Meta:
        ordering = ["-asked_at", "-id"]
        indexes = [
            models.Index(fields=["collection", "-asked_at"], name="panels_panel_collection_latest"),
            models.Index(fields=["asked_at"], name="panels_panel_texts", condition=models.Q(prompt__isnull=False)),  # what retention looks through
        ]


class Seat(models.Model):
    """One seat of a panel. Its money and tokens are its attempts' in the ledger. Written by `panels.record` from the outbox."""

    class Status(models.TextChoices):
        RUNNING = "running"
        OK = "ok"
        PARTIAL = "partial"
        TRUNCATED = "truncated"
        ERROR = "error"
        TIMEOUT = "timeout"
        RATE_LIMITED = "rate_limited"
        NO_CREDIT = "no_credit"
        REFUSED = "refused"
        SKIPPED = "skipped"
        CANCELLED = "cancelled"
        LOST = "lost"

    call = models.CharField(max_length=40, primary_key=True)
    panel = models.ForeignKey(Panel, on_delete=models.CASCADE, related_name="seats")
    position = models.PositiveIntegerField()
    model = models.CharField(max_length=200, db_index=True)
    seat = models.CharField(max_length=16)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.RUNNING)
    code = models.CharField(max_length=40, blank=True)
    message = models.CharField(max_length=1000, blank=True)
    text = models.TextField(null=True, help_text="The answer. Empty once retention took it.")
    finish_reason = models.CharField(max_length=40, blank=True)
    seconds = models.FloatField(null=True)
    ttft_seconds = models.FloatField(null=True)

    class Meta:
        ordering = ["position"]
        indexes = [models.Index(fields=["panel"], name="panels_seat_texts", condition=models.Q(text__isnull=False))]


class Verdict(models.Model):
    """What one judge found of one call after checking it. A later one by the same judge replaces it; the history stays. Written by `panels.verdicts`."""

    call = models.CharField(max_length=40, db_index=True)
    judge = models.CharField(max_length=200)
    model = models.CharField(max_length=200, db_index=True)
    collection = models.CharField(max_length=200, blank=True, db_index=True)
    useful = models.BooleanField(null=True)
    note = models.TextField(blank=True)
    real = models.JSONField(default=list, help_text="Claims of the answer that hold.")
    false = models.JSONField(default=list, help_text="Claims of the answer that do not.")
    at = models.DateTimeField(db_index=True)
    replaces = models.OneToOneField("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="replaced_by")
    current = models.BooleanField(default=True)

    class Meta:
        ordering = ["-at", "-id"]
        constraints = [models.UniqueConstraint(fields=["call", "judge"], condition=models.Q(current=True), name="panels_verdict_one_current")]


class VerdictTotal(models.Model):
    """One day's current verdicts on one model in one collection, summed: what records read instead of the verdicts. Written by `panels.tally`.

    Units: calls and claims in parts of `tally.WHOLE`, since judges share the weight of a call.
    """

    collection = models.CharField(max_length=200, blank=True)
    model = models.CharField(max_length=200)
    day = models.IntegerField(help_text="Days since 1970-01-01, UTC.")
    judged = models.BigIntegerField(default=0)
    said = models.BigIntegerField(default=0, help_text="Called useful or not useful.")
    useful = models.BigIntegerField(default=0)
    wrong = models.BigIntegerField(default=0, help_text="With a claim found false.")
    real = models.BigIntegerField(default=0)
    false = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "model", "day"], name="panels_verdicttotal_once")]
        indexes = [models.Index(fields=["model", "day"], name="panels_verdicttotal_model")]


class VerdictJudge(models.Model):
    """How many calls of one model somebody judged in one collection. Written by `panels.tally`."""

    collection = models.CharField(max_length=200, blank=True)
    model = models.CharField(max_length=200)
    judge = models.CharField(max_length=200)
    calls = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "model", "judge"], name="panels_verdictjudge_once")]


class JudgedPanel(models.Model):
    """Who was found wrong in one panel, and which two made the same false claim: what tells how alike models err. Written by `panels.tally`."""

    panel = models.CharField(max_length=40, primary_key=True)
    collection = models.CharField(max_length=200, blank=True)
    verdict = models.BigIntegerField(help_text="The newest verdict in it.")
    models_judged = models.PositiveIntegerField()
    wrong = models.JSONField(default=dict, help_text="By alias of each that was judged: 1 where a claim was found false, else 0.")
    shared = models.JSONField(default=list, help_text="Pairs of aliases, in order.")

    class Meta:
        indexes = [models.Index(fields=["collection", "-verdict"], name="panels_judgedpanel_latest", condition=models.Q(models_judged__gt=1))]


class Pin(models.Model):
    """What all workers know for 24 hours under the digest of what a client repeats, above all route mode's conversations. Written from the outbox.

    Shape: `kind` mark, tool or prefix names the member that the conversation stays with; thought names whose reasoning a block is; cancel and
    ended are what an MCP client took back.
    """

    digest = models.CharField(max_length=64, primary_key=True)
    kind = models.CharField(max_length=8)
    model = models.CharField(max_length=200, help_text="Alias.")
    payload = models.TextField(blank=True, help_text="JSON: reasoning that a client cannot echo, by its tool call.")
    used_at = models.DateTimeField(db_index=True)


class StoredResponse(models.Model):
    """One answer, with its conversation, for a client that goes on from its id. Written by `panels.stored` from the outbox, gone after a day."""

    id = models.CharField(max_length=40, primary_key=True)
    panel = models.CharField(max_length=40, blank=True, db_index=True)
    judge = models.CharField(max_length=200, help_text="Who asked; only they may go on from it.")
    key_id = models.BigIntegerField(null=True)
    collection = models.CharField(max_length=200, blank=True)
    model = models.CharField(max_length=200, help_text="The name that was asked for.")
    kept = models.TextField(blank=True, help_text="JSON: what the dialect keeps of it. Empty once it was deleted.")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)


class Stop(models.Model):
    """The word that a call or a panel under way is to end, for whichever worker runs it. Written by `panels.stops`, which takes old ones away."""

    name = models.CharField(max_length=40, primary_key=True, help_text="The call's or the panel's id.")
    kind = models.CharField(max_length=16, help_text="Who says so: user, key or loopback.")
    judge = models.CharField(max_length=200)
    key_id = models.BigIntegerField(null=True)
    operates = models.BooleanField(help_text="May end what others asked.")
    at = models.DateTimeField(db_index=True)
    heeded = models.BooleanField(null=True, help_text="Whether the worker that runs it ended it, or refused to. Unknown: none has seen it.")

    def asker(self) -> Caller:
        return Caller(kind=self.kind, judge=self.judge, scopes=frozenset({"operate"} if self.operates else ()), key_id=self.key_id)


class Comparison(models.Model):
    """What one merger found the answers of a panel to claim. Written by `panels.comparison` from the outbox; a later one takes its place."""

    panel = models.OneToOneField(Panel, on_delete=models.CASCADE, primary_key=True, related_name="comparison")
    call = models.CharField(max_length=40)
    model = models.CharField(max_length=200)
    judge = models.CharField(max_length=200, help_text="Who asked for it.")
    at = models.DateTimeField()
    status = models.CharField(max_length=16)
    claims = models.TextField(null=True, help_text="JSON: the claims with who says them. Empty once retention took it.")
    dropped_claims = models.PositiveIntegerField(default=0)
    dropped_quotes = models.PositiveIntegerField(default=0)
