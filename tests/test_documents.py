"""Documents are complete: every setting, command and route that exists is described, and nothing that does not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.test_house import CHECKOUT, dotted, modules, tree


def settings_read() -> set[str]:
    """Every variable that settings.py asks the environment for."""
    path = "benchwarmers/settings.py"
    return {
        node.args[0].value
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and dotted(node.func).startswith("env_") and node.args
        if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
    }


def test_every_setting_is_documented() -> None:
    page = (CHECKOUT / "docs/SETTINGS.md").read_text(encoding="utf-8")
    assert len(settings_read()) > 15
    assert not {name for name in settings_read() if f"`{name}`" not in page}
    named = set(re.findall(r"`((?:BENCH|BENCHWARMERS)_[A-Z_]+)`", page))
    source = (CHECKOUT / "benchwarmers/settings.py").read_text(encoding="utf-8")
    elsewhere = {n for n in named if n.startswith("BENCHWARMERS_KEY")} | {"BENCHWARMERS_URL"}  # endpoints' keys; what the client reads
    assert not {name for name in named if name not in source} - elsewhere, "documented, but nothing reads it"


def commands() -> set[str]:
    return {Path(m).stem for m in modules() if "/management/commands/" in m and not Path(m).stem.startswith("_")}


def test_every_command_is_documented() -> None:
    page = (CHECKOUT / "docs/COMMANDS.md").read_text(encoding="utf-8")
    assert not {name for name in commands() if not re.search(rf"\bmanage\.py {re.escape(name)}\b", page)}


def test_every_command_of_the_client_is_documented() -> None:
    from benchwarmers_client.main import cli

    page = (CHECKOUT / "docs/COMMANDS.md").read_text(encoding="utf-8")
    assert not {name for name in cli.commands if not re.search(rf"`bench {re.escape(name)}\b", page)}
    named = set(re.findall(r"`bench ([a-z]+)", page))
    assert not named - set(cli.commands)


def test_every_command_of_benchwright_is_documented() -> None:
    import click
    from benchwright.cli.main import COMMANDS, cli

    page = (CHECKOUT / "docs/COMMANDS.md").read_text(encoding="utf-8")
    part = page.partition("\n## benchwright\n")[2].partition("\n## ")[0]

    def missing(group: click.Group, before: str) -> Iterator[str]:
        for name in group.list_commands(click.Context(group)):
            command = group.get_command(click.Context(group), name)
            if isinstance(command, click.Group):
                yield from missing(command, f"{before} {name}")
            elif not re.search(rf"(?<![a-z]){re.escape(name)}(?![a-z])", part):
                yield f"{before} {name}"

    left_out = {"hosts", "hooks"}  # the server says 501 to all of them
    assert not {name for name in COMMANDS if f"`benchwright {name}" not in part}
    assert not {name for name in missing(cli, "benchwright") if name.split()[1] not in left_out}
    named = set(re.findall(r"`benchwright ([a-z]+)", part))
    assert not named - set(COMMANDS)


def test_every_route_of_the_servers_own_api_is_documented() -> None:
    from django.urls import URLPattern, URLResolver, get_resolver

    def routes(resolver: URLResolver, before: str = "") -> Iterator[str]:
        for item in resolver.url_patterns:
            route = before + str(item.pattern)
            if isinstance(item, URLResolver):
                yield from routes(item, route)
            elif isinstance(item, URLPattern):
                yield "/" + route

    page = "\n".join(p.read_text(encoding="utf-8") for p in sorted((CHECKOUT / "docs").glob("*.md")))
    own = {re.sub(r"<(?:\w+:)?(\w+)>", r"<\1>", r) for r in routes(get_resolver()) if r.startswith("/bench/")}
    assert own
    assert not {r for r in own if r not in page and r.rstrip("/") not in page}
