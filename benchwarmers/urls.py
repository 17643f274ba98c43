"""Every path that Django's own stack answers. The gateway's paths go through `benchwarmers.asgi` before they get here."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("", include("access.urls")),
    path("bench/", include("panels.urls")),
]
