"""The bench itself: models, candidates, onboarding, collections, endpoints."""

from __future__ import annotations

import sys
import time
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from benchwarmers_client.http import Refused, path_of
from benchwarmers_client.session import Session, shared
from benchwarmers_client.terminal import as_json, clean, confirm, console, one_line, say, table, usd

POLL_S = 2.0
OVER = ("done", "failed", "cancelled")


def names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def fact(model: dict[str, Any], name: str) -> Any:
    return (model["facts"].get(name) or {}).get("value")


# ------------------------------------------------------------------ models


@click.command()
@click.option("--find", default="", metavar="TEXT", help="Only aliases that hold this, whatever its case.")
@click.option("--status", "state", type=click.Choice(["active", "resting", "retired"]), help="Only models of this status.")
@shared
def models(session: Session, find: str, state: str | None) -> None:
    """List the roster, with each model's status.

    \b
    bench models --find mercury
    """
    found = [m for m in session.client.every("/bench/models") if find.lower() in m["alias"].lower() and state in (None, m["status"])]
    if session.is_json:
        as_json({"data": found, "next": None})
        return
    rows = [
        (
            m["alias"],
            m["status"] + (" (ad hoc)" if m["ad_hoc"] else ""),
            m["endpoint"],
            fact(m, "context_window"),
            " ".join(word for word in ("tools", "vision", "reasoning") if fact(m, word)),
            price_of(m),
            f"until {m['until'][:16].replace('T', ' ')}: {m['reason']}" if m["until"] else m["reason"],
        )
        for m in found
    ]
    table(("model", "status", "endpoint", "context", "can", "$ in/out per Mtok", "why"), rows, empty="No model is like that.")


def price_of(model: dict[str, Any]) -> str:
    given = [fact(model, name) for name in ("input_usd_per_mtok", "output_usd_per_mtok")]
    return "/".join("?" if price is None else str(price) for price in given) if any(price is not None for price in given) else ""


@click.group()
def model() -> None:
    """Retire a model, or bring it back.

    \b
    bench model retire mercury --reason "confidently wrong"
    bench model restore mercury
    """


@model.command()
@click.argument("alias")
@click.option("--reason", required=True, help="Why; it is kept with the model.")
@shared
def retire(session: Session, alias: str, reason: str) -> None:
    """Take a model out of play; its record and its place in collections stay.

    \b
    bench model retire mercury --reason "confidently wrong"
    """
    confirm(f"Retire {alias}?", is_sure=session.is_sure)
    done(session, session.client.send("POST", path_of("models", alias, "retire"), {"reason": reason}), f"{alias} is retired. Back: bench model restore {alias}")


@model.command()
@click.argument("alias")
@click.option("--reason", default="restored from the command line", help="Why; it is kept with the model.")
@shared
def restore(session: Session, alias: str, reason: str) -> None:
    """Bring a retired model back.

    \b
    bench model restore mercury
    """
    done(session, session.client.send("POST", path_of("models", alias, "restore"), {"reason": reason}), f"{alias} plays again.")


def done(session: Session, answer: Any, sentence: str) -> None:
    as_json(answer) if session.is_json else say(sentence)


@click.command()
@click.option("--endpoint", default="", help="Only of this endpoint.")
@click.option("--find", default="", metavar="TEXT", help="Only served names that hold this.")
@click.option("--new", "is_new", is_flag=True, help="Only what is not on the bench.")
@click.option("--refresh", is_flag=True, help="Ask the endpoints now.")
@shared
def candidates(session: Session, endpoint: str, find: str, is_new: bool, refresh: bool) -> None:
    """List what your endpoints serve.

    \b
    bench candidates --new
    bench candidates --endpoint openrouter --find llama --refresh
    """
    found = [
        c
        for c in session.client.every("/bench/candidates", endpoint=endpoint, refresh="1" if refresh else "", all="" if is_new else "1")
        if find.lower() in c["served_name"].lower() and not (is_new and c.get("on_roster"))
    ]
    if session.is_json:
        as_json({"data": found, "next": None})
        return
    table(("endpoint", "served name", "on the bench as"), [(c["endpoint"], c["served_name"], c.get("on_roster")) for c in found], empty="Nothing is like that.")


# ------------------------------------------------------------------ onboarding


