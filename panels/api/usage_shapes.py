"""What the paths of usage, quotas, budgets, alerts and calls take and give, for the OpenAPI description."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers as s

from health import sums
from panels.api.shapes import usd

FORMAT = OpenApiParameter("format", str, enum=["json", "csv"], description="csv: the whole list as a file, safe to open in a spreadsheet.")
BY = OpenApiParameter("by", str, enum=list(sums.BY), description="What to sum by; model without it. owner is another word for judge.")
GROUP = OpenApiParameter("group", str, enum=list(sums.GROUPS), description="month (as without it) or day.")
MONTH = OpenApiParameter("month", str, description="One month, like 2026-11; all without it.")
FROM = OpenApiParameter("from", str, description="First day, like 2026-11-01, in BENCH_TIME_ZONE.")
TO = OpenApiParameter("to", str, description="Last day, itself included.")
TOP = OpenApiParameter("top", int, description="So many of what costs most, 1 to 20, oldest first; all others are one row a period whose name is null.")
CALLS = [
    OpenApiParameter("model", str, description="Only calls of this alias."),
    OpenApiParameter("panel", str, description="Only calls of this panel."),
    OpenApiParameter("call", str, description="Only tries of this call."),
    OpenApiParameter(
        "status", str, description="Only calls that ended so; failed: every end but ok. Like those below among the newest 20,000 of what is above."
    ),
    OpenApiParameter("endpoint", str, description="Only calls of this endpoint."),
    OpenApiParameter("key_name", str, description="Only calls made with the key of this name."),
    OpenApiParameter("collection", str, description="Only calls of this collection."),
    OpenApiParameter("purpose", str, description="Only calls made for this: panel, merged, route, direct, probe …"),
    OpenApiParameter("judge", str, description="Only calls that this user or owner asked for."),
]
SCOPE = OpenApiParameter("scope", str, description="Only limits of these, with commas between: endpoint, model, key, owner, team, collection.")
NAME = OpenApiParameter("find", str, description="Only limits of what has this in its name, without regard to case.")


class UsageRow(s.Serializer[Any]):
    month = s.CharField(required=False, help_text="Or day, where ?group=day asked for it.")
    model = s.CharField(required=False, help_text="Or key, endpoint, collection, judge, owner, team, purpose: what ?by= asked for.")
    calls = s.IntegerField()
    failed = s.IntegerField()
    input_tokens = s.IntegerField()
    output_tokens = s.IntegerField()
    cache_read_tokens = s.IntegerField()
    cache_write_tokens = s.IntegerField()
    reasoning_tokens = s.IntegerField()
    estimated_calls = s.IntegerField(help_text="Calls whose tokens are an estimate.")
    cost_usd = usd()
    unpriced_calls = s.IntegerField(help_text="Calls whose price is unknown; cost_usd leaves them out.")


class Call(s.Serializer[Any]):
    id = s.CharField()
    call = s.CharField()
    panel = s.CharField()
    request = s.CharField(allow_null=True)
    started_at = s.DateTimeField()
    purpose = s.CharField(help_text="panel, merged, route, direct, shadow, probe, onboard, suite …")
    seat = s.CharField()
    collection = s.CharField(allow_null=True)
    judge = s.CharField(help_text="Who asked.")
    team = s.CharField(allow_null=True)
    key = s.CharField(allow_null=True)
    endpoint = s.CharField()
    model = s.CharField()
    served_name = s.CharField()
    status = s.CharField()
    http_status = s.IntegerField(allow_null=True)
    code = s.CharField(allow_null=True)
    error = s.CharField(allow_null=True)
    finish_reason = s.CharField(allow_null=True)
    seconds = s.FloatField()
    ttft_seconds = s.FloatField(allow_null=True)
    input_tokens = s.IntegerField()
    output_tokens = s.IntegerField()
    cache_read_tokens = s.IntegerField()
    cache_write_tokens = s.IntegerField()
    reasoning_tokens = s.IntegerField()
    estimated = s.BooleanField()
    cost_usd = usd()


class Quota(s.Serializer[Any]):
    scope = s.CharField(help_text="endpoint, model, key, owner, team or collection.")
    name = s.CharField()
    measure = s.CharField(help_text="requests, tokens, parallel or usd; another where a provider counts otherwise.")
    window = s.CharField(help_text="minute, day, month or parallel; another where a provider counts otherwise.")
    direction = s.CharField(allow_null=True, help_text="input or output, where a provider counts them apart.")
    source = s.CharField(help_text="hand, header, refusal, or shadow: a limit that only reports.")  # type: ignore[assignment]  # DRF's own attribute
    limit = s.JSONField(allow_null=True, help_text="A whole number, or US dollars as exact text; null where the provider told none.")
    used = s.JSONField(allow_null=True)
    left = s.JSONField(allow_null=True)
    resets_at = s.DateTimeField(allow_null=True, help_text="When the window begins anew; of a rolling minute, when what is used has left it.")
    provider_remaining = s.IntegerField(allow_null=True, help_text="What the provider last said is left.")
    provider_resets_at = s.DateTimeField(allow_null=True)
    told_at = s.DateTimeField(allow_null=True, help_text="When it said so, or told the limit.")
    would_refuse = s.IntegerField(allow_null=True, help_text="Of shadow limits: calls of the last 30 days that it would have refused.")


class Rest(s.Serializer[Any]):
    scope = s.CharField(help_text="endpoint or model.")
    name = s.CharField()
    kind = s.CharField(help_text="limit: a provider's limit; key: it refused the key; overload: it or its network failed.")
    until = s.DateTimeField()
    reason = s.CharField()
    since = s.DateTimeField()


class BudgetAsked(s.Serializer[Any]):
    kind = s.ChoiceField(choices=["owner", "team", "collection"], help_text="Needed to make one; it cannot be changed.")
    name = s.CharField(max_length=200, help_text="The owner's, team's or collection's name. Needed to make one; it cannot be changed.")
    budget_usd = usd()
    alert_at = s.ListField(child=s.IntegerField(min_value=1, max_value=1000), required=False, help_text="Percent; [80, 100] without it.")


class BudgetChanged(s.Serializer[Any]):
    budget_usd = usd(required=False)
    alert_at = s.ListField(child=s.IntegerField(min_value=1, max_value=1000), required=False)


class Budget(s.Serializer[Any]):
    kind = s.CharField()
    name = s.CharField()
    budget_usd = usd()
    alert_at = s.ListField(child=s.IntegerField())
    spent_usd = usd(help_text="This calendar month, as the ledger has it.")
    reserved_usd = usd(help_text="Held for calls under way.")
    left_usd = usd()
    resets_at = s.DateTimeField()
    created_at = s.DateTimeField()


class Alert(s.Serializer[Any]):
    id = s.IntegerField()
    kind = s.CharField(help_text="budget, drift, retired, source, signin, schedule.")
    subject = s.CharField()
    message = s.CharField()
    at = s.DateTimeField()
    seen_at = s.DateTimeField(allow_null=True)
    seen_by = s.CharField()
