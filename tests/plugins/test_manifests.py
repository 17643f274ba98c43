"""The plugins' files: one skill in several places, manifests that agree, and names that exist on the server."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from benchwarmers_client import __version__

from panels.mcp.tools import TOOLS
from tests.live import CHECKOUT

PLUGINS = CHECKOUT / "plugins"
SKILL = CHECKOUT / "skills/benchwarmers/SKILL.md"
COPIES = [PLUGINS / name / "skills/benchwarmers/SKILL.md" for name in ("claude-code", "cursor", "antigravity")]
MANIFESTS = [
    PLUGINS / "claude-code/.claude-plugin/plugin.json",
    PLUGINS / "cursor/.cursor-plugin/plugin.json",
    PLUGINS / "antigravity/plugin.json",
    PLUGINS / "antigravity/gemini-extension.json",
]
STDIO = [PLUGINS / "cursor/mcp.json", PLUGINS / "antigravity/mcp.json", PLUGINS / "antigravity/mcp_config.json", PLUGINS / "antigravity/gemini-extension.json"]
# What `agy plugin install` and `gemini extensions install` look for at the root of a repository.
AT_ROOT = ("plugin.json", "mcp.json", "mcp_config.json", "gemini-extension.json")


def read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def front_matter(path: Path) -> dict[str, Any]:
    _, head, _ = path.read_text(encoding="utf-8").split("---\n", 2)
    return dict(yaml.safe_load(head))


@pytest.mark.parametrize("copy", COPIES, ids=lambda path: path.parts[-4])
def test_the_skill_is_the_same_everywhere(copy: Path) -> None:
    assert copy.read_bytes() == SKILL.read_bytes(), f"cp {SKILL.relative_to(CHECKOUT)} {copy.relative_to(CHECKOUT)}"


@pytest.mark.parametrize("name", AT_ROOT)
def test_the_repository_itself_is_the_plugin_for_antigravity_and_gemini(name: str) -> None:
    assert (CHECKOUT / name).read_bytes() == (PLUGINS / "antigravity" / name).read_bytes(), f"cp plugins/antigravity/{name} {name}"


def test_the_skill_is_in_form_and_carries_the_rules() -> None:
    told = front_matter(SKILL)
    assert told["name"] == SKILL.parent.name
    assert set(told) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}, "clients skip a skill with other fields"
    assert len(told["description"]) <= 1024
    text = SKILL.read_text(encoding="utf-8").lower()
    for rule in ("adversarial review", "exhaustive enumeration over real files", "verify before acting", "name every seat", "for each seat that you judged"):
        assert rule in text
    for tool in TOOLS:
        assert f"`{tool.name}`" in text


def test_all_manifests_tell_one_name_and_one_version() -> None:
    assert {(read(path)["name"], read(path)["version"]) for path in MANIFESTS} == {("benchwarmers", __version__)}


@pytest.mark.parametrize("market", [".claude-plugin", ".cursor-plugin"])
def test_a_marketplace_leads_to_the_plugin(market: str) -> None:
    told = read(CHECKOUT / market / "marketplace.json")
    (plugin,) = told["plugins"]
    assert (told["name"], plugin["name"]) == ("benchwarmers", "benchwarmers")
    assert (CHECKOUT / plugin["source"] / market / "plugin.json").is_file()


def test_claude_code_reaches_the_server_by_variables_with_defaults() -> None:
    server = read(PLUGINS / "claude-code/.mcp.json")["mcpServers"]["benchwarmers"]
    assert server["url"] == "${BENCHWARMERS_URL:-http://127.0.0.1:8122}/mcp"
    assert server["headers"] == {"Authorization": "Bearer ${BENCHWARMERS_KEY:-}"}


@pytest.mark.parametrize("path", STDIO, ids=lambda path: "/".join(path.parts[-2:]))
def test_others_speak_through_the_command(path: Path) -> None:
    server = read(path)["mcpServers"]["benchwarmers"]
    assert (server["command"], server["args"]) == ("benchwarmers", ["mcp"])


def test_the_command_approves_exactly_the_servers_tools() -> None:
    told = front_matter(PLUGINS / "claude-code/commands/ask.md")
    assert told["allowed-tools"].split(", ") == [f"mcp__plugin_benchwarmers_benchwarmers__{tool.name}" for tool in TOOLS]
    assert "$ARGUMENTS" in (PLUGINS / "claude-code/commands/ask.md").read_text()


def test_the_hook_is_there_and_cannot_fail_a_turn() -> None:
    (group,) = read(PLUGINS / "claude-code/hooks/hooks.json")["hooks"]["Stop"]
    (hook,) = group["hooks"]
    (script, again) = re.findall(r"\$\{CLAUDE_PLUGIN_ROOT\}/(\S+?)\"", hook["command"])
    assert script == again
    assert (PLUGINS / "claude-code" / script).is_file()
    assert hook["command"].endswith("|| true")