@click.command()
@click.argument("served_names", nargs=-1)
@click.option("--endpoint", default="", help="Which endpoint serves them; needed where several do.")
@click.option("--quick", "mode", flag_value="quick", help="Register and probe; no speed, no suite.")
@click.option("--quick-ad-hoc", "mode", flag_value="quick_ad_hoc", help="Register only; the bench never calls it by itself.")
@click.option("--full", "mode", flag_value="full", default=True, help="Register, probe, measure, score (the default).")
@click.option("--wait", is_flag=True, help="Stay until all are through, with progress.")
@click.option("--batch", default="", metavar="BATCH", help="Look at a batch that runs, instead of beginning one.")
@shared
def onboard(session: Session, served_names: tuple[str, ...], endpoint: str, mode: str | None, wait: bool, batch: str) -> None:
    """Bring models onto the bench by their SERVED_NAMES.

    \b
    bench onboard meta-llama/llama-3.3-70b-instruct --endpoint openrouter --wait
    """
    if not batch:
        if not served_names:
            raise click.UsageError("Say which models, by the names that the endpoint serves them under: bench candidates --new lists them.")
        body = {"endpoint": endpoint or endpoint_of(session, served_names), "served_names": list(served_names), "mode": mode or "full"}
        batch = session.client.send("POST", "/bench/onboard", body)["batch"]
        if not session.is_json:
            say(f"Batch {batch}: {len(served_names)} to go.")
    state = session.client.get(path_of("onboard", batch))
    if wait:
        state = watched(session, batch, state)
    if session.is_json:
        as_json(state)
    else:
        rows = [(m["served_name"], m.get("alias"), m["state"], m.get("stage"), cost_of(m), m.get("message")) for m in state["models"]]
        table(("served name", "alias", "state", "stage", "cost", ""), rows)
    if wait and any(m["state"] != "done" for m in state["models"]):
        raise Refused("Not all of them came through.", 200)


def endpoint_of(session: Session, served_names: tuple[str, ...]) -> str:
    """The one endpoint that serves all of them. Errors: UsageError where that is not one."""
    serves: dict[str, set[str]] = {}
    for one in session.client.every("/bench/candidates", all="1"):
        serves.setdefault(one["endpoint"], set()).add(one["served_name"])
    able = sorted(name for name, served in serves.items() if served >= set(served_names))
    if len(able) == 1:
        return able[0]
    if able:
        raise click.UsageError(f"Several endpoints serve that: {', '.join(able)}. Say which with --endpoint.")
    raise click.UsageError("No endpoint lists all of them. Say which serves them with --endpoint, or look: bench candidates --refresh.")


def cost_of(model: dict[str, Any]) -> str:
    """What a model's onboarding cost; a call without a known price is not one that costs nothing."""
    unpriced = model.get("unpriced")
    return f"{usd(model.get('cost_usd'))} + {unpriced} at an unknown price" if unpriced else usd(model.get("cost_usd"))


def watched(session: Session, batch: str, state: dict[str, Any]) -> dict[str, Any]:
    """Shows progress until every model is through."""
    told: dict[str, int] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(is_error=True), disable=not sys.stderr.isatty()) as progress:
        bar = progress.add_task("onboarding", total=len(state["models"]))
        while True:
            for one in state["models"]:
                for line in one.get("log", [])[told.get(one["served_name"], 0) :]:
                    progress.console.print(Text(f"{one['served_name']}: {one_line(line['said'])}"), soft_wrap=True)
                told[one["served_name"]] = len(one.get("log", []))
            progress.update(bar, completed=sum(m["state"] in OVER for m in state["models"]))
            if all(m["state"] in OVER for m in state["models"]):
                return state
            time.sleep(POLL_S)
            state = session.client.get(path_of("onboard", batch))


# ------------------------------------------------------------------ collections


@click.group()
def collection() -> None:
    """Make, change or delete a collection.

    \b
    bench collection save reviewers --members a,b,c
    bench collection delete reviewers
    """


