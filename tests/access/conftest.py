"""Users of every role, and a minted key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from access import keys
from access.models import Key, Role, User


@pytest.fixture(autouse=True)
def collected_static_files(settings, tmp_path: Path) -> None:
    """A checkout has none, about which whitenoise warns at each start of the stack."""
    settings.STATIC_ROOT = tmp_path


@pytest.fixture
def make_user(db: None) -> Callable[..., User]:
    def make(role: str = Role.VIEWER, username: str = "", **fields: Any) -> User:
        return User.objects.create_user(username=username or f"u-{role}", password="correct horse battery", role=role, **fields)

    return make


@pytest.fixture
def make_key(db: None) -> Callable[..., tuple[Key, str]]:
    def make(name: str = "bot", **fields: Any) -> tuple[Key, str]:
        return keys.mint(name, actor="test", **fields)

    return make
