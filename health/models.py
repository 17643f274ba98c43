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
    team = models.CharField(max_length=200, blank=True)
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


class Total(models.Model):
    """Calls of one kind, summed. Written by `health.rollups` with the ledger's rows, in their transaction."""

    calls = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)
    estimated = models.BigIntegerField(default=0)
    unpriced = models.BigIntegerField(default=0)
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cache_read_tokens = models.BigIntegerField(default=0)
    cache_write_tokens = models.BigIntegerField(default=0)
    reasoning_tokens = models.BigIntegerField(default=0)
    latency_ms = models.BigIntegerField(default=0)
    cost_pusd = models.BigIntegerField(default=0, help_text="Of the calls whose price is known.")

    class Meta:
        abstract = True


class DayTotal(Total):
    """One day's calls of one model that ended in one way: what monitors and the overview read instead of the ledger."""

    day = models.DateField(help_text="In BENCH_TIME_ZONE.")
    status = models.CharField(max_length=16)
    endpoint = models.CharField(max_length=200)
    model = models.CharField(max_length=200)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["day", "endpoint", "model", "status"], name="health_daytotal_once")]


class PartTotal(Total):
    """One day's or month's calls of one model, key, team …: what usage and budgets read. As many rows as there are names, however many calls."""

    grain = models.CharField(max_length=5, help_text="day or month.")
    part = models.CharField(max_length=12, help_text="What `name` is the name of: model, endpoint, key, key_id, collection, purpose, judge, team.")
    period = models.CharField(max_length=10, help_text="In BENCH_TIME_ZONE: 2026-11-29 or 2026-11.")
    name = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["grain", "part", "period", "name"], name="health_parttotal_once")]


class FreshCalls(models.Model):
    """The calls of one transaction that are not in the totals yet: written with the ledger's rows, gone once `health.rollups` has summed them."""

    calls = models.TextField(help_text="JSON: what the totals need of each row, those that are new, and of corrected ones what they were and are.")


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


class LearnedLimit(models.Model):
    """One limit that a provider told by its headers or in a refusal. Written by `health.learned` when it is new or another. Moves the roster's version."""

    scope = models.CharField(max_length=120, help_text="endpoint:<id> or model:<id>, as meters have it.")
    measure = models.CharField(max_length=16, help_text="requests, tokens or parallel; another where a provider counts otherwise, and then only shown.")
    window = models.CharField(max_length=16, help_text="minute, day, month; another is only shown.")
    direction = models.CharField(max_length=8, blank=True, help_text="input or output, where a provider counts them apart.")
    limit = models.BigIntegerField()
    told_by = models.CharField(max_length=16, default="header", help_text="header or refusal.")
    learned_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["scope", "measure", "window", "direction"], name="health_learnedlimit_once")]


class Allowance(models.Model):
    """What a provider last said is left of one of its limits. Written with the ledger, at most every few seconds; decides nothing by itself."""

    scope = models.CharField(max_length=120)
    measure = models.CharField(max_length=16)
    window = models.CharField(max_length=16)
    direction = models.CharField(max_length=8, blank=True)
    limit = models.BigIntegerField(null=True)
    remaining = models.BigIntegerField(null=True)
    resets_at = models.DateTimeField(null=True)
    told_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["scope", "measure", "window", "direction"], name="health_allowance_once")]


class ShadowHit(models.Model):
    """How often a day a limit that only reports would have refused. Written by `health.reserve`."""

    scope = models.CharField(max_length=120)
    measure = models.CharField(max_length=16)
    window = models.CharField(max_length=16)
    day = models.DateField()
    calls = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["scope", "measure", "window", "day"], name="health_shadowhit_once")]


class Alert(models.Model):
    """One thing that somebody should know of: a budget that runs out, a model that changed, a source that is down. Written by `health.alerts`."""

    kind = models.CharField(max_length=20, help_text="budget, drift, retired, source, signin, schedule.")
    subject = models.CharField(max_length=260)
    once = models.CharField(max_length=200, unique=True, help_text="The same word raises no second alert.")
    message = models.CharField(max_length=500)
    at = models.DateTimeField(db_index=True)
    seen_at = models.DateTimeField(null=True)
    seen_by = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["-at", "-id"]

    def __str__(self) -> str:
        return self.message


class Lane(models.Model):
    """Whose turn a connection's background work is: one process holds a lane, and renews it. Written by `health.errands`."""

    endpoint = models.CharField(max_length=200, primary_key=True)
    leased_until = models.DateTimeField()
    worker = models.CharField(max_length=120, blank=True)


class Errand(models.Model):
    """One piece of background work with one model, queued once and ended once, one at a time a connection. Written by `health.errands`."""

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    once = models.CharField(max_length=300, unique=True, help_text="What it is, so that it is queued once: probe:<alias>:<slot>, for example.")
    kind = models.CharField(max_length=20, db_index=True, help_text="Which function does it.")
    subject = models.CharField(max_length=300, help_text="An alias, or what the kind says.")
    endpoint = models.CharField(max_length=200, help_text="The connection that it goes over.")
    batch = models.CharField(max_length=80, blank=True, db_index=True, help_text="What it is part of: a schedule's slot, an onboarding's batch.")
    details = models.JSONField(default=dict)
    priority = models.SmallIntegerField(default=50, help_text="Lower goes first in a lane.")
    state = models.CharField(max_length=16, choices=State.choices, default=State.WAITING)
    due_at = models.DateTimeField()
    queued_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    worker = models.CharField(max_length=120, blank=True)
    failures = models.PositiveIntegerField(default=0)
    interruptions = models.PositiveIntegerField(default=0, help_text="How often its process died under it: no failure of its own.")
    outcome = models.JSONField(default=dict)
    error = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["priority", "due_at", "id"]
        indexes = [models.Index(fields=["state", "endpoint", "priority", "due_at"], name="health_errand_next")]


