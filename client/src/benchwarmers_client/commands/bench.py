"""What runs and what can be asked."""

from __future__ import annotations

from typing import Any

import click

from benchwarmers_client.session import Session, shared
from benchwarmers_client.terminal import as_json, clean, table


@click.command()
@shared
def status(session: Session) -> None:
    """Show what is running, and where.

    \b
    bench status
    bench status --url http://bench.lan:8122 --json
    """
    told = session.client.get("/bench/status")
    if session.is_json:
        as_json(told)
        return
    queue = told["queue"]
    waiting = "" if queue["waiting"] is None else f", {queue['waiting']} waiting"
    on = [s["name"] for s in told.get("schedules", []) if s.get("enabled")]
    table(
        ("", ""),
        [
            ("server", f"Benchwarmers {told['version']} at {told['url']}"),
            ("database", told["database"]),
            ("queue", f"{queue['workers']} at work{waiting}" if queue["workers"] else "no worker is at work"),
            ("schedules on", ", ".join(on) or "none"),
        ],
    )


@click.command()
@shared
def collections(session: Session) -> None:
    """List the collections that you may ask.

    \b
    bench collections
    """
    found: list[dict[str, Any]] = list(session.client.every("/bench/collections"))
    if session.is_json:
        as_json({"data": found, "next": None})
        return
    rows = [(c["name"], c["shape"], ", ".join(c["members"]), c["explorers"], c["picking"], c["description"]) for c in found]
    table(
        ("collection", "shape", "members", "explorers", "picking", "what it is for"),
        rows,
        empty="There is no collection yet: bench collection save NAME --members a,b",
    )


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option("--program", type=click.Choice(["bench", "benchwarmers"]), default="bench", help="Which of the two names.")
def completion(shell: str, program: str) -> None:
    """Print the completion script for a SHELL.

    \b
    bench completion bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    from benchwarmers_client.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(clean(kind(cli, {}, program, f"_{program.upper()}_COMPLETE").source()))


COMMANDS = (status, collections, completion)
