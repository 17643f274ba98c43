"""What happened: runs, their tasks and samples, and what they leave."""

from __future__ import annotations

from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint

from suite.models.asked import Benchmark, Impl, Subset

DRY = "dry"


class Run(models.Model):
    """One subject through the tasks of one version. Written by launches and by whoever works on it; once it has ended it only gains what is said of it."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        HALTING = "halting"
        OK = "ok"
        FAILED = "failed"
        HALTED = "halted"
        DELETED = "deleted"

    class Visibility(models.TextChoices):
        PRIVATE = "private"
        TEAM = "team"
        PUBLIC = "public"

    id = models.CharField(max_length=40, primary_key=True)  # run_…
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.QUEUED)
    mode = models.CharField(max_length=10, help_text="pinned, replay, fork or rescore.")
    launch = models.JSONField(help_text="The launch as it was asked for.")
    benchmark = models.ForeignKey(Benchmark, models.PROTECT, related_name="runs")
    subset = models.ForeignKey(Subset, models.PROTECT, related_name="runs")
    version = models.PositiveIntegerField(help_text="The subset's version that it is pinned to.")
    impl = models.ForeignKey(Impl, models.PROTECT, related_name="runs")
    requested_impl = models.CharField(max_length=80, blank=True)
    subject = models.CharField(max_length=300, help_text="Whom it tests, as one asks for it: an alias, served name@endpoint, or bench/<collection>[:mode].")
    sut = models.JSONField(help_text='{"kind": "model" | "served" | "collection", "model", "provider", "mode", "params"}')
    driver = models.CharField(max_length=300, blank=True)
    harness = models.CharField(max_length=20, default="benchwright")
    backend = models.CharField(max_length=80)
    source = models.CharField(max_length=12, default="manual", help_text="manual, ci, onboarding or scheduled.")
    limits = models.JSONField(default=dict)
    trials = models.PositiveIntegerField(default=1)
    metadata = models.JSONField(default=dict)
    tags = models.JSONField(default=list)
    hints = models.JSONField(null=True, blank=True)
    selection = models.JSONField(help_text='Which rows: {"strategy", "n", "seed", "digest"}, and "positions" where not all.')
    scope = models.CharField(max_length=10, default="full", help_text="full, limited, failed or ids. Only full ones are ranked.")
    parent = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="children")
    sweep = models.CharField(max_length=40, blank=True, db_index=True)
    phases = models.JSONField(default=list)
    fingerprint = models.CharField(max_length=64, blank=True)
    seed = models.BigIntegerField(default=0)
    visibility = models.CharField(max_length=10, choices=Visibility.choices, default=Visibility.PRIVATE)
    review_resolution = models.CharField(max_length=40, blank=True)
    error = models.TextField(blank=True)
    halt_reason = models.CharField(max_length=120, blank=True)
    halt_note = models.CharField(max_length=500, blank=True)
    owner = models.CharField(max_length=200, help_text="Who launched it; whose budget it counts against.")
    team = models.CharField(max_length=200, blank=True)
    key_id = models.BigIntegerField(null=True, blank=True)
    priority = models.PositiveIntegerField(default=50)

    total = models.PositiveIntegerField(default=0, help_text="Tasks that were selected.")
    done = models.PositiveIntegerField(default=0)
    cost_pusd = models.BigIntegerField(default=0, help_text="Millionths of a millionth of a dollar, as in the ledger.")
    has_unpriced = models.BooleanField(default=False)
    reserved_pusd = models.BigIntegerField(default=0)
    last_seq = models.PositiveIntegerField(default=0)
    scoring = models.PositiveIntegerField(default=1, help_text="The newest scoring of its tasks; rescoring adds one.")
    scorer = models.ForeignKey(
        Impl, models.PROTECT, null=True, blank=True, related_name="+", help_text="The impl of the newest scoring; empty while that is the one it ran with."
    )
    etag = models.PositiveIntegerField(default=1)

    worker = models.CharField(max_length=120, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    interruptions = models.PositiveIntegerField(default=0, help_text="Times its process died since a task last ended.")
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["created_at", "id"]),
            models.Index(fields=["status", "priority", "created_at"]),
            models.Index(fields=["subset", "version", "impl"]),
            models.Index(fields=["owner", "created_at"]),
            models.Index(fields=["subject", "finished_at"]),
        ]
        constraints = [CheckConstraint(condition=Q(trials__gte=1), name="suite_run_has_trials")]

    @property
    def is_dry(self) -> bool:
        """Whether a test token launched it: no model was asked, so it counts nowhere."""
        return self.source == DRY

    @property
    def graded_by(self) -> str:
        """The id of the impl whose scoring counts."""
        return self.scorer_id or self.impl_id


class Metadatum(models.Model):
    """One value of a run's metadata, so that runs are found by it. Written with the run."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="metadata_rows")
    name = models.CharField(max_length=80)
    value = models.CharField(max_length=300)

    class Meta:
        constraints = [UniqueConstraint(fields=["run", "name"], name="suite_metadatum_once")]
        indexes = [models.Index(fields=["name", "value"])]


