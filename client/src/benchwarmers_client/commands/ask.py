"""`bench ask`: a question to a collection, its answers on stdout as they come, the call ids on stderr."""

from __future__ import annotations

import base64
import json
import mimetypes
import sys
from pathlib import Path
from typing import Any

import click

from benchwarmers_client.http import LONG_S, Client, Refused
from benchwarmers_client.session import Session, shared
from benchwarmers_client.terminal import clean, one_line, say, seconds, table, usd, working

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
MOST_FILE_BYTES = 8 * 1024 * 1024
MCP_VERSION = "2026-07-28"


@click.command()
@click.argument("collection")
@click.argument("prompt", required=False, default="")
@click.option(
    "-f", "--file", "files", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A file to send along; may be given again."
)
@click.option("--merged", is_flag=True, help="One more model merges the answers into one.")
@click.option("--with", "besides", multiple=True, metavar="ALIAS", help="A model to seat besides the members, this once; may be given again.")
@click.option("--system", default="", metavar="TEXT", help="System instructions for every seat.")
@click.option("--max-tokens", type=click.IntRange(1), help="Tokens of each answer at most.")
@click.option("--model", "is_model", is_flag=True, help="COLLECTION is a model's alias: ask that one alone.")
@shared
def ask(
    session: Session,
    collection: str,
    prompt: str,
    files: tuple[Path, ...],
    merged: bool,
    besides: tuple[str, ...],
    system: str,
    max_tokens: int | None,
    is_model: bool,
) -> None:
    """Ask a COLLECTION. A pipe is the prompt, or what the prompt is about.

    \b
    bench ask core "Where can this return a stale value?" -f cache.py
    git diff | bench ask core "Review this diff" > review.md
    bench ask core "Which is right?" --merged --with mercury

    Answers go to stdout, the table of call ids to judge them by to stderr.
    """
    content = content_of(prompt, piped(), files)
    name = collection if is_model or collection.startswith("bench/") else f"bench/{collection}"
    if merged and is_model:
        raise click.UsageError("--merged merges a panel's answers; one model gives one.")
    if besides:
        if not isinstance(content, str) or max_tokens or is_model:
            raise click.UsageError("--with goes with text to a collection; leave out images, --max-tokens and --model.")
        with_others(session, collection.removeprefix("bench/"), content, merged, besides, system)
        return
    messages = [*([{"role": "system", "content": system}] if system else []), {"role": "user", "content": content}]
    body: dict[str, Any] = {"model": f"{name}:merged" if merged else name, "messages": messages}
    if max_tokens:
        body["max_completion_tokens"] = max_tokens
    if session.is_json:
        click.echo(json.dumps(session.client.send("POST", "/v1/chat/completions", body, timeout_s=LONG_S), indent=2))
        return
    told = streamed(session.client, {**body, "stream": True, "stream_options": {"include_usage": True}})
    if told:
        table_of(told)


def streamed(client: Client, body: dict[str, Any]) -> dict[str, Any] | None:
    """Prints an answer as it comes; gives what the server told of the panel. Errors: Refused where the stream ends in an error."""
    told: dict[str, Any] | None = None
    last, held = "\n", ""
    with working(f"Asking {one_line(body['model'])} …") as stop, client.stream("/v1/chat/completions", body) as events:
        for event in events:
            if event.data == "[DONE]":
                break
            try:
                chunk = json.loads(event.data)
            except ValueError:
                continue
            if not isinstance(chunk, dict):
                continue
            if error := chunk.get("error"):
                if last != "\n":
                    click.echo()
                raise Refused(
                    str(error.get("message") if isinstance(error, dict) else error), 200, str(error.get("code", "")) if isinstance(error, dict) else ""
                )
            told = chunk.get("bench") or told
            for choice in chunk.get("choices") or []:
                if text := held + ((choice.get("delta") or {}).get("content") or ""):
                    held = "\r" if text.endswith("\r") else ""  # half a line's end, perhaps
                    text = clean(text.removesuffix(held) if held else text)
                    stop()
                    sys.stdout.write(text)
                    sys.stdout.flush()
                    last = text[-1:] or last
    if last != "\n":
        click.echo()
    return told


