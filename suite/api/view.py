"""What every view of the suite's API shares: scopes with names, strict bodies and filters, conditional changes, repeated requests, pages."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils.crypto import salted_hmac
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from access.auth import MissingKey
from access.caller import Caller
from access.pages import LIMIT_MAX, Page, keyset
from panels.api.view import View as BenchView
from suite.api.problems import Problem, Unprocessable, Wrong, wrong
from suite.api.uploads import Json
from wire.errors import CallerError

LIMIT = 50
# Rows and code keep whatever came, as text of their own; databases hold no NUL in any other.
KEPT_AS_TEXT = ("tasks", "upsert", "code")


class Scoped(BasePermission):
    """Asks for the scope that the view names for this method, in `scopes`. Errors: MissingKey; 403 that names the missing scope and those granted."""

    def has_permission(self, request: Request, view: Any) -> bool:
        caller = request.user
        if not isinstance(caller, Caller):
            raise MissingKey
        method = "GET" if request.method == "HEAD" else str(request.method)
        wanted: tuple[str, ...] = view.scopes.get(method, ("admin",))
        if not wanted and caller.kind == "loopback":
            raise MissingKey  # whatever needs no scope still needs somebody
        if wanted and not any(caller.may(scope) for scope in wanted):
            if caller.kind == "loopback":
                raise MissingKey
            raise Problem(403, "not_allowed", f"This needs the scope {' or '.join(wanted)}.", required_scope=wanted[0], granted=sorted(caller.scopes))
        return True


@dataclass(frozen=True, slots=True)
class Deprecated:
    """Since when a path is deprecated, when it goes, and what stands in its place. Source: RFC 9745 and RFC 8594."""

    since: datetime
    sunset: datetime
    successor: str

    def headers(self) -> dict[str, str]:
        successor = f"{settings.FORCE_SCRIPT_NAME or ''}{self.successor}"
        return {
            "Deprecation": f"@{int(self.since.timestamp())}",
            "Sunset": format_datetime(self.sunset.astimezone(UTC), usegmt=True),
            "Link": f'<{successor}>; rel="successor-version"',
        }


class View(BenchView):
    permission_classes = [Scoped]
    parser_classes = [Json]
    schema = None  # described apart from /bench: /v1 has a description of its own
    filters: tuple[str, ...] = ()
    expandable: tuple[str, ...] = ()
    deprecated: Deprecated | None = None
    asks: tuple[str, ...] = ()  # what the address may say besides filters and pages
    takes_key_in_body = False  # `idempotency_key` beside the header, where the contract has it as a field

    def body(self, fields: tuple[str, ...] | None = None) -> dict[str, Any]:
        """Gives the body's object. Errors: Unprocessable naming every field that is none."""
        data = self.request.data
        if not isinstance(data, dict):
            raise Problem(400, "invalid_request", "The body must be a JSON object.")
        if fields is not None and (unknown := [name for name in data if name not in fields]):
            raise Unprocessable(
                "unknown_field",
                f"There is no field {', '.join(name[:60] for name in unknown[:10])} here. There are: {', '.join(fields)}.",
                [Wrong(f"/{pointer_part(name)}", "unknown_field", "There is no such field.") for name in unknown[:50]],
            )
        no_nul({name: value for name, value in data.items() if name not in KEPT_AS_TEXT})
        return dict(data)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if "\x00" in request.path or any("\x00" in part for name, values in request.query_params.lists() for part in (name, *values)):
            raise Problem(400, "invalid_request", "The address holds a NUL, which no name here has.")

    def page_wanted(self) -> tuple[int, str]:
        """Reads ?limit= and ?page_token=; a huge limit is the largest there is. Errors: Problem 400."""
        asked = self.request.query_params.get("limit", "")
        if asked and not (asked.isascii() and asked.isdigit() and asked.strip("0")):
            raise Problem(400, "invalid_request", "limit must be a whole number from 1 on.", [Wrong("", "invalid", "limit")])
        return LIMIT_MAX if len(asked) > 9 else min(int(asked or LIMIT), LIMIT_MAX), self.request.query_params.get("page_token", "")

    def wait_wanted(self) -> float:
        """Reads ?wait=. Units: seconds. Errors: Unprocessable."""
        asked = self.request.query_params.get("wait", "0")
        if not asked.isascii() or not asked.replace(".", "", 1).isdigit():
            raise wrong("", "wait must be a number of seconds.")
        return float(asked)

    def filters_wanted(self) -> dict[str, list[str]]:
        """Reads ?filter[name]=…, or ?name=… for short. Errors: Unprocessable for one that is none: it would look as if nothing matched."""
        found: dict[str, list[str]] = {}
        for name, values in self.request.query_params.lists():
            inner = name[7:-1] if name.startswith("filter[") and name.endswith("]") else name
            if name in ("limit", "page_token", "key", "format", *self.asks):
                continue
            if inner not in self.filters and not (inner.startswith("metadata.") and "metadata" in self.filters):
                raise Unprocessable("unknown_filter", f"There is no filter {inner[:60]}. There are: {', '.join(self.filters) or 'none'}.")
            found.setdefault(inner, []).extend(values)
        return found

    def switched(self, name: str) -> bool:
        """Reads a switch of the query: ?name=1 or true, 0 or false. Errors: Unprocessable."""
        value = self.request.query_params.get(name, "0").lower()
        if value not in ("1", "true", "0", "false"):
            raise wrong("", f"{name} is 1 or 0.")
        return value in ("1", "true")

    def chosen(self, name: str, allowed: Iterable[str]) -> tuple[str, ...]:
        """Reads ?expand= or ?fields=: names with commas between. Errors: Unprocessable."""
        asked = tuple(part.strip() for value in self.request.query_params.getlist(name) for part in value.split(",") if part.strip())
        if unknown := [part for part in asked if part not in tuple(allowed)]:
            raise Unprocessable(f"unknown_{name}", f"{name} knows no {', '.join(unknown)[:100]}. There are: {', '.join(allowed)}.")
        return asked

    def keyset_page(self, rows: QuerySet[Any], fields: tuple[str, ...], newest_first: bool = True, bound_to: str = "") -> Page[Any]:
        """Reads one page by where the last one ended. A token is signed with the list and filters that it came from. Errors: Problem 400."""
        self.filters_wanted()
        limit, token = self.bare_token(bound_to)
        try:
            page = keyset(rows, fields, limit, token, newest_first)
        except CallerError:
            raise self.no_token() from None
        return Page(page.data, self.signed_token(page.next, bound_to))

    def bare_token(self, bound_to: str = "") -> tuple[int, str]:
        """Reads ?limit= and the inside of a token that this list has signed. Errors: Problem 400."""
        limit, token = self.page_wanted()
        if token:
            _, _, inner = token.partition(".")
            if not inner or not hmac.compare_digest(token.encode(), str(self.signed_token(inner, bound_to)).encode()):
                raise self.no_token()
            token = inner
        return limit, token

    def signed_token(self, inner: str | None, bound_to: str = "") -> str | None:
        signature = salted_hmac("suite.page", f"{self.request.path}?{bound_to}\n{inner}").hexdigest()[:16]
        return f"{signature}.{inner}" if inner else None

    @staticmethod
    def no_token() -> Problem:
        return Problem(400, "invalid_page_token", "page_token is none of this list. Take it from the `next` of the page before, with the same filters.")

    def matched(self, etag: int | str, *, required: bool = False) -> None:
        """Holds a change to the state that its caller saw. Errors: Problem 412, or 428 where it must be said and is not."""
        given = self.request.headers.get("If-Match", "")
        if not given and required:
            raise Problem(428, "if_match_required", "Say in If-Match which state you have seen: its ETag.")
        if given and given.strip() != "*" and f'"{etag}"' not in [part.strip().removeprefix("W/") for part in given.split(",")]:
            raise self.mismatch()

    @staticmethod
    def mismatch() -> Problem:
        return Problem(412, "etag_mismatch", "It has changed since you read it. Read it again, then decide.")

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Says of every list in words of its own whether there is more, beside the token that tells how to go on."""
        found = getattr(response, "data", None)
        if isinstance(found, dict) and isinstance(found.get("data"), list) and "next" in found:
            found["has_more"] = found["next"] is not None
        for name, value in (self.deprecated.headers() if self.deprecated else {}).items():
            response.headers[name] = value
        return super().finalize_response(request, response, *args, **kwargs)

    def handle_exception(self, exc: Exception) -> Response:
        response = super().handle_exception(exc)
        body = response.data
        if isinstance(body, dict) and response.status_code >= 400:
            body.setdefault("instance", self.request.path)
            body["request_id"] = getattr(self.request._request, "request_id", "")
            if isinstance(exc, Problem):
                if exc.errors:
                    body["errors"] = [{"pointer": e.pointer, "code": e.code, "message": e.message} for e in exc.errors]
                body.update(exc.more)
        return response


def no_nul(value: Any, at: str = "") -> None:
    """Refuses a NUL in any name or text of a value. Errors: Unprocessable."""
    if isinstance(value, str):
        if "\x00" in value:
            raise wrong(at, "holds a NUL.")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if "\x00" in name:
                raise wrong(at, "has a name with a NUL.")
            no_nul(inner, f"{at}/{pointer_part(name)}")
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            no_nul(inner, f"{at}/{i}")


def pointer_part(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def text(body: Mapping[str, Any], name: str, *, most: int, required: bool = False, default: str = "") -> str:
    """Reads a text. Errors: Unprocessable."""
    value = body.get(name)
    if value is None and not required:
        return default
    if not isinstance(value, str) or (required and not value.strip()):
        raise wrong(f"/{name}", "must be a text that is not empty." if required else "must be a text.")
    if len(value) > most:
        raise wrong(f"/{name}", f"is longer than {most} characters.", "too_long")
    return value


def title(body: Mapping[str, Any], *, required: bool = False) -> str:
    """Reads a `name`. One of spaces, marks of direction and characters without width is none: pages would show a link of nothing. Errors: Unprocessable."""
    value = text(body, "name", most=200, required=required)
    if value and not any(char.isprintable() and not char.isspace() for char in value):
        raise wrong("/name", "shows nothing.")
    return value


def flag(body: Mapping[str, Any], name: str, default: bool = False) -> bool:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise wrong(f"/{name}", "must be true or false.")
    return value


def labels(body: Mapping[str, Any], name: str, *, most: int = 50, longest: int = 80) -> list[str]:
    """Reads a list of short texts, each once. Errors: Unprocessable."""
    value = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > most:
        raise wrong(f"/{name}", f"must be a list of at most {most} texts.")
    for i, item in enumerate(value):
        if not isinstance(item, str) or not item.strip() or len(item) > longest:
            raise wrong(f"/{name}/{i}", f"must be a text of at most {longest} characters.")
    return list(dict.fromkeys(value))


def whole(body: Mapping[str, Any], name: str, *, least: int, most: int, default: int) -> int:
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise wrong(f"/{name}", f"must be a whole number from {least} to {most}.")
    return value


def visibility_is_derived(body: Mapping[str, Any], noun: str) -> None:
    """Refuses to set what follows from runs. Errors: Unprocessable."""
    if "visibility" in body:
        wrongs = [Wrong("/visibility", "visibility_is_derived", "is derived.")]
        raise Unprocessable("visibility_is_derived", f"Who sees a {noun} follows from its runs: publish a run.", wrongs)
