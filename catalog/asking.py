"""Asks one server what it serves: its plain list page by page, then the richer door of the hub that it turns out to be.

Only questions are sent, a few at most and all to the endpoint's own server, since they carry its key. What a richer door does never loses the plain list.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from catalog import hubs, model_lists, web
from catalog.hubs import Hub, Plain
from catalog.providers import Listed, Provider

LIMIT_BYTES = 32_000_000
TIMEOUT_S = 15.0
QUICK_S = 4.0
WHOLE_S = 45.0  # for all questions to one server
MOST_PAGES = 20
SIDE_BY_SIDE = 4
API = "a model API"
# Vendors whose lists are bare and whose servers are no hubs: asking after hubs there would only be noise in their logs.
NO_HUBS = (
    "openai.com",
    "chatgpt.com",
    "azure.com",
    "anthropic.com",
    "googleapis.com",
    "amazonaws.com",
    "groq.com",
    "mistral.ai",
    "deepseek.com",
    "x.ai",
    "together.xyz",
    "cerebras.ai",
    "nvidia.com",
    "z.ai",
    "bigmodel.cn",
    "moonshot.ai",
    "moonshot.cn",
    "minimax.io",
    "aliyuncs.com",
    "githubcopilot.com",
    "github.ai",
    "cohere.com",
    "perplexity.ai",
    "fireworks.ai",
)


@dataclass(frozen=True, slots=True)
class Found:
    """What an endpoint said it serves. Shape: `hub` is the hub that it was found to be, empty for none; `is_whole` is false where its list was cut."""

    models: tuple[Listed, ...]
    hub: str = ""
    is_whole: bool = True


class Server:
    """The way to one endpoint's server, with its key (`hubs.Ask`). Units: `wait_s` seconds are left for all that is asked."""

    def __init__(self, headers: Mapping[str, str], wait_s: float = WHOLE_S) -> None:
        self.headers, self.ends = headers, time.monotonic() + wait_s

    def left_s(self, most_s: float) -> float:
        left = self.ends - time.monotonic()
        if left <= 0:
            raise web.WebError("timed_out", f"It took more than {WHOLE_S:g} s to say what it serves.")
        return min(left, most_s)

    def fetch(self, url: str, timeout_s: float = TIMEOUT_S) -> web.Fetched:
        return web.fetch(url, self.headers, named=True, limit_bytes=LIMIT_BYTES, timeout_s=self.left_s(timeout_s))

    def get(self, url: str, quick: bool = False) -> Any:
        fetched = self.fetch(url, QUICK_S if quick else TIMEOUT_S)
        if fetched.status == 200 and fetched.media_type == "text/plain":
            return fetched.body[:1000].decode(errors="replace")
        return web.json_of(fetched, API)

    def post(self, url: str, body: Mapping[str, Any]) -> Any:
        fetched = web.send(url, self.headers, json_body=body, named=True, limit_bytes=LIMIT_BYTES, timeout_s=self.left_s(TIMEOUT_S))
        return web.json_of(fetched, API)

    def each(self, asked: Sequence[Callable[[], Any]]) -> list[Any]:
        def one(question: Callable[[], Any]) -> Any:
            try:
                return question()
            except web.WebError:
                return None

        if not asked:
            return []
        with ThreadPoolExecutor(max_workers=min(SIDE_BY_SIDE, len(asked))) as pool:
            return list(pool.map(one, asked))


def plain_list(provider: Provider, base_url: str, server: Server, refused: Callable[[web.Fetched], web.WebError]) -> tuple[Plain, bool]:
    """Reads the plain list to its end, and tells whether it came to it.

    Errors: WebError for the first page; later pages that fail leave what came before.
    """
    url = provider.models_url(base_url)
    fetched = server.fetch(url)
    if fetched.status >= 400 and fetched.media_type != "text/html":
        raise refused(fetched)
    body = web.json_of(fetched, API)
    models = {one.served_name: one for one in read(provider, body, fetched)}
    first, seen, is_cut = body, {url}, model_lists.is_cut(body)
    try:
        while (following := provider.next_page(url, body)) is not None:
            if following in seen or len(seen) >= MOST_PAGES or len(models) >= model_lists.MOST_MODELS:
                return Plain(base_url, fetched.headers, first, tuple(models.values())[: model_lists.MOST_MODELS]), False
            seen.add(url := following)
            page = server.fetch(url)
            body = web.json_of(page, API)
            is_cut = is_cut or model_lists.is_cut(body)
            for one in read(provider, body, page):
                models.setdefault(one.served_name, one)
    except web.WebError:
        return Plain(base_url, fetched.headers, first, tuple(models.values())), False
    most = model_lists.MOST_MODELS
    return Plain(base_url, fetched.headers, first, tuple(models.values())[:most]), not is_cut and len(models) <= most


def read(provider: Provider, body: Any, fetched: web.Fetched) -> list[Listed]:
    try:
        return provider.read_models(body)
    except ValueError:
        got = f"not {API} (got {fetched.media_type}, status {fetched.status}): it lists no models."
        raise web.WebError("not_json", got, fetched.status) from None


# ------------------------------------------------------------------ hubs


def with_hub(plain: Plain, is_whole: bool, server: Server, before: str) -> Found:
    """Adds to a plain list what the server's own door tells. `before`: the hub that it was the last time."""
    for hub in likely(plain, before, server):
        try:
            more = hub.more(hubs.root(plain.base_url), server, plain)
        except (web.WebError, ValueError):
            more = None
        # A hub that gave itself away, or answered its own question, stays one while its richer door is shut.
        if more is not None or hub.shows(plain) or hub.name != before:
            return Found(merged(plain.models, more or ()), hub.name, is_whole)
    return Found(plain.models, "", is_whole)


def likely(plain: Plain, before: str, server: Server) -> Iterable[Hub]:
    """What the server may be, the likeliest first: what it was, what its list shows, what answers when it is asked after."""
    known = hubs.get(before)
    if known:
        yield known
    shown = next((hub for hub in hubs.every() if hub.shows(plain)), None)
    if shown and shown is not known:
        yield shown
    is_bare = not any("context_window" in one.facts for one in plain.models)
    if shown or not is_bare or any(plain.host == host or plain.host.endswith(f".{host}") for host in NO_HUBS):
        return
    root = hubs.root(plain.base_url)
    for hub in hubs.every():
        if (url := hub.probe(root)) is None or hub is known:
            continue
        try:
            answer = server.get(url, quick=True)
        except web.WebError as error:
            if error.code in ("timed_out", "unreachable", "address_refused"):
                return
            continue
        if hub.is_it(answer):
            yield hub
            return


def merged(plain: Iterable[Listed], more: Iterable[Listed]) -> tuple[Listed, ...]:
    """Lays what the richer door tells over the plain list. Names of the richer one alone are left out: the plain one is what this key may use."""
    told = {one.served_name: one for one in more}
    return tuple(
        one if (rich := told.get(one.served_name)) is None else Listed(one.served_name, {**one.facts, **rich.facts}, rich.chat and one.chat) for one in plain
    )
