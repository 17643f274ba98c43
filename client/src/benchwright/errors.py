"""What can go wrong, as exceptions that say what to do.

BenchwrightError
    ConnectionFailed          nothing answers, or the connection broke
    WaitTimeout               the time that was given to `wait` is over; `run` as it was seen last
    SignatureInvalid          a webhook's signature is not right
    APIError                  the server says no, by a problem document (RFC 9457)
        InvalidRequest            400, 405, 406, 413, 415
        AuthenticationError       401
        BudgetExceeded            402
        PermissionDenied          403: `required_scope`, `granted`
        NotFound                  404
        Conflict                  409
        Gone                      410: `replaced_by`
        PreconditionFailed        412, 428
        Unprocessable             422
        RateLimited               429: `retry_after`
        NotImplementedByServer    501: `feature`
        ServerError               every other 5xx
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LONGEST = 4000


class BenchwrightError(Exception):
    """The message says what happened and what to do."""


class ConnectionFailed(BenchwrightError):
    pass


class WaitTimeout(BenchwrightError):
    def __init__(self, message: str, run: Any = None) -> None:
        super().__init__(message)
        self.run = run


class SignatureInvalid(BenchwrightError):
    pass


class APIError(BenchwrightError):
    """Shape: `errors` has a JSON pointer, a code and a message each; `body` is the whole problem. Units: `retry_after` seconds."""

    def __init__(self, status: int, body: Any = None, headers: Mapping[str, str] | None = None) -> None:
        problem: Mapping[str, Any] = body if isinstance(body, Mapping) else {}
        inner = problem.get("error")
        if isinstance(inner, Mapping):  # the gateway's own shape, where it answers before the suite does
            problem = {"detail": inner.get("message"), "code": inner.get("code")}
        self.status, self.body = status, body
        self.code = str(problem.get("code") or "")
        self.title = str(problem.get("title") or "")
        self.detail = str(problem.get("detail") or "")[:LONGEST]
        self.errors: list[Any] = list(problem.get("errors") or [])
        self.headers: Mapping[str, str] = headers or {}
        self.request_id = str(problem.get("request_id") or self.headers.get("x-request-id", ""))
        self.required_scope = problem.get("required_scope")
        self.granted: list[str] = list(problem.get("granted") or [])
        self.feature = problem.get("feature")
        self.replaced_by = problem.get("replaced_by")
        self.retry_after = seconds(self.headers.get("retry-after"))
        self.is_replayed = self.headers.get("idempotent-replayed", "").lower() == "true"
        super().__init__(self.detail or self.title or f"The server answered {status}.")


class InvalidRequest(APIError):
    pass


class AuthenticationError(APIError):
    pass


class BudgetExceeded(APIError):
    pass


class PermissionDenied(APIError):
    pass


class NotFound(APIError):
    pass


class Conflict(APIError):
    pass


class Gone(APIError):
    pass


class PreconditionFailed(APIError):
    pass


class Unprocessable(APIError):
    pass


class RateLimited(APIError):
    pass


class ServerError(APIError):
    pass


class NotImplementedByServer(ServerError):
    pass


BY_STATUS: dict[int, type[APIError]] = {
    401: AuthenticationError,
    402: BudgetExceeded,
    403: PermissionDenied,
    404: NotFound,
    409: Conflict,
    410: Gone,
    412: PreconditionFailed,
    422: Unprocessable,
    428: PreconditionFailed,
    429: RateLimited,
    501: NotImplementedByServer,
}


def of(status: int, body: Any, headers: Mapping[str, str]) -> APIError:
    """Makes the exception of an answer."""
    kind = BY_STATUS.get(status, ServerError if status >= 500 else InvalidRequest)
    return kind(status, body, headers)


def seconds(text: str | None) -> float | None:
    """Reads a Retry-After in seconds; None for a date or for what is none."""
    try:
        found = float(text or "")
    except ValueError:
        return None
    return found if 0 <= found < 1e9 else None
