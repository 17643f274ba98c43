"""How other programs are pointed at this server: which file of theirs says what. Keys are never written; each file names BENCHWARMERS_KEY instead.

A client is a row of EVERY; its `write` gives the file's new text from the old one, and changes nothing else in it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import click

KEY = "BENCHWARMERS_KEY"
KEY_OR_NONE = f"${{{KEY}:-}}"  # without the default an unset variable would be sent as it stands here, as a wrong key
LONGEST_S = 900  # a panel takes minutes
BEGIN, END = "# benchwarmers: begin", "# benchwarmers: end"


@dataclass(frozen=True, slots=True)
class Client:
    """Shape: `path` below the user's home folder, or below the current one where it begins with `./`; `write` gets old text, address and collection."""

    name: str
    path: str
    write: Callable[[str, str, str], str]
    then: str


@dataclass(frozen=True, slots=True)
class Change:
    """What would be written. Shape: `before` is empty where there was no file."""

    path: Path
    before: str
    after: str
    then: str


def planned(client: Client, url: str, collection: str, home: Path | None = None) -> Change:
    """Works out a client's new configuration. Errors: click.UsageError where its file cannot be read."""
    path = Path.cwd() / client.path[2:] if client.path.startswith("./") else (home or Path.home()) / client.path
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError):
        raise click.UsageError(f"{path} cannot be read.") from None
    try:
        after = client.write(before, url, collection)
    except ValueError as error:
        raise click.UsageError(f"{path} is not in form, so nothing is changed there: {error}") from None
    return Change(path, before, after, client.then.format(url=url, key=KEY, collection=collection))


def write(change: Change) -> Path | None:
    """Writes it whole or not at all; gives the copy of what was there before, None where there was nothing or nothing changed."""
    if change.after == change.before:
        return None
    change.path.parent.mkdir(parents=True, exist_ok=True)
    backup = None
    if change.path.exists():
        backup = change.path.with_name(f"{change.path.name}.before-benchwarmers-{datetime.now():%Y%m%d-%H%M%S}")  # noqa: DTZ005 - a name for people
        shutil.copy2(change.path, backup)
    # A configuration that is a link into somebody's dotfiles stays one.
    target = Path(os.path.realpath(change.path))
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    beside.write_text(change.after, encoding="utf-8")
    if target.exists():
        shutil.copymode(target, beside)
    beside.replace(target)
    return backup


# ------------------------------------------------------------------ the forms that files come in


def in_json(before: str, more: Mapping[str, Any]) -> str:
    """Lays objects into a JSON file, at any depth. Errors: ValueError."""
    value = json.loads(before) if before.strip() else {}
    if not isinstance(value, dict):
        raise ValueError("it holds no object")
    merged = laid_over(value, more)
    return before if merged == value else json.dumps(merged, ensure_ascii=False, indent=2) + "\n"


