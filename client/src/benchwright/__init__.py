"""The suite of a running Benchwarmers server from Python: `from benchwright import Benchwright`. No Django, nothing of the server's own code.

What is exported is loaded when it is first asked for, so that the command starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchwright.client import Benchwright
    from benchwright.errors import (
        APIError,
        AuthenticationError,
        BenchwrightError,
        BudgetExceeded,
        Conflict,
        ConnectionFailed,
        Gone,
        InvalidRequest,
        NotFound,
        NotImplementedByServer,
        PermissionDenied,
        PreconditionFailed,
        RateLimited,
        ServerError,
        SignatureInvalid,
        Unprocessable,
        WaitTimeout,
    )
    from benchwright.objects import Object

__all__ = [
    "APIError",
    "AuthenticationError",
    "Benchwright",
    "BenchwrightError",
    "BudgetExceeded",
    "Conflict",
    "ConnectionFailed",
    "Gone",
    "InvalidRequest",
    "NotFound",
    "NotImplementedByServer",
    "Object",
    "PermissionDenied",
    "PreconditionFailed",
    "RateLimited",
    "ServerError",
    "SignatureInvalid",
    "Unprocessable",
    "WaitTimeout",
]
HOMES = {"Benchwright": "benchwright.client", "Object": "benchwright.objects"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(HOMES.get(name, "benchwright.errors")), name)
