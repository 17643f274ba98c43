"""What is told when a model leaves the roster: what other rooms keep under its name is not the next one's that takes it."""

from __future__ import annotations

from collections.abc import Callable

Tell = Callable[[str], None]
told: list[Tell] = []


def on_gone(tell: Tell) -> None:
    """Adds who is told the alias of a model that is deleted, in the transaction that does it. Filled when the apps are ready."""
    if tell not in told:
        told.append(tell)


def model_gone(alias: str) -> None:
    for tell in told:
        tell(alias)
