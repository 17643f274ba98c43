"""An upstream that cuts, stalls and talks nonsense, and keeps book of every request: what it answered, and whether the answer left whole.

Every answer's input token count is 1,000,000 plus the request's number, so that a ledger row tells which answer it stands for.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from dataclasses import dataclass, field

FIRST_TOKENS = 1_000_000
OUTPUT_TOKENS = 7
MARK = re.compile(r"q=([\w.-]+);")

# What an endpoint does, by share. `good` answers whole, at times late; `bad` does everything that providers have been seen to do.
# `new` is where models are onboarded: so slow that a kill meets a call. `suite` is asked by runs.
FATES = {
    "good": {"whole": 85, "slow": 15},
    "new": {"whole": 1},
    "suite": {"whole": 90, "error": 5, "cut": 5},
    "bad": {"whole": 40, "slow": 10, "cut": 15, "stall": 5, "error": 15, "html": 5, "empty": 5, "hang_up": 5},
}


@dataclass(slots=True)
class Served:
    """One request as the upstream saw it. Shape: `state` is `begun`, then `whole`, `broken` (on purpose) or `left` (the peer closed first)."""

    number: int
    endpoint: str
    model: str
    mark: str
    stream: bool
    fate: str
    state: str = "begun"

    @property
    def input_tokens(self) -> int:
        return FIRST_TOKENS + self.number


class PeerLeft(Exception):
    """The server closed its connection before the answer was whole."""


@dataclass(slots=True)
class FaultyUpstream:
    """Shape: `served` in order of arrival. Fates follow the seed and the order of arrival. Units: `pace` multiplies every delay."""

    seed: int
    pace: float = 1.0
    new_s: tuple[float, float] = (4.0, 12.0)
    port: int = 0
    served: list[Served] = field(default_factory=list)
    server: asyncio.Server | None = None
    calls: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self) -> None:
        self.server = await asyncio.start_server(self.connected, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]

    async def end(self) -> None:
        if self.server:
            self.server.close()
        for call in list(self.calls):
            call.cancel()
        await asyncio.gather(*self.calls, return_exceptions=True)

    @property
    def in_flight(self) -> int:
        return sum(s.state == "begun" for s in self.served)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.calls.add(task)
        try:
            is_first = True
            while await self.one(reader, writer, is_first):
                is_first = False
        except (ConnectionError, asyncio.IncompleteReadError, PeerLeft, asyncio.CancelledError):
            pass  # a cancelled one too: asyncio's own callback would raise what it finds in this task
        finally:
            self.calls.discard(task)
            writer.close()

    async def one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_first: bool) -> bool:
        """Takes one request. Shape: whether the connection may go on."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        path = head.split(" ", 2)[1]
        length = next((int(line.split(":")[1]) for line in head.split("\r\n") if line.lower().startswith("content-length:")), 0)
        body = json.loads(await reader.readexactly(length)) if length else {}
        if not path.endswith("/chat/completions"):
            writer.write(document(b'{"object":"list","data":[]}'))
            return True
        found = MARK.search(json.dumps(body.get("messages")))
        endpoint = path.split("/")[1]
        number = len(self.served)
        choice = random.Random(f"{self.seed}-{number}")
        shares = FATES[endpoint]
        fate = choice.choices(list(shares), list(shares.values()))[0]
        if fate == "hang_up" and not is_first:
            fate = "cut"  # without a byte of answer a used connection may be taken for one that was closed before, and the call be sent again
        call = Served(number, endpoint, str(body.get("model")), found[1] if found else "", bool(body.get("stream")), fate)
        self.served.append(call)
        answering = asyncio.ensure_future(self.answer(call, choice, writer))
        try:
            # Looked at, not read: the next request's first byte may come at any moment once the answer is out.
            while not (await asyncio.wait({answering}, timeout=0.025))[0]:
                if reader.at_eof() or reader.exception():
                    raise PeerLeft
            return answering.result()
        finally:
            answering.cancel()
            if call.state == "begun":
                call.state = "left"

    async def answer(self, call: Served, choice: random.Random, writer: asyncio.StreamWriter) -> bool:
        wait_s = choice.uniform(2, 5) if call.fate == "slow" else choice.uniform(*self.new_s) if call.endpoint == "new" else choice.uniform(0.0, 0.8)
        await asyncio.sleep(self.pace * wait_s)
        if call.fate == "error":
            call.state = "broken"
            writer.write(document(b'{"error":{"message":"broken on purpose","type":"server_error"}}', "500 Internal Server Error"))
            return True
        if call.fate == "html":
            call.state = "broken"
            writer.write(document(b"<html>Bad gateway</html>", kind="text/html"))
            return True
        if call.fate == "empty":
            call.state = "broken"
            writer.write(document(b""))
            return True
        if call.fate == "hang_up":
            call.state = "broken"
            return False
        pieces = streamed(call) if call.stream else [document(whole(call))]
        if call.fate in ("cut", "stall"):
            half = b"".join(pieces)
            writer.write(half[: len(half) // 2])
            await writer.drain()
            if call.fate == "stall":
                await asyncio.sleep(12 * self.pace)
            call.state = "broken"
            return False
        for piece in pieces[:-1]:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(self.pace * choice.uniform(0.0, 0.15))
        writer.write(pieces[-1])
        await writer.drain()
        call.state = "whole"
        return True


def document(body: bytes, status: str = "200 OK", kind: str = "application/json") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def usage(call: Served) -> dict[str, int]:
    return {"prompt_tokens": call.input_tokens, "completion_tokens": OUTPUT_TOKENS, "total_tokens": call.input_tokens + OUTPUT_TOKENS}


def words(call: Served) -> list[str]:
    return [f"answer <{call.number}> ", f"to q={call.mark}; ", "is ", "forty-two", "."]


def whole(call: Served) -> bytes:
    message = {"role": "assistant", "content": "".join(words(call))}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return json.dumps({"id": f"chatcmpl-{call.number}", "object": "chat.completion", "model": call.model, "choices": choices, "usage": usage(call)}).encode()


def streamed(call: Served) -> list[bytes]:
    """The answer as SSE in chunked encoding, the head with the first piece."""
    about = {"id": f"chatcmpl-{call.number}", "object": "chat.completion.chunk", "model": call.model}
    events = [about | {"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]} for word in words(call)]
    events.append(about | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    events.append(about | {"choices": [], "usage": usage(call)})
    data = [f"data: {json.dumps(event)}\n\n".encode() for event in events] + [b"data: [DONE]\n\n"]
    pieces = [f"{len(d):x}\r\n".encode() + d + b"\r\n" for d in data]
    pieces[0] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + pieces[0]
    pieces[-1] += b"0\r\n\r\n"
    return pieces
