"""Commands about the account: profiles, tokens, budget, settings, secrets, hosts, webhooks."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from benchwright.cli import output
from benchwright.cli.session import Exit, Session, pairs, shown

# ------------------------------------------------------------------ who one is


@click.command()
@click.option("--base-url", metavar="URL", help="The server's address; else BW_BASE_URL, else the one on this machine.")
@shown
def login(session: Session, base_url: str | None) -> None:
    """Keep a server's address and a token as a profile. The token is asked for, or read from standard input.

    \b
    benchwright login --base-url https://bench.example.org
    benchwright --profile ci login < token.txt
    """
    import os

    from benchwright import profiles
    from benchwright.client import Benchwright

    token = (click.prompt("Token", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline()).strip()
    if not token:
        raise click.UsageError("There is no token. Make one on the server's page of keys, and give it here.")
    kept = profiles.all_of(profiles.config_file()).get(session.profile_name, {})
    with Benchwright(api_key=token, base_url=base_url or os.environ.get("BW_BASE_URL") or kept.get("base_url") or None, profile=profiles.DEFAULT) as bw:
        who = bw.me()
        path = profiles.write(session.profile_name, profiles.Profile(bw.base_url, token))
    output.note(f"{bw.base_url}, as {who.user.name}: kept in {path} as {session.profile_name}.")


@click.group()
def token() -> None:
    """Personal tokens. Only a browser's session makes them: no token can make another."""


@token.command("create")
@click.argument("name")
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="Like runs:read; may be repeated.")
@click.option("--expires", "expires_at", metavar="TIME")
@click.option("--test", is_flag=True, help="A token that asks no model and spends nothing.")
@shown
def create_token(session: Session, name: str, scopes: tuple[str, ...], expires_at: str | None, test: bool) -> None:
    """Make a token by the session of a browser that is signed in: its session cookie is asked for, or stands in BW_SESSION. Printed this once, on stdout.

    \b
    BW_SESSION=… benchwright token create laptop --scope runs:read --scope runs:write
    """
    import os

    from benchwright import tokens

    cookie = os.environ.get("BW_SESSION", "").strip()
    if not cookie:
        if not sys.stdin.isatty():
            output.note(f"A token is made by a browser's session: sign in at {session.bw.base_url} and make it on the page of keys, or set BW_SESSION.")
            raise Exit(4)
        cookie = click.prompt(f"The {tokens.SESSION_COOKIE} cookie of a browser that is signed in at {session.bw.base_url}", hide_input=True, err=True)
    body = {"name": name, "scopes": list(scopes), **({"expires_at": expires_at} if expires_at else {}), **({"test": True} if test else {})}
    made = tokens.create(session.bw.base_url, cookie, body)
    if session.output in ("json", "ndjson", "yaml"):
        output.one(session, made)
    else:
        click.echo(made["token"])
        output.note("Keep it now: nobody can show it again.")


@click.command()
@shown
def doctor(session: Session) -> None:
    """Look whether what runs need is there; ends with 1 where something is missing."""
    found = session.bw.doctor()
    checks = found.get("checks") or found.get("data") or []
    output.rows(session, checks, output.columns("name", "ok", "hint"))
    if not all(check.get("ok") for check in checks):
        raise Exit(1)


# ------------------------------------------------------------------ budget


@click.group()
def billing() -> None:
    """Budget, grants and what was spent."""


@billing.command()
@shown
def balance(session: Session) -> None:
    """Tell what is left, what this month cost, and the cap."""
    found = session.bw.billing.balance.get()
    if session.form != "table":
        output.one(session, found)
        return
    output.one(session, {k: dollars(v) if isinstance(v, dict) and "amount_cents" in v else v for k, v in found.items() if k != "object"})


def dollars(money: Any) -> str:
    if money.get("usd") is not None:
        return f"${money['usd']}"
    cents = money.get("amount_cents")
    return "" if cents is None else f"${cents / 100:,.2f}"


@billing.command()
@click.argument("usd", metavar="DOLLARS")
@click.option("--note", metavar="TEXT")
@click.option("--account", metavar="KIND:NAME", help="An admin's: like team:platform or owner:kim.")
@click.option("--idempotency-key", metavar="KEY")
@shown
def topup(session: Session, usd: str, **more: Any) -> None:
    """Grant an amount to the team: benchwright billing topup 50"""
    from decimal import Decimal, InvalidOperation

    try:
        cents = Decimal(usd.removeprefix("$")) * 100
    except InvalidOperation:
        cents = Decimal(0)
    if not (cents.is_finite() and cents > 0 and cents == cents.to_integral_value()):
        raise click.UsageError("An amount is dollars above 0, with at most two decimals: 50 or 12.50.")
    output.one(session, session.bw.billing.topups.create(int(cents), **more))


