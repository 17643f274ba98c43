"""How other programs are pointed at this server: what to type or to write into which of their files, with its real address and a name to ask for. Pure.

EVERY     the clients, each with what it speaks, which names suit it, and its snippets
of        one of them by name

The command `bench connect` writes the same facts into files (client/…/clients.py); a test holds the two together. Which of them were tried stands in
docs/AGENTS_SETUP.md. Keys: a snippet names the variable BENCHWARMERS_KEY where its program can read one, so that the key itself stands in one line only.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from shlex import quote
from typing import Any

KEY_VARIABLE = "BENCHWARMERS_KEY"
NO_KEY = "YOUR_KEY"
# Without the default, an unset variable would be sent as it is written, as a wrong key.
KEY_OR_NONE = f"${{{KEY_VARIABLE}:-}}"
LONGEST_S = 900  # a panel takes minutes
ROUTE, PANEL, ANY = "route", "panel", ""
PROMPT = "Reply with one word: ready."


@dataclass(frozen=True, slots=True)
class Snippet:
    """One thing to copy. Shape: `where` is a file, or what runs it; `language` is what it is written in."""

    where: str
    text: str
    language: str = "sh"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Client:
    """One program. Shape: `suits` is the mode that it is for, "" for any; `write` gets address, model name and key; `test` is a key of TESTS.

    `names_model`: whether a model stands in its snippets at all; a tool asks for any collection. `is_ours`: our own command does it, which has to be installed.
    """

    name: str
    title: str
    group: str
    speaks: str
    write: Callable[[str, str, str], tuple[Snippet, ...]]
    test: str
    suits: str = ROUTE
    note: str = ""
    names_model: bool = True
    is_ours: bool = False

    def shown(self, url: str, model: str, key: str, install: str) -> tuple[Snippet, ...]:
        """All there is to copy. Shape: `install` is the line that installs our command, "" where this server offers none."""
        first = (Snippet("Shell, once", install, note="The command comes from this server, in its own version."),) if self.is_ours and install else ()
        return first + self.write(url, model, key)


def text(value: str) -> str:
    """A text as JSON, TOML, YAML, Python and JavaScript write it."""
    return json.dumps(value, ensure_ascii=False)


def written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def the_key(key: str) -> Snippet:
    return Snippet("Shell, once", f"export {KEY_VARIABLE}={quote(key)}", note="In your shell's profile it stays; the lines below read it there.")


# ------------------------------------------------------------------ asking by hand and with SDKs


def curl(url: str, model: str, key: str) -> tuple[Snippet, ...]:
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": PROMPT}]}, ensure_ascii=False)
    lines = [
        f"curl {quote(f'{url}/v1/chat/completions')} \\",
        f'  -H "Authorization: Bearer ${KEY_VARIABLE}" -H "Content-Type: application/json" \\',
        f"  -d {quote(body)}",
    ]
    return the_key(key), Snippet("Shell", "\n".join(lines))


def sdk(install: str, language: str, lines: Callable[[str, str], str]) -> Callable[[str, str, str], tuple[Snippet, ...]]:
    where = {"python": "Python", "js": "JavaScript"}[language]

    def write(url: str, model: str, key: str) -> tuple[Snippet, ...]:
        return the_key(key), Snippet("Shell", install), Snippet(where, lines(url, model), language)

    return write


PYTHON_KEY = f'os.environ["{KEY_VARIABLE}"]'
JS_KEY = f"process.env.{KEY_VARIABLE}"


def openai_python(url: str, model: str) -> str:
    return f"""import os
from openai import OpenAI

client = OpenAI(base_url={text(f"{url}/v1")}, api_key={PYTHON_KEY}, timeout=900)
reply = client.chat.completions.create(model={text(model)}, messages=[{{"role": "user", "content": {text(PROMPT)}}}])
print(reply.choices[0].message.content)
print(getattr(reply, "bench", None))    # a panel's seats, as data"""


def openai_js(url: str, model: str) -> str:
    return f"""import OpenAI from "openai";

const client = new OpenAI({{ baseURL: {text(f"{url}/v1")}, apiKey: {JS_KEY}, timeout: 900_000 }});
const reply = await client.chat.completions.create({{
  model: {text(model)},
  messages: [{{ role: "user", content: {text(PROMPT)} }}],
}});
console.log(reply.choices[0].message.content);
console.log(reply.bench);    // a panel's seats, as data"""


