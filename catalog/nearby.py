"""Model servers that run on this machine: looked for at the ports that they use by themselves, and only when somebody asks.

A server that others can reach would tell them what else listens behind it; so it looks at nothing but the addresses that were named in the setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from access import preferences
from catalog import asking, base_urls, hubs, providers, web
from catalog.endpoint_keys import origin
from catalog.models import Endpoint
from catalog.shape import ShapeError

WAIT_S = 2.0
MOST_NAMED = 20
ADDRESSES = "nearby.addresses"
TELLS = (
    "Addresses besides this machine's own where First steps looks for model servers, when somebody presses the button: "
    '["http://192.168.1.20:11434"]. A server that others can reach looks only there.'
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where one program listens by itself. Shape: `name` is what an endpoint for it would be called."""

    name: str
    title: str
    port: int
    kind: str = "openai"
    path: str = "/v1"


# As each documents it.
PLACES = (
    Place("ollama", "Ollama", 11434, "ollama", ""),
    Place("lm-studio", "LM Studio", 1234),
    Place("llama-cpp", "llama.cpp", 8080),
    Place("vllm", "vLLM", 8000),
    Place("litellm", "LiteLLM", 4000),
    Place("jan", "Jan", 1337),
    Place("koboldcpp", "KoboldCpp", 5001),
    Place("text-generation-webui", "Text generation web UI", 5000),
    Place("gpt4all", "GPT4All", 4891),
    Place("sglang", "SGLang", 30000),
)
HUBS = {"ollama": "Ollama", "lm_studio": "LM Studio", "llama_cpp": "llama.cpp", "vllm": "vLLM", "litellm": "LiteLLM", "open_webui": "Open WebUI"}


@dataclass(frozen=True, slots=True)
class Nearby:
    """One model server that answered.

    Shape: `models` are the names that it lists, the first 20; `endpoint` the endpoint that is at this address already, empty for none; `wants_key` that it
    answered, and refused to list its models without a key.
    """

    name: str
    title: str
    kind: str
    base_url: str
    count: int
    models: tuple[str, ...]
    endpoint: str
    wants_key: bool


@dataclass(frozen=True, slots=True)
class Looked:
    """What came of it. Shape: `own_machine` is false where this machine was not looked at, since others can reach the server."""

    found: tuple[Nearby, ...]
    own_machine: bool
    addresses: tuple[str, ...]


def register_settings() -> None:
    preferences.register(ADDRESSES, [], check_addresses, TELLS)


def check_addresses(given: Any) -> list[str]:
    """Errors: ValueError."""
    if not isinstance(given, list) or len(given) > MOST_NAMED or not all(isinstance(one, str) for one in given):
        raise ValueError(f'must be a list of at most {MOST_NAMED} addresses, like ["http://192.168.1.20:11434"].')
    try:
        return [base_urls.check_base_url(one) for one in dict.fromkeys(given)]
    except ShapeError as error:
        raise ValueError(f"holds an address that {error.message}") from None


def look(own_port: int = 0) -> Looked:
    """Asks each place for its model list, side by side, and tells who answered. `own_port` is this server's, which is not asked."""
    named: list[str] = preferences.value(ADDRESSES)
    places = [(place, f"http://127.0.0.1:{place.port}{place.path}") for place in PLACES if place.port != own_port] if settings.ON_LOOPBACK else []
    for address in named:
        port = urlsplit(address).port
        # Without a port of its own a program is known by, both ways of asking are tried.
        like = [place for place in PLACES if place.port == port] or [Place("", "", 0), Place("", "", 0, "ollama", "")]
        places += [(place, address if urlsplit(address).path.strip("/") else address.rstrip("/") + place.path) for place in like]
    there = {origin(url): name for name, url in Endpoint.objects.order_by("-name").values_list("name", "base_url")}
    with ThreadPoolExecutor(max_workers=len(places) or 1) as pool:
        answers = list(pool.map(lambda one: ask(one[0], one[1], there), places))
    found: dict[tuple[str, str], Nearby] = {}
    for answer in answers:
        if answer is not None:
            found.setdefault(origin(answer.base_url), answer)
    return Looked(tuple(found.values()), bool(settings.ON_LOOPBACK), tuple(named))


def ask(place: Place, base_url: str, there: Mapping[tuple[str, str], str]) -> Nearby | None:
    """Asks one address. Gives None where nothing answers there, or nothing that is a model server. Never raises for what is there."""
    provider = providers.get(place.kind)
    server = asking.Server(provider.headers(""), WAIT_S)
    refusals: list[int] = []

    def refused(fetched: web.Fetched) -> web.WebError:
        refusals.append(fetched.status)
        return web.WebError("refused", "It refused.", fetched.status)

    names: tuple[str, ...] = ()
    title = place.title
    try:
        plain, _ = asking.plain_list(provider, base_url, server, refused)
        names = tuple(one.served_name for one in plain.models if one.chat)
        hub = next((hub.name for hub in hubs.every() if hub.shows(plain)), "")
        title = HUBS.get(hub, title)
    except web.WebError:
        if not any(status in (401, 403) for status in refusals):
            return None
    host = urlsplit(base_url).hostname or ""
    endpoint = there.get(origin(base_url)) or there.get(origin(base_url.replace("127.0.0.1", "localhost"))) or ""
    return Nearby(place.name or host, title or host, place.kind, base_url, len(names), names[:20], endpoint, bool(refusals))
