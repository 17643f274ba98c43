"""Gateway keys."""

from __future__ import annotations

import click

from benchwarmers_client.commands.roster import done, names
from benchwarmers_client.http import path_of
from benchwarmers_client.session import Session, shared
from benchwarmers_client.terminal import as_json, clean, confirm, say, table, usd


@click.group()
def key() -> None:
    """Keys for programs and people.

    \b
    bench key create my-app --collections core --rpm 30
    bench key list
    """


@key.command("list")
@shared
def list_keys(session: Session) -> None:
    """List keys, newest first; never a secret.

    \b
    bench key list
    """
    found = list(session.client.every("/bench/keys"))
    if session.is_json:
        as_json({"data": found, "next": None})
        return
    rows = [
        (
            k["name"],
            k["owner"],
            k["hint"] + "…",
            ", ".join(k["scopes"] or []),
            "all" if k["collections"] is None and k["models"] is None else ", ".join([*(k["collections"] or []), *(k["models"] or [])]),
            usd(k["budget_usd"]),
            "revoked" if k["revoked_at"] else (k["last_used_at"] or "never used")[:16].replace("T", " "),
        )
        for k in found
    ]
    table(("key", "owner", "begins", "may", "asks", "a month", "last used"), rows, empty="No key was made yet.")


@key.command()
@click.argument("name")
@click.option("--owner", default=None, help="Whose it is; their verdicts are kept under this name.")
@click.option("--scopes", default=None, metavar="A,B", help="ask, judge, read, operate, admin; ask,judge without it.")
@click.option("--collections", default=None, metavar="A,B", help="Collections it may ask; all without it and --models.")
@click.option("--models", default=None, metavar="A,B*", help="Aliases it may ask, or beginnings that end in *.")
@click.option("--rpm", type=click.IntRange(1), help="Requests a minute.")
@click.option("--tpm", type=click.IntRange(1), help="Tokens a minute.")
@click.option("--max-parallel", type=click.IntRange(1), help="Calls at once.")
@click.option("--budget", "budget_usd", default=None, metavar="USD", help="US dollars a month.")
@click.option("--expires", "expires_at", default=None, metavar="TIME", help="When it ends, like 2027-01-31T12:00:00Z.")
@shared
def create(session: Session, name: str, scopes: str | None, collections: str | None, models: str | None, **fields: object) -> None:
    """Make a key. It is printed this once, on stdout.

    \b
    bench key create my-app --collections core --rpm 30
    """
    lists = {"scopes": scopes, "collections": collections, "models": models}
    body = {"name": name, **{f: names(said) for f, said in lists.items() if said is not None}, **{f: value for f, value in fields.items() if value is not None}}
    made = session.client.send("POST", "/bench/keys", body)
    if session.is_json:
        as_json(made)
        return
    click.echo(clean(made["key"]))
    say("Keep it now: nobody can show it again.")


@key.command()
@click.argument("name")
@shared
def revoke(session: Session, name: str) -> None:
    """End a key for good, from the next request on.

    \b
    bench key revoke my-app
    """
    confirm(f"Revoke the key {name}?", is_sure=session.is_sure)
    done(session, session.client.send("DELETE", path_of("keys", name)), f"{name} is revoked.")


COMMANDS = (key,)
