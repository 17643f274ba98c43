"""What the suite's API refuses, as RFC 9457 problems with stable codes.

Problem            any refusal; `errors` lists each thing that is wrong with a JSON pointer, `more` holds members of its own
    Unprocessable  422: the request is understood and cannot be meant
    Conflict       409
    Missing        404, also for what is somebody else's and private
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wire.errors import CallerError


@dataclass(frozen=True, slots=True)
class Wrong:
    """One thing that is wrong. `pointer` leads to it in the body, as RFC 6901 has it; "" is the whole body."""

    pointer: str
    code: str
    message: str


class Problem(CallerError):
    def __init__(self, status: int, code: str, message: str, errors: Sequence[Wrong] = (), retry_after_s: float | None = None, **more: Any) -> None:
        super().__init__(code, message, status=status, field=errors[0].pointer if errors else "", retry_after_s=retry_after_s)
        self.errors, self.more = tuple(errors), more


class Unprocessable(Problem):
    def __init__(self, code: str, message: str, errors: Sequence[Wrong] = (), **more: Any) -> None:
        super().__init__(422, code, message, errors, **more)


class Conflict(Problem):
    def __init__(self, code: str, message: str, **more: Any) -> None:
        super().__init__(409, code, message, **more)


class Missing(Problem):
    def __init__(self, noun: str, name: str, code: str = "") -> None:
        super().__init__(404, code or f"{noun}_not_found", f"There is no {noun} {name[:120]} that you may see.")


class NotYet(Problem):
    """501: the contract names it, and this server does not do it yet."""

    def __init__(self, feature: str, instead: str) -> None:
        super().__init__(501, "not_implemented", f"{feature} is not built yet. {instead}", feature=feature)


def wrong(pointer: str, message: str, code: str = "invalid") -> Unprocessable:
    """Refuses one value."""
    return Unprocessable("invalid_request", f"{pointer or 'The body'} {message}", [Wrong(pointer, code, message)])
