"""The fake provider's server: sockets, requests and the playing of answers, on an event loop in a thread of its own.

Its own reading and writing of HTTP, since what it plays no HTTP library would send.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests.fake import dialects
from tests.fake.script import Answer, Call, Data, End, Gate, Head, Pause, Raw, Step, Wait, reply, status

REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests", 500: "Internal Server Error"}
PATIENCE_S = 30.0  # how long a test waits for something that must come before it fails; never how long it takes


class FakeProvider:
    """A provider on a free port of loopback.

    Shape: `calls` are the questions asked, in order; `others` all else (model lists, stray requests). Both are kept until `forget`.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._scripts: dict[str, tuple[Answer, ...]] = {}
        self._played: dict[str, int] = {}
        self._gates: list[Gate] = []
        self._nudges: set[asyncio.Event] = set()
        self._connections = itertools.count(1)
        self._open: set[_Connection] = set()
        self.default: Answer = reply()
        self.calls: list[Call] = []
        self.others: list[Call] = []
        self.connections = 0
        self.models: list[str] | None = None
        self.on_connect = ""  # "reset": every new connection is dropped
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="fake-provider", daemon=True)
        self._thread.start()
        ready.wait(PATIENCE_S)

    # ---- life

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.run_until_complete(self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]
        ready.set()
        self._loop.run_forever()

    def close(self) -> None:
        async def end() -> None:
            self._server.close()
            for connection in list(self._open):
                connection.drop()
            await asyncio.sleep(0)
            for task in asyncio.all_tasks() - {asyncio.current_task()}:  # type: ignore[arg-type]
                task.cancel()
                await asyncio.wait([task])

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(PATIENCE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    # ---- what a test says

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The address a roster gives as base URL."""
        return f"{self.root}/v1"

    def script(self, model: str, *answers: Answer) -> None:
        """What the model of this served name answers: one entry a call, the last repeating."""
        with self._changed:
            self._scripts[model] = answers
            self._played[model] = 0

    def gate(self) -> Gate:
        gate = Gate(self)
        self._gates.append(gate)
        return gate

    def forget(self) -> None:
        """Opens every gate and forgets scripts and calls."""
        for gate in self._gates:
            gate.opened.set()
        self.nudge()
        with self._changed:
            self._gates.clear()
            self._scripts.clear()
            self._played.clear()
            self.calls.clear()
            self.others.clear()
            self.default, self.models, self.on_connect = reply(), None, ""

    def drop_connections(self) -> None:
        """Closes every connection, as a provider does with those that lay idle."""

        async def drop() -> None:
            for connection in list(self._open):
                connection.drop()

        asyncio.run_coroutine_threadsafe(drop(), self._loop).result(PATIENCE_S)

    # ---- what a test asks

    def calls_to(self, model: str) -> list[Call]:
        with self._changed:
            return [c for c in self.calls if c.model == model]

    def wait_for(self, holds: Callable[[], object], what: str = "what the test waits for") -> None:
        """Waits until `holds` does, looking at each change; fails with the calls so far."""
        with self._changed:
            if not self._changed.wait_for(lambda: bool(holds()), PATIENCE_S):
                heard = [(c.model, c.path, "closed" if c.closed_at else "answered" if c.answered_at else "open") for c in self.calls]
                raise AssertionError(f"{what} did not come about in {PATIENCE_S:.0f} s; calls: {heard}")

    def call(self, model: str, n: int = 0) -> Call:
        """The model's n-th call, once it is there."""
        self.wait_for(lambda: len(self.calls_to(model)) > n, f"call {n + 1} to {model}")
        return self.calls_to(model)[n]

    def closed(self, model: str, n: int = 0) -> Call:
        """The model's n-th call, once its caller hung up on it."""
        call = self.call(model, n)
        self.wait_for(lambda: call.closed_at is not None, f"the end of call {n + 1} to {model}")
        return call

    # ---- inside

    def nudge(self) -> None:
        def set_all() -> None:
            for event in self._nudges:
                event.set()

        self._loop.call_soon_threadsafe(set_all)

    @contextmanager
    def change(self) -> Iterator[None]:
        with self._changed:
            yield
            self._changed.notify_all()

    def next_answer(self, call: Call) -> Answer:
        """Files a call and says what is played to it."""
        for dialect in dialects.every():
            if dialect.asks(call.method, call.path):
                call.dialect, call.model, call.stream = dialect.name, dialect.model_of(call), dialect.wants_stream(call)
                with self.change():
                    self.calls.append(call)
                    answers = self._scripts.get(call.model) or (self.default,)
                    n = self._played.get(call.model, 0)
                    self._played[call.model] = n + 1
                return answers[min(n, len(answers) - 1)]
        with self.change():
            self.others.append(call)
        if call.method == "GET":
            names = self.models if self.models is not None else sorted(self._scripts)
            for dialect in dialects.every():
                if (listed := dialect.model_list(call.path, names)) is not None:
                    return status(200, body=listed)
        return status(404, f"nothing is at {call.path}")


class _Connection(asyncio.Protocol):
    """One connection: requests one after another, each answered before the next is read."""

    def __init__(self, provider: FakeProvider) -> None:
        self.provider = provider
        self.number = next(provider._connections)
        self.buffer = bytearray()
        self.more = asyncio.Event()
        self.gone = asyncio.Event()
        self.room = asyncio.Event()
        self.room.set()

    # ---- the protocol's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.provider.connections += 1
        self.provider._open.add(self)
        if self.provider.on_connect == "reset":
            self.reset()
            return
        self.task = asyncio.get_running_loop().create_task(self.serve())

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self.more.set()

    def pause_writing(self) -> None:
        self.room.clear()

    def resume_writing(self) -> None:
        self.room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.provider._open.discard(self)
        self.gone.set()
        self.more.set()
        self.room.set()

    def drop(self) -> None:
        self.transport.close()

    def reset(self) -> None:
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    # ---- reading

    async def until(self, mark: bytes) -> bytes | None:
        while (at := self.buffer.find(mark)) < 0:
            if self.gone.is_set():
                return None
            self.more.clear()
            await self.more.wait()
        found = bytes(self.buffer[: at + len(mark)])
        del self.buffer[: at + len(mark)]
        return found

    async def exactly(self, size: int) -> bytes | None:
        while len(self.buffer) < size:
            if self.gone.is_set():
                return None
            self.more.clear()
            await self.more.wait()
        found = bytes(self.buffer[:size])
        del self.buffer[:size]
        return found

    async def request(self) -> Call | None:
        head = await self.until(b"\r\n\r\n")
        if head is None:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if name}
        body: bytes | None = b""
        if "chunked" in headers.get("transfer-encoding", ""):
            parts = []
            while True:
                size_line = await self.until(b"\r\n")
                if size_line is None:
                    return None
                part = await self.exactly(int(size_line.split(b";")[0], 16) + 2)
                if part is None:
                    return None
                if part == b"\r\n":
                    break
                parts.append(part[:-2])
            body = b"".join(parts)
        elif headers.get("content-length"):
            body = await self.exactly(int(headers["content-length"]))
        if body is None:
            return None
        address = urlsplit(target)
        call = Call(time.monotonic(), method, address.path, address.query, headers, body, self.number)
        try:
            call.json = json.loads(body) if body else None
        except ValueError:
            call.json = None
        return call

    # ---- answering

    async def serve(self) -> None:
        while (call := await self.request()) is not None:
            steps = self.provider.next_answer(call).steps(call)
            try:
                stays = await self.play(steps, call)
            except Exception:
                self.drop()
                raise
            with self.provider.change():
                if call.answered_at is None and call.closed_at is None:
                    call.closed_at = time.monotonic()
            if not stays:
                return
        self.drop()

    async def play(self, steps: list[Step], call: Call) -> bool:
        """Plays an answer. Says whether the connection stays for another request."""
        framing, ended = "none", None
        total = sum(len(s.data) for s in steps if isinstance(s, Data))
        for step in steps:
            if self.gone.is_set():
                return False
            if isinstance(step, Pause):
                if step.seconds > 0.1:
                    await self.wait(lambda: False, step.seconds)
                else:
                    await asyncio.sleep(step.seconds)
            elif isinstance(step, Wait):
                await self.wait(step.gate.opened.is_set)
            elif isinstance(step, End):
                ended = step.how
                break
            elif isinstance(step, Head):
                framing = step.framing
                with self.provider.change():
                    call.begun_at = time.monotonic()
                await self.write(head_bytes(step, total))
            elif isinstance(step, Raw):
                await self.write(step.data)
            elif step.data:
                await self.write(b"%x\r\n%b\r\n" % (len(step.data), step.data) if framing == "chunked" else step.data)
        if ended == "hang":
            await self.wait(lambda: False)
            return False
        if ended is None and framing == "chunked" and not self.gone.is_set():
            await self.write(b"0\r\n\r\n")
        if self.gone.is_set():
            return False
        with self.provider.change():
            call.answered_at = time.monotonic()
        if ended == "reset":
            # What was written before has to leave first, or the reset takes it along.
            await asyncio.sleep(0.05)
            self.reset()
            return False
        if ended == "close" or framing == "close":
            self.drop()
            return False
        return True

    async def write(self, data: bytes) -> None:
        if not self.gone.is_set():
            self.transport.write(data)
            await self.room.wait()
            await asyncio.sleep(0)

    async def wait(self, holds: Callable[[], bool], seconds: float | None = None) -> None:
        """Waits until `holds` does or the peer is gone, looking when a gate opens."""
        nudged = asyncio.Event()
        self.provider._nudges.add(nudged)
        gone = asyncio.ensure_future(self.gone.wait())
        end = None if seconds is None else time.monotonic() + seconds
        try:
            while not holds() and not self.gone.is_set():
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    return
                nudge = asyncio.ensure_future(nudged.wait())
                await asyncio.wait([gone, nudge], timeout=left, return_when=asyncio.FIRST_COMPLETED)
                nudge.cancel()
                nudged.clear()
        finally:
            gone.cancel()
            self.provider._nudges.discard(nudged)


def head_bytes(head: Head, total: int) -> bytes:
    headers = list(head.headers)
    if head.framing == "length":
        headers.append(("content-length", str(total)))
    elif head.framing == "chunked":
        headers.append(("transfer-encoding", "chunked"))
    elif head.framing == "close":
        headers.append(("connection", "close"))
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"HTTP/1.1 {head.status} {REASONS.get(head.status, 'Status')}\r\n{lines}\r\n".encode("latin-1")


@contextmanager
def refusing_address() -> Iterator[str]:
    """A base URL whose port is taken and refuses every connection."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{holder.getsockname()[1]}/v1"
