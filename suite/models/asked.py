"""What is asked, and how it is graded: benchmarks, subsets in versions, rows, impls."""

from __future__ import annotations

from django.db import models
from django.db.models import Q, UniqueConstraint


class Benchmark(models.Model):
    """One thing that is measured, such as reviewing code. Written by authors through the API; who sees it follows from its runs."""

    id = models.CharField(max_length=40, primary_key=True)  # bm_…
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    category = models.CharField(max_length=80, blank=True)
    tags = models.JSONField(default=list)
    parents = models.JSONField(default=list, help_text="Ids of benchmarks that its tasks were taken from.")
    owner = models.CharField(max_length=200, db_index=True, help_text="Who may change it: a user's name, or a key's owner.")
    team = models.CharField(max_length=200, blank=True)
    admission = models.JSONField(null=True, blank=True, help_text="What the checks before publishing said, and of which version.")
    built_in = models.CharField(max_length=80, blank=True, help_text="Which pack brought it; empty for one that somebody made here.")
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["name"])]


class Subset(models.Model):
    """A named set of tasks of a benchmark. Its id stays; what a run is pinned to is a version of it."""

    id = models.CharField(max_length=40, primary_key=True)  # sub_…
    benchmark = models.ForeignKey(Benchmark, models.CASCADE, related_name="subsets")
    slug = models.CharField(max_length=120)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    rolling = models.BooleanField(default=False, help_text="Whether tasks may be added. Frozen once, it stays so.")
    grader = models.JSONField(null=True, blank=True, help_text='How answers are graded, for example {"kind": "math"}. Empty: it needs an impl to be run.')
    recipe = models.JSONField(default=dict, help_text='How it is run, for example {"trials": 3, "run_timeout": 900}.')
    recipe_changed_at = models.DateTimeField(null=True, blank=True)
    version = models.PositiveIntegerField(default=0, help_text="The newest version; 0 while it has no tasks.")
    retired_at = models.DateTimeField(null=True, blank=True)
    replaced_by = models.CharField(max_length=40, blank=True)
    retired_because = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        # What is retired keeps its slug beside what took its place.
        constraints = [UniqueConstraint(fields=["benchmark", "slug"], condition=Q(deleted_at=None, retired_at=None), name="suite_subset_slug_in_use")]
        indexes = [models.Index(fields=["slug"])]


class Version(models.Model):
    """One immutable state of a subset: all rows that came up to it. Written with the rows."""

    subset = models.ForeignKey(Subset, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64, help_text="SHA-256 over its rows in canonical JSON (RFC 8785), by task id.")
    rows = models.PositiveIntegerField()
    note = models.CharField(max_length=500, blank=True)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [UniqueConstraint(fields=["subset", "number"], name="suite_version_once")]


class Row(models.Model):
    """One task of a subset, as its author wrote it. Never changed."""

    subset = models.ForeignKey(Subset, models.CASCADE, related_name="rows")
    position = models.PositiveIntegerField(help_text="Its place, from 0; the order in which rows came.")
    task_id = models.CharField(max_length=255)
    since = models.PositiveIntegerField(help_text="The version that brought it.")
    kind = models.CharField(max_length=40, blank=True)
    cluster = models.CharField(max_length=255, blank=True, help_text="What it has in common with others, such as its repository: they err together.")
    digest = models.CharField(max_length=64)
    body = models.TextField(help_text='{"input", "expected", "source"} as JSON in ASCII.')

    class Meta:
        constraints = [
            UniqueConstraint(fields=["subset", "task_id"], name="suite_row_task_once"),
            UniqueConstraint(fields=["subset", "position"], name="suite_row_position_once"),
        ]


class Impl(models.Model):
    """How a task is asked and graded: a built-in grader with its options, or code. Its id is made of its content, so the same bytes are the same impl."""

    id = models.CharField(max_length=40, primary_key=True)  # imp_…
    digest = models.CharField(max_length=64, unique=True)
    language = models.CharField(max_length=20, help_text="python, or builtin for a grader of the server's own.")
    code = models.TextField(blank=True)
    grader = models.JSONField(null=True, blank=True)
    dependencies = models.JSONField(default=dict, help_text="What the sandbox offers, by version: part of its content.")
    label = models.CharField(max_length=200, blank=True)
    description = models.TextField(blank=True)
    benchmark = models.ForeignKey(Benchmark, models.SET_NULL, null=True, blank=True, related_name="impls")
    subset = models.ForeignKey(Subset, models.SET_NULL, null=True, blank=True, related_name="impls")
    from_run = models.CharField(max_length=40, blank=True)
    is_hidden = models.BooleanField(default=False, help_text="Whether its code is for its owner alone.")
    owner = models.CharField(max_length=200, db_index=True)
    team = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True, blank=True)


class Admission(models.Model):
    """How one version of a subset stood the checks of publishing under one impl. Written by whoever asks first, by publishing, and when a pack is loaded."""

    subset = models.ForeignKey(Subset, models.CASCADE, related_name="admissions")
    version = models.PositiveIntegerField()
    impl = models.ForeignKey(Impl, models.CASCADE, related_name="+")
    found = models.TextField(help_text='{"status", "checks", "checked_at", …} as JSON in ASCII.')

    class Meta:
        constraints = [UniqueConstraint(fields=["subset", "version", "impl"], name="suite_admission_once")]
