"""A cable between a server and its database that can be pulled: a TCP relay that drops what runs through it and refuses what is new."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field


@dataclass(slots=True)
class Cable:
    """Shape: `port` is the near end; `host` and `far_port` are what it leads to."""

    host: str
    far_port: int
    port: int = 0
    server: asyncio.Server | None = None
    ends: set[asyncio.StreamWriter] = field(default_factory=set)

    async def plug(self) -> None:
        """Connects, on the same port as before where it was pulled."""
        self.server = await asyncio.start_server(self.connected, "127.0.0.1", self.port)
        self.port = self.server.sockets[0].getsockname()[1]

    async def pull(self) -> None:
        """Refuses new connections and resets all that are open, in the middle of whatever they say."""
        if self.server:
            self.server.close()
        for end in list(self.ends):
            end.transport.abort()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.ends.add(writer)
        try:
            far_reader, far_writer = await asyncio.open_connection(self.host, self.far_port)
        except OSError:
            self.ends.discard(writer)
            writer.transport.abort()
            return
        self.ends.add(far_writer)
        try:
            await asyncio.gather(relay(reader, far_writer), relay(far_reader, writer))
        except asyncio.CancelledError:
            pass  # only the end of the run cancels this, and asyncio's own callback would raise what it finds in this task
        finally:
            for end in (writer, far_writer):
                self.ends.discard(end)
                end.close()


async def relay(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    with contextlib.suppress(OSError, RuntimeError):
        target.write_eof()
