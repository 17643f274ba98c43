"""What Connect tells programs: in form, with the address and the name in it, and the same facts that `bench connect` writes."""

from __future__ import annotations

import ast
import json
import shlex
import tomllib
from typing import Any

import pytest
import yaml
from benchwarmers_client import clients

from panels import connecting, trying
from panels.connecting import Snippet

URL = "https://bench.example.org/under"
KEY = "bw_live_abc-DEF_123"
NAMES = ["bench/core:route", "meta-llama/Llama-3.3-70B:free", "a'b\"c $(touch x) `id` \\n ${HOME}", "模型 🦙", "</script><script>alert(1)</script>"]


def snippets(client: str, model: str = NAMES[0]) -> dict[str, Snippet]:
    return {one.where: one for one in connecting.of(client).write(URL, model, KEY)}


def parsed(one: Snippet) -> Any:
    read = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load, "python": ast.parse, "sh": shlex.split}
    return read.get(one.language, str)(one.text)


@pytest.mark.parametrize("client", connecting.EVERY, ids=lambda client: client.name)
@pytest.mark.parametrize("model", NAMES)
def test_whatever_a_name_holds_each_line_stays_in_form(client: connecting.Client, model: str) -> None:
    for one in client.write(URL, model, KEY):
        assert parsed(one), one.where
    whole = "\n".join(one.text for one in client.write(URL, model, KEY))
    assert URL in whole
    assert KEY in whole, "the key stands in one of them"


@pytest.mark.parametrize("model", NAMES)
def test_a_shell_takes_a_name_as_it_is(model: str) -> None:
    words = shlex.split(snippets("claude-code", model)["Shell"].text)
    assert f"ANTHROPIC_MODEL={model}" in words
    assert [w for w in words if w.startswith("ANTHROPIC_DEFAULT_") and w.endswith(model)] == [
        f"ANTHROPIC_DEFAULT_{size}_MODEL={model}" for size in ("HAIKU", "SONNET", "OPUS")
    ]
    body = json.loads(shlex.split(snippets("curl", model)["Shell"].text.replace("\\\n", ""))[-1])
    assert body["model"] == model


@pytest.mark.parametrize("model", NAMES)
def test_a_python_program_takes_a_name_as_it_is(model: str) -> None:
    texts = {node.value for node in ast.walk(ast.parse(snippets("openai-python", model)["Python"].text)) if isinstance(node, ast.Constant)}
    assert model in texts


# Where the page writes the same file as the command does.
FILES = {
    "claude-code": "Or for good: ~/.claude/settings.json",
    "codex": "~/.codex/config.toml",
    "cursor": "~/.cursor/mcp.json",
    "gemini-cli": "As a tool besides: ~/.gemini/settings.json",
}


@pytest.mark.parametrize("name", [client.name for client in clients.EVERY])
def test_the_page_and_the_command_tell_the_same(name: str) -> None:
    page = "mcp" if name.endswith("-mcp") else name
    command = next(one for one in clients.EVERY if one.name == name)
    written = command.write("", URL, "core")
    ours = tomllib.loads(written) if command.path.endswith(".toml") else json.loads(written)
    shown = snippets(page)
    files = {where: one for where, one in shown.items() if one.language in ("json", "toml")}
    theirs = parsed(shown[FILES[page]]) if page in FILES else parsed(next(iter(files.values())))
    if name == "opencode":
        # The command names a collection, the page whatever was chosen.
        for side in (ours, theirs):
            side["provider"]["benchwarmers"]["models"] = sorted(side["provider"]["benchwarmers"]["models"])
    assert theirs == ours


def test_each_try_goes_where_its_client_goes() -> None:
    paths = {client.name: trying.tested(client, "bench/a b?:route").path for client in connecting.EVERY}
    assert paths["codex"] == "/v1/responses"
    assert paths["claude-code"] == "/v1/messages"
    assert paths["gemini-cli"] == "/v1beta/models/bench/a%20b%3F:route:generateContent"
    assert paths["ollama-js"] == "/api/chat"
    assert paths["mcp-stdio"] == "/mcp"
    assert not trying.listing().spends
