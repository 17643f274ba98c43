"""Every path that Django's own stack answers. The gateway's paths go through `benchwarmers.asgi` before they get here."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from benchwarmers import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("livez", views.livez),
    path("readyz", views.readyz),
    path("metrics", views.MetricsView.as_view()),
    path("admin/", admin.site.urls),
    path("", include("access.urls")),
    path("", include("catalog.urls")),
    path("bench/", include("panels.urls")),
    path("v1/", include("suite.urls")),
    path("app/", include("panels.pages.urls")),
    path("registry", RedirectView.as_view(pattern_name="pages:registry")),
    path("registry/<str:benchmark>", RedirectView.as_view(pattern_name="pages:benchmark")),
    path("registry/<str:benchmark>/<str:slug>", RedirectView.as_view(pattern_name="pages:subset")),
    path("", RedirectView.as_view(pattern_name="pages:home"), name="root"),
]
