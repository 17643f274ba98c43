"""Asking as a page does: the events as they come, and a user who is signed in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.http import Reply, Stream, send
from tests.live import Bench, Live

Event = tuple[str, dict[str, Any]]


def events_in(body: bytes) -> list[Event]:
    """All events, by name; comments left out."""
    found = []
    for block in body.decode().split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            name = next(line[7:] for line in lines if line.startswith("event: "))
            data = [line[6:] for line in lines if line.startswith("data: ")]
            assert len(data) == 1, "each event has one line of data"
            found.append((name, json.loads(data[0])))
    return found


def named(events: list[Event], name: str) -> list[dict[str, Any]]:
    return [data for event, data in events if event == name]


def body_of(model: str | None, prompt: Any = "hi", wishes: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    body = {"model": model, "messages": messages, "bench": wishes, **more}
    return {name: value for name, value in body.items() if value is not None}


def ask(bench: Bench, model: str | None, prompt: Any = "hi", wishes: Mapping[str, Any] | None = None, *, key: str | None = None, **more: Any) -> Stream:
    """Asks and gives the stream of events."""
    live = bench.load().live
    data = json.dumps(body_of(model, prompt, wishes, **more)).encode()
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
    return Stream(live.host, live.port, "/bench/ask", data, headers)


def watched(
    bench: Bench, model: str | None, prompt: Any = "hi", wishes: Mapping[str, Any] | None = None, *, key: str | None = None, **more: Any
) -> list[Event]:
    """Asks and gives all events."""
    with ask(bench, model, prompt, wishes, key=key, **more) as stream:
        assert stream.status == 200, stream.rest()
        assert stream.headers["content-type"].startswith("text/event-stream")
        return events_in(stream.rest())


@dataclass(slots=True)
class Browser:
    """A signed-in user's browser: its cookies, and what a page of ours sends with a write."""

    live: Live
    session: str
    csrf: str

    def headers(self, **more: str | None) -> dict[str, str]:
        sent: dict[str, str | None] = {
            "content-type": "application/json",
            "cookie": f"benchwarmers_session={self.session}; benchwarmers_csrf={self.csrf}",
            "origin": self.live.url,
            "x-csrftoken": self.csrf,
            **{name.replace("_", "-"): value for name, value in more.items()},
        }
        return {name: value for name, value in sent.items() if value is not None}

    def post(self, path: str, body: Any = None, **more: str | None) -> Reply:
        return self.send("POST", path, body, **more)

    def send(self, method: str, path: str, body: Any = None, **more: str | None) -> Reply:
        return send(self.live.host, self.live.port, method, path, b"" if body is None else json.dumps(body).encode(), self.headers(**more))


def signed_in(live: Live, name: str, role: str) -> Browser:
    """Makes a user with a role and gives a browser in which this user is signed in."""
    made = live.order({"user": {"name": name, "role": role}})
    return Browser(live, made["session"], made["csrf"])


def started(stream: Stream) -> dict[str, Any]:
    """Reads until the panel is told, and gives it."""
    return named(events_in(stream.until("]}\n\n").encode()[: stream.got.index(b"]}\n\n") + 4]), "panel")[0]