class Task(models.Model):
    """What a run's task came to, in one scoring. Written with its last trial's sample, in one transaction; a rescoring adds a row."""

    id = models.CharField(max_length=40, primary_key=True)  # tsk_…
    run = models.ForeignKey(Run, models.CASCADE, related_name="tasks")
    scoring = models.PositiveIntegerField(default=1)
    position = models.PositiveIntegerField()
    task_id = models.CharField(max_length=255)
    kind = models.CharField(max_length=40, blank=True)
    cluster = models.CharField(max_length=255, blank=True)
    outcome = models.CharField(max_length=16)
    score = models.FloatField(null=True, blank=True, help_text="The mean of its scored trials; empty where none was scored.")
    passed = models.BooleanField(null=True, blank=True, help_text="Empty where nothing was scored.")
    trials = models.PositiveIntegerField(default=1)
    trials_passed = models.PositiveIntegerField(default=0)
    trials_scored = models.PositiveIntegerField(default=0)
    reason = models.CharField(max_length=60, blank=True)
    preview = models.CharField(max_length=600, blank=True)
    preview_cut = models.BooleanField(default=False)
    duration_ms = models.PositiveIntegerField(default=0)
    cost_pusd = models.BigIntegerField(null=True, blank=True)
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)

    class Meta:
        constraints = [UniqueConstraint(fields=["run", "scoring", "position"], name="suite_task_once")]
        indexes = [
            models.Index(fields=["run", "scoring", "passed", "position"]),
            models.Index(fields=["run", "scoring", "outcome"]),
            models.Index(fields=["run", "scoring", "score", "position"], name="suite_task_by_score"),
            models.Index(fields=["run", "scoring", "duration_ms", "position"], name="suite_task_by_duration"),
        ]


class Sample(models.Model):
    """One trial of a task that has ended: what was asked of whom, what came, and how it was graded. Never deleted by another try.

    What an attempt spent stands in the ledger under its call; a try that came too late is kept with `superseded`.
    """

    run = models.ForeignKey(Run, models.CASCADE, related_name="samples")
    position = models.PositiveIntegerField()
    trial = models.PositiveIntegerField()
    superseded = models.PositiveIntegerField(default=0, help_text="0 for the one that counts, else a number of its own.")
    attempts = models.PositiveIntegerField(default=1)
    calls = models.JSONField(default=list, help_text="Ids of its calls in the ledger.")
    panel = models.CharField(max_length=40, blank=True)
    outcome = models.CharField(max_length=16)
    score = models.FloatField(null=True, blank=True)
    reason = models.CharField(max_length=60, blank=True)
    finish_reason = models.CharField(max_length=40, blank=True)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    duration_ms = models.PositiveIntegerField(default=0, help_text="Working time: without what it waited for limits.")
    cost_pusd = models.BigIntegerField(null=True, blank=True)
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    reasoning_tokens = models.BigIntegerField(default=0)
    payload = models.BinaryField(help_text="zlib of JSON: what was asked, the output, the grade, the scorer's own words.")

    class Meta:
        constraints = [UniqueConstraint(fields=["run", "position", "trial", "superseded"], name="suite_sample_once")]


