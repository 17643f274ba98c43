"""Sign-ins at providers: which there are, starting one, seeing how it stands, signing out. Tokens never come out."""

from __future__ import annotations

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from catalog import signin_rows, signing
from catalog.views import callback_url
from panels.api import shapes, signin_shapes
from panels.api.view import View, answer, listed, not_found, text_of
from panels.api.wording import to_json
from wire.errors import CallerError

FIELDS = ("provider", "flow", "endpoint", "client_id")
ADMIN = ("admin",)


class SignInPaths(View):
    scopes = {"GET": ADMIN, "POST": ADMIN, "DELETE": ADMIN}

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, signing.SignInRefused):
            exc = CallerError("invalid_request", exc.message, field=exc.field)
        elif isinstance(exc, signin_rows.UnknownSignIn):
            exc = not_found("sign-in", str(exc))
        return super().handle_exception(exc)


class Providers(SignInPaths):
    @shapes.described(operation_id="list_sign_in_providers", responses=shapes.page_of(signin_shapes.SignInProvider))
    def get(self, request: Request) -> Response:
        """Lists the providers that can be signed in at, those first where nothing must be registered."""
        found = [{**to_json(one), "redirect_uri": callback_url(request._request, one.name)} for one in signin_rows.every_provider()]
        return Response({"data": found, "next": None})


class SignIns(SignInPaths):
    @shapes.described(operation_id="list_sign_ins", parameters=shapes.PAGE, responses=shapes.page_of(signin_shapes.SignIn))
    def get(self, request: Request) -> Response:
        """Lists sign-ins, newest first."""
        return listed(signin_rows.page(*self.page_wanted()))

    @shapes.described(operation_id="start_sign_in", request=signin_shapes.SignInAsked, responses={201: signin_shapes.SignInStarted})
    def post(self, request: Request) -> Response:
        """Starts one: gives the page to open in the browser, or the code to type at the provider."""
        body = self.body(FIELDS)
        if "provider" not in body:
            raise CallerError("invalid_request", "provider is missing. GET /bench/signins/providers lists those there are.", field="provider")
        asked = {name: text_of(body, name) for name in FIELDS if body.get(name) is not None}
        provider = text_of(body, "provider")
        # A key has no session: whichever admin opens the page may finish it then.
        session = (request._request.session.session_key or "") if self.caller.kind == "user" else ""
        started = signing.start(
            provider,
            asked.get("flow", ""),
            asked.get("endpoint", ""),
            asked.get("client_id", ""),
            lambda: callback_url(request._request, provider),
            session,
            self.actor,
            timezone.now(),
        )
        return answer({**to_json(started.signin), "authorize_url": started.authorize_url}, status=201)


class SignIn(SignInPaths):
    @shapes.described(operation_id="get_sign_in", responses=signin_shapes.SignIn)
    def get(self, request: Request, signin: str) -> Response:
        """Shows one. A device's that is open is asked for at the provider first, where its turn has come."""
        return answer(signing.look(signin, timezone.now()))

    @shapes.described(operation_id="delete_sign_in", request=None, responses={204: None})
    def delete(self, request: Request, signin: str) -> Response:
        """Cancels one, or signs out: its tokens are forgotten here, its endpoint's key too."""
        signing.remove(signin, self.actor)
        return Response(status=204)
