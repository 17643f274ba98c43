"""What every command shares: the options --json, --url and --yes wherever they stand, and one connection."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from benchwarmers_client import server
from benchwarmers_client.http import Client

Function = TypeVar("Function", bound=Callable[..., Any])


class Session:
    """One run of the program. `client` is made when it is first asked for, so that wrong usage is told before a server is looked for."""

    def __init__(self) -> None:
        self.url: str | None = None
        self.is_json = False
        self.is_sure = False
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        if self._client is None:
            try:
                self._client = Client(server.find(self.url))
            except server.BadAddress as error:
                raise click.UsageError(str(error)) from None
        return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.inner.close()


def shared(function: Function) -> Function:
    """Adds the shared options to a command and hands it the session first."""

    @click.option("--json", "is_json", is_flag=True, help="Print what the server answered, as JSON.")
    @click.option("--url", metavar="URL", help="The server's address, for this command.")
    @click.option("--yes", "is_sure", is_flag=True, help="Do not ask before what cannot be taken back.")
    @click.pass_context
    @functools.wraps(function)
    def with_session(context: click.Context, /, is_json: bool, url: str | None, is_sure: bool, **arguments: Any) -> Any:
        session = context.ensure_object(Session)
        session.is_json = session.is_json or is_json
        session.is_sure = session.is_sure or is_sure
        session.url = url or session.url
        return function(session, **arguments)

    return with_session  # type: ignore[return-value]