class Answer(models.Model):
    """What a subject said whose grading takes its time: written before that begins, gone with its sample. Whoever goes on after a death grades it unasked."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="answers")
    position = models.PositiveIntegerField()
    trial = models.PositiveIntegerField()
    payload = models.BinaryField()

    class Meta:
        constraints = [UniqueConstraint(fields=["run", "position", "trial"], name="suite_answer_once")]


class Rescoring(models.Model):
    """A run's stored outputs, graded again by an impl. Written by whoever asks for it, and by whoever works on it.

    Its tasks are rows of a scoring that the run does not have yet; once all are there, one transaction makes it the run's newest.
    """

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        OK = "ok"
        FAILED = "failed"
        CANCELLED = "cancelled"

    OPEN = (Status.QUEUED, Status.RUNNING)

    id = models.CharField(max_length=40, primary_key=True)  # rsc_…
    run = models.ForeignKey(Run, models.CASCADE, related_name="rescorings")
    impl = models.ForeignKey(Impl, models.PROTECT, related_name="rescorings")
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.QUEUED)
    scoring = models.PositiveIntegerField(help_text="The number of the scoring that it makes.")
    seq = models.PositiveIntegerField(help_text="The run's newest event when it was asked for: after another the run is not what it was.")
    needs_sandbox = models.BooleanField(default=False, help_text="Whether only a process with a sandbox can work on it.")
    total = models.PositiveIntegerField(default=0, help_text="Tasks.")
    done = models.PositiveIntegerField(default=0)
    now_passed = models.PositiveIntegerField(default=0, help_text="Tasks that pass in it and did not in the scoring before.")
    now_not = models.PositiveIntegerField(default=0, help_text="Other tasks whose result is not what it was.")
    error = models.CharField(max_length=60, blank=True, help_text="A stable word for why it came to nothing.")
    message = models.CharField(max_length=500, blank=True)
    asked_by = models.CharField(max_length=200, blank=True)

    worker = models.CharField(max_length=120, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    interruptions = models.PositiveIntegerField(default=0, help_text="Times its process died since a task was last graded.")
    created_at = models.DateTimeField()
    worked_at = models.DateTimeField(help_text="When it last went on: who waited longest is next.")
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["run", "created_at", "id"], name="suite_rescoring_by_run")]
        constraints = [UniqueConstraint(fields=["run"], condition=Q(status__in=["queued", "running"]), name="suite_rescoring_one_open")]


class Regrade(models.Model):
    """How one stored trial was graded in a rescoring. Written with its task's row of that scoring."""

    rescoring = models.ForeignKey(Rescoring, models.CASCADE, related_name="grades")
    position = models.PositiveIntegerField()
    trial = models.PositiveIntegerField()
    outcome = models.CharField(max_length=16)
    score = models.FloatField(null=True, blank=True)
    reason = models.CharField(max_length=60, blank=True)
    payload = models.BinaryField(help_text="zlib of JSON: answer, explanation, metadata.")

    class Meta:
        constraints = [UniqueConstraint(fields=["rescoring", "position", "trial"], name="suite_regrade_once")]


class Event(models.Model):
    """One thing that happened in a run. Numbered in the transaction that made it happen, so that numbers have no gap."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="events")
    seq = models.PositiveIntegerField()
    type = models.CharField(max_length=40)
    data = models.JSONField(default=dict)
    at = models.DateTimeField()

    class Meta:
        constraints = [UniqueConstraint(fields=["run", "seq"], name="suite_event_seq_once")]


class Connection(models.Model):
    """What one connection was found to take, so that all processes know it. Written by whoever works on runs."""

    name = models.CharField(max_length=320, primary_key=True, help_text="endpoint:<name>, or a collection as one asks for it.")
    at_once = models.PositiveIntegerField(help_text="Calls that may be under way, of all processes together.")
    is_slow_start = models.BooleanField(default=True)
    cool_until = models.DateTimeField(null=True, blank=True, help_text="Neither more nor less before then.")
    changed_at = models.DateTimeField()


class Summary(models.Model):
    """What a run's tasks say together in one scoring, summed once it has ended: what lists and boards show. Written by the engine, or by whoever asks first."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="summaries")
    scoring = models.PositiveIntegerField()
    seq = models.PositiveIntegerField(help_text="The run's newest event when it was summed: after another it no longer holds.")
    body = models.JSONField()

    class Meta:
        constraints = [UniqueConstraint(fields=["run", "scoring"], name="suite_summary_once")]


class Blob(models.Model):
    """Bytes by their digest, compressed."""

    digest = models.CharField(max_length=64, primary_key=True)
    size = models.PositiveBigIntegerField()
    content = models.BinaryField()
    created_at = models.DateTimeField()


class Artifact(models.Model):
    """A file of a run."""

    id = models.CharField(max_length=40, primary_key=True)  # art_…
    run = models.ForeignKey(Run, models.CASCADE, related_name="artifacts")
    type = models.CharField(max_length=20, help_text="task_impl, dataset, report, log, transcript or recipe.")
    name = models.CharField(max_length=200)
    version = models.PositiveIntegerField(default=1)
    media_type = models.CharField(max_length=100)
    blob = models.ForeignKey(Blob, models.PROTECT)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [UniqueConstraint(fields=["run", "type", "name", "version"], name="suite_artifact_once")]


class Sweep(models.Model):
    """Many subjects through one thing. Written by `POST /v1/sweeps`; its runs carry its id."""

    id = models.CharField(max_length=40, primary_key=True)  # swp_…
    anchor = models.CharField(max_length=40, blank=True)
    launch = models.JSONField()
    owner = models.CharField(max_length=200)
    team = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField()
