"""Reads of the database for the event loop: in a reader's thread, and an answer of ours where the database is away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from django.db import Error as DatabaseError

from wire.errors import CallerError

if TYPE_CHECKING:
    from panels.gateway import Gateway

Found = TypeVar("Found")


async def in_reader(gateway: Gateway, work: Callable[[], Found]) -> Found:
    """Errors: CallerError 503; whatever the work raises."""
    try:
        return await asyncio.get_running_loop().run_in_executor(gateway.executor, work)
    except DatabaseError:
        raise CallerError("database_unavailable", "The database does not answer. Try again in a moment.", status=503, retry_after_s=5.0) from None
