"""The admin's page of settings that hold from the next moment on, without a restart."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from access import preferences
from access.admin.audited import AuditedAdmin, ReadOnly, actor
from access.models import Preference


@admin.register(Preference)
class PreferenceAdmin(ReadOnly, AuditedAdmin):
    """One page with all that there is. What is shown are the registered settings, not rows: a default has none."""

    noun = "setting"

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        may_change = request.user.has_perm("access.change_preference")
        if request.method == "POST":
            if not may_change:
                raise PermissionDenied
            return self.change(request)
        rows = [
            {"one": one, "text": text_of(one.value), "default": text_of(one.default), "is_truth": isinstance(one.default, bool)} for one in preferences.shown()
        ]
        return self.page(request, "admin/bench/settings.html", "Settings", opts=None, rows=rows, may_change=may_change)

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        return HttpResponseRedirect("../../")

    def change(self, request: HttpRequest) -> HttpResponse:
        name, given = request.POST.get("name", ""), request.POST.get("value", "").strip()
        try:
            value = None if "default" in request.POST or not given else json.loads(given)
        except ValueError:
            value = given
        try:
            one = preferences.change(name, value, actor(request))
            self.say(request, f"{name} is {text_of(one.value)} from now on.")
        except preferences.PreferenceError as error:
            self.say(request, f"Nothing was changed: {error}", good=False)
        return HttpResponseRedirect(request.path)


def text_of(value: Any) -> str:
    """A value as it is typed: JSON, texts without their quotes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
