"""What this API takes and gives of verdicts and panels, for its OpenAPI description."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers as s

from panels.api.shapes import claims, usd


class VerdictAsked(s.Serializer[Any]):
    call = s.CharField(help_text="The call id of the seat.")
    useful = s.BooleanField(required=False, allow_null=True)
    note = s.CharField(required=False, max_length=10_000)
    real = claims("Claims of the answer that hold. At most 200, real and false together.")
    false = claims("Claims of the answer that do not.")


class VerdictKept(s.Serializer[Any]):
    id = s.IntegerField()
    call = s.CharField()
    judge = s.CharField()
    useful = s.BooleanField(allow_null=True)
    note = s.CharField()
    real = s.ListField(child=s.CharField())
    false = s.ListField(child=s.CharField())
    at = s.DateTimeField()
    replaces = s.IntegerField(allow_null=True, help_text="The same judge's verdict before.")


class VerdictListed(VerdictKept):
    model = s.CharField()
    collection = s.CharField(help_text="Empty for a direct call.")


class PendingSeat(s.Serializer[Any]):
    call = s.CharField()
    model = s.CharField()
    seat = s.CharField(required=False, help_text="This and what follows with ?texts=1.")
    status = s.CharField(required=False)
    text = s.CharField(required=False, allow_null=True)
    finish_reason = s.CharField(required=False, allow_null=True)


class Pending(s.Serializer[Any]):
    panel = s.CharField()
    asked_at = s.DateTimeField()
    collection = s.CharField()
    seats = PendingSeat(many=True)
    prompt = s.JSONField(required=False, allow_null=True, help_text="With ?texts=1: the conversation as it was asked.")


class Usage(s.Serializer[Any]):
    input_tokens = s.IntegerField(help_text="Cache reads and writes included.")
    output_tokens = s.IntegerField(help_text="Reasoning included.")
    cache_read_tokens = s.IntegerField()
    cache_write_tokens = s.IntegerField()
    reasoning_tokens = s.IntegerField()
    estimated = s.BooleanField()


class Try(s.Serializer[Any]):
    model = s.CharField()
    status = s.IntegerField(allow_null=True, help_text="What the endpoint answered; null where no answer came.")
    code = s.CharField(allow_null=True)
    seconds = s.FloatField()
    cost_usd = usd()


class SeatError(s.Serializer[Any]):
    code = s.CharField()
    message = s.CharField()


class SeatListed(s.Serializer[Any]):
    call = s.CharField()
    model = s.CharField()
    seat = s.CharField(help_text="member, explorer, merger, route, direct or shadow.")
    status = s.CharField()
    seconds = s.FloatField(allow_null=True)
    ttft_seconds = s.FloatField(allow_null=True)
    finish_reason = s.CharField(allow_null=True)
    usage = Usage(allow_null=True)
    cost_usd = usd()
    tries = Try(many=True)
    error = SeatError(allow_null=True)
    judges = s.ListField(child=s.CharField(), help_text="Who has judged it.")


class SeatWhole(SeatListed):
    judges = None  # type: ignore[assignment]
    text = s.CharField(allow_null=True, help_text="The answer; null where none is kept.")
    verdicts = VerdictKept(many=True)


class PanelFields(s.Serializer[Any]):
    panel = s.CharField()
    collection = s.CharField(allow_null=True)
    mode = s.CharField()
    status = s.CharField(help_text="running, complete, degraded or failed.")
    asked_at = s.DateTimeField()
    judge = s.CharField(help_text="Who asked.")
    key = s.CharField(allow_null=True)
    key_id = s.IntegerField(allow_null=True)
    request = s.CharField(allow_null=True)
    dialect = s.CharField(allow_null=True)
    seconds = s.FloatField(allow_null=True)
    cost_usd = usd()


class PanelListed(PanelFields):
    opening = s.CharField(allow_null=True, help_text="The first words that a user says; null where the prompt is kept no longer or not the caller's to read.")
    seats = SeatListed(many=True)


class Picked(s.Serializer[Any]):
    draws = s.DictField(child=s.ListField(child=s.FloatField()), help_text="By alias: the Beta's two parameters, and what the seed drew from it.")
    forced = s.ListField(child=s.CharField(), help_text="Who sat because its turn had come.")


class ClaimSeat(s.Serializer[Any]):
    call = s.CharField()
    quote = s.CharField(help_text="Stands word for word in that seat's answer, white space aside.")


class Claim(s.Serializer[Any]):
    text = s.CharField()
    kind = s.CharField(help_text="shared, unique or contradicted.")
    seats = ClaimSeat(many=True)


class Dropped(s.Serializer[Any]):
    claims = s.IntegerField()
    quotes = s.IntegerField()


class Comparison(s.Serializer[Any]):
    call = s.CharField()
    model = s.CharField()
    judge = s.CharField(help_text="Who asked for it.")
    at = s.DateTimeField()
    status = s.CharField()
    claims = Claim(many=True)
    dropped = Dropped()
    cost_usd = usd()
    usage = Usage(allow_null=True)


class PanelWhole(PanelFields):
    seats = SeatWhole(many=True)
    prompt = s.JSONField(allow_null=True, help_text="The conversation as it was asked; null where none is kept.")
    seed = s.IntegerField(allow_null=True)
    picked = Picked(allow_null=True, help_text="Where the record decided who sits or takes the turn.")
    merge_order = s.ListField(child=s.CharField(), allow_null=True)
    comparison = Comparison(allow_null=True, help_text="What the answers claim, once somebody had them compared.")
