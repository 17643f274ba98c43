"""What the paths of models take and give, for the OpenAPI description."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers as s

from panels.api import shapes
from panels.api.health_shapes import Health, Speed
from panels.api.model_lists import SORTS, STATUSES
from panels.api.shapes import usd

LIST = [
    OpenApiParameter("find", str, description="Only models with this in their alias or served name; case does not matter, in any script."),
    OpenApiParameter("status", str, enum=list(STATUSES), description="Only models of this status."),
    OpenApiParameter("collection", str, description="Only models that play or were judged in this collection; `record` is then of it alone."),
    OpenApiParameter("sort", str, description=f"{', '.join(SORTS)}: each from its best end, unknown last; with a - before it the other way round."),
]


class Figures(shapes.Found):
    seats = s.IntegerField(help_text="How often it was seated, in all collections.")
    last_seated = s.DateTimeField(allow_null=True)
    score = s.FloatField(allow_null=True, help_text="The suite's, from 0 to 1.")


class Price(s.Serializer[Any]):
    input_usd_per_mtok = usd()
    output_usd_per_mtok = usd()


class Model(shapes.Model):
    """The roster's with how it is and what verdicts say."""

    price = Price(help_text="Today's, US dollars per million tokens.")
    record = Figures()
    health = Health()
    speed = Speed(allow_null=True)


class ModelWithRecord(Model):
    records = shapes.Record(many=True, help_text="By collection.")
