"""Admin pages of sign-ins: which providers there are, starting one, the code to type, signing out. For admins, since what comes of it is a secret."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.enums import ActionVariant
from unfold.widgets import UnfoldAdminTextInputWidget

from access.admin.audited import AuditedAdmin, ReadOnly, actor, moment
from access.admin.typed import action, display
from catalog import signin_rows, signing
from catalog.models import SignIn
from catalog.shape import ShapeError
from catalog.views import callback_url

TONES = {"open": "is-warn", "done": "is-good", "failed": "is-bad"}
WORDS = {"open": "waiting", "done": "signed in", "failed": "failed"}
BUTTONS = {"code": "Sign in with the browser", "device": "Sign in with a code"}


class StartForm(forms.Form):
    """Which endpoint a sign-in is for, and the id of one's own app where the provider wants one."""

    endpoint = forms.CharField(
        label="Endpoint", max_length=200, widget=UnfoldAdminTextInputWidget, help_text="Made where there is none of this name, else given the new token."
    )
    client_id = forms.CharField(label="Client id", required=False, max_length=300, widget=UnfoldAdminTextInputWidget(attrs={"spellcheck": "false"}))

    def __init__(self, provider: signin_rows.ProviderView, data: Any = None) -> None:
        super().__init__(data, initial={"endpoint": provider.endpoint, "client_id": provider.client_id}, prefix=provider.name, use_required_attribute=False)
        if provider.client == "none":
            del self.fields["client_id"]
        else:
            self.fields["client_id"].help_text = (
                "Of an app of your own there." if provider.client == "needed" else "Of an app of your own there, if you have one."
            )


@admin.register(SignIn)
class SignInAdmin(ReadOnly, AuditedAdmin):
    noun = "signin"
    list_display = ("provider_shown", "endpoint_name", "state_shown", "started_by", "started_at_shown", "ends_shown")
    list_display_links = ("provider_shown",)
    ordering = ("-started_at",)
    actions_list = ("start_page",)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_admin(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_admin(request)

    # ------------------------------------------------------------------ the list

    @display(description="Provider", ordering="provider")
    def provider_shown(self, obj: SignIn) -> str:
        return title_of(obj.provider)

    @display(description="State", ordering="state")
    def state_shown(self, obj: SignIn) -> SafeString:
        return format_html('<span class="bench-badge {}">{}</span>', TONES.get(obj.state, ""), WORDS.get(obj.state, obj.state))

    @display(description="Started", ordering="started_at")
    def started_at_shown(self, obj: SignIn) -> str:
        return moment(obj.started_at)

    @display(description="Token ends", ordering="expires_at")
    def ends_shown(self, obj: SignIn) -> str:
        return (moment(obj.expires_at) or "not by itself") if obj.state == SignIn.State.DONE else ""

    # ------------------------------------------------------------------ starting one

    def get_urls(self) -> Any:
        return [path("start/", self.admin_site.admin_view(self.start_view), name="catalog_signin_start"), *super().get_urls()]

    @action(description="Sign in with a provider", url_path="start-one", icon="login", variant=ActionVariant.PRIMARY)
    def start_page(self, request: HttpRequest) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:catalog_signin_start"))

    def start_view(self, request: HttpRequest) -> HttpResponse:
        """Shows what can be signed in at; a press on a button begins."""
        if not is_admin(request):
            raise PermissionDenied
        providers = signin_rows.every_provider()
        asked, refused = request.POST.get("provider", ""), None
        for provider in providers:
            if request.method == "POST" and provider.name == asked:
                refused = StartForm(provider, request.POST)
                if refused.is_valid() and (done := self.begun(request, provider, refused)) is not None:
                    return done
        cards = [
            {
                "provider": one,
                "form": refused if refused is not None and one.name == asked else StartForm(one),
                "redirect_uri": callback_url(request, one.name) if one.client != "none" and "code" in one.flows else "",
                "buttons": [(flow, BUTTONS[flow]) for flow in one.flows],
            }
            for one in providers
        ]
        return self.page(request, "admin/bench/signin_start.html", "Sign in with a provider", cards=cards, back=reverse("admin:catalog_signin_changelist"))

    def begun(self, request: HttpRequest, provider: signin_rows.ProviderView, form: StartForm) -> HttpResponse | None:
        """Starts one; what is refused stands in the form.

        The page that follows has a link to the provider: the content policy lets no form end on another server, whatever redirects it there.
        """
        said = form.cleaned_data
        try:
            started = signing.start(
                provider.name,
                request.POST.get("flow", ""),
                said["endpoint"],
                said.get("client_id", ""),
                lambda: callback_url(request, provider.name),
                request.session.session_key or "",
                actor(request),
                timezone.now(),
            )
        except (signing.SignInRefused, ShapeError) as error:
            form.add_error(error.field if error.field in form.fields else None, str(error))
            return None
        if started.authorize_url:
            return self.shown(request, started.signin, started.authorize_url)
        return HttpResponseRedirect(reverse("admin:catalog_signin_change", args=[quote(started.signin.id)]))

    # ------------------------------------------------------------------ one sign-in

    def changeform_view(self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        if not is_admin(request):
            raise PermissionDenied
        row = self.row(request, object_id)
        if request.method == "POST":
            signing.remove(row.pk, actor(request))
            self.say(request, "Signed out; the token is forgotten here." if row.state == SignIn.State.DONE else "The sign-in is gone.")
            return HttpResponseRedirect(reverse("admin:catalog_signin_changelist"))
        return self.shown(request, signing.look(row.pk, timezone.now()))

    def shown(self, request: HttpRequest, signin: signin_rows.SignInView, authorize_url: str = "") -> HttpResponse:
        row = SignIn.objects.filter(pk=signin.id).first()
        endpoint_id = row.endpoint_id if row is not None else None
        response = self.page(
            request,
            "admin/bench/signin.html",
            f"Sign-in at {title_of(signin.provider)}",
            signin=signin,
            provider=title_of(signin.provider),
            tone=TONES[signin.state],
            word=WORDS[signin.state],
            authorize_url=authorize_url,
            ends=moment(signin.expires_at),
            here=reverse("admin:catalog_signin_change", args=[quote(signin.id)]),
            again=reverse("admin:catalog_signin_start"),
            back=reverse("admin:catalog_signin_changelist"),
            serves=reverse("admin:catalog_endpoint_serves", args=[endpoint_id]) if endpoint_id and signin.state == "done" else "",
        )
        response["Cache-Control"] = "no-store"
        if signin.state == "open" and signin.user_code:
            response["Refresh"] = "5"  # looks again by itself, without a script; how often the provider is asked is the row's to say
        return response


def is_admin(request: HttpRequest) -> bool:
    """Only who may change keys may sign in: a token is one."""
    return bool(request.user.is_active and request.user.has_perm("access.change_key"))


def title_of(provider: str) -> str:
    return signin_rows.titles().get(provider, provider)
