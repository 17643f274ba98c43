"""What the description says of probes, health and speed."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers as s

from health.estimates import KINDS
from panels.api.shapes import usd

OF_MODEL = OpenApiParameter("model", str, description="Only probes of this alias.")
OF_KIND = OpenApiParameter("kind", str, description="Only probes of this kind: word, short, long, confirm or drift.")
ESTIMATED_KIND = OpenApiParameter("kind", str, enum=list(KINDS), description="Which run; word without it.")


class Health(s.Serializer[Any]):
    last_ok_at = s.DateTimeField(allow_null=True, help_text="When it last answered a probe, or a live call that a run looked at.")
    last_failed_at = s.DateTimeField(allow_null=True)
    suspect_since = s.DateTimeField(allow_null=True, help_text="One confirming call decides whether it is retired.")
    reason = s.CharField(allow_null=True, help_text="Why it is suspected.")
    unlisted_since = s.DateTimeField(allow_null=True, help_text="Since when its endpoint's list lacks it.")
    drift = s.DictField(allow_null=True, help_text="state (learning, steady, doubtful, changed), since, nights, changed_at and the newest night's distance.")


class SpeedOf(s.Serializer[Any]):
    ttft_ms = s.IntegerField(allow_null=True)
    tokens_per_s = s.FloatField(allow_null=True, help_text="After the first token.")
    of = s.IntegerField(help_text="How many measurements the medians are of, at most 5.")
    at = s.DateTimeField()


class Speed(s.Serializer[Any]):
    """Medians of the newest speed probes. Decides nothing."""

    ttft_ms = s.IntegerField(allow_null=True, help_text="Of a short answer.")
    tokens_per_s = s.FloatField(allow_null=True, help_text="Of a long answer.")
    short = SpeedOf(required=False)
    long = SpeedOf(required=False)


class ProbeAsked(s.Serializer[Any]):
    kind = s.CharField(required=False, help_text="word (without it), perf, which measures speed, or drift, which asks a night's questions.")
    reason = s.CharField(required=False, max_length=500, help_text="For /retire and /restore, where it is needed.")


class ProbeQueued(s.Serializer[Any]):
    model = s.CharField()
    kind = s.CharField()
    errand = s.IntegerField()
    new = s.BooleanField(help_text="False where the same probe waits or runs already.")
    expected_cost_usd = usd()


class Probe(s.Serializer[Any]):
    attempt = s.CharField(help_text="Its row in the ledger.")
    model = s.CharField()
    endpoint = s.CharField()
    kind = s.CharField()
    prompt = s.CharField(help_text="Which of the fixed questions.")
    at = s.DateTimeField()
    outcome = s.CharField(help_text="ok, failed or unknown.")
    fault = s.CharField(help_text="model, server, connection, key, limit, request or lost; empty for ok.")
    status = s.CharField()
    http_status = s.IntegerField(allow_null=True)
    code = s.CharField()
    message = s.CharField()
    latency_ms = s.IntegerField(allow_null=True)
    ttft_ms = s.IntegerField(allow_null=True)
    output_tokens = s.IntegerField()
    tokens_per_s = s.FloatField(allow_null=True)
    cost_usd = usd()
    seen = s.DictField(help_text="What else the answer showed: input_tokens, finish, served_as, fingerprint.")


class ModelEstimate(s.Serializer[Any]):
    model = s.CharField()
    endpoint = s.CharField()
    calls = s.IntegerField()
    input_tokens = s.IntegerField()
    output_tokens = s.IntegerField()
    cost_usd = usd()


class Estimate(s.Serializer[Any]):
    kind = s.CharField(help_text="word, perf or drift.")
    cost_usd = usd()
    unpriced = s.IntegerField(help_text="Models whose price is unknown; cost_usd leaves them out.")
    models = ModelEstimate(many=True)
