"""Reminds, at the end of a turn, of the seats of this session's panels that nobody has judged: of each seat once, and of nothing when anything is amiss.

stdin: what Claude Code tells a Stop hook ─▶ the transcript ─▶ call ids of the panels asked in it
    ─▶ the server's `pending_verdicts` (over loopback alone) ─▶ less what was reminded of before ─▶ stdout: feedback for Claude

Python 3.8 or later and its standard library, since it runs with whatever python3 the user has.
"""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

DEFAULT_URL = "http://127.0.0.1:8122"
PROTOCOL = "2026-07-28"
PATIENCE_S = 5.0
MOST_CALLS = 200  # as many as the server looks up at once; a longer session is asked about its newest
MOST_ANSWER_BYTES = 1 << 20
MOST_TRANSCRIPT_BYTES = 64 << 20
MOST_NAMED = 20
KEPT_S = 90 * 24 * 3600  # longer than a session is likely to be resumed

CALL = re.compile(r"\bcall_[0-9A-HJKMNP-TV-Z]{26}\b")
# The tool `ask` of any server, under whatever prefix an aggregator gave it.
ASK_TOOL = re.compile(r"(?:.*[^A-Za-z0-9])?ask")
ASK_COMMAND = re.compile(r"\b(?:bench|benchwarmers|benchwarmers_client\.main)\b[^\n|;&]*\sask\b|\bcurl\b.*\bbench/", re.DOTALL)
LATER_OUTPUT = ("BashOutput", "TaskOutput", "AgentOutputTool")  # of a command that went on in the background
SAVED = re.compile(r"tool-results[/\\]+([\w.-]*\w)")


def main() -> None:
    """Says nothing and fails nothing, whatever happens: a turn must end."""
    try:
        said = reminder(json.load(sys.stdin), os.environ)
        if said:
            print(json.dumps({"decision": "block", "reason": said}))
    except Exception:  # noqa: S110 - silence is what is promised
        pass


