"""What this API takes and gives of models and endpoints of the roster, for its OpenAPI description."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers as s

ALIAS_AND_VERB = OpenApiParameter("alias", str, location="path", description="The alias, percent-encoded, then /retire or /restore.")


class Reason(s.Serializer[Any]):
    reason = s.CharField(max_length=500)


class Fact(s.Serializer[Any]):
    value = s.JSONField(help_text="Prices are exact decimal text; tiers are a list of them.")
    source = s.CharField(help_text='"hand", "endpoint list", or a catalog: "models_dev", "openrouter", "freellmapi".')  # type: ignore[assignment]  # DRF's own attribute of a field
    since = s.DateTimeField(allow_null=True, help_text="Since when this source says so, as far as it is known here.")


class ModelAsked(s.Serializer[Any]):
    alias = s.CharField(max_length=200, help_text="Needed to add one; it cannot be changed.")
    endpoint = s.CharField(help_text="An endpoint's name. Needed to add one.")
    served_name = s.CharField(max_length=300, required=False, help_text="The name the endpoint knows it by; the alias without it.")
    limits = s.DictField(required=False, help_text='{"requests": {"minute": 30, "day": 1000, "month": 20000}, "tokens": {…}, "parallel": 4}')
    facts = s.DictField(required=False, help_text="Facts and prices set by hand; null takes one back.")
    quirks = s.DictField(required=False)
    ad_hoc = s.BooleanField(required=False)


class Model(s.Serializer[Any]):
    alias = s.CharField()
    endpoint = s.CharField()
    served_name = s.CharField()
    status = s.ChoiceField(choices=["active", "resting", "retired"])
    until = s.DateTimeField(allow_null=True, help_text="When a rest ends.")
    reason = s.CharField(allow_null=True)
    status_at = s.DateTimeField(allow_null=True)
    evidence = s.DictField()
    ad_hoc = s.BooleanField()
    facts = s.DictField(child=Fact())
    limits = s.DictField()
    limits_left = s.DictField(help_text="What may still be used now of its own limits (`model`) and its endpoint's (`endpoint`).")
    quirks = s.DictField()
    created_at = s.DateTimeField()


class EndpointAsked(s.Serializer[Any]):
    name = s.CharField(max_length=200, help_text="Needed to add one; it cannot be changed.")
    kind = s.CharField(required=False, help_text="openai without it.")
    base_url = s.CharField(max_length=500, help_text="Needed to add one.")
    provider = s.CharField(max_length=100, required=False, help_text="Its id in the public catalogs, for example groq. Without it, it is found by its address.")
    key_env = s.CharField(required=False, help_text="A variable BENCHWARMERS_KEY_… that holds the key.")
    limits = s.DictField(required=False)
    quirks = s.DictField(required=False)
    key = s.CharField(required=False, write_only=True, help_text="Stored encrypted, never shown. An empty one is forgotten.")


class Endpoint(s.Serializer[Any]):
    name = s.CharField()
    kind = s.CharField()
    base_url = s.CharField()
    provider = s.CharField(help_text="Its id in the public catalogs, where it was set by hand.")
    key_env = s.CharField()
    key = s.CharField(help_text='Where its key comes from: "stored", "variable …" or "none".')
    limits = s.DictField()
    quirks = s.DictField()
    models = s.IntegerField(help_text="How many models it serves here.")
    created_at = s.DateTimeField()
