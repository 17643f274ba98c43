"""Admin pages of schedules: when each runs, how its runs went, what one will cost; switching, changing and running it now."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget, UnfoldBooleanSwitchWidget

from access.admin.audited import AuditedAdmin, ReadOnly, actor
from health import schedules
from health.costs import usd_text
from health.models import Schedule

PRESETS = (
    ("", "As written below"),
    ("0 * * * *", "Every hour"),
    ("30 4 * * *", "Every day at 4:30"),
    ("30 4 * * 1-5", "Every weekday at 4:30"),
    ("0 3 * * 0", "Every Sunday at 3:00"),
    ("0 3 1 * *", "On the first of every month at 3:00"),
)


class ScheduleForm(forms.Form):
    """When a schedule runs. Its rules are those of `health.schedules`."""

    enabled = forms.BooleanField(label="On", required=False, widget=UnfoldBooleanSwitchWidget())
    preset = forms.ChoiceField(label="When", choices=PRESETS, required=False, widget=UnfoldAdminSelectWidget())
    cron = forms.CharField(
        label="Cron",
        max_length=100,
        required=False,
        widget=UnfoldAdminTextInputWidget(attrs={"spellcheck": "false"}),
        help_text="Minute, hour, day of month, month, day of week: 30 4 * * * is every day at 4:30. Empty: the default.",
    )
    time_zone = forms.CharField(
        label="Time zone",
        required=False,
        widget=UnfoldAdminTextInputWidget(attrs={"list": "zones", "spellcheck": "false"}),
        help_text="For example Europe/Paris. Empty: the server's.",
    )

    def given(self) -> dict[str, Any]:
        said = self.cleaned_data
        return {"enabled": said["enabled"], "cron": said["preset"] or said["cron"].strip(), "time_zone": said["time_zone"].strip()}


@admin.register(Schedule)
class ScheduleAdmin(ReadOnly, AuditedAdmin):
    """What is shown are the registered schedules, not rows: one that nobody changed has none."""

    noun = "schedule"

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        rows = [{"one": one, "next": local(one.next_run_at, one.time_zone), "link": self.link(one.name)} for one in schedules.every(timezone.now())]
        return self.page(request, "admin/bench/schedules.html", "Schedules", rows=rows)

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        name = unquote(object_id)
        if name not in schedules.registered:
            raise Http404("There is no such schedule.")
        may_change = request.user.has_perm("health.change_schedule")
        if request.method == "POST" and not may_change:
            raise PermissionDenied
        now = timezone.now()
        one = schedules.shown(name, now)
        form = self.form_of(request, one)
        if request.method == "POST" and (done := self.act(request, one, form)):
            return done
        cost = schedules.cost_of(name)
        return self.page(
            request,
            "admin/bench/schedule.html",
            f"Schedule {name}",
            one=one,
            form=form if may_change else None,
            next_runs=[local(moment, one.time_zone) for moment in one.next_runs],
            runs=schedules.runs_of(name),
            cost=cost,
            cost_usd=usd_text(cost.cost_pusd) if cost and cost.cost_pusd is not None else None,
            zones=sorted(available_timezones()),
            back=reverse("admin:health_schedule_changelist"),
        )

    def form_of(self, request: HttpRequest, one: schedules.Shown) -> ScheduleForm:
        if request.method == "POST" and "run" not in request.POST:
            return ScheduleForm(request.POST)
        cron = "" if one.cron == one.default_cron else one.cron
        row = Schedule.objects.filter(pk=one.name).first()
        preset = cron if cron in dict(PRESETS) else ""
        return ScheduleForm(initial={"enabled": one.enabled, "preset": preset, "cron": cron, "time_zone": row.time_zone if row else ""})

    def act(self, request: HttpRequest, one: schedules.Shown, form: ScheduleForm) -> HttpResponse | None:
        """Runs or changes a schedule; None where the form must be looked at again."""
        now = timezone.now()
        try:
            if "run" in request.POST:
                schedules.run_now(one.name, actor(request), now)
                self.say(request, f"{one.name} is queued; it begins within half a minute.")
                return HttpResponseRedirect(request.path)
            if not form.is_valid():
                return None
            changed = schedules.change(one.name, form.given(), actor(request), now)
            self.say(request, f"{one.name} is saved: {changed.words.lower() if changed.enabled else 'off'}.")
            return HttpResponseRedirect(request.path)
        except schedules.ScheduleError as error:
            if error.field in form.fields and form.is_bound:
                form.add_error(error.field, str(error).removeprefix(f"{error.field} ").capitalize())
                return None
            self.say(request, str(error), good=False)
            return HttpResponseRedirect(request.path)

    def link(self, name: str) -> str:
        return reverse("admin:health_schedule_change", args=[name])


def local(moment: Any, zone: str) -> str:
    """A time on the schedule's own clock."""
    return "" if moment is None else f"{moment.astimezone(ZoneInfo(zone)):%a %d %b %Y %H:%M}"