def anthropic_python(url: str, model: str) -> str:
    return f"""import os
from anthropic import Anthropic

client = Anthropic(base_url={text(url)}, api_key={PYTHON_KEY}, timeout=900)
reply = client.messages.create(model={text(model)}, max_tokens=1000, messages=[{{"role": "user", "content": {text(PROMPT)}}}])
print(reply.content[0].text)"""


def anthropic_js(url: str, model: str) -> str:
    return f"""import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({{ baseURL: {text(url)}, apiKey: {JS_KEY}, timeout: 900_000 }});
const reply = await client.messages.create({{
  model: {text(model)},
  max_tokens: 1000,
  messages: [{{ role: "user", content: {text(PROMPT)} }}],
}});
console.log(reply.content[0].text);"""


def genai_python(url: str, model: str) -> str:
    return f"""import os
from google import genai
from google.genai import types

client = genai.Client(api_key={PYTHON_KEY}, http_options=types.HttpOptions(base_url={text(url)}, timeout=900_000))
reply = client.models.generate_content(model={text(model)}, contents={text(PROMPT)})
print(reply.text)"""


def genai_js(url: str, model: str) -> str:
    return f"""import {{ GoogleGenAI }} from "@google/genai";

const client = new GoogleGenAI({{ apiKey: {JS_KEY}, httpOptions: {{ baseUrl: {text(url)}, timeout: 900_000 }} }});
const reply = await client.models.generateContent({{ model: {text(model)}, contents: {text(PROMPT)} }});
console.log(reply.text);"""


def ollama_python(url: str, model: str) -> str:
    return f"""import os
from ollama import Client

client = Client(host={text(url)}, headers={{"Authorization": "Bearer " + {PYTHON_KEY}}})
reply = client.chat(model={text(model)}, messages=[{{"role": "user", "content": {text(PROMPT)}}}])
print(reply.message.content)"""


def ollama_js(url: str, model: str) -> str:
    return f"""import {{ Ollama }} from "ollama";

const client = new Ollama({{ host: {text(url)}, headers: {{ Authorization: "Bearer " + {JS_KEY} }} }});
const reply = await client.chat({{
  model: {text(model)},
  messages: [{{ role: "user", content: {text(PROMPT)} }}],
}});
console.log(reply.message.content);"""


# ------------------------------------------------------------------ agents

CLAUDE_MODELS = ("ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL")


def claude_code(url: str, model: str, key: str) -> tuple[Snippet, ...]:
    env = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_AUTH_TOKEN": key, **dict.fromkeys(CLAUDE_MODELS, model), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    lines = "\n".join(f"export {name}={quote(said)}" for name, said in env.items())
    kept = {"env": {name: said for name, said in env.items() if name != "ANTHROPIC_AUTH_TOKEN"}, "apiKeyHelper": f"printenv {KEY_VARIABLE}"}
    return (
        Snippet(
            "Shell",
            f"{lines}\nclaude",
            note="All three default models, too: background and safety calls go to models by their own names otherwise, which this server does not have.",
        ),
        Snippet("Or for good: ~/.claude/settings.json", written(kept), "json", note=f"It reads the key from {KEY_VARIABLE}."),
    )


def codex(url: str, model: str, key: str) -> tuple[Snippet, ...]:
    return the_key(key), Snippet(
        "~/.codex/config.toml",
        f"""model = {text(model)}
model_provider = "benchwarmers"

[model_providers.benchwarmers]
name = "Benchwarmers"
base_url = {text(f"{url}/v1")}
env_key = "{KEY_VARIABLE}"
wire_api = "responses"

[mcp_servers.benchwarmers]
url = {text(f"{url}/mcp")}
bearer_token_env_var = "{KEY_VARIABLE}"
tool_timeout_sec = 900""",
        "toml",
        note="The last table lets Codex ask panels as a tool besides. It says once that it has no metadata for the model; that is harmless.",
    )


def opencode(url: str, model: str, key: str) -> tuple[Snippet, ...]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Benchwarmers",
        "options": {"baseURL": f"{url}/v1", "apiKey": f"{{env:{KEY_VARIABLE}}}"},
        "models": {model: {"name": model}},
    }
    config = {"$schema": "https://opencode.ai/config.json", "provider": {"benchwarmers": provider}, "model": f"benchwarmers/{model}"}
    return the_key(key), Snippet("~/.config/opencode/opencode.json", written(config), "json")


