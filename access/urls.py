"""Paths of this room: the sign-in link."""

from __future__ import annotations

from django.urls import URLPattern, path

from access.signin import signin

urlpatterns: list[URLPattern] = [path("signin/<str:token>", signin, name="signin")]
