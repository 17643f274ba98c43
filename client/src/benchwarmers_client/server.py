"""Which server is meant, and the key that goes there.

--url, BENCHWARMERS_URL ─▶ else server.json of a server on this machine ─▶ else port 8122 here
BENCHWARMERS_KEY        ─▶ else operator.key of this machine, and that to a loopback address only
"""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import platformdirs

DEFAULT_URL = "http://127.0.0.1:8122"


class BadAddress(ValueError):
    """An address that is none. The message says what to write instead."""


@dataclass(frozen=True, slots=True)
class Server:
    """Shape: `url` has no slash at its end and may hold a path prefix; `key` may be empty."""

    url: str
    key: str = field(repr=False)

    @property
    def is_here(self) -> bool:
        return is_loopback(self.url)


def data_folder(environment: Mapping[str, str]) -> Path:
    """Where a server on this machine keeps its data, as far as can be told from outside: its checkout's `.benchwarmers-home` is only known there."""
    if named := environment.get("BENCHWARMERS_HOME"):
        return Path(named).expanduser()
    pointer = Path.cwd() / ".benchwarmers-home"
    try:
        if line := pointer.read_text(encoding="utf-8").strip():
            return Path(line).expanduser()
    except (OSError, UnicodeDecodeError):
        pass
    return Path(platformdirs.user_data_dir("benchwarmers", appauthor=False))


def is_loopback(url: str) -> bool:
    """Whether an address is this machine's own. A name other than localhost may point anywhere, so it is not."""
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def checked_url(text: str) -> str:
    """Gives an address without a slash at its end, or a `/v1` that was copied along. Errors: BadAddress."""
    text = text.strip()
    if "://" not in text:
        text = f"http://{text}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise BadAddress("The server's address is none. Write it like http://127.0.0.1:8122.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or port == 0:
        raise BadAddress("The server's address must begin with http:// or https:// and name a host, like http://127.0.0.1:8122.")
    if parts.username or parts.password:
        raise BadAddress("The server's address holds a name or a password. Set BENCHWARMERS_KEY instead.")
    return text.rstrip("/").removesuffix("/v1").rstrip("/")


def told_url(folder: Path) -> str:
    """What a server on this machine wrote of its address; empty without one. Whether it still runs shows at the first call."""
    try:
        told = json.loads((folder / "server.json").read_text(encoding="utf-8"))
        return str(told["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def find(url: str | None, environment: Mapping[str, str] = os.environ) -> Server:
    """Finds the server that is meant. Errors: BadAddress."""
    folder = data_folder(environment)
    found = checked_url(url or environment.get("BENCHWARMERS_URL") or told_url(folder) or DEFAULT_URL)
    key = environment.get("BENCHWARMERS_KEY", "").strip()
    if not key and is_loopback(found):
        try:
            key = (folder / "operator.key").read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            key = ""
    return Server(found, key)
