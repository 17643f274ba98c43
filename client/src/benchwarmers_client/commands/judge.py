"""Verdicts: sending one, what waits for one, and panels on record."""

from __future__ import annotations

from typing import Any

import click

from benchwarmers_client.http import path_of
from benchwarmers_client.session import Session, shared
from benchwarmers_client.terminal import as_json, clean, one_line, say, seconds, table, usd


@click.command()
@click.argument("call")
@click.option("--useful/--not-useful", "useful", default=None, help="Whether the answer helped.")
@click.option("--real", multiple=True, metavar="CLAIM", help="A claim of the answer that holds; may be given again.")
@click.option("--false", "false", multiple=True, metavar="CLAIM", help="A claim of the answer that does not hold; may be given again.")
@click.option("--note", default="", help="Why, in a sentence.")
@shared
def verdict(session: Session, call: str, useful: bool | None, real: tuple[str, ...], false: tuple[str, ...], note: str) -> None:
    """Say what you found of one answer, by its CALL id, once you have checked it.

    \b
    bench verdict call_01J… --useful --real "the race in refresh()" --false "the SQL injection"
    """
    if useful is None and not real and not false:
        raise click.UsageError("Nothing is judged: give --useful or --not-useful, or claims with --real and --false.")
    kept = session.client.send("POST", "/bench/verdict", {"call": call, "useful": useful, "note": note, "real": list(real), "false": list(false)})
    if session.is_json:
        as_json(kept)
        return
    word = {True: "useful", False: "not useful", None: "claims only"}[kept["useful"]]
    again = ", in place of your last one" if kept.get("replaces") else ""
    say(f"Kept for {kept['judge']}: {word}, {len(kept['real'])} real, {len(kept['false'])} false{again}.")


@click.command()
@click.option("--limit", type=click.IntRange(1, 500), default=50, help="Panels at most.")
@shared
def pending(session: Session, limit: int) -> None:
    """List answers that nobody has judged yet, oldest first.

    \b
    bench pending --limit 10
    """
    page = session.client.get("/bench/verdicts/pending", limit=limit)
    if session.is_json:
        as_json(page)
        return
    rows = [(p["asked_at"][:16].replace("T", " "), p["collection"], s["model"], s["call"]) for p in page["data"] for s in p["seats"]]
    table(("asked", "collection", "model", "call"), rows, empty="Nothing waits for a verdict.")


@click.command()
@click.argument("panel", required=False, default="")
@click.option("--collection", default="", help="Only panels of this collection.")
@click.option("--limit", type=click.IntRange(1, 500), default=20, help="Panels at most.")
@shared
def panels(session: Session, panel: str, collection: str, limit: int) -> None:
    """List panels, newest first, or show one PANEL with its answers.

    \b
    bench panels --collection core --limit 5
    bench panels pan_01J…
    """
    if panel:
        shown = session.client.get(path_of("panels", panel))
        if session.is_json:
            as_json(shown)
        else:
            show(shown)
        return
    page = session.client.get("/bench/panels", collection=collection, limit=limit)
    if session.is_json:
        as_json(page)
        return
    rows = [
        (
            p["panel"],
            p["asked_at"][:16].replace("T", " "),
            p["collection"],
            p["mode"],
            p["status"],
            ", ".join(s["model"] for s in p["seats"]),
            usd(p["cost_usd"]),
        )
        for p in page["data"]
    ]
    table(("panel", "asked", "collection", "mode", "status", "seats", "cost"), rows, empty="No panel was asked yet.")


def show(panel: dict[str, Any]) -> None:
    say(f"{panel['panel']} · {panel['collection'] or ''} · {panel['mode']} · {panel['status']} · {panel['asked_at']} · {seconds(panel['seconds'])}")
    for seat in panel["seats"]:
        click.echo(f"\n## {clean(seat['model'])} ({seat['seat']}, {seat['status']}) {seat['call']}\n")
        click.echo(clean(seat["text"] or (seat.get("error") or {}).get("message") or "No text is kept."))
        for one in seat.get("verdicts") or []:
            word = {True: "useful", False: "not useful", None: "claims"}[one["useful"]]
            say(f"  verdict of {one['judge']}: {word}; {len(one['real'])} real, {len(one['false'])} false. {one_line(one['note'])}")


COMMANDS = (verdict, pending, panels)
