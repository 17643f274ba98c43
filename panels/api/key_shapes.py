"""What this API takes and gives of keys, for its OpenAPI description."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers as s

from access.caller import SCOPES
from panels.api.shapes import usd


class KeyAsked(s.Serializer[Any]):
    name = s.CharField(max_length=200, help_text="What uses it. Needed to make one.")
    owner = s.CharField(required=False, max_length=200, allow_null=True)
    team = s.CharField(required=False, max_length=200, allow_null=True, help_text="Whose budget its calls count against besides its own.")
    scopes = s.ListField(child=s.ChoiceField(choices=list(SCOPES)), required=False, help_text="ask and judge without it.")
    collections = s.ListField(child=s.CharField(), required=False, allow_null=True, help_text="Collections it may ask; null and no models: all.")
    models = s.ListField(child=s.CharField(), required=False, allow_null=True, help_text="Aliases it may ask, or prefixes that end in *.")
    rpm = s.IntegerField(required=False, allow_null=True, min_value=1, help_text="Requests a minute.")
    tpm = s.IntegerField(required=False, allow_null=True, min_value=1, help_text="Tokens a minute.")
    max_parallel = s.IntegerField(required=False, allow_null=True, min_value=1, help_text="Calls at once.")
    budget_usd = usd(required=False)
    expires_at = s.DateTimeField(required=False, allow_null=True)
    keep_text = s.BooleanField(required=False, allow_null=True)


class Key(KeyAsked):
    kind = s.ChoiceField(choices=["key", "token", "test_token"], help_text="A gateway key, or somebody's personal token.")
    hint = s.CharField(help_text="How it begins.")
    created_at = s.DateTimeField()
    revoked_at = s.DateTimeField(allow_null=True)
    last_used_at = s.DateTimeField(allow_null=True)


class KeyMade(Key):
    key = s.CharField(help_text="The key itself, this once.")