@collection.command()
@click.argument("name")
@click.option("--members", default=None, metavar="A,B,C", help="Its members, in order.")
@click.option("--add", default="", metavar="A,B", help="Members to add at the end.")
@click.option("--remove", default="", metavar="A,B", help="Members to take out.")
@click.option("--mergers", default=None, metavar="A,B", help="Who merges answers, the first that can.")
@click.option("--description", default=None, help="What it is for.")
@click.option("--shape", default=None, help="The shape of the work: review, design, enumeration …")
@click.option("--picking", type=click.Choice(["fixed", "record"]), help="Members in order, or by their record.")
@click.option("--explorers", type=click.IntRange(0), help="Explorer seats.")
@shared
def save(session: Session, name: str, members: str | None, add: str, remove: str, mergers: str | None, **fields: Any) -> None:
    """Make the collection NAME, or change what is given.

    \b
    bench collection save reviewers --members a,b,c --description "adversarial review"
    bench collection save reviewers --add d --remove a
    """
    before = existing(session, name)
    body = {field: value for field, value in fields.items() if value is not None}
    if members is not None or add or remove:
        seated = names(members) if members is not None else list(before["members"]) if before else []
        if missing := [m for m in names(remove) if m not in seated]:
            raise click.UsageError(f"{', '.join(missing)} is no member of {name}.")
        body["members"] = [m for m in seated if m not in names(remove)] + names(add)
    if mergers is not None:
        body["mergers"] = names(mergers)
    if before is None:
        kept = session.client.send("POST", "/bench/collections", {"name": name, **body})
    elif body:
        kept = session.client.send("PATCH", path_of("collections", name), body)
    else:
        raise click.UsageError(f"{name} is there already, and nothing is to be changed.")
    done(session, kept, f"{name}: {', '.join(kept['members']) or 'no members yet'}. Ask it: bench ask {name} …")


def existing(session: Session, name: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = session.client.get(path_of("collections", name))
        return found
    except Refused as error:
        if error.status == 404:
            return None
        raise


@collection.command()
@click.argument("name")
@shared
def delete(session: Session, name: str) -> None:
    """Delete a collection; its panels and verdicts stay on record.

    \b
    bench collection delete reviewers
    """
    confirm(f"Delete the collection {name}?", is_sure=session.is_sure)
    done(session, session.client.send("DELETE", path_of("collections", name)), f"{name} is deleted.")


# ------------------------------------------------------------------ endpoints


@click.group()
def endpoint() -> None:
    """The addresses that serve your models.

    \b
    bench endpoint list
    bench endpoint add openrouter --base https://openrouter.ai/api/v1
    """


@endpoint.command("list")
@shared
def list_endpoints(session: Session) -> None:
    """List endpoints. Of a key only where it comes from.

    \b
    bench endpoint list
    """
    found = list(session.client.every("/bench/endpoints"))
    if session.is_json:
        as_json({"data": found, "next": None})
        return
    table(("endpoint", "kind", "address", "key", "models"), [(e["name"], e["kind"], e["base_url"], e["key"], e["models"]) for e in found])


@endpoint.command("add")
@click.argument("name")
@click.option("--base", required=True, metavar="URL", help="Its base URL, with or without the version part.")
@click.option("--kind", default="openai", help="openai, openai-responses, anthropic, gemini, ollama or chatgpt.")
@click.option("--key-env", default="", metavar="NAME", help="A variable BENCHWARMERS_KEY_… of the server that holds the key, instead of storing one.")
@click.option("--key-stdin", is_flag=True, help="Read the key from stdin.")
@click.option("--no-key", is_flag=True, help="It wants none.")
@shared
def add_endpoint(session: Session, name: str, base: str, kind: str, key_env: str, key_stdin: bool, no_key: bool) -> None:
    """Add an endpoint. Its key is asked for, hidden; it is never an argument, which others on the machine could read.

    \b
    bench endpoint add openrouter --base https://openrouter.ai/api/v1
    pass show openrouter | bench endpoint add openrouter --base https://openrouter.ai/api/v1 --key-stdin
    """
    body = {"name": name, "kind": kind, "base_url": base, **({"key_env": key_env} if key_env else {})}
    if key_stdin:
        body["key"] = sys.stdin.readline().strip()
        if not body["key"]:
            raise click.UsageError("There is no key on stdin.")
    elif not key_env and not no_key:
        if not sys.stdin.isatty():
            raise click.UsageError("There is nobody to ask for the key: pipe it in with --key-stdin, or say --no-key.")
        body["key"] = click.prompt("Key (not shown; empty for none)", hide_input=True, default="", show_default=False, err=True).strip()
    kept = session.client.send("POST", "/bench/endpoints", body)
    done(session, kept, f"{name} is added. What it serves: bench candidates --endpoint {name} --refresh")


@endpoint.command("delete")
@click.argument("name")
@shared
def delete_endpoint(session: Session, name: str) -> None:
    """Delete an endpoint that serves no model of the bench any more.

    \b
    bench endpoint delete openrouter
    """
    confirm(f"Delete the endpoint {name} and its key?", is_sure=session.is_sure)
    done(session, session.client.send("DELETE", path_of("endpoints", name)), f"{clean(name)} is deleted.")


COMMANDS = (models, model, candidates, onboard, collection, endpoint)
