"""`bench mcp`, a bridge for clients that only speak stdio, and `bench connect`, which sets clients up."""

from __future__ import annotations

import click

from benchwarmers_client import bridge, clients
from benchwarmers_client.session import Session, shared
from benchwarmers_client.terminal import as_json, clean, say


@click.command()
@shared
def mcp(session: Session) -> None:
    """Speak MCP on stdin and stdout, for clients that cannot speak it over HTTP. Ends when stdin does.

    \b
    bench mcp
    {"mcpServers": {"benchwarmers": {"command": "benchwarmers", "args": ["mcp"]}}}
    """
    bridge.run(session.client)


@click.command()
@click.argument("client", type=click.Choice([*(c.name for c in clients.EVERY), *clients.OTHER_NAMES]), metavar="CLIENT")
@click.option("--collection", default="core", help="Which collection an agent runs on.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@shared
def connect(session: Session, client: str, collection: str, dry_run: bool) -> None:
    """Write a CLIENT's configuration, so that it uses this server. What was there is kept beside it.

    CLIENT is claude-code, claude-code-mcp, codex, opencode, cline, cursor or gemini-cli. No key is written: each file names BENCHWARMERS_KEY.

    \b
    bench connect claude-code --dry-run
    bench connect codex --collection core
    """
    chosen = next(c for c in clients.EVERY if c.name == clients.OTHER_NAMES.get(client, client))
    server = session.client.server
    change = clients.planned(chosen, server.url, collection)
    if session.is_json:
        as_json({"client": chosen.name, "file": str(change.path), "before": change.before, "after": change.after, "then": change.then, "written": not dry_run})
    elif dry_run:
        say(f"{change.path} would become:")
        click.echo(clean(change.after), nl=not change.after.endswith("\n"))
    if dry_run:
        return
    backup = clients.write(change)
    if not session.is_json:
        if change.after == change.before:
            say(f"{change.path} says so already; nothing was written.")
        else:
            say(f"Wrote {change.path}." + (f" What was there is kept as {backup.name}." if backup else ""))
        say(change.then)


COMMANDS = (mcp, connect)
