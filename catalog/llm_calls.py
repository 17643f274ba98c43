"""Calls to models of simonw's `llm`, in threads of this process, in the shape of an OpenAI-compatible endpoint.

What goes in is the body that such an endpoint would get; what comes out reads like its answer, so that the road of an attempt is the same.
"""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson

from wire.errors import TimedOut

THREADS = 16
LOADING = threading.Lock()
END = object()


class LocalReply:
    """An answer as `catalog.upstream.UpstreamReply` tells one."""

    def __init__(self, status: int, content_type: str, parts: AsyncIterator[bytes], left: threading.Event) -> None:
        self.status = status
        self.headers: Mapping[str, str] = {"content-type": content_type}
        self.parts, self.left = parts, left

    @property
    def is_event_stream(self) -> bool:
        return self.comes_as(("text/event-stream",))

    def comes_as(self, types: Sequence[str]) -> bool:
        return self.headers["content-type"].startswith(tuple(types))

    async def read(self, limit: int = 0) -> bytes:
        return b"".join([part async for part in self.parts])

    def chunks(self) -> AsyncIterator[bytes]:
        return self.parts

    def close(self) -> None:
        """A plugin cannot be broken off in the middle of a step; nobody waits for its rest, and it stops at the next piece."""
        self.left.set()


class LlmCalls:
    """The door to `llm`, as `Upstream.post` is to the network."""

    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(THREADS, thread_name_prefix="llm")

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, idle_s: float | None) -> LocalReply:
        """Asks a model. Errors of the plugin come back as an endpoint's 4xx or 5xx would."""
        asked = orjson.loads(body)
        left = threading.Event()
        queue: asyncio.Queue[Any] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def put(item: Any) -> None:
            loop.call_soon_threadsafe(queue.put_nowait, item)

        def work() -> None:
            try:
                for item in ask(url.removeprefix("llm:"), asked, headers.get("x-llm-key"), left):
                    put(item)
            except Exception as error:  # a plugin may raise anything; whatever it is, it is this call's failure
                put(error)
            put(END)

        self.executor.submit(work)
        first = await within(queue, idle_s)
        if isinstance(first, Exception):
            status = 404 if type(first).__name__ == "UnknownModelError" else 401 if type(first).__name__ == "NeedsKeyException" else 500
            failed = orjson.dumps({"error": {"message": f"The plugin failed ({type(first).__name__}): {first}"[:500]}})
            return LocalReply(status, "application/json", once(failed), left)
        streamed = bool(asked.get("stream"))
        return LocalReply(200, "text/event-stream" if streamed else "application/json", rest(queue, first, idle_s), left)

    def models(self) -> dict[str, Any]:
        """What is installed, as a model list."""
        with LOADING:
            import llm

            items = llm.get_models_with_aliases()
        found = []
        for item in items:
            model = item.model
            facts = {"vision": bool(model.attachment_types), "tools": bool(getattr(model, "supports_tools", False))}
            found.append({"id": model.model_id, "facts": facts | {"structured_output": bool(getattr(model, "supports_schema", False))}})
        return {"data": found}


CALLS = LlmCalls()


async def within(queue: asyncio.Queue[Any], idle_s: float | None) -> Any:
    try:
        async with asyncio.timeout(idle_s):
            return await queue.get()
    except TimeoutError:
        raise TimedOut("The plugin fell silent.") from None


async def once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def rest(queue: asyncio.Queue[Any], item: Any, idle_s: float | None) -> AsyncIterator[bytes]:
    while item is not END:
        if isinstance(item, Exception):
            yield event({"error": {"message": f"The plugin failed ({type(item).__name__})."}})
            return
        yield item
        item = await within(queue, idle_s)


def event(body: Mapping[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(body) + b"\n\n"


def ask(name: str, body: Mapping[str, Any], key: str | None, left: threading.Event) -> Iterator[bytes]:
    """Runs one prompt in this thread and gives the pieces of an OpenAI-shaped answer."""
    with LOADING:  # plugins are loaded at the first call, and two first calls at once would load them twice
        import llm

        model = llm.get_model(name)
    prompt, system, earlier, attachments = conversation(body["messages"])
    streamed = bool(body.get("stream")) and model.can_stream
    options = {f: body[f] for f in ("temperature", "top_p", "max_tokens", "seed") if f in body and f in getattr(model.Options, "model_fields", {})}
    extra: dict[str, Any] = {"key": key} if key and getattr(model, "needs_key", None) else {}
    response = model.prompt(
        f"{earlier}{prompt}", system=system or None, attachments=[llm.Attachment(**a) for a in attachments] or None, stream=streamed, **options, **extra
    )
    said = []
    for piece in response:
        if left.is_set():
            return
        said.append(piece)
        if body.get("stream"):
            yield event({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
    counted = response.usage()
    known = counted.input is not None or counted.output is not None
    usage = {"prompt_tokens": counted.input or 0, "completion_tokens": counted.output or 0} if known else None
    if body.get("stream"):
        yield event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], **({"usage": usage} if usage else {})})
        yield b"data: [DONE]\n\n"
    else:
        message = {"role": "assistant", "content": "".join(said)}
        yield orjson.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **({"usage": usage} if usage else {})})


def conversation(messages: Sequence[Mapping[str, Any]]) -> tuple[str, str, str, list[dict[str, Any]]]:
    """The last turn as the prompt, system turns as the system text, what lies between as a transcript before it, images as attachments."""
    system = "\n\n".join(words(m) for m in messages if m["role"] in ("system", "developer"))
    turns = [m for m in messages if m["role"] not in ("system", "developer")]
    attachments: list[dict[str, Any]] = []
    for part in turns[-1]["content"] if turns and isinstance(turns[-1].get("content"), list) else ():
        if part.get("type") == "image_url":
            url = part["image_url"]["url"]
            before, _, data = url.partition(";base64,")
            attachments.append({"type": before[5:], "content": base64.b64decode(data)} if url.startswith("data:") else {"url": url})
    earlier = "".join(f"{m['role'].capitalize()}: {words(m)}\n\n" for m in turns[:-1])
    return words(turns[-1]) if turns else "", system, earlier, attachments


def words(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(p.get("text", "") for p in content if isinstance(p, dict))
    return content or ""
