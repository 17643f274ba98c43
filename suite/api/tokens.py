"""Personal tokens: a person's own, made, renewed and ended in a browser only; each secret is shown once."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from access import keys, tokens
from access.caller import Caller
from access.fields import FieldError
from access.models import Key
from panels.api.wording import to_json
from suite.api.problems import Missing, Problem, wrong
from suite.api.view import View, flag

FIELDS = ("name", "scopes", "expires_at", "test")
PREFIX = "tok_"


def shape(row: Key, secret: str = "") -> dict[str, Any]:
    use = getattr(row, "use", None)
    found = {
        "object": "token",
        "id": f"{PREFIX}{row.pk}",
        "name": tokens.label_of(row),
        "owner": row.owner,
        "kind": "test" if keys.kind_of(row.hint) == keys.TEST_TOKEN else "live",
        "hint": row.hint,
        "last4": row.hint[-4:],
        "scopes": row.scopes,
        "created_at": to_json(row.created_at),
        "expires_at": to_json(row.expires_at),
        "last_used_at": to_json(use.last_used_at if use else None),
    }
    return {**found, "token": secret} if secret else found


def of_caller(caller: Caller) -> dict[str, Any] | None:
    """Tells by which key or token somebody calls; None for a person in a browser."""
    return None if caller.key_id is None else {"id": f"{PREFIX}{caller.key_id}", "name": caller.key_name, "kind": caller.pat or "key"}


class TokenView(View):
    """What makes, renews or ends is a person's; whatever scopes a key has, it is told so."""

    def find(self, token: str) -> Key:
        number = token.removeprefix(PREFIX)
        try:
            return tokens.find(self.caller, int(number) if number.isascii() and number.isdigit() and len(number) < 19 else 0)
        except tokens.UnknownToken:
            raise Missing("token", token) from None

    def handle_exception(self, exc: Exception) -> Response:
        match exc:
            case tokens.TokenRefused():
                exc = Problem(403, tokens.CODE, str(exc))
            case FieldError():
                exc = wrong(f"/{exc.field.partition('[')[0]}", exc.message)
        return super().handle_exception(exc)


class Tokens(TokenView):
    scopes = {"GET": (), "POST": ()}

    def get(self, request: Request) -> Response:
        """Lists one's own tokens, newest first, and what another may be given; never a secret."""
        rows = tokens.live(self.caller.owner).order_by("-created_at", "-id")[: tokens.MOST_TOKENS]
        may = {"live": tokens.grantable(self.caller.scopes, False), "test": tokens.grantable(self.caller.scopes, True)}
        return Response({"data": [shape(row) for row in rows], "next": None, "grantable": may})

    def post(self, request: Request) -> Response:
        """Makes a token of one's own. The reply holds its secret, which nobody can show again."""
        tokens.refuse_all_but_people(self.caller)
        body = self.body(FIELDS)
        row, secret = tokens.mint(self.caller, body.get("name"), body.get("scopes"), body.get("expires_at"), flag(body, "test"))
        return Response(shape(row, secret), status=201)


class OneToken(TokenView):
    scopes = {"GET": (), "DELETE": ()}

    def get(self, request: Request, token: str) -> Response:
        """Shows one token."""
        return Response(shape(self.find(token)))

    def delete(self, request: Request, token: str) -> Response:
        """Ends a token, with the next request."""
        tokens.refuse_all_but_people(self.caller)
        tokens.revoke(self.caller, self.find(token))
        return Response(status=204)


class RotateToken(TokenView):
    scopes = {"POST": ()}

    def post(self, request: Request, token: str) -> Response:
        """Gives a token another secret, shown this once; the old one ends with the next request."""
        tokens.refuse_all_but_people(self.caller)
        self.body(())
        return Response(shape(*tokens.renew(self.caller, self.find(token))))
