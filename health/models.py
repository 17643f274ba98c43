"""What happened and what may happen: the ledger of attempts, meters and permits, rests, and the jobs' slots."""

from __future__ import annotations

from django.db import models


class Attempt(models.Model):
    """The ledger: one upstream call, whatever its purpose. Written once by `health.ledger`, never changed.

    What lies to the right (collection, panel, call) and the key stand here as text, so that a row outlives what it names.
    """

    class Status(models.TextChoices):
        OK = "ok"
        PARTIAL = "partial"
        TRUNCATED = "truncated"
        ERROR = "error"
        TIMEOUT = "timeout"
        RATE_LIMITED = "rate_limited"
        NO_CREDIT = "no_credit"
        REFUSED = "refused"
        CANCELLED = "cancelled"
        LOST = "lost"

    id = models.CharField(max_length=40, primary_key=True)
    call = models.CharField(max_length=40, db_index=True)
    panel = models.CharField(max_length=40, db_index=True)
    request = models.CharField(max_length=80, blank=True)
    purpose = models.CharField(max_length=16, help_text="panel, merged, route, direct, shadow, probe, onboard, suite.")
    seat = models.CharField(max_length=16, help_text="member, explorer, merger, route, direct, shadow.")
    collection = models.CharField(max_length=200, blank=True)
    judge = models.CharField(max_length=200, help_text="Who asked: a user, a key's owner, a key, or local.")
    key_id = models.BigIntegerField(null=True)
    key_name = models.CharField(max_length=200, blank=True)
    endpoint = models.CharField(max_length=200)
    model = models.CharField(max_length=200)
    served_name = models.CharField(max_length=300)
    started_at = models.DateTimeField(db_index=True)
    latency_ms = models.IntegerField()
    ttft_ms = models.IntegerField(null=True)
    status = models.CharField(max_length=16, choices=Status.choices)
    http_status = models.IntegerField(null=True, help_text="What the endpoint answered; empty where no answer came.")
    code = models.CharField(max_length=40, blank=True)
    error = models.CharField(max_length=500, blank=True)
    finish_reason = models.CharField(max_length=40, blank=True)
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cache_read_tokens = models.BigIntegerField(default=0)
    cache_write_tokens = models.BigIntegerField(default=0)
    reasoning_tokens = models.BigIntegerField(default=0)
    estimated = models.BooleanField(default=False)
    cost_pusd = models.BigIntegerField(null=True, help_text="Trillionths of a US dollar, at the price of the day; empty where the price is unknown.")

    class Meta:
        ordering = ["-started_at", "-id"]
        verbose_name = "call"
        indexes = [models.Index(fields=["model", "-started_at"], name="health_attempt_model")]

    def __str__(self) -> str:
        return self.call


class ModelUse(models.Model):
    """How often and when a model was last seated: what explorer seats go by. Written with the ledger."""

    model = models.CharField(max_length=200, primary_key=True)
    seats = models.BigIntegerField(default=0)
    last_seated_at = models.DateTimeField()


class Meter(models.Model):
    """How much of one limited thing is used: one row a scope and measure, for example `endpoint:3` `requests`. Written by `health.reserve` only."""

    scope = models.CharField(max_length=120, primary_key=True)
    state = models.TextField(help_text="JSON: the entries of the last minute, the day's and the month's sums, what is under way.")


class Permit(models.Model):
    """One reservation that is not settled yet. Past `expires_at` a sweep turns it into a lost attempt. Written by `health.reserve`."""

    id = models.CharField(max_length=40, primary_key=True)
    expires_at = models.DateTimeField(db_index=True)
    holds = models.TextField(help_text="JSON: scope, amount and when it was made.")
    attempt = models.TextField(help_text="JSON: the ledger row that is written should the call be lost.")


class Rest(models.Model):
    """An endpoint, or one model of it, that is left alone until a time, because a provider said so. Written by `health.ledger`."""

    scope = models.CharField(max_length=260, primary_key=True, help_text="endpoint:<name> or model:<alias>.")
    kind = models.CharField(max_length=16, default="limit", help_text="limit: a provider's limit; key: it refused the key; overload: it or its network failed.")
    step = models.PositiveIntegerField(default=0, help_text="How many rests came one after another, each longer than the one before.")
    until = models.DateTimeField()
    reason = models.CharField(max_length=300)
    since = models.DateTimeField()


class JobRun(models.Model):
    """One slot of one job. The unique pair makes every slot run once, however many hosts ring. Written by `health.jobs`."""

    job = models.CharField(max_length=40)
    slot = models.DateTimeField()
    leased_until = models.DateTimeField(null=True)
    worker = models.CharField(max_length=120, blank=True)
    finished_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "slot"], name="health_jobrun_slot_once")]


class Heartbeat(models.Model):
    """When each queue cluster last finished a task: readiness reads it. Written by `health.jobs.ring`."""

    name = models.CharField(max_length=120, primary_key=True)
    at = models.DateTimeField()
