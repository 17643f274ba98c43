"""What the paths of models take and give, for the OpenAPI description."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers as s

from panels.api import collection_shapes, roster_shapes
from panels.api.health_shapes import Health, Speed
from panels.api.model_lists import CAPABILITIES, SORTS, STATUSES
from panels.api.shapes import usd

LIST = [
    OpenApiParameter("find", str, description="Only models with this in their alias or served name; case does not matter, in any script."),
    OpenApiParameter("status", str, enum=list(STATUSES), description="Only models of this status."),
    OpenApiParameter("endpoint", str, description="Only models that this endpoint serves."),
    OpenApiParameter("can", str, description=f"Only models that can do all of these, parted by commas: {', '.join(CAPABILITIES)}."),
    OpenApiParameter("free", str, enum=["0", "1"], description="1: only models whose input and output cost nothing; 0: only others."),
    OpenApiParameter("collection", str, description="Only models that play or were judged in this collection; `record` is then of it alone."),
    OpenApiParameter("sort", str, description=f"{', '.join(SORTS)}: each from its best end, unknown last; with a - before it the other way round."),
]


class Figures(collection_shapes.Found):
    seats = s.IntegerField(help_text="How often it was seated, in all collections.")
    last_seated = s.DateTimeField(allow_null=True)
    score = s.FloatField(allow_null=True, help_text="The suite's, from 0 to 1.")


class Price(s.Serializer[Any]):
    input_usd_per_mtok = usd()
    output_usd_per_mtok = usd()


class Model(roster_shapes.Model):
    """The roster's with how it is and what verdicts say."""

    price = Price(help_text="Today's, US dollars per million tokens.")
    record = Figures()
    health = Health()
    speed = Speed(allow_null=True)


class ModelPage(s.Serializer[Any]):
    data = Model(many=True)  # type: ignore[assignment]  # as DRF itself calls what it has read
    next = s.CharField(allow_null=True)
    total = s.IntegerField(help_text="How many fit, on all pages.")


class DatedPrice(Price):
    since = s.DateField(help_text="The first day of UTC on which it holds.")
    cache_read_usd_per_mtok = usd()
    cache_write_usd_per_mtok = usd()
    reasoning_usd_per_mtok = usd()


class ModelWithRecord(Model):
    prices = DatedPrice(many=True, help_text="By date, newest first, over all sources.")
    records = collection_shapes.Record(many=True, help_text="By collection.")


class Day(s.Serializer[Any]):
    day = s.DateField(help_text="In BENCH_TIME_ZONE.")
    calls = s.IntegerField()
    failed = s.IntegerField()
    input_tokens = s.IntegerField()
    output_tokens = s.IntegerField()
    cache_read_tokens = s.IntegerField()
    cost_usd = usd()
    unpriced_calls = s.IntegerField(help_text="Calls whose price is unknown; cost_usd leaves them out.")
    latency_ms = s.FloatField(allow_null=True, help_text="The mean of its calls.")
    useful = s.FloatField(help_text="Of the answers judged on that day of UTC.")
    not_useful = s.FloatField()
    ttft_ms = s.FloatField(allow_null=True, help_text="Of the day's short speed probes, the median.")
    tokens_per_s = s.FloatField(allow_null=True, help_text="Of the day's long ones.")


class History(s.Serializer[Any]):
    model = s.CharField()
    days = Day(many=True, help_text="Every day of the stretch, oldest first.")

    def get_fields(self) -> dict[str, Any]:
        """`from` is no name that a class can give."""
        return {"from": s.DateField(), "to": s.DateField(), **super().get_fields()}


class Event(s.Serializer[Any]):
    at = s.DateTimeField()
    kind = s.ChoiceField(choices=["rest", "alert", "status", "probe"])
    what = s.CharField(help_text="A probe's outcome, what was done, an alert's or a rest's kind.")
    by = s.CharField(help_text="Who did it; empty where nobody did.")
    reason = s.CharField()
    details = s.DictField()


class EventPage(s.Serializer[Any]):
    data = Event(many=True)  # type: ignore[assignment]  # as above
    next = s.CharField(allow_null=True)


DAYS = OpenApiParameter("days", int, description="How many days up to today, 1 to 400; 90 without it.")
