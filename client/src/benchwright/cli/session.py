"""What every command shares: the global options wherever they stand, one client, and what goes to stdout."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from benchwright.client import Benchwright

Function = TypeVar("Function", bound=Callable[..., Any])
FORMS = ("table", "json", "ndjson", "yaml")


class Exit(Exception):
    """Ends the program with a code; what there is to say has been said."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Session:
    """One run of the program. `bw` is made when it is first asked for, so that wrong usage is told before a server is looked for."""

    def __init__(self, arguments: list[str] | None = None) -> None:
        self.arguments = arguments or []
        self.profile: str | None = None
        self.output: str | None = None
        self.is_debug = False
        self._client: Benchwright | None = None

    @property
    def bw(self) -> Benchwright:
        if self._client is None:
            from benchwright.client import Benchwright

            self._client = Benchwright(profile=self.profile)
        return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    @property
    def form(self) -> str:
        """table on a terminal, ndjson into a file or a pipe, unless one is named."""
        return self.output or ("table" if sys.stdout.isatty() else "ndjson")

    @property
    def profile_name(self) -> str:
        import os

        from benchwright.profiles import DEFAULT, checked_name

        return checked_name(self.profile or os.environ.get("BW_PROFILE") or DEFAULT)


def shown(function: Function) -> Function:
    """Adds the global options to a command and hands it the session as `session`."""

    @click.option("--profile", metavar="NAME", help="Which profile of ~/.config/benchwright/config.toml; else BW_PROFILE, else default.")
    @click.option("--output", type=click.Choice(FORMS), help="table on a terminal, ndjson otherwise.")
    @click.option("--debug", is_flag=True, help="Print the server's whole problem when it refuses.")
    @functools.wraps(function)
    def with_session(profile: str | None, output: str | None, debug: bool, **arguments: Any) -> Any:
        session = click.get_current_context().ensure_object(Session)
        session.profile = profile or session.profile
        session.output = output or session.output
        session.is_debug = session.is_debug or debug
        return function(session=session, **arguments)

    return with_session  # type: ignore[return-value]


def pairs(texts: tuple[str, ...], option: str) -> dict[str, Any]:
    """Reads `k=v` options; a value that is JSON is taken as such. Errors: UsageError."""
    import json

    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise click.UsageError(f"{option} reads like name=value, not {text!r}.")
        try:
            found[name.strip()] = json.loads(value)
        except ValueError:
            found[name.strip()] = value
    return found
