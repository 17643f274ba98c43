"""What reaches the terminal: text without control characters, tables, questions, JSON."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

# What could move the cursor, colour or retitle a terminal, or turn text around: C0 but tab and newline, DEL, C1, bidirectional overrides and isolates.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]")


def clean(text: object) -> str:
    """Text of a model or of anybody, fit for a terminal: every control character becomes a visible mark, CRLF a newline."""
    return CONTROLS.sub("\ufffd", str(text).replace("\r\n", "\n"))


def one_line(text: object, most: int = 200) -> str:
    flat = " ".join(clean(text).split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def console(*, is_error: bool = False) -> Console:
    """Made anew each time, so that it writes to wherever stdout or stderr point now."""
    return Console(stderr=is_error, highlight=False, soft_wrap=False)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, is_error: bool = False, empty: str = "Nothing there.") -> None:
    """Prints rows under headings; to a file or a pipe as lines with tabs, which other programs read."""
    lines = [["" if cell is None else one_line(cell) for cell in row] for row in rows]
    out = console(is_error=is_error)
    if not out.is_terminal:
        stream = sys.stderr if is_error else sys.stdout
        for line in lines:
            print("\t".join(line), file=stream)
        return
    if not lines:
        out.print(Text(empty, style="dim"))
        return
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        shown.add_column(column, header_style="bold", overflow="fold")
    for line in lines:
        shown.add_row(*(Text(cell) for cell in line))
    out.print(shown)


def say(text: str) -> None:
    """A line for people, on stderr, so that stdout holds only what was asked for."""
    click.echo(clean(text), err=True)


@contextmanager
def working(what: str) -> Iterator[Callable[[], None]]:
    """Shows, on a terminal, that something is under way, until the block ends or the function that it gives is called."""
    out = console(is_error=True)
    if not out.is_terminal:
        yield lambda: None
        return
    with out.status(Text(clean(what), style="dim")) as shown:
        yield shown.stop


def as_json(value: Any) -> None:
    """What the server answered, for programs. JSON escapes control characters by itself."""
    click.echo(json.dumps(value, ensure_ascii=True, indent=2))


def confirm(question: str, *, is_sure: bool) -> None:
    """Asks before what cannot be taken back. Errors: click.Abort for a no; a UsageError where nobody can be asked."""
    if is_sure:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("This asks first, and there is nobody to ask here: add --yes.")
    click.confirm(clean(question), abort=True, err=True)


def usd(amount: object) -> str:
    return "" if amount is None else f"${amount}"


def seconds(amount: object) -> str:
    return f"{amount:.1f} s" if isinstance(amount, int | float) else ""


def minute(at: str | None) -> str:
    """A time as a person reads it: day and minute, UTC."""
    return (at or "")[:16].replace("T", " ")