def laid_over(value: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(value)
    for name, new in more.items():
        old = found.get(name)
        found[name] = laid_over(old, new) if isinstance(old, dict) and isinstance(new, dict) else new
    return found


def in_toml(before: str, top: Mapping[str, str], tables: str) -> str:
    """Puts marked lines of ours into a TOML file, names at its top, tables at its end; the same names that stood there become comments. Errors: ValueError."""
    tomllib.loads(before)
    rest = re.sub(rf"{re.escape(BEGIN)}\n.*?{re.escape(END)}\n?", "", before, flags=re.DOTALL)
    kept, in_table = [], False
    for line in rest.splitlines():
        in_table = in_table or line.lstrip().startswith("[")
        is_ours = not in_table and line.split("=")[0].strip() in top
        kept.append(f"# {line}" if is_ours else line)
    body = "\n".join(kept).strip("\n")
    names = "\n".join(f"{name} = {json.dumps(said)}" for name, said in top.items())
    after = f"{BEGIN}\n{names}\n{END}\n" + (f"{body}\n" if body else "") + f"{BEGIN}\n{tables.strip()}\n{END}\n"
    tomllib.loads(after)
    return after


# ------------------------------------------------------------------ the clients


def claude_code(before: str, url: str, collection: str) -> str:
    route = f"bench/{collection}:route"
    models = dict.fromkeys(("ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL"), route)
    env = {"ANTHROPIC_BASE_URL": url, **models, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    return in_json(before, {"env": env, "apiKeyHelper": f"printenv {KEY}"})


def claude_code_mcp(before: str, url: str, collection: str) -> str:
    server = {"type": "http", "url": f"{url}/mcp", "headers": {"Authorization": f"Bearer {KEY_OR_NONE}"}, "timeout": LONGEST_S * 1000}
    return in_json(before, {"mcpServers": {"benchwarmers": server}})


def codex(before: str, url: str, collection: str) -> str:
    tables = f"""
[model_providers.benchwarmers]
name = "Benchwarmers"
base_url = {json.dumps(url + "/v1")}
env_key = "{KEY}"
wire_api = "responses"

[mcp_servers.benchwarmers]
url = {json.dumps(url + "/mcp")}
bearer_token_env_var = "{KEY}"
tool_timeout_sec = {LONGEST_S}
"""
    return in_toml(before, {"model": f"bench/{collection}:route", "model_provider": "benchwarmers"}, tables)


def opencode(before: str, url: str, collection: str) -> str:
    route = f"bench/{collection}:route"
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Benchwarmers",
        "options": {"baseURL": f"{url}/v1", "apiKey": f"{{env:{KEY}}}"},
        "models": {route: {"name": f"{collection} (route)"}},
    }
    return in_json(before, {"$schema": "https://opencode.ai/config.json", "provider": {"benchwarmers": provider}, "model": f"benchwarmers/{route}"})


def cursor(before: str, url: str, collection: str) -> str:
    return in_json(before, {"mcpServers": {"benchwarmers": {"url": f"{url}/mcp", "headers": {"Authorization": f"Bearer ${{env:{KEY}}}"}}}})


def gemini_cli(before: str, url: str, collection: str) -> str:
    server = {"httpUrl": f"{url}/mcp", "headers": {"Authorization": f"Bearer {KEY_OR_NONE}"}, "timeout": LONGEST_S * 1000}
    return in_json(before, {"mcpServers": {"benchwarmers": server}})


def cline(before: str, url: str, collection: str) -> str:
    """Over stdio, since its headers name no variables. Its models it takes by a command of its own alone."""
    transport = {"type": "stdio", "command": "benchwarmers", "args": ["mcp"], "env": {"BENCHWARMERS_URL": url}}
    return in_json(before, {"mcpServers": {"benchwarmers": {"transport": transport, "timeout": LONGEST_S}}})


SET_KEY = "It reads the key from {key}: put one there (bench key create NAME)."
EVERY = (
    Client("claude-code", ".claude/settings.json", claude_code, f"Claude Code now runs on bench/{{collection}}:route. {SET_KEY}"),
    Client(
        "claude-code-mcp",
        "./.mcp.json",
        claude_code_mcp,
        f"Claude Code asks the bench as a tool in this folder. {SET_KEY}",
    ),
    Client("codex", ".codex/config.toml", codex, f"Codex now runs on bench/{{collection}}:route, with the bench as a tool besides. {SET_KEY}"),
    Client("opencode", ".config/opencode/opencode.json", opencode, f"opencode now runs on bench/{{collection}}:route. {SET_KEY}"),
    Client("cursor", ".cursor/mcp.json", cursor, f"Cursor asks the bench as a tool. {SET_KEY}"),
    Client("gemini-cli", ".gemini/settings.json", gemini_cli, f"gemini-cli asks the bench as a tool. {SET_KEY}"),
    Client(
        "cline",
        ".cline/data/settings/cline_mcp_settings.json",
        cline,
        "Cline's command line asks the bench as a tool, through the command benchwarmers. To run it on a collection: "
        "cline auth -p openai-compatible -k KEY -m bench/{collection}:route -b {url}/v1",
    ),
)
OTHER_NAMES = {"gemini": "gemini-cli", "claude": "claude-code"}