@billing.command()
@click.option("--type", "kind", type=click.Choice(["transactions", "runs"]), default="transactions", show_default=True)
@shown
def export(session: Session, kind: str) -> None:
    """Give everything as CSV: benchwright billing export --type transactions > ledger.csv"""
    click.echo(session.bw.billing.export(kind), nl=False)


@billing.command()
@click.option("--kind", metavar="KIND", help="trace_debit, driver_debit, judge_debit, sandbox_debit, grant, adjustment or refund.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@shown
def transactions(session: Session, kind: str | None, limit: int) -> None:
    """List what was spent and granted."""
    found = session.bw.billing.transactions.list(filters={"kind": kind} if kind else None, limit=min(limit, 500))
    output.rows(
        session, found, [*output.columns("created_at", "kind"), ("amount", lambda t: dollars(t.get("amount") or {})), *output.columns("reference_id")], limit
    )


@billing.command()
@shown
def trend(session: Session) -> None:
    """Tell what was spent, day by day."""
    found = session.bw.billing.usage_trend()
    rows = found.get("data")
    if session.form == "table" and isinstance(rows, list):
        output.rows(session, rows, [(name.replace("_", " "), output.field(name)) for name in (rows[0] if rows else {})])
    else:
        output.one(session, found)


@billing.command()
@click.option("--set", "values", multiple=True, required=True, metavar="K=V", help="monthly_cap_cents, alert_at_cap_pct, auto_refill_enabled and so on.")
@shown
def controls(session: Session, values: tuple[str, ...]) -> None:
    """Change the cap, alerts and refills: benchwright billing controls --set monthly_cap_cents=10000"""
    output.one(session, session.bw.billing.controls.update(**pairs(values, "--set")))


# ------------------------------------------------------------------ settings


@click.group()
def settings() -> None:
    """The team's settings."""


@settings.command("ls")
@shown
def list_settings(session: Session) -> None:
    """List them with their values."""
    found = session.bw.settings.list()
    output.rows(session, found["data"], output.columns("key", "value", "default", "tells"))


@settings.command("get")
@click.argument("key")
@shown
def get_setting(session: Session, key: str) -> None:
    """Show one."""
    output.one(session, session.bw.settings.get(key))


@settings.command("set")
@click.argument("key")
@click.argument("value")
@shown
def set_setting(session: Session, key: str, value: str) -> None:
    """Change one; a value that is JSON is taken as such."""
    try:
        said = json.loads(value)
    except ValueError:
        said = value
    output.one(session, session.bw.settings.set(key, said))


@settings.command("unset")
@click.argument("key")
@shown
def unset(session: Session, key: str) -> None:
    """Put one back to what holds without it."""
    session.bw.settings.delete(key)
    output.note(f"{key} is as it is without being set.")


@settings.command("schema")
@shown
def schema(session: Session) -> None:
    """List every key with its type and meaning."""
    output.one(session, session.bw.settings.schema())


# ------------------------------------------------------------------ secrets and hosts


@click.group()
def secrets() -> None:
    """Providers' keys for the secrets proxy.

    \b
    benchwright secrets add OPENROUTER_API_KEY --rule openrouter.ai:bearer:Authorization < key.txt
    """


def rules_of(texts: tuple[str, ...]) -> list[dict[str, str]]:
    """Reads `host:kind:target`. Errors: UsageError."""
    found = []
    for text in texts:
        parts = text.split(":")
        if len(parts) not in (2, 3) or not all(parts):
            raise click.UsageError(f"--rule reads like openrouter.ai:bearer:Authorization, not {text}.")
        found.append({"host_pattern": parts[0], "inject_kind": parts[1], **({"inject_target": parts[2]} if len(parts) == 3 else {})})
    return found


def value_of(argument: str | None) -> str:
    """Gives a secret's value: from standard input, asked for, or from the command line, which warns. Errors: UsageError."""
    if argument is not None:
        output.note("warning: a value on the command line stands in the shell's history and in the list of processes. Give it by standard input instead.")
        return argument
    value = (click.prompt("Value", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.read()).strip("\r\n")
    if not value:
        raise click.UsageError("The value is empty.")
    return str(value)


def secret_of(session: Session, name: str) -> str:
    """Gives a secret's id by its name. Errors: UsageError."""
    if name.startswith("sec_"):
        return name
    found = next((s.id for s in session.bw.secrets.list() if s.name == name), None)
    if found is None:
        raise click.UsageError(f"There is no secret {name}.")
    return str(found)


@secrets.command("add")
@click.argument("name")
@click.argument("value", required=False)
@click.option("--rule", "rules", multiple=True, metavar="HOST:KIND:TARGET")
@click.option("--description")
@shown
def add_secret(session: Session, name: str, value: str | None, rules: tuple[str, ...], description: str | None) -> None:
    """Keep a secret; its value comes by standard input."""
    read = rules_of(rules)
    made = session.bw.secrets.create(name=name, value=value_of(value), rules=read, description=description)
    output.rows(session, [made], output.columns("id", "name", "rules"))


@secrets.command("rotate")
@click.argument("name")
@click.argument("value", required=False)
@shown
def rotate_secret(session: Session, name: str, value: str | None) -> None:
    """Give a secret a new value; runs under way keep the old one."""
    said = value_of(value)
    output.rows(session, [session.bw.secrets.update(secret_of(session, name), value=said)], output.columns("id", "name", "rules"))


@secrets.command("ls")
@shown
def list_secrets(session: Session) -> None:
    """List secrets, never a value."""
    output.rows(session, session.bw.secrets.list(), output.columns("id", "name", "rules", "preview"))


@secrets.command("rm")
@click.argument("name")
@shown
def remove_secret(session: Session, name: str) -> None:
    """Delete a secret."""
    session.bw.secrets.delete(secret_of(session, name))
    output.note(f"{name} is deleted.")


@click.group()
def hosts() -> None:
    """Which hosts sandboxes may reach."""


@hosts.command("ls")
@shown
def list_hosts(session: Session) -> None:
    """List the policy."""
    output.one(session, session.bw.host_policy.list())


@hosts.command("allow")
@click.argument("pattern")
@shown
def allow(session: Session, pattern: str) -> None:
    """Let a host through."""
    output.one(session, session.bw.host_policy.add(pattern, "allow"))


@hosts.command("block")
@click.argument("pattern")
@shown
def block(session: Session, pattern: str) -> None:
    """Keep a host out."""
    output.one(session, session.bw.host_policy.add(pattern, "block"))


@hosts.command("default")
@click.argument("mode", type=click.Choice(["allow", "block"]))
@shown
def default(session: Session, mode: str) -> None:
    """Say what holds for hosts that no entry names."""
    output.one(session, session.bw.host_policy.default(mode))


@hosts.command("starter-pack")
@shown
def starter_pack(session: Session) -> None:
    """Let the usual hosts through."""
    output.one(session, session.bw.host_policy.starter_pack())


@hosts.command("blocked")
@shown
def blocked(session: Session) -> None:
    """List what was kept out."""
    output.one(session, session.bw.host_policy.blocked_hosts())


# ------------------------------------------------------------------ webhooks


@click.group()
def hooks() -> None:
    """Webhooks.

    \b
    benchwright hooks add https://ci.example.org/hook --events run.finished,run.failed
    """


HOOKS = output.columns("id", "url", "events", "status")


@hooks.command("add")
@click.argument("url")
@click.option("--events", required=True, metavar="A,B")
@click.option("--description")
@shown
def add_hook(session: Session, url: str, events: str, description: str | None) -> None:
    """Register one; its signing secret is shown this once."""
    made = session.bw.webhooks.create(url=url, events=[e.strip() for e in events.split(",") if e.strip()], description=description)
    output.rows(session, [made], [*HOOKS, *output.columns("signing_secret")])


@hooks.command("ls")
@shown
def list_hooks(session: Session) -> None:
    """List them."""
    output.rows(session, session.bw.webhooks.list(), HOOKS)


@hooks.command("test")
@click.argument("webhook")
@click.option("--event", default="webhook.test", show_default=True)
@shown
def test_hook(session: Session, webhook: str, event: str) -> None:
    """Send one delivery."""
    output.one(session, session.bw.webhooks.test_delivery(webhook, event))


@hooks.command("rotate")
@click.argument("webhook")
@shown
def rotate_hook(session: Session, webhook: str) -> None:
    """Give it a new signing secret."""
    output.one(session, session.bw.webhooks.rotate_secret(webhook))


@hooks.command("deliveries")
@click.argument("webhook")
@click.option("--status")
@shown
def deliveries(session: Session, webhook: str, status: str | None) -> None:
    """List what was sent."""
    output.rows(session, session.bw.webhooks.deliveries(webhook, status), output.columns("id", "event", "status", "attempts", "created_at"))


@hooks.command("rm")
@click.argument("webhook")
@shown
def remove_hook(session: Session, webhook: str) -> None:
    """Delete one."""
    session.bw.webhooks.delete(webhook)
    output.note(f"{webhook} is deleted.")
