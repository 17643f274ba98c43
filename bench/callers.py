"""Callers who ask, listen to the end or hang up half-way, and remember exactly what they received."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
from dataclasses import dataclass, field
from typing import Any

ANSWER = re.compile(r"answer <(\d+)> to q=([\w.-]+);")
PATIENCE_S = 60


@dataclass(frozen=True, slots=True)
class SeatHeard:
    """One seat as a reply told it. Shape: `answer` is the upstream's number of the answer, None where none came whole; `tries` upstream calls."""

    call: str
    status: str
    answer: int | None
    tries: int
    cost_usd: str | None


@dataclass(slots=True)
class Heard:
    """One request as its caller saw it. Shape: `whole`: a 200 came and its last byte too, without an error in it."""

    mark: str
    kind: str  # direct, direct-stream, panel, panel-stream
    key: str
    status: int = 0
    whole: bool = False
    hung_up: bool = False
    call: str = ""
    seats: list[SeatHeard] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class Broken(Exception):
    """The reply ended before it was whole."""


async def exchange(port: int, path: str, key: str, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    """One request on a connection of its own. Errors: Broken, OSError."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        data = json.dumps(body).encode()
        headers = {
            "Host": f"127.0.0.1:{port}",
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/json",
            "Content-Length": len(data),
            "Connection": "close",
        }
        head = "\r\n".join([f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""])
        writer.write(head.encode() + data)
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            got = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
            return int(lines[0].split(" ")[1]), got, await read_body(reader, got)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise Broken from error
    finally:
        writer.transport.abort()


async def read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.read()
    parts = []
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    return b"".join(parts)


@dataclass(slots=True)
class Callers:
    """Many callers at once, until told to stop. Shape: `ports` of the servers, `keys` by name, `heard` in the order in which replies ended."""

    ports: list[int]
    keys: dict[str, str]
    seed: int
    hang_up_share: float = 0.12
    heard: list[Heard] = field(default_factory=list)
    over: bool = False

    async def run(self, count: int) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(self.one(number))

    async def one(self, number: int) -> None:
        choice = random.Random(f"{self.seed}-caller-{number}")
        turn = 0
        while not self.over:
            turn += 1
            heard = Heard(
                f"{number}.{turn}", choice.choices(["direct", "direct-stream", "panel", "panel-stream"], [45, 25, 15, 15])[0], choice.choice(list(self.keys))
            )
            model = "bench/mixed" if heard.kind.startswith("panel") else choice.choice(["good-1", "good-2", "good-3", "good-1", "good-2", "bad-1"])
            patience_s = choice.uniform(0.05, 1.5) if choice.random() < self.hang_up_share else PATIENCE_S
            try:
                async with asyncio.timeout(patience_s):
                    await self.ask(heard, choice.choice(self.ports), model)
            except TimeoutError:
                heard.hung_up = True
                if patience_s == PATIENCE_S:
                    heard.wrong.append(f"no end within {PATIENCE_S} s")
            except (Broken, OSError):
                pass
            self.heard.append(heard)
            if not heard.whole:
                await asyncio.sleep(choice.uniform(0.1, 0.4))

    async def ask(self, heard: Heard, port: int, model: str) -> None:
        stream = heard.kind.endswith("stream")
        question = [{"role": "user", "content": f"q={heard.mark}; What is the answer?"}]
        body: dict[str, Any] = {"model": model, "messages": question, "stream": stream} | ({"stream_options": {"include_usage": True}} if stream else {})
        status, headers, data = await exchange(port, "/v1/chat/completions", self.keys[heard.key], body)
        heard.status, heard.call = status, headers.get("x-bench-call", "")
        if status != 200:
            if status in (400, 401, 403, 404, 500):
                heard.wrong.append(f"status {status}: {data[:300].decode(errors='replace')}")
            return
        with contextlib.suppress(ValueError):
            read = read_stream(data) if stream else json.loads(data)
            if read is not None:
                understand(heard, read)


def read_stream(data: bytes) -> dict[str, Any] | None:
    """Puts a stream's events together into one reply. None where it did not end well."""
    events = [line[6:] for line in data.decode().split("\n") if line.startswith("data: ")]
    if not events or events[-1] != "[DONE]":
        return None
    reply: dict[str, Any] = {"text": ""}
    for event in map(json.loads, events[:-1]):
        if "error" in event:
            return None
        reply |= {name: event[name] for name in ("bench", "usage") if event.get(name)}
        for choice in event.get("choices", []):
            reply["text"] += choice.get("delta", {}).get("content") or ""
    return reply


def understand(heard: Heard, reply: dict[str, Any]) -> None:
    """Notes the answers that a reply holds."""
    text = reply["text"] if "text" in reply else reply["choices"][0]["message"]["content"]
    numbers = [(int(number), mark) for number, mark in ANSWER.findall(text)]
    if crossed := [mark for _, mark in numbers if mark != heard.mark]:
        heard.wrong.append(f"received the answer to question {crossed[0]}")
    if heard.kind.startswith("direct"):
        if not numbers:
            heard.wrong.append(f"a reply without an answer: {text[:100]!r}")
        else:
            heard.seats = [SeatHeard(heard.call, "ok", numbers[0][0], 1, None)]
        heard.whole = True
        return
    bench = reply.get("bench")
    if not isinstance(bench, dict):
        heard.wrong.append("a panel's reply without its bench field")
        return
    for seat in bench["seats"]:
        found = ANSWER.search(seat["text"] or "") if seat["status"] == "ok" else None
        if seat["status"] == "ok" and (found is None or found[0] not in text):
            heard.wrong.append(f"seat {seat['model']} is ok but its answer is not in the text")
        heard.seats.append(SeatHeard(seat["call"], seat["status"], int(found[1]) if found else None, len(seat["tries"]), seat["cost_usd"]))
    heard.whole = True
