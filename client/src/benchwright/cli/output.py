"""What a command puts out: a table for people, or JSON, NDJSON or YAML for programs. Text of models reaches no terminal with control characters in it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import click

from benchwright.cli.session import Session

Column = tuple[str, Callable[[Any], object]]
# Words that a reader of YAML takes for something else than a text, in version 1.1 too.
NO_PLAIN_TEXT = re.compile(r"(?i)(?:y|n|yes|no|on|off|true|false|null|~|[-+.]?(?:\d.*|inf|nan)|)\Z")
PLAIN_TEXT = re.compile(r"[A-Za-z_/][A-Za-z0-9_/.@+-]*\Z")


def field(name: str) -> Callable[[Any], object]:
    """Reads a field by its dotted name, None where it is not there."""

    def read(row: Any) -> object:
        for part in name.split("."):
            row = row.get(part) if isinstance(row, Mapping) else None
        return row

    return read


def columns(*names: str) -> list[Column]:
    """Columns that are fields, called like their last part."""
    return [(name.split(".")[-1].replace("_", " "), field(name)) for name in names]


def rows(session: Session, found: Iterable[Any], shape: Sequence[Column], limit: int | None = None) -> None:
    """Puts out a list, at most `limit` of it."""
    found = islice(found, limit)
    if session.form == "table":
        from benchwarmers_client.terminal import table

        table([name for name, _ in shape], [[said(read(row)) for _, read in shape] for row in found])
    elif session.form == "json":
        click.echo(json.dumps(list(found), indent=2, ensure_ascii=True))
    elif session.form == "yaml":
        click.echo(yaml(list(found)))
    else:
        for row in found:
            click.echo(json.dumps(row, ensure_ascii=True))


def one(session: Session, found: Any, shape: Sequence[Column] | None = None) -> None:
    """Puts out one thing; as a table a line for each column, or for each field, those of inner objects too; lists of objects are left out."""
    if session.form == "table":
        from benchwarmers_client.terminal import clean

        lines = [(name, read(found)) for name, read in shape] if shape else list(flat(found or {}))
        width = max((len(name) for name, _ in lines), default=0)
        for name, value in lines:
            click.echo(f"{clean(name):<{width}}  {clean(said(value))}".rstrip())
    elif session.form == "json":
        click.echo(json.dumps(found, indent=2, ensure_ascii=True))
    elif session.form == "yaml":
        click.echo(yaml(found))
    else:
        click.echo(json.dumps(found, ensure_ascii=True))


def flat(found: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, object]]:
    """Gives an object's fields by their dotted names, without what a program alone needs."""
    for name, value in found.items():
        if isinstance(value, Mapping):
            if name != "links":
                yield from flat(value, f"{before}{name}.")
        elif not (isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value)) and f"{before}{name}" != "object":
            yield f"{before}{name}", value


def text(found: str) -> None:
    """Puts out a text that is the point of the command: as it is to a pipe, without control characters to a terminal."""
    import sys

    if sys.stdout.isatty():
        clean(found)
    else:
        click.echo(found.encode("utf-8", "surrogatepass"), nl=not found.endswith("\n"))


def clean(found: str) -> None:
    """Puts out a text of a model or of anybody, for people to read."""
    from benchwarmers_client.terminal import clean as cleaned

    click.echo(cleaned(found), nl=not found.endswith("\n"))


def data(found: bytes) -> None:
    """Puts out bytes. Errors: UsageError where they would go to a terminal."""
    import sys

    if sys.stdout.isatty():
        raise click.UsageError("This is a file: send it somewhere, as in `… > file`.")
    click.echo(found, nl=False)


def note(said: str) -> None:
    """A line for people, on stderr: stdout holds only what was asked for."""
    from benchwarmers_client.terminal import clean

    click.echo(clean(said), err=True)


def said(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(said(item) for item in value)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def span(value: object) -> str:
    """A rank as it stands: 1, or 1 to 3 where the intervals allow no more."""
    ends = value if isinstance(value, list) else [value]
    return f"{ends[0]}" if ends[0] == ends[-1] else f"{ends[0]} to {ends[-1]}"


def share(value: object) -> str:
    return f"{value:.1%}" if isinstance(value, int | float) else ""


def yaml(value: Any, depth: int = 0) -> str:
    """Writes YAML: blocks for objects and lists, texts in double quotes wherever a reader could take them for something else."""
    pad = "  " * depth
    if isinstance(value, Mapping) and value:
        return "\n".join(f"{pad}{scalar(str(k))}:{below(v, depth + 1)}" for k, v in value.items())
    if isinstance(value, list | tuple) and value:
        return "\n".join(f"{pad}-{item(v, depth + 1)}" for v in value)
    return pad + scalar(value)


def is_block(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple) and bool(value)


def below(value: Any, depth: int) -> str:
    return f"\n{yaml(value, depth)}" if is_block(value) else f" {scalar(value)}"


def item(value: Any, depth: int) -> str:
    return f" {yaml(value, depth).lstrip(' ')}" if is_block(value) else f" {scalar(value)}"


def scalar(value: Any) -> str:
    if isinstance(value, str):
        if PLAIN_TEXT.match(value) and not NO_PLAIN_TEXT.match(value):
            return value
        escaped = json.dumps(value, ensure_ascii=False)
        return "".join(f"\\u{ord(c):04x}" if 0x7F <= ord(c) < 0xA0 or ord(c) in (0x2028, 0x2029, 0xFEFF) or 0xD800 <= ord(c) < 0xE000 else c for c in escaped)
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, list | tuple):
        return "[]"
    return json.dumps(value)
