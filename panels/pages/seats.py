"""How a conversation, its seats and their verdicts are laid out: shared by the pages that ask, show and judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.http import HttpRequest
from django.urls import get_script_prefix

# What a browser shows by itself. Anything else that calls itself an image is named and not drawn.
DRAWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
ANSWERED = frozenset({"ok", "partial", "truncated"})
UNDER_WAY = frozenset({"running", "waiting"})
MODES = {"panel": "Panel", "merged": "Merged", "route": "Route", "direct": "Direct"}


def turns(prompt: Any) -> list[dict[str, Any]] | None:
    """Lays out a kept prompt. Shape: `{role, parts: [{kind: text, image or other, said}]}`; None where none is kept."""
    if prompt is None:
        return None
    if not isinstance(prompt, list):
        return [{"role": "user", "parts": [{"kind": "text", "said": str(prompt)}]}]
    return [{"role": str(m.get("role", "user")), "parts": list(parts(m.get("content")))} for m in prompt if isinstance(m, Mapping)]


def parts(content: Any) -> Iterable[dict[str, str]]:
    if isinstance(content, str):
        yield {"kind": "text", "said": content}
        return
    for part in content if isinstance(content, list) else ():
        match part.get("type"):
            case "text" | "thinking" | "refusal":
                yield {"kind": "text", "said": str(part.get("text", ""))}
            case "image" if part.get("data") and part.get("media_type") in DRAWN:
                yield {"kind": "image", "said": f"data:{part['media_type']};base64,{part['data']}"}
            case "image" if part.get("url"):
                yield {"kind": "other", "said": f"Image at {part['url']}"}
            case "tool_call":
                yield {"kind": "other", "said": f"Calls {part.get('name', '')}: {part.get('arguments', '')}"}
            case "tool_result":
                yield {"kind": "other", "said": "\n".join(["Result:", *(p["said"] for p in parts(part.get("content")))])}
            case kind:
                yield {"kind": "other", "said": f"{str(kind).capitalize()} {part.get('name') or ''}".strip()}


def laid_out(request: HttpRequest, seats: Sequence[Mapping[str, Any]], blind: bool = False) -> list[dict[str, Any]]:
    """Gives seats as the pages draw them: with the reader's own verdict apart, and a letter; blind, in an order that tells nothing."""
    me = request.user.get_username()
    shown = []
    for seat in seats:
        verdicts, status = seat.get("verdicts") or [], seat.get("status", "ok")
        shown.append(
            {
                "status": "ok",
                **seat,
                "mine": next((v for v in verdicts if v["judge"] == me), None),
                "others": [v for v in verdicts if v["judge"] != me],
                "is_answer": status in ANSWERED or (bool(seat.get("text")) and status not in UNDER_WAY),
                "is_under_way": status in UNDER_WAY,
            }
        )
    mixed = sorted(shown, key=lambda s: (s.get("seat") != "merger", str(s["call"])[::-1]))
    for place, seat in enumerate(seat for seat in mixed if seat.get("seat") != "merger"):
        seat["letter"] = letter(place)
    # A merged answer is what was asked for; it stands above those that it was made of.
    return mixed if blind else sorted(shown, key=lambda s: s.get("seat") != "merger")


def letter(place: int) -> str:
    """A to Z, then AA. An id's last characters are drawn by lot, so the order of letters tells nothing of who sat where."""
    return (letter(place // 26 - 1) if place >= 26 else "") + chr(ord("A") + place % 26)


def frame(request: HttpRequest, judge_at: str) -> dict[str, Any]:
    """What the seats' templates and scripts need of every page: where the API is, and where verdicts go without script."""
    return {"api": f"{get_script_prefix()}bench/", "judge_at": judge_at, "blind": request.GET.get("blind") == "1"}


# Where a verdict can be kept as private tasks: the room that has benchmarks says so when it starts.
task_maker: list[str] = []


def offer_tasks(path: str) -> None:
    """Tells at which path of the API a verdict becomes tasks. Shape: it takes {"call": id} and gives how many were `added`."""
    task_maker[:] = [path]


def claims(text: str) -> list[str]:
    """Reads claims that stand one a line."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def verdict_of(form: Mapping[str, Any]) -> dict[str, Any]:
    """Reads a verdict as the API takes it from a form that was sent without script."""
    return {
        "call": form.get("call", ""),
        "useful": {"true": True, "false": False}.get(str(form.get("useful", ""))),
        "note": form.get("note", ""),
        "real": claims(str(form.get("real", ""))),
        "false": claims(str(form.get("false", ""))),
    }


def typed(seats: Iterable[dict[str, Any]], form: Mapping[str, Any], refused: str) -> None:
    """Puts a refused verdict back at its seat, with what was wrong."""
    for seat in seats:
        if seat["call"] == form.get("call"):
            seat["mine"] = verdict_of(form)
            seat["wrong"] = refused