def with_others(session: Session, collection: str, prompt: str, merged: bool, besides: tuple[str, ...], system: str) -> None:
    """Seats others besides, which is a word of the MCP tool `ask`."""
    meta = {"io.modelcontextprotocol/protocolVersion": MCP_VERSION, "io.modelcontextprotocol/clientCapabilities": {}}
    arguments = {"collection": collection, "prompt": prompt, "merged": merged, "with": list(besides), **({"system": system} if system else {})}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": meta, "name": "ask", "arguments": arguments}}
    with working(f"Asking {one_line(collection)} …"):
        answer = session.client.send(
            "POST", "/mcp", message, timeout_s=LONG_S, accept="application/json", mcp_protocol_version=MCP_VERSION, mcp_method="tools/call", mcp_name="ask"
        )
    if error := answer.get("error"):
        raise Refused(str(error.get("message")), 200)
    result = answer["result"]
    text = "\n".join(str(part.get("text", "")) for part in result.get("content", []))
    if result.get("isError"):
        raise Refused(text, 200)
    told = (result.get("structuredContent") or {}).get("bench")
    if session.is_json:
        click.echo(json.dumps(told, indent=2))
        return
    click.echo(clean(text))
    if told:
        table_of(told)


def table_of(told: dict[str, Any]) -> None:
    """The seats of a panel, on stderr."""
    click.echo(err=True)
    rows = [
        (
            s["call"],
            s["model"],
            s["seat"],
            s["status"],
            seconds(s.get("seconds")),
            usd(s.get("cost_usd")),
            one_line((s.get("error") or {}).get("message", ""), 80),
        )
        for s in told.get("seats", [])
    ]
    table(("call", "model", "seat", "status", "time", "cost", ""), rows, is_error=True)
    say(f"{told.get('panel')}: {told.get('status')}, {seconds(told.get('seconds'))} {usd(told.get('cost_usd'))}".rstrip())


# ------------------------------------------------------------------ what is asked


def piped() -> str:
    """What another program pipes in; nothing where a person sits at the keyboard."""
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def content_of(prompt: str, pipe: str, files: tuple[Path, ...]) -> str | list[dict[str, Any]]:
    """Puts prompt, pipe and files together: text where all is text, parts where images are among them. Errors: UsageError."""
    texts = [prompt] if prompt.strip() else []
    if pipe.strip():
        texts.append(pipe)
    images = []
    for file in files:
        data = read(file)
        kind = mimetypes.guess_type(file.name)[0] or ""
        if kind in IMAGES:
            images.append({"type": "image_url", "image_url": {"url": f"data:{kind};base64,{base64.b64encode(data).decode()}"}})
            continue
        try:
            texts.append(fenced(file, data.decode("utf-8")))
        except UnicodeDecodeError:
            raise click.UsageError(f"{file} is neither text (UTF-8) nor an image (PNG, JPEG, GIF, WebP).") from None
    if not texts and not images:
        raise click.UsageError("There is nothing to ask: give a prompt, pipe one in, or send a file with -f.")
    text = "\n\n".join(texts)
    return [*([{"type": "text", "text": text}] if text else []), *images] if images else text


def read(file: Path) -> bytes:
    try:
        if file.stat().st_size > MOST_FILE_BYTES:
            raise click.UsageError(f"{file} is larger than {MOST_FILE_BYTES // 1024 // 1024} MiB.")
        return file.read_bytes()
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}.") from None


def fenced(file: Path, text: str) -> str:
    """A file's text under its name, inside a fence that is longer than any in it."""
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    fence = "`" * max(3, longest + 1)
    return f"{file.name}:\n{fence}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


COMMANDS = (ask,)
