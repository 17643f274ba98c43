"""Bodies of the suite's API: JSON, rows as lines, either as it is or packed by gzip. Unpacked as a stream, so that no small body becomes a huge one in memory.

body_too_large         413 more than is taken, packed or not; more than a hundred times what came
unsupported_encoding   415 packed in another way
invalid_encoding       422 no gzip, cut off, or with something behind it
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Mapping
from tempfile import SpooledTemporaryFile
from typing import Any

from django.conf import settings
from rest_framework.parsers import BaseParser

from suite.api.problems import Problem, Unprocessable
from suite.authoring.rows import MOST_BYTES
from wire.jsontext import parse_body

PIECE = 64 * 1024
# No text of anybody's packs better; below so many bytes the ratio says nothing.
MOST_RATIO, FREE_BYTES = 100, 1024 * 1024
MOST_MEMBERS = 16
IN_MEMORY = 4 * 1024 * 1024


class Lines:
    """Rows as they came, unpacked, to be read a line at a time. Shape: `fingerprint` is their digest, for requests that come twice."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.file = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  # closed with this
        sum_ = hashlib.sha256()
        for piece in pieces:
            sum_.update(piece)
            self.file.write(piece)
        self.fingerprint = sum_.hexdigest()
        self.file.seek(0)

    def __del__(self) -> None:
        self.file.close()

    def readline(self, size: int = -1, /) -> bytes:
        return self.file.readline(size)


def pieces_of(stream: Any, encoding: str, most: int) -> Iterator[bytes]:
    """Gives a body's bytes, unpacked where it is packed. Errors: Problem 413 and 415, Unprocessable."""
    coding = encoding.strip().lower()
    if coding in ("", "identity"):
        yield from capped(read(stream), most)
    elif coding in ("gzip", "x-gzip"):
        yield from capped(unpacked(read(stream)), most)
    else:
        raise Problem(415, "unsupported_encoding", f"Bodies are taken as they are or packed by gzip, not as Content-Encoding {coding[:40]!r}.")


def read(stream: Any) -> Iterator[bytes]:
    while piece := stream.read(PIECE):
        yield piece


def capped(pieces: Iterator[bytes], most: int) -> Iterator[bytes]:
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > most:
            raise Problem(413, "body_too_large", f"The body is more than {most // 1024 // 1024} MiB, unpacked. Send it in parts.")
        yield piece


def unpacked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Unpacks gzip piece by piece, never more at a time than is looked at; members one after the other count together."""
    engine = zlib.decompressobj(wbits=31)
    came = went = 0
    members = 1
    for piece in pieces:
        came += len(piece)
        left = piece
        while left:
            if engine.eof:
                members += 1
                if members > MOST_MEMBERS:
                    raise Problem(413, "body_too_large", f"The body is packed in more than {MOST_MEMBERS} parts.")
                engine = zlib.decompressobj(wbits=31)
            try:
                out = engine.decompress(left, PIECE)
            except zlib.error:
                raise Unprocessable("invalid_encoding", "The body is no gzip, or something stands behind it.") from None
            went += len(out)
            if went > FREE_BYTES and went > MOST_RATIO * came:
                raise Problem(413, "body_too_large", f"The body unpacks to more than {MOST_RATIO} times of what came.")
            yield out
            left = engine.unused_data if engine.eof else engine.unconsumed_tail
    if not engine.eof and came:
        raise Unprocessable("invalid_encoding", "The body ends before its gzip does.")


class Json(BaseParser):
    """Reads a body as the gateway does: no NaN, no bottomless nesting, no half characters."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        return parse_body(b"".join(pieces_of(stream, encoding_of(parser_context), settings.MAX_BODY_BYTES)))


class Ndjson(BaseParser):
    """Keeps lines to be read one at a time."""

    media_type = "application/x-ndjson"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        return Lines(pieces_of(stream, encoding_of(parser_context), MOST_BYTES))


def encoding_of(context: Mapping[str, Any] | None) -> str:
    return str((context or {})["request"].headers.get("Content-Encoding", ""))