class Probe(models.Model):
    """One background call that tells how a model is: a word, its speed, a confirmation, one of the fixed drift prompts. Written by `health.probes`."""

    class Outcome(models.TextChoices):
        OK = "ok"
        FAILED = "failed"
        UNKNOWN = "unknown"

    attempt = models.CharField(max_length=40, unique=True, help_text="Its row in the ledger.")
    model = models.CharField(max_length=200)
    endpoint = models.CharField(max_length=200)
    kind = models.CharField(max_length=16, help_text="word, short, long, confirm, drift.")
    prompt = models.CharField(max_length=40, blank=True, help_text="Which of the fixed prompts.")
    at = models.DateTimeField(db_index=True)
    outcome = models.CharField(max_length=8, choices=Outcome.choices)
    fault = models.CharField(max_length=16, blank=True, help_text="Whose fault a failure was: model, server, connection, key, limit, request.")
    status = models.CharField(max_length=16)
    http_status = models.IntegerField(null=True)
    code = models.CharField(max_length=40, blank=True)
    message = models.CharField(max_length=500, blank=True)
    latency_ms = models.IntegerField(null=True)
    ttft_ms = models.IntegerField(null=True)
    output_tokens = models.BigIntegerField(default=0)
    tokens_per_s = models.FloatField(null=True, help_text="Output tokens a second after the first.")
    cost_pusd = models.BigIntegerField(null=True)
    answer = models.TextField(blank=True, help_text="Of drift prompts: what it said.")
    seen = models.JSONField(default=dict, help_text="What else the answer showed: its input tokens, its finish reason, the name that it was served under.")

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["model", "kind", "-at"], name="health_probe_model")]


class ModelHealth(models.Model):
    """What probes and calls say of one model. Written by `health.probes` and `health.retirement`."""

    model = models.CharField(max_length=200, primary_key=True)
    last_ok_at = models.DateTimeField(null=True)
    last_failed_at = models.DateTimeField(null=True)
    suspect_since = models.DateTimeField(null=True, help_text="It failed, or its endpoint no longer lists it; one confirming call decides.")
    suspect_reason = models.CharField(max_length=500, blank=True)
    unlisted_since = models.DateTimeField(null=True)
    probe_form = models.JSONField(default=dict, help_text="What it was found to accept: output limit, reasoning off …, so that a probe costs least.")
    speed = models.JSONField(default=dict, help_text="Medians of the newest speed probes: ttft_ms, tokens_per_s, by kind.")
    drift = models.JSONField(default=dict, help_text="The baseline of the drift prompts and the newest distance from it.")


class Schedule(models.Model):
    """When one of the named jobs runs. Written by admins and `PATCH /bench/schedules/<name>`; what nobody changed is as `health.schedules` registers it."""

    name = models.CharField(max_length=20, primary_key=True, help_text="probe, perf, suite, catalog, drift, retention.")
    enabled = models.BooleanField(default=False)
    cron = models.CharField(max_length=100, help_text="Minute, hour, day of month, month, day of week: 30 4 * * * is every day at 4:30.")
    time_zone = models.CharField(max_length=64, blank=True, help_text="For example Europe/Paris. Empty: BENCH_TIME_ZONE.")
    next_run_at = models.DateTimeField(null=True, editable=False)
    changed_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.name


class ScheduleRun(models.Model):
    """One run of a schedule: unique by its moment, so that nothing runs twice. Written by `health.schedules`."""

    schedule = models.CharField(max_length=20)
    slot = models.DateTimeField(help_text="The moment that it was due.")
    by = models.CharField(max_length=200, default="schedule", help_text="schedule, or who asked for it to be run now.")
    made_up = models.BooleanField(default=False, help_text="It was missed at its time and made up for.")
    state = models.CharField(max_length=16, default="waiting", help_text="waiting, running, done, failed, skipped.")
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)
    interruptions = models.PositiveIntegerField(default=0)
    error = models.CharField(max_length=500, blank=True)
    report = models.JSONField(default=dict, help_text="What it did, in numbers.")

    class Meta:
        ordering = ["-slot", "-id"]
        constraints = [models.UniqueConstraint(fields=["schedule", "slot"], name="health_schedulerun_once")]


class Batch(models.Model):
    """One request to onboard models. Written by `health.onboarding`."""

    id = models.CharField(max_length=40, primary_key=True)
    endpoint = models.CharField(max_length=200)
    mode = models.CharField(max_length=16, help_text="quick, quick_ad_hoc or full.")
    by = models.CharField(max_length=200)
    made_at = models.DateTimeField()
    cancelled_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-made_at", "-id"]


class Onboarding(models.Model):
    """One model on its way onto the bench, through its stages. Written by `health.onboarding`; what does the work is its errand."""

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="models")
    position = models.PositiveIntegerField(default=0)
    endpoint = models.CharField(max_length=200)
    served_name = models.CharField(max_length=300)
    alias = models.CharField(max_length=200, blank=True, help_text="Once it is on the roster.")
    mode = models.CharField(max_length=16)
    state = models.CharField(max_length=16, choices=State.choices, default=State.WAITING)
    stage = models.CharField(max_length=16, blank=True)
    stages_done = models.JSONField(default=dict, help_text="By stage, what came of it.")
    log = models.JSONField(default=list, help_text="Lines with their times.")
    message = models.CharField(max_length=500, blank=True)
    cost_pusd = models.BigIntegerField(default=0)
    unpriced = models.PositiveIntegerField(default=0, help_text="Calls whose price is unknown, not in the cost.")
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["batch", "position"]
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "served_name"], condition=models.Q(state__in=["waiting", "running"]), name="health_onboarding_one_open")
        ]


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
