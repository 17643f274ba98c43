"""What stands around runs: repeated requests, machines, money, settings, the self-check."""

from __future__ import annotations

from django.db import models
from django.db.models import UniqueConstraint

from suite.models.asked import Impl


class Idempotency(models.Model):
    """What was answered to a request that names a key, so that its repetition does nothing twice. Kept a day."""

    scope = models.CharField(max_length=200, help_text="Who asked, and for which path.")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveIntegerField(default=0, help_text="0 while it is being answered.")
    body = models.TextField(blank=True)
    worker = models.CharField(max_length=120, blank=True)
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [UniqueConstraint(fields=["scope", "key"], name="suite_idempotency_once")]


class Backend(models.Model):
    """Where scorers and model code run. Written by an admin."""

    name = models.CharField(max_length=80, primary_key=True)
    kind = models.CharField(max_length=20, default="local-bwrap")
    settings = models.JSONField(default=dict, blank=True, help_text='For example {"memory_mb": 1024, "processes": 64}.')
    is_default = models.BooleanField(default=False)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class Grant(models.Model):
    """Money that an account may spend, or a correction. Written by admins and by allowances; never changed. `team` is the account: team:…, or owner:…"""

    id = models.CharField(max_length=40, primary_key=True)  # top_…
    team = models.CharField(max_length=200, blank=True)
    kind = models.CharField(max_length=20, default="grant", help_text="grant, adjustment or refund.")
    amount_usd = models.DecimalField(max_digits=20, decimal_places=10)
    note = models.CharField(max_length=300, blank=True)
    reference = models.CharField(max_length=80, blank=True, unique=True, null=True)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.team} {self.kind}"


class TeamSetting(models.Model):
    """One setting of a team, from the server's list. Written by `PUT /v1/settings/<key>`."""

    team = models.CharField(max_length=200, blank=True)
    name = models.CharField(max_length=80)
    value = models.JSONField()
    changed_by = models.CharField(max_length=200)
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [UniqueConstraint(fields=["team", "name"], name="suite_setting_once")]

    def __str__(self) -> str:
        return f"{self.team}: {self.name}"


class SelfCheck(models.Model):
    """How often the comparison called equals different, on one pair of runs. Written by the weekly self-check."""

    first = models.CharField(max_length=40)
    second = models.CharField(max_length=40)
    trials = models.PositiveIntegerField()
    alarms = models.PositiveIntegerField()
    alpha = models.FloatField()
    is_sound = models.BooleanField()
    created_at = models.DateTimeField(db_index=True)


class CodeHost(models.Model):
    """One process that runs code for hosts that cannot. Written by `manage.py scorers` while it lives; one that was not seen of late is gone."""

    name = models.CharField(max_length=200, primary_key=True)
    trouble = models.CharField(max_length=500, blank=True, help_text="Why it can run none after all; empty where it can.")
    seen_at = models.DateTimeField(db_index=True)


class DryRun(models.Model):
    """A scorer to be tried on some rows by a code host, for a server without a sandbox of its own. Gone a while after it was answered."""

    id = models.CharField(max_length=40, primary_key=True)  # dry_…
    impl = models.ForeignKey(Impl, models.CASCADE, related_name="+")
    rows = models.TextField(help_text="The rows as JSON in ASCII.")
    answer = models.TextField(blank=True, help_text="What came of it, as JSON in ASCII; empty until then.")
    worker = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(db_index=True)
