"""What can go wrong with a call, on either side.

    CallerError             the caller's request is at fault: an answer of ours, in the caller's dialect
    UpstreamError           the endpoint, its key, its model or the way there
        Unreachable         no connection
        TimedOut            it took too long
        Truncated           the stream broke off after content had come
        Garbage             what came was no answer in its format
        Empty               an answer with nothing in it

Each tells its `code` (the contract's table), an HTTP `status` for our caller, whose `fault` it is, and how long to wait.
"""

from __future__ import annotations

import re
from enum import StrEnum


class Fault(StrEnum):
    CALLER = "caller"
    KEY = "key"
    MODEL = "model"
    SERVER = "server"
    NETWORK = "network"


class CallerError(Exception):
    """A request that cannot be served as it is.

    Shape: `field` is the path of the offending field, `headers` go with the reply.
    Units: `retry_after_s` seconds.
    """

    def __init__(self, code: str, message: str, *, status: int = 400, field: str = "", retry_after_s: float | None = None, seats: object = None) -> None:
        super().__init__(message)
        self.code, self.message, self.status, self.field = code, message, status, field
        self.retry_after_s = retry_after_s
        self.seats = seats


class UpstreamError(Exception):
    """What an endpoint answered instead of an answer.

    Shape: `http_status` is the endpoint's own (None where no answer came); `body_status` a status that it wrote inside a body or stream.
    `about_model`: a limit or quota of the one model, not of the key. Units: `retry_after_s` seconds, as the endpoint asked.
    """

    about_model = False
    code = "upstream_error"
    fault = Fault.SERVER
    usage: object = None  # a wire.conversation.Usage, where the failure was billed

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        http_status: int | None = None,
        fault: Fault | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.http_status = http_status
        self.retry_after_s = retry_after_s
        if code:
            self.code = code
        if fault:
            self.fault = fault


class Unreachable(UpstreamError):
    fault = Fault.NETWORK


class TimedOut(UpstreamError):
    code = "upstream_timeout"


class Truncated(UpstreamError):
    code = "upstream_truncated"


class Garbage(UpstreamError):
    code = "upstream_garbage"


class Empty(UpstreamError):
    code = "empty_response"


# Keys as providers write them, bearer headers, and key= in addresses: none of these belongs in a message.
SECRET_SHAPES = re.compile(
    r"(?i)\b(?:sk|rk|pk|gsk|xai|hf|nvapi|tgp|bw_live|bw_test|ghp|github_pat|key)[-_][A-Za-z0-9_\-]{8,}"
    r"|\bAIza[A-Za-z0-9_\-]{8,}"
    r"|\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-.]+"
    r"|(?<=bearer )[A-Za-z0-9_\-.~+/]{8,}=*"
    r"|(?<=[?&]key=)[^&\s\"']+"
    r"|(?<=[?&]api_key=)[^&\s\"']+"
)


def redacted(text: str, *secrets: str) -> str:
    """Takes the given secrets, and whatever looks like one, out of a text that goes into a message, a row or a log."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[key]")
    return SECRET_SHAPES.sub("[key]", text)
