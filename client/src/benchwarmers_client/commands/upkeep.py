"""What the bench does by itself and what it costs: settings, schedules, quotas, usage, Discover."""

from __future__ import annotations

import json
from typing import Any

import click

from benchwarmers_client.commands.roster import done, names
from benchwarmers_client.http import path_of
from benchwarmers_client.session import Session, shared
from benchwarmers_client.terminal import as_json, minute, say, table, usd


@click.group()
def settings() -> None:
    """Show and change settings, while the server runs.

    \b
    bench settings list
    bench settings set records.half_life_days 30
    bench settings scheduler run --off perf
    """


@settings.command("list")
@shared
def list_settings(session: Session) -> None:
    """List the settings that there are.

    \b
    bench settings list
    """
    found = list(session.client.every("/bench/settings"))
    if session.is_json:
        as_json({"data": found, "next": None})
        return
    table(("setting", "value", "what it is"), [(s["name"], json.dumps(s["value"], ensure_ascii=False), s.get("tells")) for s in found])


@settings.command("set")
@click.argument("name")
@click.argument("value")
@shared
def set_setting(session: Session, name: str, value: str) -> None:
    """Set the setting NAME to VALUE: JSON, or plain text; null puts the default back.

    \b
    bench settings set records.half_life_days 30
    """
    try:
        read = json.loads(value)
    except ValueError:
        read = value
    kept = session.client.send("PATCH", path_of("settings", name), {"value": read})
    done(session, kept, f"{name} is {json.dumps(kept['value'], ensure_ascii=False)}.")


@settings.group()
def scheduler() -> None:
    """The scheduled jobs: probe, perf, suite, catalog, drift, retention.

    \b
    bench settings scheduler list
    bench settings scheduler run --off perf
    """


@scheduler.command("list")
@shared
def list_schedules(session: Session) -> None:
    """List the schedules, and when each runs next.

    \b
    bench settings scheduler list
    """
    found = list(session.client.every("/bench/schedules"))
    if session.is_json:
        as_json({"data": found, "next": None})
        return
    rows = [(s["name"], "on" if s["enabled"] else "off", s["cron"], s["time_zone"], minute(s["next_run_at"]), s.get("tells")) for s in found]
    table(("schedule", "", "cron", "zone", "next", "what it does"), rows)


@scheduler.command()
@click.option("--on", default="", metavar="A,B", help="Schedules to switch on.")
@click.option("--off", default="", metavar="A,B", help="Schedules to switch off.")
@click.option("--now", default="", metavar="A,B", help="Schedules to run once, now.")
@shared
def run(session: Session, on: str, off: str, now: str) -> None:
    """Switch schedules on or off, or run them now.

    \b
    bench settings scheduler run --off perf
    bench settings scheduler run --on probe,drift
    """
    if not (on or off or now):
        raise click.UsageError("Say which: --on, --off or --now, each with names.")
    if both := set(names(on)) & set(names(off)):
        raise click.UsageError(f"{', '.join(sorted(both))} cannot be on and off.")
    kept: list[Any] = []
    for name in names(on):
        kept.append(session.client.send("PATCH", path_of("schedules", name), {"enabled": True}))
    for name in names(off):
        kept.append(session.client.send("PATCH", path_of("schedules", name), {"enabled": False}))
    for name in names(now):
        kept.append(session.client.send("POST", path_of("schedules", name, "run"), {}))
    said = [*(f"{n} is on" for n in names(on)), *(f"{n} is off" for n in names(off)), *(f"{n} runs now" for n in names(now))]
    if session.is_json:
        as_json(kept)
    else:
        say("; ".join(said) + ".")


@click.command()
@shared
def quotas(session: Session) -> None:
    """Show what is left of every limit and budget, and when it resets.

    \b
    bench quotas
    """
    found = list(session.client.every("/bench/quotas"))
    if session.is_json:
        as_json({"data": found, "next": None})
        return
    rows = [
        (
            f"{q['scope']} {q['name']}",
            "calls at once" if q["window"] == "parallel" else f"{q['measure']} a {q['window']}",
            q["limit"],
            q["used"],
            q["left"],
            minute(q["resets_at"]),
            q["source"],
        )
        for q in found
    ]
    table(("of", "what", "limit", "used", "left", "resets", "known from"), rows, empty="Nothing is limited.")


@click.command()
@click.option("--by", type=click.Choice(["model", "key", "endpoint", "collection", "purpose", "judge", "team"]), default="model", help="What to sum by.")
@click.option("--month", default="", metavar="YYYY-MM", help="One month; all without it.")
@shared
def usage(session: Session, by: str, month: str) -> None:
    """Show calls, tokens and costs by month.

    \b
    bench usage
    bench usage --by key --month 2026-11
    """
    found = list(session.client.every("/bench/usage", by=by, month=month))
    if session.is_json:
        as_json({"data": found, "next": None})
        return
    rows = [(u["month"], u[by], u["calls"], u["failed"], u["input_tokens"], u["output_tokens"], usd(u["cost_usd"]), u["unpriced_calls"] or "") for u in found]
    table(("month", by, "calls", "failed", "tokens in", "out", "cost", "unpriced"), rows, empty="Nothing was asked.")


@click.command()
@click.argument("text", required=False, default="")
@click.option("--free", is_flag=True, help="Only what costs nothing somewhere.")
@click.option("--new", "is_new", is_flag=True, help="Only what is new since last week.")
@click.option("--reachable", is_flag=True, help="Only what an endpoint of yours serves.")
@click.option("--limit", type=click.IntRange(1, 500), default=40, help="Models at most.")
@shared
def discover(session: Session, text: str, free: bool, is_new: bool, reachable: bool, limit: int) -> None:
    """List models worth adding, from public catalogs, with the ways to them.

    \b
    bench discover llama --free
    """
    flags = {"free": free, "new": is_new, "reachable": reachable}
    page = session.client.get("/bench/discover", text=text, limit=limit, **{name: "1" for name, is_set in flags.items() if is_set})
    if session.is_json:
        as_json(page)
        return
    rows = []
    for d in page["data"]:
        through = dict.fromkeys(r["endpoint"] or r["title"] or r["provider"] for r in d["routes"])
        marks = " ".join(word for word, is_so in (("free", d["free"]), ("new", d["new"])) if is_so)
        context = (d["facts"].get("context_window") or {}).get("value")
        rows.append((d["model"], context, marks, ", ".join(list(through)[:5]), ", ".join(d["on_roster"])))
    table(("model", "context", "", "through", "on the bench as"), rows, empty="No model is like that.")


@click.command()
@click.option("--all", "everything", is_flag=True, help="Also those that somebody has seen.")
@shared
def alerts(session: Session, everything: bool) -> None:
    """List what somebody should know of: budgets, retired models, changed models, sources that are down.

    \b
    bench alerts
    bench alerts --all
    """
    found = list(session.client.every("/bench/alerts", unseen="" if everything else "true"))
    if session.is_json:
        as_json({"data": found, "next": None})
        return
    table(("at", "kind", "of", ""), [(minute(a["at"]), a["kind"], a["subject"], a["message"]) for a in found], empty="Nothing.")


COMMANDS = (settings, quotas, usage, discover, alerts)
