"""What stands in an outbox: one JSON object a line, with these keys, any of them absent.

    begin      [row | whole]   calls that go out now: the row that is written should the process die, or a whole request's permit
    attempts   [row]           upstream calls that are over, as ledger rows
    settle     [settle]        permits that are over, and what was really used
    over       [id]            begun calls that ended with neither of the two
    lost       [lost]          what a drain or a sweep found without an end; for rooms to the right
    <others>   [anything]      what a room registered with `ledger.register`

A permit has the id of what it is for: a seat's that of its attempt, a whole request's the request's own. An `attempts` row, a `settle` or an
`over` of its id ends what a `begin` began. Values are plain JSON, so that a line in memory and one read back are the same. Lines outlive an
upgrade: a key or a row's field may be added, never renamed, and readers pass over what they do not know.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NotRequired, TypedDict

import orjson

Line = Mapping[str, Any]
# Keys that a commit has nothing to do for.
OPENING = frozenset({"begin", "over"})


class Settle(TypedDict):
    """How a permit ended. Without `truth` what was reserved was used; whatever was held of `parallel` always goes back.

    Shape: `truth` maps "scope|measure" to what was used, the rest stays as reserved. `unused`: the call never went out, everything goes back.
    `panel`: the truth is what the ledger's rows of that panel sum up to; without a row as reserved, or, with `unused`, nothing.
    """

    permit: str
    truth: NotRequired[Mapping[str, int]]
    panel: NotRequired[str]
    unused: NotRequired[bool]


class Whole(TypedDict):
    """A whole request's permit in `begin` and in `Ask.stub`: should it be lost, the panel's rows say what was used."""

    id: str
    panel: str


class Lost(TypedDict):
    """A call or, with an empty `call`, a whole panel that no process will end."""

    id: str
    call: str
    panel: str


@dataclass(frozen=True, slots=True)
class Row:
    """One ledger row, read back. In lines it is a mapping of the same names, with `started_at` as ISO text.

    Units: `latency_ms` and `ttft_ms` milliseconds, `cost_pusd` trillionths of a US dollar.
    """

    id: str
    call: str
    panel: str
    request: str
    purpose: str
    seat: str
    collection: str
    judge: str
    key_id: int | None
    key_name: str
    team: str
    endpoint: str
    model: str
    served_name: str
    started_at: datetime
    latency_ms: int
    ttft_ms: int | None
    status: str
    http_status: int | None
    code: str
    error: str
    finish_reason: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    estimated: bool
    cost_pusd: int | None


COLUMNS = tuple(Row.__dataclass_fields__)
# For rows of an older version: what a column is where the row does not say.
ABSENT: Mapping[str, Any] = {
    **dict.fromkeys(COLUMNS, ""),
    **dict.fromkeys(("key_id", "ttft_ms", "http_status", "cost_pusd"), None),
    **dict.fromkeys(("latency_ms", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens"), 0),
    "estimated": False,
}
# As long as the columns are.
LENGTHS = {
    **dict.fromkeys(("id", "call", "panel", "code", "finish_reason"), 40),
    **dict.fromkeys(("purpose", "seat", "status"), 16),
    **dict.fromkeys(("collection", "judge", "key_name", "team", "endpoint", "model"), 200),
    "request": 80,
    "served_name": 300,
    "error": 500,
}


def dumps(line: Line) -> bytes:
    """Writes a line, its end included. What JSON proper has no words for (half a surrogate pair, a number past 64 bits) must lose no call."""
    try:
        return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        return json.dumps(clean(line), default=str).encode() + b"\n"


def loads(data: bytes) -> Line:
    """Reads a line. Errors: ValueError for what is none."""
    line = orjson.loads(data)
    if not isinstance(line, dict) or not all(isinstance(items, list) for items in line.values()):
        raise ValueError("not a line")
    return line


def clean(value: Any) -> Any:
    """Replaces halves of surrogate pairs, NUL characters and numbers that are none, which JSON or a database refuses."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {clean(str(key)): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


def fitted(line: Line, lengths: Mapping[str, Mapping[str, int]]) -> Line:
    """The line with every text made to fit its column: what is tried before any of it is set aside. Shape: `lengths` by key of a line, then by column."""
    return {key: [cut(item, lengths.get(key, {})) for item in items] for key, items in clean(line).items()}


def cut(item: Any, lengths: Mapping[str, int]) -> Any:
    if not isinstance(item, Mapping):
        return item
    return {name: value[: lengths[name]] if isinstance(value, str) and name in lengths else value for name, value in item.items()}


def parts_of(line: Line) -> list[Line]:
    """The line by what can be committed apart: first the ledger's own, then each other key, in the order of the line."""
    own = {key: items for key, items in line.items() if key in ("attempts", "settle")}
    return [*([own] if own else []), *({key: items} for key, items in line.items() if key not in own and key not in OPENING)]


def has_work(line: Line) -> bool:
    """Tells whether a commit has anything to do for a line."""
    return not OPENING.issuperset(line)


def ended(line: Line) -> Iterator[str]:
    """The ids of what a line ends."""
    for row in line.get("attempts", ()):
        yield row["id"]
    for settle in line.get("settle", ()):
        yield settle["permit"]
    yield from line.get("over", ())


def lost_lines(begun: Iterable[Mapping[str, Any]], *, process_known: bool) -> tuple[list[Line], list[Line]]:
    """Ends what nobody will end: first the calls, then, to be committed after them, the whole requests.

    `process_known`: everything that the dead process wrote has been read, so a request without a row never went out.
    """
    calls: list[Line] = []
    wholes: list[Line] = []
    for stub in begun:
        if "call" in stub:
            row = {**stub, "status": "lost", "estimated": True}
            lost: Lost = {"id": stub["id"], "call": stub["call"], "panel": stub.get("panel", "")}
            calls.append({"attempts": [row], "settle": [{"permit": stub["id"]}], "lost": [lost]})
        else:
            settle: Settle = {"permit": stub["id"], "panel": stub["panel"], "unused": process_known}
            wholes.append({"settle": [settle], "lost": [{"id": stub["id"], "call": "", "panel": stub["panel"]}]})
    return calls, wholes


def names_of(lines: Sequence[Line]) -> list[str]:
    """The ids in lines, for logs: never their content."""
    return [name for line in lines for name in ended(line)][:20]
