"""unfold's decorators with types, which it does not bring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from unfold import decorators

Method = TypeVar("Method", bound=Callable[..., Any])


def display(**options: Any) -> Callable[[Method], Method]:
    return cast(Callable[[Method], Method], decorators.display(**options))


def action(**options: Any) -> Callable[[Method], Method]:
    return cast(Callable[[Method], Method], decorators.action(**options))