def cline(url: str, model: str, key: str) -> tuple[Snippet, ...]:
    form = f"API Provider    OpenAI Compatible\nBase URL        {url}/v1\nAPI Key         {key}\nModel ID        {model}"
    command = f"cline auth -p openai-compatible -k {quote(key)} -m {quote(model)} -b {quote(f'{url}/v1')}"
    transport = {"type": "stdio", "command": "benchwarmers", "args": ["mcp"], "env": {"BENCHWARMERS_URL": url}}
    tool = {"mcpServers": {"benchwarmers": {"transport": transport, "timeout": LONGEST_S}}}
    return (
        Snippet("In the editor: Cline's settings", form, "text", note="Set the context window there, too: Cline does not know these models."),
        Snippet("Or on the command line", command),
        the_key(key),
        Snippet(
            "As a tool besides: ~/.cline/data/settings/cline_mcp_settings.json",
            written(tool),
            "json",
            note="Of the command line. It starts our own command, which “bench, our own command” shows how to install.",
        ),
    )


def cursor(url: str, model: str, key: str) -> tuple[Snippet, ...]:
    config = {"mcpServers": {"benchwarmers": {"url": f"{url}/mcp", "headers": {"Authorization": f"Bearer ${{env:{KEY_VARIABLE}}}"}}}}
    form = f"Override OpenAI Base URL    {url}/v1\nOpenAI API Key              {key}\nAdd model                   {model}"
    return (
        the_key(key),
        Snippet("~/.cursor/mcp.json", written(config), "json", note="Cursor asks panels as a tool, from your own machine."),
        Snippet(
            "As its model: Settings, Models",
            form,
            "text",
            note="Cursor's own servers make these calls: this server must then be reachable from the internet, behind TLS, and your prompts pass"
            " through Cursor. We have not tried it.",
        ),
    )


def gemini_cli(url: str, model: str, key: str) -> tuple[Snippet, ...]:
    server = {"httpUrl": f"{url}/mcp", "headers": {"Authorization": f"Bearer {KEY_OR_NONE}"}, "timeout": LONGEST_S * 1000}
    lines = f"export GOOGLE_GEMINI_BASE_URL={quote(url)}\nexport GEMINI_API_KEY={quote(key)}\ngemini -m {quote(model)}"
    return (
        Snippet("Shell", lines, note="Choose Gemini API key where it asks how to sign in."),
        the_key(key),
        Snippet("As a tool besides: ~/.gemini/settings.json", written({"mcpServers": {"benchwarmers": server}}), "json"),
    )


def continue_dev(url: str, model: str, key: str) -> tuple[Snippet, ...]:
    config = f"""name: Benchwarmers
version: 1.0.0
schema: v1
models:
  - name: Benchwarmers
    provider: openai
    model: {text(model)}
    apiBase: {text(f"{url}/v1")}
    apiKey: {text(key)}
    capabilities: [tool_use]
    roles: [chat]"""
    return (Snippet("~/.continue/config.yaml", config, "yaml"),)


# ------------------------------------------------------------------ as a tool, and the command line


def claude_plugin(url: str, model: str, key: str) -> tuple[Snippet, ...]:
    lines = f"export BENCHWARMERS_URL={quote(url)}\nexport {KEY_VARIABLE}={quote(key)}"
    install = "/plugin marketplace add PATH_OF_A_CHECKOUT\n/plugin install benchwarmers@benchwarmers"
    return (
        Snippet("Shell, once", lines),
        Snippet(
            "In Claude Code",
            install,
            "text",
            note="The plugin stands in this server's source code: name that folder, or its repository. It asks panels and reminds of answers to judge.",
        ),
    )


def mcp_http(url: str, model: str, key: str) -> tuple[Snippet, ...]:
    server = {"type": "http", "url": f"{url}/mcp", "headers": {"Authorization": f"Bearer {KEY_OR_NONE}"}, "timeout": LONGEST_S * 1000}
    add = f'claude mcp add --transport http benchwarmers {quote(f"{url}/mcp")} --header "Authorization: Bearer ${KEY_VARIABLE}"'
    patience = "export MCP_TOOL_TIMEOUT=900000    # milliseconds: a panel takes minutes"
    return (
        the_key(key),
        Snippet(
            "A client's MCP settings, such as .mcp.json",
            written({"mcpServers": {"benchwarmers": server}}),
            "json",
            note="A client that fills in no variables needs the key itself after Bearer.",
        ),
        Snippet("Or, for Claude Code", f"{add}\n{patience}"),
    )


