"""Requests in Anthropic's Messages format that came in it: they go out nearly as they came."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wire.conversation import Request
from wire.dialects import Outbound
from wire.dialects._anthropic_turns import cleaned, is_blank, lacks_thinking

OUTPUT_LIMIT = 4096  # this format wants one said
LEAST_BUDGET = 1024
# From 4.7 on Claude models refuse temperature, top_p, top_k and thinking budgets, and take an effort instead.
# https://platform.claude.com/docs/en/about-claude/models/migration-guide
CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?")
LATE = (4, 7)
# What count_tokens takes of a request.
COUNTED = frozenset(
    {
        "model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control", "context_management", "compaction",
        "mcp_servers", "speed", "user_profile_id", "workspace_id",
    }
)  # fmt: skip


# ------------------------------------------------------------------ what a model is known to want


@dataclass(frozen=True, slots=True)
class Wants:
    """What one model must be told in its own way. Shape: `thinking` is adaptive, budget or none; `limit` its largest output, 0 where unknown."""

    sampling: bool
    thinking: str
    limit: int
    system_role: str
    schema: bool


def wants(served_name: str, quirks: Mapping[str, Any]) -> Wants:
    """From the quirks, else from the name of a Claude."""
    found = CLAUDE.search(served_name)
    late = bool(found and (int(found[1]), int(found[2] or 0)) >= LATE)
    limit = quirks.get("max_tokens")
    return Wants(
        sampling=bool(quirks.get("sampling", not late)),
        thinking=said if (said := quirks.get("thinking")) in ("adaptive", "budget", "none") else "adaptive" if late else "budget",
        limit=int(limit) if isinstance(limit, int | float) and not isinstance(limit, bool) and limit >= 1 else 0,
        system_role=str(quirks.get("system_role") or ""),
        schema=quirks.get("structured_output") is not False,
    )


# ------------------------------------------------------------------ the same format


def same_format(request: Request, served_name: str, quirks: Mapping[str, Any]) -> Outbound:
    """The body as it came but for the name, and what this API would refuse for good."""
    assert request.raw is not None
    model, dropped = wants(served_name, {"sampling": True, **quirks}), []
    body = {**request.raw, "model": served_name}
    if request.stream:
        body["stream"] = True
    else:
        body.pop("stream", None)
    body["messages"] = cleaned(body["messages"], fold=model.system_role == "user")
    if isinstance(body.get("system"), list) and any(is_blank(b) for b in body["system"]):
        body["system"] = [b for b in body["system"] if not is_blank(b)]
    if not body.get("tools"):
        for name in ("tools", "tool_choice"):
            body.pop(name, None)
    if not model.sampling:
        dropped += [name for name in ("temperature", "top_p", "top_k") if body.pop(name, None) is not None]
    if body.get("max_tokens") is None:
        body["max_tokens"] = model.limit or OUTPUT_LIMIT
    elif model.limit and isinstance(body["max_tokens"], int | float) and body["max_tokens"] > model.limit:
        body["max_tokens"] = model.limit
        dropped.append("max_tokens")
    thinking = body.get("thinking")
    if isinstance(thinking, dict) and thinking.get("type") == "enabled":
        if lacks_thinking(body["messages"]):
            without_thinking_config(body)
            dropped.append("thinking")
        elif isinstance(budget := thinking.get("budget_tokens"), int) and isinstance(most := body["max_tokens"], int) and budget >= most > LEAST_BUDGET:
            body["thinking"] = {**thinking, "budget_tokens": max(LEAST_BUDGET, most // 2)}
    for name, value in (quirks.get("defaults") or {}).items():
        body.setdefault(name, value)
    return Outbound(body, headers_out(request.headers, quirks), tuple(dropped))


def headers_out(given: Mapping[str, str] | None, quirks: Mapping[str, Any]) -> dict[str, str]:
    """The caller's betas and the endpoint's own, each once; the caller's version of the API."""
    given = dict(given or {})
    if isinstance(more := quirks.get("betas"), str) and more.strip():
        said = f"{given.get('anthropic-beta', '')},{more}"
        given["anthropic-beta"] = ",".join(dict.fromkeys([v for value in said.split(",") if (v := value.strip())]))
    return given


def without_thinking_config(body: dict[str, Any]) -> None:
    """Switches thinking off, and the clearing of old thinking that is refused without it."""
    del body["thinking"]
    management = body.get("context_management")
    if isinstance(management, dict) and isinstance(edits := management.get("edits"), list):
        kept = [e for e in edits if not (isinstance(e, dict) and str(e.get("type")).startswith("clear_thinking"))]
        body["context_management"] = {**management, "edits": kept}
