"""Lists as CSV, streamed, and safe to open in a spreadsheet: RFC 4180, UTF-8 with its mark, and no text that would run as a formula."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse

MARK = "\ufeff"  # without it Excel reads UTF-8 as something else
# What a spreadsheet takes for the beginning of a formula, in its wide forms too, or skips before one.
RISKY = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# A spreadsheet of a country that writes decimals with a comma parts cells at semicolons, and looks for formulas behind each.
PARTED = re.compile(f"(?<=[;\t\r\n])(?=[{re.escape(''.join(RISKY))}])")
ROWS = 500


def cell(value: Any) -> Any:
    """One value as it stands in a sheet: numbers stay numbers, a text that would be a formula gets a quote before it."""
    if value is None or isinstance(value, bool | int | float):
        return "" if value is None else str(value).lower() if isinstance(value, bool) else value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, Money):
        return value.text
    text = PARTED.sub("'", str(value).replace("\0", "\ufffd"))
    return f"'{text}" if text.startswith(RISKY) else text


class Money:
    """An amount as exact text, which is a number to a spreadsheet."""

    def __init__(self, text: str | None) -> None:
        self.text = text or ""


def lines(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """Writes a sheet, some rows at a time."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)  # its own way is RFC 4180's
    buffer.write(MARK)
    writer.writerow(columns)
    for number, row in enumerate(rows, 1):
        writer.writerow([cell(value) for value in row])
        if number % ROWS == 0:
            yield buffer.getvalue().encode("utf-8", "replace")
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue().encode("utf-8", "replace")


class Sheet(StreamingHttpResponse):
    """A CSV file that is made while it is read, under an ASGI server too: Django would else make the whole of it first."""

    def __init__(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        self.parts = lines(columns, rows)
        headers = {"Content-Disposition": f'attachment; filename="{name}.csv"', "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        super().__init__(self.parts, content_type="text/csv; charset=utf-8", headers=headers)

    def following(self) -> bytes:
        return next(self.parts, b"")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        following = sync_to_async(self.following)
        while part := await following():
            yield part
