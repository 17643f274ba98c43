"""gunicorn's own asgi worker, with three manners more: idle connections do not hold up a stop, nobody may
hold one open in silence, and a header that agents name their conversation by comes through.

Imported by gunicorn's master, which is not reloaded: import nothing of Django or of the settings here.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from gunicorn.asgi.protocol import ASGIProtocol, _RequestHeaderPolicy, secure_scheme_names
from gunicorn.workers import gasgi

from benchwarmers import processes, serverfile

DRAIN_TICK_S = 0.1
# gunicorn cancels a call 3 s after its connection went.
CUT_S = 5.0
# gunicorn drops every header with an underscore, since CGI's names could mistake one for another. Agents name their conversation by this one.
WITH_UNDERSCORE = ("SESSION_ID",)


class Connection(ASGIProtocol):  # type: ignore[misc]
    """One client connection that its worker knows of."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.worker.connections.add(self)
        # gunicorn arms this after the first reply only: a connection that never asks anything would stay for ever.
        self._arm_keepalive_timer()
        trusted = _RequestHeaderPolicy(self.cfg, transport.get_extra_info("peername"), "http", (1, 1))._peer_trusted_for_forwarded()
        self._forwarded_trust = (trusted[0], [*trusted[1], *WITH_UNDERSCORE])
        self._secure_names = secure_scheme_names(trusted[0])

    def connection_lost(self, exc: Exception | None) -> None:
        self.worker.connections.discard(self)
        super().connection_lost(exc)

    @property
    def calls(self) -> list[asyncio.Task[None]]:
        return [task for task in (self._task, *self._finishing_calls) if task is not None]

    @property
    def is_idle(self) -> bool:
        return bool(self._awaiting_request and not self._finishing_calls)


class Worker(gasgi.ASGIWorker):  # type: ignore[misc]
    """One web process."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.connections: set[Connection] = set()
        self.has_backlog = False
        gasgi.ASGIProtocol = Connection  # the name by which the worker makes its connections

    def notify(self) -> None:
        super().notify()
        if self.servers and not self.has_backlog:
            # asyncio has set each socket's backlog to its own 100 when it began to serve.
            for listener in self.sockets:
                listener.sock.listen(self.cfg.backlog)
            self.has_backlog = True

    async def _shutdown(self) -> None:
        """Stops in the order that a stop or a reload needs.

        A reload's other workers go on accepting, so gunicorn's way is right: close the listener, finish what is open. When the whole
        server stops, open streams keep theirs: the listener answers `/readyz` with 503 (and the gateway's calls, by `scope["state"]`)
        until the last stream has ended, and idle connections are closed at once instead of after their 30 s.

        What has not ended in its time is cut here: gunicorn's master would kill the process, and with it what its calls have to write down.
        """
        is_stopping = self.is_whole_server_stopping()
        if is_stopping:
            self.state["stopping"] = True
        else:
            for server in self.servers:
                server.close()
        await self._drain()
        await self._cut_off()
        if is_stopping:
            self._close_idle()
        await super()._shutdown()

    def is_whole_server_stopping(self) -> bool:
        home = self.cfg.env.get("BENCH_SERVER_HOME", "")
        server = serverfile.read(Path(home)) if home else None
        return server is not None and server.stopping

    async def _drain(self) -> None:
        deadline = self.loop.time() + self.cfg.graceful_timeout - processes.CLOSING_S
        while not self._quick_shutdown and self.loop.time() < deadline:
            if all(c.is_idle for c in self.connections):
                break
            self.notify()
            await asyncio.sleep(DRAIN_TICK_S)

    def _close_idle(self) -> None:
        for connection in list(self.connections):
            if connection.is_idle:
                connection._close_transport()

    async def _cut_off(self) -> None:
        """Hangs up on what still goes on, and waits until its calls are written down."""
        if self._quick_shutdown:
            return
        tasks = [task for connection in self.connections if not connection.is_idle for task in connection.calls]
        for connection in list(self.connections):
            if not connection.is_idle and connection.transport:
                connection.transport.abort()
        if tasks:
            await asyncio.wait(tasks, timeout=CUT_S)
