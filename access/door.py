"""Rules of the door, as pure functions: which key a request carries, how it came here, whether it may come without a key, and from which page.

Headers are a mapping of WSGI-style names (`HTTP_X_API_KEY`), as `request.META` has them. A front that builds such a mapping must leave out
headers with an underscore in their name, or `X_Forwarded_For` would pass for `X-Forwarded-For`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

Headers = Mapping[str, Any]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
DEFAULT_PORTS = {"http": "80", "https": "443"}
HOST = re.compile(r"(?P<name>[A-Za-z0-9.\-_]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::(?P<port>[0-9]{1,5}))?")

# What proxies, tunnels and content networks add. Any of these means that the request may come from another machine.
FORWARDING = (
    "HTTP_FORWARDED",
    "HTTP_VIA",
    "HTTP_X_REAL_IP",
    "HTTP_X_CLIENT_IP",
    "HTTP_X_CLUSTER_CLIENT_IP",
    "HTTP_X_ORIGINAL_FORWARDED_FOR",
    "HTTP_X_ORIGINAL_HOST",
    "HTTP_X_ENVOY_EXTERNAL_ADDRESS",
    "HTTP_TRUE_CLIENT_IP",
    "HTTP_CF_CONNECTING_IP",
    "HTTP_CF_RAY",
    "HTTP_CDN_LOOP",
    "HTTP_FASTLY_CLIENT_IP",
    "HTTP_FLY_CLIENT_IP",
    "HTTP_PROXY_CONNECTION",
)
# Set by our own middleware before it takes forwarding headers away. No header can set it: theirs all begin with HTTP_.
WAS_FORWARDED = "benchwarmers.forwarded"


def extract_key(headers: Headers, query: str) -> str | None:
    """Gives the key that a request carries; None where it carries none.

    Shape: what can be no key of ours (another Authorization scheme, several keys that differ) comes back as a text that no key equals, since a
    key that is sent is always checked. `query` is the raw query string.
    """
    sent: list[str] = []
    if authorization := headers.get("HTTP_AUTHORIZATION", "").strip():
        scheme, _, rest = authorization.partition(" ")
        if scheme.lower() != "bearer":
            sent.append("\n" + authorization)  # no key holds a line break
        elif token := rest.strip():
            sent.append(token)
    for name in ("HTTP_X_API_KEY", "HTTP_X_GOOG_API_KEY"):
        if value := headers.get(name, "").strip():
            sent.append(value)
    if query:
        sent += [value for name, value in parse_qsl(query, errors="replace") if name == "key" and value]
    if not sent:
        return None
    return sent[0] if sent.count(sent[0]) == len(sent) else "\n".join(sent)


def was_forwarded(headers: Headers) -> bool:
    """Whether anything tells of a proxy between the caller and this server, believed or not."""
    if headers.get(WAS_FORWARDED) or any(name in headers for name in FORWARDING):
        return True
    return any(name.startswith("HTTP_X_FORWARDED") for name in headers)


def is_loopback_host(host: str) -> bool:
    """Whether a Host header names this machine: localhost, 127.0.0.0/8 or [::1], with or without a port."""
    found = HOST.fullmatch(host)
    if not found:
        return False
    name = found["name"]
    if name.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    # Only these two: a mapped address (::ffff:127.0.0.1) is nothing that a client on this machine writes.
    return address.is_loopback and (address.version == 4 or address == ipaddress.IPv6Address(1))


def needs_no_key(listens_on_loopback: bool, headers: Headers) -> bool:
    """The loopback rule: the server listens on loopback, the Host is a loopback name, and nothing was forwarded."""
    return listens_on_loopback and is_loopback_host(headers.get("HTTP_HOST", "")) and not was_forwarded(headers)


# ------------------------------------------------------------------ pages of other origins


def normal_origin(origin: str) -> str:
    """Lower case, without a default port; empty for what is no http(s) origin (`null` too)."""
    scheme, separator, host = origin.strip().lower().partition("://")
    found = HOST.fullmatch(host) if separator and scheme in DEFAULT_PORTS else None
    if not found:
        return ""
    port = found["port"]
    return f"{scheme}://{found['name']}" + (f":{port}" if port and port != DEFAULT_PORTS[scheme] else "")


def refused_origin(method: str, headers: Headers, scheme: str, public_origin: str, allowed_origins: Collection[str] = ()) -> bool:
    """Whether a write comes from a page that may not make it.

    Shape: a browser is known by Origin or Sec-Fetch-Site, which pages cannot leave out or forge; other clients send neither.
    """
    if method in SAFE_METHODS:
        return False
    origin, site = headers.get("HTTP_ORIGIN"), headers.get("HTTP_SEC_FETCH_SITE")
    if origin is not None:
        sent = normal_origin(origin)
        if not sent:
            return True
        if sent in {normal_origin(o) for o in allowed_origins}:
            return False  # such a page is cross-site by its nature
        own = {normal_origin(f"{scheme}://{headers.get('HTTP_HOST', '')}"), normal_origin(public_origin)}
        if sent not in own:
            return True
    return site is not None and site.strip().lower() not in ("same-origin", "none")


# ------------------------------------------------------------------ proxies that are believed


@dataclass(frozen=True, slots=True)
class Approach:
    """How a request came here. Shape: `address` is the client's; `scheme` and `host` as the client wrote them, as far as that is known."""

    address: str
    scheme: str
    host: str
    forwarded: bool


def parsed_address(text: str) -> Address | None:
    """Reads an address as X-Forwarded-For has it: perhaps in brackets, perhaps with a port."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_trusted(text: str, networks: Collection[Network]) -> bool:
    address = parsed_address(text) if networks else None
    return address is not None and any(address in network for network in networks)


def client_address(peer: str, headers: Headers, networks: Collection[Network]) -> str:
    """The address of the client: the peer's own, or, from a trusted proxy, the nearest one in X-Forwarded-For that is no trusted proxy.

    Read from the right, since each proxy adds its peer there and the left is whatever the client wrote.
    """
    found = peer
    if not is_trusted(peer, networks):
        return found
    for entry in reversed(str(headers.get("HTTP_X_FORWARDED_FOR", "")).split(",")):
        address = parsed_address(entry)
        if address is None:
            break
        found = str(address)
        if not is_trusted(found, networks):
            break
    return found


def approach(peer: str, scheme: str, headers: Headers, networks: Collection[Network]) -> Approach:
    """Tells how a request came here, believing X-Forwarded-Proto, -Host and -For from trusted peers only; of several values the last, which the peer wrote."""
    host, forwarded = headers.get("HTTP_HOST", ""), was_forwarded(headers)
    if not (forwarded and is_trusted(peer, networks)):
        return Approach(peer, scheme, host, forwarded)
    proto = str(headers.get("HTTP_X_FORWARDED_PROTO", "")).rpartition(",")[2].strip().lower()
    named = str(headers.get("HTTP_X_FORWARDED_HOST", "")).rpartition(",")[2].strip()
    return Approach(
        address=client_address(peer, headers, networks),
        scheme=proto if proto in DEFAULT_PORTS else scheme,
        host=named if HOST.fullmatch(named) else host,
        forwarded=True,
    )
