"""Answers of the dry provider: always the same words, at once, for nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import orjson

SAYS = "This is a dry run: no model was asked."
USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


class DryReply:
    """An answer as `catalog.upstream.UpstreamReply` tells one."""

    status = 200

    def __init__(self, data: bytes, content_type: str) -> None:
        self.data = data
        self.headers: Mapping[str, str] = {"content-type": content_type}

    @property
    def is_event_stream(self) -> bool:
        return self.comes_as(("text/event-stream",))

    def comes_as(self, types: Sequence[str]) -> bool:
        return self.headers["content-type"].startswith(tuple(types))

    async def read(self, limit: int = 0) -> bytes:
        return self.data

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.data

    def close(self) -> None:
        """Nothing is open."""


class DryCalls:
    """The door to nobody, as `Upstream.post` is to the network."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, idle_s: float | None) -> DryReply:
        if not orjson.loads(body).get("stream"):
            message = {"role": "assistant", "content": SAYS}
            return DryReply(orjson.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": USAGE}), "application/json")
        told: list[Mapping[str, Any]] = [
            {"choices": [{"index": 0, "delta": {"role": "assistant", "content": SAYS}, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": USAGE},
        ]
        return DryReply(b"".join(b"data: " + orjson.dumps(one) + b"\n\n" for one in told) + b"data: [DONE]\n\n", "text/event-stream")

    def models(self) -> dict[str, Any]:
        return {"data": [{"id": "dry"}]}


CALLS = DryCalls()
