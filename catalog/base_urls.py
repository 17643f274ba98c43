"""Base URLs as people copy them: with or without a version part, a slash at the end, a query, even the whole path of a call. All become one address."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

from catalog.addresses import AddressRefused, check_host
from catalog.shape import ShapeError

LONGEST = 500
# v1, v4, v1beta, v1beta1, and dated versions (2024-10-21).
VERSION_PART = re.compile(r"v\d+(?:\.\d+)?(?:(?:alpha|beta|preview|rc)\d*)?|\d{4}-\d{2}-\d{2}(?:-preview)?", re.IGNORECASE)
# A key in an address would stand in pages, exports and logs.
KEY_PARAMETERS = frozenset({"key", "api_key", "api-key", "apikey", "token", "access_token", "auth", "subscription-key"})


def check_base_url(value: str, field: str = "base_url") -> str:
    """Errors: ShapeError where it is no http or https address that an endpoint may have."""
    if not value:
        raise ShapeError(field, "must not be empty.")
    if len(value) > LONGEST:
        raise ShapeError(field, f"must have at most {LONGEST} characters, not {len(value)}.")
    if any(char.isspace() or not char.isprintable() for char in value) or "\\" in value:
        raise ShapeError(field, "must not hold spaces, line breaks or backslashes.")
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise ShapeError(field, "is no address: its host or port cannot be read.") from None
    if parts.scheme not in ("http", "https"):
        raise ShapeError(field, "must begin with http:// or https://.")
    if not parts.hostname or port == 0:
        raise ShapeError(field, "must name a host, like https://api.example.org/v1.")
    if "@" in parts.netloc:
        raise ShapeError(field, "must not hold a user name or password. The key has a field of its own.")
    if parts.fragment:
        raise ShapeError(field, "must not hold a fragment (#…).")
    for name, _ in parse_qsl(parts.query, keep_blank_values=True):
        if name.lower() in KEY_PARAMETERS:
            raise ShapeError(field, f"must not hold a key ({name}=…). The key has a field of its own.")
    try:
        check_host(parts.hostname, named=True)
    except AddressRefused as refused:
        raise ShapeError(field, f"is refused: {refused}") from None
    return value


@lru_cache(maxsize=4096)
def call_url(base_url: str, path: str, version: str, calls: tuple[str, ...] = (), bare_roots: tuple[str, ...] = ()) -> str:
    """Builds the address of one call.

    Shape: `path` is the call ("chat/completions"), `version` what goes before it where the base URL has no version part of its own;
    `calls` are paths of calls that a base URL may end in by mistake, `bare_roots` patterns of host and path that take no version.
    """
    parts = urlsplit(base_url.strip())
    segments = [segment for segment in parts.path.split("/") if segment]
    for call in sorted(calls, key=len, reverse=True):
        tail = call.split("/")
        before = segments[: -len(tail)]
        # A last part "models" is a call only behind a version: elsewhere it may be a folder of the server's own.
        if segments[-len(tail) :] == tail and (len(tail) > 1 or (before and VERSION_PART.fullmatch(before[-1]))):
            segments = before
            break
    root = "/".join([parts.hostname or "", *segments])
    if not any(VERSION_PART.fullmatch(segment) for segment in segments) and not any(re.fullmatch(bare, root) for bare in bare_roots):
        segments.append(version)
    return urlunsplit((parts.scheme, parts.netloc, "/" + "/".join([*segments, path]), parts.query, ""))


def with_parameter(url: str, name: str, value: str) -> str:
    """Sets one parameter of an address's query; the others stay as they are written."""
    parts = urlsplit(url)
    kept = [one for one in parts.query.split("&") if one and one.partition("=")[0] != name]
    return urlunsplit(parts._replace(query="&".join([*kept, f"{name}={quote(value, safe='')}"])))
