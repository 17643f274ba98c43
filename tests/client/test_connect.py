"""Clients' configurations: ours is laid into what is there, a copy stays, keys are never written."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import click
import pytest
from benchwarmers_client import clients
from benchwarmers_client.commands.connect import connect

URL = "http://127.0.0.1:8122"
BEFORE = {
    ".json": json.dumps({"theme": "dark", "env": {"EDITOR": "vi"}, "mcpServers": {"other": {"url": "http://other"}}}),
    ".toml": 'model = "gpt-5"\napproval_policy = "never"\n\n[model_providers.mine]\nname = "mine"\nmodel = "kept"\n',
}
NAMES = [c.name for c in clients.EVERY]


def chosen(name: str) -> clients.Client:
    return next(c for c in clients.EVERY if c.name == name)


def read(path: Path) -> dict[str, object]:
    text = path.read_text()
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


@pytest.mark.parametrize("name", NAMES)
def test_a_configuration_is_made_where_there_is_none(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    change = clients.planned(chosen(name), URL, "core", tmp_path)
    assert clients.write(change) is None
    assert URL in change.path.read_text()
    assert read(change.path)
    assert "{" not in change.then


@pytest.mark.parametrize("name", NAMES)
def test_what_was_there_stays_and_is_copied_and_a_second_time_changes_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = clients.planned(chosen(name), URL, "core", tmp_path).path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(BEFORE[path.suffix])
    before = read(path)
    backup = clients.write(clients.planned(chosen(name), URL, "core", tmp_path))
    assert backup is not None
    assert backup.read_text() == BEFORE[path.suffix]
    after = read(path)
    for field in ("theme", "approval_policy"):
        assert after.get(field) == before.get(field)
    if path.suffix == ".toml":
        assert after["model_providers"]["mine"] == {"name": "mine", "model": "kept"}  # type: ignore[index]
        assert after["model"] == "bench/core:route"
    else:
        assert after["mcpServers"]["other"] == {"url": "http://other"}  # type: ignore[index]
    again = clients.planned(chosen(name), URL, "core", tmp_path)
    assert again.after == again.before
    assert clients.write(again) is None


def test_another_collection_takes_the_place_of_the_first(tmp_path: Path) -> None:
    codex = chosen("codex")
    once = codex.write(BEFORE[".toml"], URL, "core")
    twice = codex.write(once, "http://bench.lan", "other")
    assert tomllib.loads(twice)["model"] == "bench/other:route"
    assert twice.count("[model_providers.benchwarmers]") == 1
    assert "8122" not in twice


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["{", "[1", "not = [form", '"text" 7'])
def test_a_file_that_is_not_in_form_is_left_alone(name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = clients.planned(chosen(name), URL, "core", tmp_path).path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    with pytest.raises(click.UsageError, match=path.name):
        clients.planned(chosen(name), URL, "core", tmp_path)
    assert path.read_text() == text


def test_a_link_into_somebodys_dotfiles_stays_one(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    link = tmp_path / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    clients.write(clients.planned(chosen("cursor"), URL, "core", tmp_path))
    assert link.is_symlink()
    assert URL in real.read_text()


def test_the_help_names_every_client() -> None:
    said = connect.get_help(click.Context(connect))
    assert all(name in said for name in NAMES)
    assert set(clients.OTHER_NAMES.values()) <= set(NAMES)


@pytest.mark.parametrize("name", ["claude-code-mcp", "gemini-cli"])
def test_a_variable_that_is_not_set_sends_an_empty_key(name: str) -> None:
    assert "Bearer ${BENCHWARMERS_KEY:-}" in chosen(name).write("", URL, "core")
