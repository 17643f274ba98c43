"""A panel on record as a file: JSON, or Markdown in which nothing that a model or a person wrote is markup."""

from __future__ import annotations

import re
from typing import Any

from panels.prompt_text import words_of

FENCE = re.compile(r"~{3,}")
LINE_END = re.compile(r"[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")
MARKUP = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~&])")


def markdown(panel: dict[str, Any]) -> str:
    """Writes a panel as `history.panel` reads it. Texts stand in fences, longer than any that they hold: whoever opens it runs and loads nothing."""
    lines = [f"# Panel {plain(panel['panel'])}", ""]
    for name in ("collection", "mode", "status", "asked_at", "judge", "seconds", "cost_usd"):
        if panel.get(name) is not None:
            lines.append(f"- {name}: {plain(panel[name])}")
    lines += ["", "## Prompt", ""]
    if panel.get("prompt") is None:
        lines += ["It is kept no longer.", ""]
    for message in panel["prompt"] or () if isinstance(panel.get("prompt"), list) else ():
        lines += [f"### {plain(message.get('role', ''))}", "", *fenced(shown(message.get("content"))), ""]
    for seat in panel["seats"]:
        lines += [f"## {plain(seat['model'])} · {plain(seat['seat'])} · {plain(seat['call'])}", "", f"- status: {plain(seat['status'])}"]
        if seat.get("error"):
            lines.append(f"- error: {plain(seat['error']['code'])}: {plain(seat['error']['message'])}")
        for name in ("seconds", "cost_usd"):
            if seat.get(name) is not None:
                lines.append(f"- {name}: {plain(seat[name])}")
        lines += ["", *(fenced(seat["text"]) if seat.get("text") else ["No text is kept."]), ""]
        for verdict in seat.get("verdicts", ()):
            lines += verdict_lines(verdict)
    if comparison := panel.get("comparison"):
        lines += [f"## Comparison by {plain(comparison['model'])}", ""]
        for claim in comparison["claims"]:
            lines.append(f"- {plain(claim['kind'])}: {plain(claim['text'])}")
            lines += [f"  - {plain(one['call'])}: {plain(one['quote'])}" for one in claim["seats"]]
        lines.append("")
    return "\n".join(lines)


def verdict_lines(verdict: dict[str, Any]) -> list[str]:
    useful = {True: "useful", False: "not useful", None: "no word on its use"}[verdict["useful"]]
    lines = [f"Verdict of {plain(verdict['judge'])}: {useful}", ""]
    lines += [f"- holds: {plain(claim)}" for claim in verdict["real"]]
    lines += [f"- does not hold: {plain(claim)}" for claim in verdict["false"]]
    if verdict["note"]:
        lines += ["", *fenced(verdict["note"])]
    return [*lines, ""]


def shown(content: Any) -> str:
    """A message's words; what is none is named."""
    if isinstance(content, list):
        named = [f"[{p.get('type')}]" for p in content if isinstance(p, dict) and p.get("type") in ("image", "audio", "file")]
        return "\n".join([words_of(content), *named]).strip("\n")
    return words_of(content)


def fenced(text: str) -> list[str]:
    longest = max([len(found) for found in FENCE.findall(text)], default=0)
    fence = "~" * max(4, longest + 1)
    return [f"{fence}text", text.replace("\x00", "\ufffd"), fence]


def plain(value: Any) -> str:
    """A value on one line, every character of which stands for itself."""
    return MARKUP.sub(r"\\\1", LINE_END.sub(" ", str(value)))
