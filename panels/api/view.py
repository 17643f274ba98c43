"""What every view of this API shares: who is calling, a strict body, pages, and the catalog's complaints as the caller's errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from django.conf import settings
from django.db.models import ProtectedError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.permissions import BasePermission
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from access.auth import MissingKey, NotAllowed
from access.caller import Caller
from access.pages import LIMIT, LIMIT_MAX, Page
from catalog.shape import ShapeError
from catalog.status import StatusError
from panels.api.wording import to_json
from wire.errors import CallerError
from wire.jsontext import parse_body


class StrictJson(BaseParser):
    """Reads a body as the gateway does: no NaN, no bottomless nesting, no half characters."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        data = stream.read(settings.MAX_BODY_BYTES + 1)
        if len(data) > settings.MAX_BODY_BYTES:
            most = settings.MAX_BODY_BYTES // 1024 // 1024
            raise CallerError("body_too_large", f"The body is larger than {most} MB. BENCH_MAX_BODY_MB sets how large it may be.", status=413)
        return parse_body(data)


class FastJson(JSONRenderer):
    """Writes JSON ten times as fast as DRF does: a page of Discover is two megabytes. What that cannot write, DRF writes, half a character as its escape."""

    ensure_ascii = True

    ensure_ascii = True  # half a character has no bytes but its escape

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None) -> bytes:
        if data is not None:
            try:
                return orjson.dumps(data)
            except TypeError:  # a number above 64 bits, half a character, a value that only DRF knows
                pass
        written: bytes = super().render(data, accepted_media_type, renderer_context)
        return written


class OneForm(DefaultContentNegotiation):
    """Answers in the one form that a path has, whatever Accept names: who asks for text/csv with ?format=csv means it, and 406 helps nobody."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class PerMethod(BasePermission):
    """Asks for the scope that the view names for this method, in `scopes`. Errors: MissingKey, NotAllowed."""

    def has_permission(self, request: Request, view: Any) -> bool:
        caller = request.user
        if not isinstance(caller, Caller):
            raise MissingKey
        method = "GET" if request.method == "HEAD" else str(request.method)
        wanted: tuple[str, ...] = view.scopes.get(method, ("operate",))
        if not any(caller.may(scope) for scope in wanted):
            raise NotAllowed(f"This needs the scope {' or '.join(wanted)}, which this caller does not have.")
        return True


class View(APIView):
    """One path. `scopes` tells for each method which scopes open it, any one of them; a method that is not named there needs `operate`."""

    parser_classes = [StrictJson]
    renderer_classes = [FastJson]
    content_negotiation_class = OneForm
    permission_classes = [PerMethod]
    scopes: Mapping[str, tuple[str, ...]] = {}

    @property
    def caller(self) -> Caller:
        caller = self.request.user
        assert isinstance(caller, Caller)
        return caller

    @property
    def actor(self) -> str:
        """Who the audit trail names."""
        return f"key {self.caller.key_name}" if self.caller.kind == "key" else self.caller.judge

    def body(self, fields: tuple[str, ...] | None = None) -> dict[str, Any]:
        """Gives the body's object. With `fields`, a name that is none of them is refused: a mistyped limit must not look as if it held.

        Errors: CallerError 400.
        """
        data = self.request.data
        if not isinstance(data, dict):
            raise CallerError("invalid_request", "The body must be a JSON object.")
        for name in data:
            if fields is not None and name not in fields:
                shown = name[:60]
                raise CallerError("invalid_request", f"{shown} is no field here. There are: {', '.join(fields)}.", field=shown)
        return dict(data)

    def page_wanted(self) -> tuple[int, str]:
        """Reads ?limit= and ?page_token=. Errors: CallerError 400 naming the one that is wrong."""
        asked = self.request.query_params.get("limit", "")
        if not asked:
            limit = LIMIT
        elif asked.isascii() and asked.isdigit() and len(asked) <= 6 and 1 <= int(asked) <= LIMIT_MAX:
            limit = int(asked)
        else:
            raise CallerError("invalid_request", f"limit must be a whole number from 1 to {LIMIT_MAX}.", field="limit")
        return limit, self.request.query_params.get("page_token", "")

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """What is said here is for this caller at this moment: prompts, money, a key that is shown once."""
        response.headers.setdefault("Cache-Control", "no-store")
        return super().finalize_response(request, response, *args, **kwargs)

    def handle_exception(self, exc: Exception) -> Response:
        match exc:
            case ShapeError():
                exc = CallerError("invalid_request", str(exc), field=exc.field, status=exc.status)
            case StatusError():
                exc = CallerError("invalid_request", str(exc), field="reason" if "reason" in str(exc) else "")
            case ProtectedError():
                exc = CallerError("in_use", "Something still uses this. Take it out there first.", status=409)
        return super().handle_exception(exc)


def answer(found: Any, status: int = 200) -> Response:
    return Response(to_json(found), status=status)


def listed(page: Page[Any]) -> Response:
    """The shape of every list."""
    return Response({"data": [to_json(item) for item in page.data], "next": page.next})


def not_found(noun: str, name: str) -> CallerError:
    return CallerError("not_found", f"There is no {noun} {name[:200]}. Names are matched with case; the list shows what there is.", status=404)


def text_of(body: Mapping[str, Any], field: str) -> str:
    """Gives a text field of a body. Errors: CallerError 400."""
    value = body.get(field)
    if not isinstance(value, str):
        raise CallerError("invalid_request", f"{field} must be a string.", field=field)
    return value
