"""How prompts begin, as lists show it."""

from __future__ import annotations

import json

import pytest

from panels import openings
from panels.models import Panel
from tests.admin import seed


def kept(*messages: tuple[str, object]) -> str:
    return json.dumps([{"role": role, "content": content} for role, content in messages], ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize(
    ("prompt", "shown"),
    [
        (kept(("user", "What is\n\n wrong here?")), "What is wrong here?"),
        (kept(("system", "Be brief."), ("user", "Why?")), "Why?"),
        (kept(("system", "s" * 5000), ("user", "Why?")), "Why?"),
        (kept(("user", [{"type": "text", "text": 'He said "no" \\ and left'}])), 'He said "no" \\ and left'),
        (kept(("user", [{"type": "image", "media_type": "image/png", "data": "A" * 9000}, {"type": "text", "text": "What is this?"}])), ""),
        (kept(("user", "模" * 5000)), "模" * 159 + "…"),
        (json.dumps([{"role": "user", "content": "ن" * 5000}]), "ن" * 159 + "…"),
        (json.dumps([{"role": "user", "content": "🦙" * 5000}]), None),
        (kept(("user", "")), ""),
        (kept(("assistant", "Hello."), ("user", "Hi")), "Hi"),
        ("not JSON", ""),
        ("[]", ""),
    ],
)
def test_the_first_words_of_a_user(db: None, prompt: str, shown: str | None) -> None:
    seed.people()
    row = seed.panel(seed.collection("core", []), [], seed.NOW)
    Panel.objects.filter(pk=row.pk).update(prompt=prompt)
    found = openings.of_panels([row.pk])[row.pk]
    assert found == shown if shown is not None else found.startswith("🦙") and found.encode()


@pytest.mark.parametrize("cut", range(20))
def test_a_piece_may_end_anywhere(cut: int) -> None:
    piece = '"user","content":"a\\u00e9\\ud83e\\udd99\\"b'
    assert openings.opening(piece[: len(piece) - cut]).encode() is not None


def test_a_panel_without_a_prompt_has_no_opening(db: None) -> None:
    row = seed.panel(seed.collection("core", []), [], seed.NOW, prompt=None)
    assert openings.of_panels([row.pk]) == {}
