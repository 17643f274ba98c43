"""Serves what a model wrote to the tests on the other end of a line. The tests are not in this sandbox, and nothing that is said here is a verdict."""

from __future__ import annotations

import os
import socket
import sys
import types
from typing import Any

from bench_peer import Gone, Late, Peer  # type: ignore[import-not-found]  # it lies beside this file in the sandbox
from bench_values import encode, error_type  # type: ignore[import-not-found]


class Served(Peer):  # type: ignore[misc]
    """Shape: `module` is the candidate's."""

    module = types.ModuleType("candidate")

    def named(self, name: str) -> Any:
        return vars(self.module)[name]


def told(peer: Served) -> dict[str, Any]:
    """Tells what the code defines, by name: what it is, and plain data as it stands."""
    found: dict[str, Any] = {}
    for name, value in list(vars(peer.module).items()):
        if not isinstance(name, str) or name.startswith("__"):
            continue
        if isinstance(value, types.ModuleType):
            found[name] = {"is": "module", "name": value.__name__}
        elif isinstance(value, type) and issubclass(value, BaseException):
            found[name] = {"is": "error", "type": error_type(value)}
        elif callable(value):
            found[name] = {"is": "callable"}
        else:
            try:
                found[name] = {"is": "value", "value": encode(value, peer.keep)}
            except BaseException:  # whatever a model's class may raise while it is looked at
                found[name] = {"is": "callable"}
    return found


def main() -> None:
    peer = Served(socket.socket(fileno=int(os.environ.pop("BENCH_LINE"))), lambda op, of, args: True)
    try:
        peer.send({"hello": True})
        module = Served.module
        module.__dict__["__file__"] = "candidate.py"
        sys.modules["candidate"] = module
        try:
            with open("candidate.py", encoding="utf-8", errors="surrogatepass") as file:
                exec(compile(file.read(), "candidate.py", "exec", dont_inherit=True), module.__dict__)  # noqa: S102  # in a sandbox of its own
        except BaseException as error:  # SystemExit too: code that ends while it is loaded defines nothing
            peer.send({"failed": f"{type(error).__name__}: {error}"[:500]})
            os._exit(0)
        peer.send({"names": told(peer)})
        while True:
            peer.send(peer.answered(peer.receive()))
    except (Gone, Late):
        os._exit(0)


main()
