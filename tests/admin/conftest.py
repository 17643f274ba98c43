"""A seeded bench, and a signed-in client for each role."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from access.models import AuditEntry, User
from tests.admin import seed
from tests.browser import open_page

__all__ = ["open_page"]


@pytest.fixture(autouse=True)
def collected_static_files(settings, tmp_path: Path) -> None:
    """A checkout has none, about which whitenoise warns at each start of the stack."""
    settings.STATIC_ROOT = tmp_path


@pytest.fixture(autouse=True)
def quick_passwords(settings) -> None:
    """A strong hash takes a second of every seeded bench."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def as_role(db: None) -> Callable[[str], Client]:
    """Signs in as the user of a role, making it where it is not there."""

    def sign_in(role: str) -> Client:
        user = User.objects.filter(username=role).first() or User.objects.create_user(username=role, password="a-password-for-tests", role=role)
        client = Client()
        client.force_login(user, backend="access.backends.RoleBackend")
        return client

    return sign_in


@pytest.fixture
def admin(as_role: Callable[[str], Client]) -> Client:
    return as_role("admin")


@pytest.fixture
def operator(as_role: Callable[[str], Client]) -> Client:
    return as_role("operator")


@pytest.fixture
def small_bench(db: None) -> None:
    seed.bench(3)


@pytest.fixture
def hostile_bench(db: None) -> None:
    seed.bench(len(seed.HOSTILE), hostile=True)


def trail() -> list[tuple[str, str, str]]:
    """Who did what to what, oldest first."""
    return list(AuditEntry.objects.order_by("id").values_list("actor", "action", "target"))
