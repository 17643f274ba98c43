"""The pages' one door: a call of `/bench/…` or `/v1/…` in this process, as the person who is signed in, with the same checks and the same shapes as over HTTP.

Refused   what the API answered instead: status, code, detail, field
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import orjson
from django.http import HttpRequest, QueryDict
from django.urls import resolve

# The outer request has been through Django's own check of the token, and its headers name no key that the inner one may use.
NOT_TAKEN_ALONG = (
    "HTTP_ACCEPT",
    "HTTP_IDEMPOTENCY_KEY",
    "HTTP_IF_MATCH",
    "HTTP_AUTHORIZATION",
    "HTTP_X_API_KEY",
    "HTTP_X_GOOG_API_KEY",
    "HTTP_IF_NONE_MATCH",
    "HTTP_IF_MODIFIED_SINCE",
    "HTTP_CONTENT_ENCODING",
)


class Refused(Exception):
    """The API said no. `field` names the field at fault, "" where none is."""

    def __init__(self, status: int, code: str, detail: str, field: str = "", body: Any = None) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.field, self.body = status, code, detail, field, body


def call(request: HttpRequest, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, **query: Any) -> Any:
    """Calls one path of the API and gives what it answered: JSON as values, anything else as text.

    Shape: `path` as people read it, names not encoded: `/bench/models/meta/llama:free`. A body of bytes goes as it is. In `query`, None and "" are left out.
    Errors: Refused.
    """
    inner = inward(request, method, path, body, headers or {}, query)
    view = resolve(path)
    # A path that may stream, which is async, says in `whole` what answers in one go.
    answer = getattr(view.func, "whole", view.func)(inner, *view.args, **view.kwargs)
    said = answer.data if hasattr(answer, "data") else answer.content.decode("utf-8", "replace")
    if answer.status_code >= 400:
        problem = said if isinstance(said, Mapping) else {}
        raise Refused(answer.status_code, problem.get("code", "error"), problem.get("detail", "The server refused this."), problem.get("field", ""), said)
    return said


def inward(request: HttpRequest, method: str, path: str, body: Any, headers: Mapping[str, str], query: Mapping[str, Any]) -> HttpRequest:
    """Makes the request that the API gets to see."""
    asked = urlencode({name: value for name, value in query.items() if value not in (None, "")}, doseq=True)
    inner = HttpRequest()
    inner.method, inner.path, inner.path_info = method, path, path
    inner.META = {name: value for name, value in request.META.items() if name not in NOT_TAKEN_ALONG}
    sent = b"" if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
    inner.META |= {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": asked, "CONTENT_TYPE": "application/json", "CONTENT_LENGTH": str(len(sent))}
    for name, value in headers.items():
        variable = name.upper().replace("-", "_")
        inner.META[variable if variable == "CONTENT_TYPE" else f"HTTP_{variable}"] = value
    inner.GET = QueryDict(asked)
    inner.COOKIES = request.COOKIES
    inner.user = request.user
    if hasattr(request, "session"):
        inner.session = request.session
    inner._dont_enforce_csrf_checks = True  # type: ignore[attr-defined]
    inner._stream = io.BytesIO(sent)
    inner._read_started = False  # type: ignore[attr-defined]
    return inner


def read(request: HttpRequest, path: str, **query: Any) -> Any:
    """Reads. Errors: Refused."""
    return call(request, "GET", path, **query)


def everything(request: HttpRequest, path: str, most: int = 2000, **query: Any) -> list[Any]:
    """Reads a list to its end, or to `most` entries. Errors: Refused."""
    found: list[Any] = []
    token: str | None = None
    while len(found) < most:
        page = call(request, "GET", path, limit=min(500, most - len(found)), page_token=token, **query)
        found += page["data"]
        token = page["next"]
        if token is None:
            break
    return found
