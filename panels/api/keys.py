"""Gateway keys: the list, making one (its secret is shown this once), changing, revoking."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from access import keylist, tokens
from access.fields import CHECKS
from access.keys import mint
from panels.api import key_shapes, shapes
from panels.api.view import View, answer, listed, not_found
from panels.api.wording import to_json
from wire.errors import CallerError

FIELDS = tuple(CHECKS)


class KeyPaths(View):
    def refuse_token(self, name: str = "") -> None:
        """Keeps tokens away from keys, and keys from tokens. Errors: CallerError 403."""
        if self.caller.pat or (name and self.caller.kind != "user" and keylist.find(name).kind != "key"):
            raise CallerError(tokens.CODE, tokens.REFUSED, status=403)

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, keylist.UnknownKey):
            exc = not_found("key", str(exc))
        return super().handle_exception(exc)


class Keys(KeyPaths):
    scopes = {"GET": ("read",), "POST": ("admin",)}

    @shapes.described(operation_id="list_keys", parameters=shapes.PAGE, responses=shapes.page_of(key_shapes.Key))
    def get(self, request: Request) -> Response:
        """Lists keys, newest first, revoked ones too; never a secret."""
        return listed(keylist.page(*self.page_wanted()))

    @shapes.described(operation_id="make_key", request=key_shapes.KeyAsked, responses={201: key_shapes.KeyMade})
    def post(self, request: Request) -> Response:
        """Makes a key. The reply holds its secret, which nobody can show again."""
        body = self.body(FIELDS)
        if "name" not in body:
            raise CallerError("invalid_request", "name is missing: say what uses the key.", field="name")
        self.refuse_token()
        key, secret = mint(**body, actor=self.actor)
        return answer({**to_json(keylist.view(key)), "key": secret}, status=201)


class Key(KeyPaths):
    scopes = {"GET": ("read",), "PATCH": ("admin",), "DELETE": ("admin",)}

    @shapes.described(operation_id="get_key", responses=key_shapes.Key)
    def get(self, request: Request, name: str) -> Response:
        """Shows a key that is not revoked."""
        return answer(keylist.find(name))

    @shapes.described(operation_id="change_key", request=key_shapes.KeyAsked, responses=key_shapes.Key)
    def patch(self, request: Request, name: str) -> Response:
        """Changes what a key may do, from the next request on."""
        self.refuse_token(name)
        return answer(keylist.change(name, self.body(FIELDS), self.actor))

    @shapes.described(operation_id="revoke_key", request=None, responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Ends a key for good, from the next request on."""
        self.refuse_token(name)
        keylist.revoke(name, self.actor)
        return Response(status=204)
