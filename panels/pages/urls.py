"""Paths of the pages, below /app. Every module in a room's `pages` folder that has `urlpatterns` adds its own."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module

from django.apps import apps
from django.urls import URLPattern
from django.utils.module_loading import module_has_submodule

app_name = "pages"


def modules() -> Iterator[str]:
    """Names every module of pages, room by room, each room's by name."""
    for app in apps.get_app_configs():
        if app.module is not None and module_has_submodule(app.module, "pages"):
            package = f"{app.name}.pages"
            folder = getattr(import_module(package), "__path__", ())  # access has a module of that name
            for name in sorted(module.name for module in pkgutil.iter_modules(folder)):
                if name != "urls":
                    yield f"{package}.{name}"


urlpatterns: list[URLPattern] = [found for module in modules() for found in getattr(import_module(module), "urlpatterns", ())]
