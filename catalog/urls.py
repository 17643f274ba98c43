"""Paths of this room: where providers send browsers back to. Some give back no state, so it may stand in the path."""

from __future__ import annotations

from django.urls import URLPattern, path

from catalog.views import signin_callback

urlpatterns: list[URLPattern] = [
    path("signins/callback/<str:provider>", signin_callback, name="signin_callback"),
    path("signins/callback/<str:provider>/<str:state>", signin_callback),
]
