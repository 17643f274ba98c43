"""What schedules, settings and onboarding take and give, for the OpenAPI description."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers as s

from panels.api.shapes import usd


class Run(s.Serializer[Any]):
    id = s.IntegerField()
    schedule = s.CharField()
    slot = s.DateTimeField(help_text="The moment that it was due, or was asked for.")
    by = s.CharField(help_text="schedule, or who asked for it.")
    made_up = s.BooleanField(help_text="It was missed at its time.")
    state = s.CharField(help_text="waiting, running, done, failed or skipped.")
    started_at = s.DateTimeField(allow_null=True)
    finished_at = s.DateTimeField(allow_null=True)
    failures = s.IntegerField()
    interruptions = s.IntegerField(help_text="How often its process ended under it: no failure.")
    error = s.CharField()
    report = s.DictField(help_text="What it did, in numbers.")


class ScheduleChange(s.Serializer[Any]):
    enabled = s.BooleanField(required=False)
    cron = s.CharField(required=False, allow_null=True, max_length=100, help_text="Minute, hour, day of month, month, day of week; null: the default.")
    time_zone = s.CharField(required=False, allow_null=True, help_text="For example Europe/Paris; null: BENCH_TIME_ZONE.")


class Schedule(s.Serializer[Any]):
    name = s.CharField()
    tells = s.CharField(help_text="What it does.")
    enabled = s.BooleanField()
    cron = s.CharField()
    default_cron = s.CharField()
    words = s.CharField(help_text="The cron text in English.")
    time_zone = s.CharField()
    next_run_at = s.DateTimeField(allow_null=True)
    next_runs = s.ListField(child=s.DateTimeField(), help_text="The next five; none while it is off.")
    last_run = Run(allow_null=True)
    hindered = s.CharField(help_text="Why it cannot be switched on; empty where it can.")
    cost_usd = usd()
    unpriced = s.IntegerField(allow_null=True, help_text="Models of a run whose price is unknown; cost_usd leaves them out.")
    changed_at = s.DateTimeField(allow_null=True)


class ScheduleWithRuns(Schedule):
    runs = Run(many=True, help_text="The newest 20, skipped ones too.")


class SettingChange(s.Serializer[Any]):
    value = s.JSONField(allow_null=True, help_text="null puts the default back.")


class Setting(s.Serializer[Any]):
    name = s.CharField()
    value = s.JSONField(allow_null=True)
    default = s.JSONField(allow_null=True)
    tells = s.CharField()
    writable = s.BooleanField(help_text="false: a fact of this server, set by its environment.")
    changed_at = s.DateTimeField(allow_null=True)
    changed_by = s.CharField()


class OnboardAsked(s.Serializer[Any]):
    endpoint = s.CharField()
    served_names = s.ListField(child=s.CharField(max_length=300), min_length=1, max_length=500, help_text="As the endpoint knows them.")
    mode = s.ChoiceField(choices=["full", "quick", "quick_ad_hoc"])


class Onboarded(s.Serializer[Any]):
    batch = s.CharField(help_text="The batch that was begun; where nothing was new, the first that has brought the models as far.")
    models = s.IntegerField(help_text="How many models were queued.")
    under_way = s.DictField(child=s.CharField(), help_text="Models that are under way already, by served name: their batch.")
    done = s.DictField(child=s.CharField(), help_text="Models that were brought as far before: their batch.")


class OnboardExpected(s.Serializer[Any]):
    models = s.IntegerField()
    calls = s.IntegerField()
    cost_usd = usd()
    unpriced = s.IntegerField()


class LogLine(s.Serializer[Any]):
    at = s.DateTimeField()
    said = s.CharField()


class OnboardingModel(s.Serializer[Any]):
    served_name = s.CharField()
    alias = s.CharField(help_text="Empty until it is on the roster.")
    mode = s.CharField()
    state = s.ChoiceField(choices=["waiting", "running", "done", "failed", "cancelled"])
    stage = s.CharField()
    stages = s.DictField(help_text="What came of each stage that is over: {outcome, said, at, …}.")
    message = s.CharField()
    log = LogLine(many=True)
    cost_usd = usd()
    unpriced = s.IntegerField()
    started_at = s.DateTimeField(allow_null=True)
    finished_at = s.DateTimeField(allow_null=True)


class Batch(s.Serializer[Any]):
    batch = s.CharField()
    endpoint = s.CharField()
    mode = s.CharField()
    by = s.CharField()
    made_at = s.DateTimeField()
    cancelled_at = s.DateTimeField(allow_null=True)
    state = s.ChoiceField(choices=["waiting", "running", "done", "failed", "cancelled"])
    counts = s.DictField(child=s.IntegerField(), help_text="Models by state.")
    progress = s.FloatField(help_text="Share of all stages that are over, 0 to 1.")
    cost_usd = usd()
    unpriced = s.IntegerField(help_text="Calls whose price is unknown; cost_usd leaves them out.")


class BatchWhole(Batch):
    models = OnboardingModel(many=True)
