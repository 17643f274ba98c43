"""Paths below /bench. Names in paths are percent-encoded and may hold slashes."""

from __future__ import annotations

from django.urls import URLPattern, path, re_path

from panels.api.alerts import Alerts, Seen
from panels.api.ask_paths import Ask, CancelCall, CancelPanel, Compare, Estimate
from panels.api.budgets import Budget, Budgets
from panels.api.candidates import Candidates
from panels.api.client import Client, ClientFile
from panels.api.collections import Collection, Collections
from panels.api.demo import Demo
from panels.api.discover import Discover
from panels.api.endpoints import Endpoint, Endpoints
from panels.api.keys import Key, Keys
from panels.api.later import Unknown
from panels.api.models import Model, Models
from panels.api.nearby import Nearby, Providers
from panels.api.onboard import Batch, BatchCancel, Onboard
from panels.api.panels import Panel, PanelExport, Panels
from panels.api.probes import Estimates, Probes
from panels.api.quotas import Quotas, Rests
from panels.api.schedules import Schedule, ScheduleRun, Schedules
from panels.api.schema import Schema
from panels.api.settings import Setting, Settings
from panels.api.signins import Providers as SignInProviders
from panels.api.signins import SignIn, SignIns
from panels.api.sources import Sources
from panels.api.status import Status
from panels.api.usage import Calls, Usage
from panels.api.verdicts import Pending, Verdict, Verdicts

urlpatterns: list[URLPattern] = [
    path("verdict", Verdict.as_view()),
    path("verdicts", Verdicts.as_view()),
    path("verdicts/pending", Pending.as_view()),
    path("ask", Ask.as_view()),
    path("estimate", Estimate.as_view()),
    path("panels", Panels.as_view()),
    path("panels/<str:panel_id>/export", PanelExport.as_view()),
    path("panels/<str:panel_id>/cancel", CancelPanel.as_view()),
    path("panels/<str:panel_id>/compare", Compare.as_view()),
    path("panels/<path:panel_id>", Panel.as_view()),
    path("collections", Collections.as_view()),
    path("collections/<path:name>", Collection.as_view()),
    path("models", Models.as_view()),
    path("models/<path:alias>", Model.as_view()),
    path("probes", Probes.as_view()),
    path("probes/estimate", Estimates.as_view()),
    path("endpoints", Endpoints.as_view()),
    path("endpoints/<path:name>", Endpoint.as_view()),
    path("keys", Keys.as_view()),
    path("keys/<path:name>", Key.as_view()),
    path("signins", SignIns.as_view()),
    path("signins/providers", SignInProviders.as_view()),
    path("signins/<str:signin>", SignIn.as_view()),
    path("budgets", Budgets.as_view()),
    path("budgets/<str:kind>/<path:name>", Budget.as_view()),
    path("alerts", Alerts.as_view()),
    path("alerts/<str:alert_id>/seen", Seen.as_view()),
    path("quotas", Quotas.as_view()),
    path("rests", Rests.as_view()),
    path("sources", Sources.as_view()),
    path("candidates", Candidates.as_view()),
    path("providers", Providers.as_view()),
    path("nearby", Nearby.as_view()),
    path("demo", Demo.as_view()),
    path("discover", Discover.as_view()),
    path("onboard", Onboard.as_view()),
    path("onboard/<str:batch>", Batch.as_view()),
    path("onboard/<str:batch>/cancel", BatchCancel.as_view()),
    path("schedules", Schedules.as_view()),
    path("schedules/<str:name>", Schedule.as_view()),
    path("schedules/<str:name>/run", ScheduleRun.as_view()),
    path("settings", Settings.as_view()),
    path("settings/<str:name>", Setting.as_view()),
    path("usage", Usage.as_view()),
    path("calls", Calls.as_view()),
    path("calls/<str:call>/cancel", CancelCall.as_view()),
    path("status", Status.as_view()),
    path("schema", Schema.as_view()),
    path("client", Client.as_view()),
    path("client/<str:file>", ClientFile.as_view()),
    re_path(r"", Unknown.as_view()),
]
