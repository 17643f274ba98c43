"""Admin pages of onboarding: batches with their progress, and the way there from what an endpoint serves."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from access.admin.audited import AuditedAdmin, ReadOnly, actor
from catalog.admin.endpoints import EndpointAdmin as RosterEndpointAdmin
from catalog.models import Endpoint
from health import onboarding
from health.costs import usd_text
from health.models import Batch
from wire.errors import CallerError

WORDS = {
    "full": "Full: check it, time it, run the suite",
    "quick": "Quick: check that it answers",
    "quick_ad_hoc": "Ad hoc: only on the roster, never called by itself",
}


@admin.register(Batch)
class BatchAdmin(ReadOnly, AuditedAdmin):
    """Batches are written by the server; a person may cancel one."""

    noun = "onboarding"

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            page = onboarding.batches(50, request.GET.get("page_token", ""))
        except CallerError:  # a page token of somebody's own
            return HttpResponseRedirect(request.path)
        rows = [
            {"one": one, "link": batch_link(one.id), "usd": usd_text(one.cost_pusd), "percent": round(one.progress * 100), "total": sum(one.counts.values())}
            for one in page.data
        ]
        return self.page(
            request, "admin/bench/batches.html", "Onboarding", opts=None, rows=rows, next=page.next, endpoints=reverse("admin:catalog_endpoint_changelist")
        )

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        batch_id = unquote(object_id)
        may_cancel = request.user.has_perm("health.change_batch")
        try:
            if request.method == "POST":
                if not may_cancel:
                    raise PermissionDenied
                count = onboarding.cancel(batch_id, actor(request))
                self.say(request, f"Cancelled {count} model{'' if count == 1 else 's'}." if count else "All of it had ended.")
                return HttpResponseRedirect(request.path)
            one = onboarding.shown(batch_id)
        except onboarding.UnknownBatch:
            raise Http404("There is no such batch.") from None
        models = [{"one": m, "usd": usd_text(m.cost_pusd), "stages": stages_of(m)} for m in one.models]
        is_open = bool(one.counts["waiting"] or one.counts["running"])
        return self.page(
            request,
            "admin/bench/batch.html",
            f"Onboarding at {one.endpoint}",
            opts=None,  # the frame would call the page by the table's name
            one=one,
            models=models,
            usd=usd_text(one.cost_pusd),
            percent=round(one.progress * 100),
            is_open=is_open,
            may_cancel=may_cancel and is_open,
            mode=WORDS.get(one.mode, one.mode),
            back=reverse("admin:health_batch_changelist"),
        )


def stages_of(model: onboarding.ModelShown) -> list[dict[str, str]]:
    """Each stage of its mode with how it stands: done, now, or to come."""
    found = []
    for stage in onboarding.MODES.get(model.mode, ()):
        came = model.stages.get(stage)
        outcome = came["outcome"] if came else "now" if stage == model.stage and model.state == "running" else "to come"
        found.append({"name": stage, "outcome": outcome, "said": came["said"] if came else ""})
    return found


def batch_link(batch_id: str) -> str:
    return reverse("admin:health_batch_change", args=[quote(batch_id)])


admin.site.unregister(Endpoint)


@admin.register(Endpoint)
class EndpointAdmin(RosterEndpointAdmin):
    """The roster's pages of endpoints, whose list of served models leads to onboarding too."""

    def page(self, request: HttpRequest, template: str, title: str, **context: Any) -> TemplateResponse:
        if template == "admin/bench/serves.html":
            context |= {"modes": WORDS.items()}
        return super().page(request, template, title, **context)

    def add_ticked(self, request: HttpRequest, obj: Endpoint, back: str) -> HttpResponse:
        if not request.POST.get("onboard"):
            return super().add_ticked(request, obj, back)
        picked, mode = request.POST.getlist("pick"), request.POST.get("mode", "")
        try:
            if "begin" in request.POST:
                return self.begin(request, obj, picked, mode)
            expected = onboarding.expected(obj.name, picked, mode)
        except onboarding.OnboardError as error:
            nothing = "No model was ticked, so none was onboarded." if not picked else f"Nothing was begun: {error}"
            self.say(request, nothing, good=False)
            return HttpResponseRedirect(request.path)
        return self.page(
            request,
            "admin/bench/onboard.html",
            f"Onboard {len(picked)} model{'' if len(picked) == 1 else 's'} of {obj.name}",
            original=obj,
            picked=picked,
            mode=mode,
            words=WORDS[mode],
            expected=expected,
            usd=usd_text(expected.cost_pusd),
            back=request.path,
        )

    def begin(self, request: HttpRequest, obj: Endpoint, picked: list[str], mode: str) -> HttpResponse:
        """Errors: onboarding.OnboardError."""
        started = onboarding.start(obj.name, picked, mode, actor(request))
        batch = started.batch or min([*started.open.values(), *started.done.values()])
        if not started.batch:
            self.say(request, "Nothing was begun: this batch has them already.", good=False)
        elif left := len(picked) - started.models:
            self.say(request, f"{started.models} begun; {left} under way or done already.")
        return HttpResponseRedirect(batch_link(batch))
