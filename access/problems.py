"""Errors of our own JSON paths, as `application/problem+json` (RFC 9457): what went wrong, with which field, never a traceback or a secret."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from math import ceil
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation, ValidationError
from django.db import DatabaseError, DataError, IntegrityError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from access.fields import FieldError
from access.keys import KeyRevoked
from access.secrets import UnusableKey
from wire.errors import CallerError
from wire.problem import CONTENT_TYPE
from wire.problem import problem as body_of

logger = logging.getLogger(__name__)

# Codes of DRF's own errors, by status. Errors of this project carry theirs.
CODES = {
    401: "missing_key",
    403: "not_allowed",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    413: "body_too_large",
    415: "unsupported_encoding",
    429: "rate_limit_exceeded",
    500: "internal_error",
    503: "database_unavailable",
}


def handler(error: Exception, context: Mapping[str, Any]) -> Response:
    """Answers for whatever a view of ours raised. What nobody expected goes to the log as an error, and out as a bare 500."""
    found = known(error)
    if found is None:
        view = context.get("view")
        logger.error("A view failed: %s", type(view).__name__, exc_info=error)
        found = CallerError("internal_error", "The server failed at this. Its log tells more, under this reply's x-request-id.", status=500)
        response = problem(found)
    else:
        response = problem(found)
        if found.status >= 500:
            # What this server means to answer is no fault of it; Django would log any such status as one.
            level = logging.INFO if found.status == 501 else logging.WARNING
            logger.log(level, "Answered %s %s (%s)", found.status, found.code, type(error).__name__)
            response._has_been_logged = True  # type: ignore[attr-defined]
    if header := getattr(error, "auth_header", None):
        response["WWW-Authenticate"] = header
    return response


def problem(error: CallerError) -> Response:
    """Writes one error."""
    headers = {} if error.retry_after_s is None else {"Retry-After": str(max(1, ceil(error.retry_after_s)))}
    return Response(body_of(error), status=error.status, headers=headers, content_type=CONTENT_TYPE)


def known(error: Exception) -> CallerError | None:
    """Says what an error comes to for a caller; None for one that is a fault of this server."""
    match error:
        case CallerError():
            return error
        case FieldError() | UnusableKey():
            return CallerError("invalid_request", str(error), field=error.field)
        case KeyRevoked():
            return CallerError("invalid_request", str(error))
        case exceptions.ValidationError():
            field, message = first(error.detail)
            return CallerError("invalid_request", f"{field}: {message}" if field else message, field=field, status=error.status_code)
        case exceptions.ParseError():
            return CallerError("invalid_request", "The body is not valid JSON. " + str(error.detail))
        case exceptions.APIException():
            return CallerError(
                getattr(error, "code", CODES.get(error.status_code, "invalid_request")),
                first(error.detail)[1],
                status=error.status_code,
                retry_after_s=getattr(error, "wait", None),
            )
        case ValidationError():
            field, message = first(error.message_dict if hasattr(error, "error_dict") else error.messages)
            return CallerError("invalid_request", f"{field}: {message}" if field else message, field=field)
        case PermissionDenied():
            return CallerError("not_allowed", "The caller may not do this.", status=403)
        case Http404():
            return CallerError("not_found", "There is no such thing here. Check its name and the path.", status=404)
        case RequestDataTooBig():
            return CallerError("body_too_large", "The body is larger than BENCH_MAX_BODY_MB allows.", status=413)
        case SuspiciousOperation():
            return CallerError("invalid_request", "The request cannot be read.")
        case RecursionError():
            return CallerError("invalid_request", "The body is nested too deeply.")
        case UnicodeEncodeError() | DataError():  # half a surrogate pair, a null character
            return CallerError("invalid_request", "The request holds a value that cannot be stored. Leave out null characters and halves of characters.")
        case IntegrityError():
            return CallerError("invalid_request", "This does not go with what is stored: the name is taken, or something still uses it.", status=409)
        case DatabaseError():
            return CallerError("database_unavailable", "The database does not answer. Try again in a moment.", status=503, retry_after_s=5)
    return None


def first(detail: Any, path: str = "") -> tuple[str, str]:
    """Finds the first message in what a serializer or a form found wrong, and the path of its field."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            if inner:
                own = "" if name in ("non_field_errors", "__all__", "detail") else str(name)
                return first(inner, f"{path}.{own}" if path and own else path or own)
    elif isinstance(detail, list | tuple):
        for i, inner in enumerate(detail):
            if inner:
                return first(inner, path if isinstance(inner, str) else f"{path}[{i}]")
    return path, str(detail) if detail and not isinstance(detail, Mapping | list | tuple) else "The request cannot be accepted."