def reminder(told: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """Gives the reminder's words, empty where there is none to give."""
    if told.get("stop_hook_active"):  # this stop ends what a reminder began
        return ""
    calls = calls_of(Path(str(told["transcript_path"])), str(told["session_id"]))
    memory = Memory(state_folder(environment), str(told["session_id"]))
    new = [call for call in calls if call not in memory.reminded]
    address = loopback(environment.get("BENCHWARMERS_URL") or DEFAULT_URL)
    if not new or not address:
        return ""
    waiting = [panel for panel in pending(address, environment.get("BENCHWARMERS_KEY", "").strip(), new[-MOST_CALLS:]) if panel["seats"]]
    if not waiting or not memory.keep([seat["call"] for panel in waiting for seat in panel["seats"]]):
        return ""  # what cannot be remembered would come again at every turn
    return words(waiting)


# ------------------------------------------------------------------ the transcript


def calls_of(transcript: Path, session: str) -> list[str]:
    """Reads the ids of all calls that panels of a session answered with, oldest first. Sub-agents have transcripts of their own beside it."""
    beside = transcript.parent / session
    found: dict[str, None] = {}
    for path in [transcript, *sorted((beside / "subagents").rglob("*.jsonl"))]:
        for text in results(path, beside):
            found.update(dict.fromkeys(CALL.findall(text)))
    return list(found)


def results(path: Path, beside: Path) -> Iterator[str]:
    """Gives the text of each tool's result that a panel answered with: the tool `ask` of any server, or `bench ask` in a shell."""
    panels: set[str] = set()
    later: set[str] = set()
    was_asked_in_shell = False
    for entry in entries(path):
        content = (entry.get("message") or {}).get("content")
        for part in content if isinstance(content, list) else []:
            if not isinstance(part, dict):
                continue
            if part.get("type") == "tool_use":
                name, given = str(part.get("name")), part.get("input") or {}
                if ASK_TOOL.fullmatch(name):
                    panels.add(part["id"])
                elif ASK_COMMAND.search(str(given.get("command", ""))):
                    was_asked_in_shell = True
                    panels.add(part["id"])
                elif name in LATER_OUTPUT:
                    later.add(part["id"])
            elif part.get("type") == "tool_result":
                uses = panels | later if was_asked_in_shell else panels
                if part.get("tool_use_id") in uses:
                    yield from texts(part, beside)


def entries(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > MOST_TRANSCRIPT_BYTES:
                file.seek(size - MOST_TRANSCRIPT_BYTES)
                file.readline()  # the rest of a line
            for line in file:
                if b'"tool_use' not in line and b'"tool_result"' not in line:
                    continue
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue  # the last line may still be on its way
                if isinstance(entry, dict) and isinstance(entry.get("message"), dict):
                    yield entry
    except OSError:
        return


def texts(result: Mapping[str, Any], beside: Path) -> Iterator[str]:
    """Gives a result's own text, and that of a file which Claude Code put a long one into: those lie in the session's folder, and only there is looked."""
    text = json.dumps(result.get("content"), ensure_ascii=False)
    yield text
    for name in SAVED.findall(text):
        path = beside / "tool-results" / name
        try:
            if path.is_file():
                yield path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue


# ------------------------------------------------------------------ the server


def loopback(url: str) -> str:
    """Gives an address of this machine without a slash at its end, empty for any other."""
    parts = urlsplit(url.strip() if "://" in url else "http://" + url.strip())
    host = (parts.hostname or "").rstrip(".").lower()
    try:
        is_here = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_here = False
    is_plain = parts.scheme in ("http", "https") and not (parts.username or parts.password or parts.query or parts.fragment)
    return parts.geturl().rstrip("/") if is_here and is_plain else ""


def pending(url: str, key: str, calls: list[str]) -> list[dict[str, Any]]:
    """Asks which of these calls nobody has judged. One request, no proxy, no redirect; anything but the answer looked for is an exception."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(str(parts.hostname), parts.port, timeout=PATIENCE_S)
    meta = {"io.modelcontextprotocol/protocolVersion": PROTOCOL, "io.modelcontextprotocol/clientCapabilities": {}}
    arguments = {"calls": calls, "limit": MOST_CALLS}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": meta, "name": "pending_verdicts", "arguments": arguments}}
    headers = {
        "accept": "application/json",
        "content-type": "application/json",
        "mcp-protocol-version": PROTOCOL,
        "mcp-method": "tools/call",
        "mcp-name": "pending_verdicts",
        "user-agent": "benchwarmers-claude-code",
    }
    if key:
        headers["authorization"] = "Bearer " + key
    try:
        connection.request("POST", parts.path + "/mcp", json.dumps(message).encode(), headers)
        answer = connection.getresponse()
        data = answer.read(MOST_ANSWER_BYTES + 1)
    finally:
        connection.close()
    if answer.status != 200 or len(data) > MOST_ANSWER_BYTES:
        raise ValueError(answer.status)
    result = json.loads(data)["result"]
    if result.get("isError"):
        raise ValueError("refused")
    asked = set(calls)
    panels = result["structuredContent"]["data"]
    # An older server does not know `calls` and lists other sessions' panels, too.
    return [{**panel, "seats": [seat for seat in panel["seats"] if seat["call"] in asked]} for panel in panels]


# ------------------------------------------------------------------ what was reminded of


class Memory:
    """The seats that were reminded of: a file a session, read together, since a session that is forked has its parent's panels in its transcript."""

    def __init__(self, folder: Path, session: str) -> None:
        self.path = folder / (hashlib.sha256(session.encode()).hexdigest()[:32] + ".txt")
        self.reminded: set[str] = set()
        for path in folder.glob("*.txt"):
            if path.stat().st_mtime < time.time() - KEPT_S:
                with suppress(OSError):
                    path.unlink()
            else:
                self.reminded.update(path.read_text(encoding="ascii", errors="replace").split())

    def keep(self, calls: Iterable[str]) -> bool:
        """Notes them; False where that cannot be done."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(str(self.path), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "a", encoding="ascii") as file:
                file.write("".join(call + "\n" for call in calls))
        except OSError:
            return False
        return True


def state_folder(environment: Mapping[str, str]) -> Path:
    named = environment.get("XDG_STATE_HOME") or (environment.get("LOCALAPPDATA") if os.name == "nt" else "")
    return (Path(named) if named else Path.home() / ".local" / "state") / "benchwarmers" / "reminded"


# ------------------------------------------------------------------ words


def words(panels: list[dict[str, Any]]) -> str:
    seats = [(panel, seat) for panel in panels for seat in panel["seats"]]
    lines = ["- {} of {} in {}".format(*map(shown, (seat["call"], seat["model"], panel["collection"]))) for panel, seat in seats[:MOST_NAMED]]
    if len(seats) > MOST_NAMED:
        lines.append(f"- and {len(seats) - MOST_NAMED} more; the tool pending_verdicts lists them")
    return (
        "Benchwarmers: nobody has judged these seats of this session's panels yet:\n"
        + "\n".join(lines)
        + "\nSend a verdict for each whose claims you have checked (the verdict tool with the call id, or `bench verdict`). "
        "What you did not check needs none: say in one line that it stays unjudged. This reminder does not come again for these seats."
    )


def shown(text: Any) -> str:
    return "".join(c if c.isprintable() else " " for c in str(text))[:120]


if __name__ == "__main__":
    main()
