"""What asking from a page takes and gives, for the OpenAPI description."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers as s

from panels.api.panel_shapes import SeatError
from panels.api.shapes import usd


class Seating(s.Serializer[Any]):
    seats = s.ListField(child=s.CharField(), required=False, allow_null=True, help_text="Exactly these sit as members. null: as the collection seats.")
    again = s.CharField(required=False, help_text="A panel on record: its prompt and its seats, unless others are given.")
    reseat = s.BooleanField(required=False, help_text="With again: the collection seats anew.")
    detached = s.BooleanField(required=False, help_text="The panel goes on when the connection closes.")

    def get_fields(self) -> dict[str, s.Field[Any, Any, Any, Any]]:
        besides = s.ListField(child=s.CharField(), required=False, help_text="Sit besides, at this one panel.")
        return {**super().get_fields(), "with": besides}  # a word of Python's own


class Asked(s.Serializer[Any]):
    model = s.CharField(required=False, help_text="bench/<collection>, with :merged or :route, or a model's alias. Needed without bench.again.")
    messages = s.ListField(child=s.DictField(), required=False, help_text="As in an OpenAI chat body. Needed without bench.again.")
    bench = Seating(required=False, allow_null=True)


class TokensGuessed(s.Serializer[Any]):
    typical = s.IntegerField()
    most = s.IntegerField()


class CostGuessed(s.Serializer[Any]):
    typical = usd()
    most = usd()


class SeatGuessed(s.Serializer[Any]):
    model = s.CharField()
    seat = s.CharField(help_text="member, explorer, merger, route or direct.")
    status = s.CharField(help_text="ready or skipped.")
    reason = SeatError(allow_null=True)
    input_tokens = s.IntegerField()
    output_tokens = TokensGuessed()
    cost_usd = CostGuessed(allow_null=True)


class QuestionEstimate(s.Serializer[Any]):
    model = s.CharField()
    mode = s.CharField()
    input_tokens = s.IntegerField()
    seats = SeatGuessed(many=True)
    cost_usd = CostGuessed()
    unknown = s.ListField(child=s.CharField(), help_text="Aliases without a price.")


class CallCancelled(s.Serializer[Any]):
    call = s.CharField()
    status = s.CharField(help_text="cancelling")


class PanelCancelled(s.Serializer[Any]):
    panel = s.CharField()
    status = s.CharField(help_text="cancelling")


class CompareAsked(s.Serializer[Any]):
    def get_fields(self) -> dict[str, s.Field[Any, Any, Any, Any]]:
        return {"with": s.CharField(required=False, help_text="Who compares. Without it the collection's mergers, else its members, in order.")}
