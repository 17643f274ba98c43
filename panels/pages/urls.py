"""Paths of the pages, below /app. Every module here that has `urlpatterns` adds its own."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from django.urls import URLPattern

from panels import pages

app_name = "pages"

urlpatterns: list[URLPattern] = [
    found
    for module in sorted(m.name for m in pkgutil.iter_modules(pages.__path__) if m.name != "urls")
    for found in getattr(import_module(f"panels.pages.{module}"), "urlpatterns", ())
]