def mcp_stdio(url: str, model: str, key: str) -> tuple[Snippet, ...]:
    server = {"command": "benchwarmers", "args": ["mcp"], "env": {"BENCHWARMERS_URL": url, KEY_VARIABLE: key}}
    return (
        Snippet(
            "A client's MCP settings",
            written({"mcpServers": {"benchwarmers": server}}),
            "json",
            note="For clients that start a program and cannot call an address.",
        ),
    )


def bench_command(url: str, model: str, key: str) -> tuple[Snippet, ...]:
    asked = quote(model.removeprefix("bench/")) + ("" if model.startswith("bench/") else " --model")
    return (
        Snippet("Shell", f"export BENCHWARMERS_URL={quote(url)}\nexport {KEY_VARIABLE}={quote(key)}\nbench status"),
        Snippet("Then", f"git diff | bench ask {asked} 'Review this diff.'\nbench connect --help    # sets other programs up by itself"),
    )


AGENTS, SDKS, TOOLS = "Coding agents", "SDKs", "The bench as a tool"
NOT_AS_PANEL = "An agent works with tools, which only route mode takes: one member has the turn and keeps the conversation."
EVERY = (
    Client("curl", "curl", "Command line", "OpenAI chat", curl, "chat", ANY),
    Client("bench", "bench, our own command", "Command line", "chat", bench_command, "chat", PANEL, is_ours=True),
    Client("claude-code", "Claude Code", AGENTS, "Anthropic Messages", claude_code, "messages"),
    Client("codex", "Codex", AGENTS, "OpenAI Responses", codex, "responses"),
    Client("opencode", "opencode", AGENTS, "OpenAI chat", opencode, "chat"),
    Client("cline", "Cline", AGENTS, "OpenAI chat", cline, "chat"),
    Client("cursor", "Cursor", AGENTS, "MCP, OpenAI chat", cursor, "mcp"),
    Client("gemini-cli", "Gemini CLI", AGENTS, "Gemini", gemini_cli, "gemini"),
    Client("continue", "Continue", AGENTS, "OpenAI chat", continue_dev, "chat"),
    Client("mcp", "MCP over HTTP", TOOLS, "MCP", mcp_http, "mcp", PANEL, names_model=False),
    Client("mcp-stdio", "MCP over stdio", TOOLS, "MCP", mcp_stdio, "mcp", PANEL, names_model=False, is_ours=True),
    Client("claude-code-plugin", "Claude Code plugin", TOOLS, "chat", claude_plugin, "chat", PANEL, names_model=False),
    Client("openai-python", "openai for Python", SDKS, "OpenAI chat", sdk("pip install openai", "python", openai_python), "chat", ANY),
    Client("openai-js", "openai for JavaScript", SDKS, "OpenAI chat", sdk("npm install openai", "js", openai_js), "chat", ANY),
    Client("anthropic-python", "anthropic for Python", SDKS, "Anthropic Messages", sdk("pip install anthropic", "python", anthropic_python), "messages", ANY),
    Client("anthropic-js", "anthropic for JavaScript", SDKS, "Anthropic Messages", sdk("npm install @anthropic-ai/sdk", "js", anthropic_js), "messages", ANY),
    Client("genai-python", "google-genai for Python", SDKS, "Gemini", sdk("pip install google-genai", "python", genai_python), "gemini", ANY),
    Client("genai-js", "google-genai for JavaScript", SDKS, "Gemini", sdk("npm install @google/genai", "js", genai_js), "gemini", ANY),
    Client("ollama-python", "ollama for Python", SDKS, "Ollama", sdk("pip install ollama", "python", ollama_python), "ollama", ANY),
    Client("ollama-js", "ollama for JavaScript", SDKS, "Ollama", sdk("npm install ollama", "js", ollama_js), "ollama", ANY),
)


def of(name: str) -> Client:
    """Gives the client of a name; the first where there is none of it."""
    return next((client for client in EVERY if client.name == name), EVERY[0])
