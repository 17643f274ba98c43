"""Where models could come from: providers that are known by name, and model servers that run on this machine."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from catalog import nearby, offers, providers
from panels.api import shapes
from panels.api.view import View, answer
from panels.api.wording import to_json


class ProviderKnown(s.Serializer[Any]):
    provider = s.CharField(help_text="Its id, models.dev's where it has one.")
    title = s.CharField()
    kind = s.CharField(help_text="What an endpoint for it would be.")
    base_url = s.CharField(help_text="May hold ${NAME} parts, which are each user's own.")
    key_env = s.CharField(help_text="The variable that its users keep its key in.")
    doc = s.CharField(help_text="Its page.")


class KindKnown(s.Serializer[Any]):
    kind = s.CharField()
    title = s.CharField()


class ProvidersKnown(s.Serializer[Any]):
    data = ProviderKnown(many=True)  # type: ignore[assignment]  # as DRF itself calls what it has read
    next = s.CharField(allow_null=True)
    kinds = KindKnown(many=True)


class NearbyServer(s.Serializer[Any]):
    name = s.CharField(help_text="What an endpoint for it could be called.")
    title = s.CharField()
    kind = s.CharField()
    base_url = s.CharField()
    count = s.IntegerField(help_text="How many models it lists.")
    models = s.ListField(child=s.CharField(), help_text="The first 20 of them.")
    endpoint = s.CharField(allow_blank=True, help_text="The endpoint that is at this address already; empty for none.")
    wants_key = s.BooleanField(help_text="It wants a key before it lists anything.")


class NearbyFound(s.Serializer[Any]):
    data = NearbyServer(many=True)  # type: ignore[assignment]
    next = s.CharField(allow_null=True)
    own_machine = s.BooleanField(help_text="false: others can reach this server, so it did not look at its own machine.")
    addresses = s.ListField(child=s.CharField(), help_text="What the setting nearby.addresses names.")


class Providers(View):
    scopes = {"GET": ("read",)}

    @shapes.described(operation_id="list_providers", responses=ProvidersKnown)
    def get(self, request: Request) -> Response:
        """Lists providers whose address is known, by title, and the kinds of endpoint that there are."""
        known = sorted((one for one in offers.known_providers().values() if one.base_url and one.kind), key=lambda one: one.title.casefold())
        found = [{"provider": o.provider, "title": o.title, "kind": o.kind, "base_url": o.base_url, "key_env": o.key_env, "doc": o.doc} for o in known]
        return Response({"data": found, "next": None, "kinds": [{"kind": one.kind, "title": one.title} for one in providers.every()]})


class Nearby(View):
    @shapes.described(operation_id="look_nearby", request=None, responses=NearbyFound)
    def post(self, request: Request) -> Response:
        """Looks for model servers on this machine at the ports that they use by themselves. Nothing is looked at unless this is asked for."""
        port = str(request._request.META.get("SERVER_PORT", ""))
        looked = nearby.look(int(port) if port.isdecimal() else 0)
        return answer({"data": [to_json(one) for one in looked.found], "next": None, "own_machine": looked.own_machine, "addresses": list(looked.addresses)})
