"""Signing in, and what a role may do in the admin."""

from __future__ import annotations

import hmac
from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend

from access.models import Role, User
from access.people import ADMIN_NAME, ensure_admin, role_of

SHORTEST_ADMIN_TOKEN = 16
ORDER = [Role.VIEWER.value, Role.JUDGE.value, Role.OPERATOR.value, Role.ADMIN.value]
ALL_VERBS = frozenset({"view", "add", "change", "delete"})
VIEW = frozenset({"view"})

# Role: what it may do beyond the roles before it, as app, model (* is every model of the app) and verbs. An admin may do everything.
GRANTS: dict[str, list[tuple[str, str, frozenset[str]]]] = {
    Role.VIEWER.value: [
        ("catalog", "*", VIEW),
        ("health", "*", VIEW),
        ("suite", "*", VIEW),
        ("panels", "collection", VIEW),
        ("panels", "member", VIEW),
        ("panels", "verdict", VIEW),
        ("access", "key", VIEW),
        ("access", "budget", VIEW),
        ("access", "preference", VIEW),
    ],
    Role.JUDGE.value: [("panels", "verdict", frozenset({"add", "change"}))],
    Role.OPERATOR.value: [
        ("catalog", "*", ALL_VERBS),
        ("panels", "collection", ALL_VERBS),
        ("panels", "member", ALL_VERBS),
        ("health", "rest", ALL_VERBS),
        ("health", "alert", frozenset({"change"})),
        ("access", "budget", ALL_VERBS),
        ("health", "schedule", ALL_VERBS),
        ("health", "batch", ALL_VERBS),
        ("access", "preference", ALL_VERBS),
        # These show what other people asked, which below an operator nobody sees.
        ("panels", "panel", VIEW),
        ("panels", "seat", VIEW),
    ],
}


def role_may(role: str, permission: str) -> bool:
    """Whether a role holds a permission named as Django does, for example `catalog.change_endpoint`."""
    if role == Role.ADMIN:
        return True
    app, _, codename = permission.partition(".")
    verb, _, model = codename.partition("_")
    held = ORDER[: ORDER.index(role) + 1]
    return any(a == app and m in ("*", model) and verb in verbs for r in held for a, m, verbs in GRANTS.get(r, ()))


def role_may_open(role: str, app: str) -> bool:
    return role == Role.ADMIN or any(a == app for r in ORDER[: ORDER.index(role) + 1] for a, _, _ in GRANTS.get(r, ()))


class RoleBackend(ModelBackend):
    """Permissions follow from the role alone; those that Django keeps for users and groups are not used."""

    def authenticate(self, request: Any, username: str | None = None, password: str | None = None, **kwargs: Any) -> User | None:
        if username == ADMIN_NAME and password and is_admin_token(password):
            user = ensure_admin()
            return user if user.username == ADMIN_NAME else None  # never into another admin's account
        found = super().authenticate(request, username=username, password=password, **kwargs)
        return found if isinstance(found, User) else None

    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        return isinstance(user_obj, User) and user_obj.is_active and role_may(role_of(user_obj), perm)

    def has_module_perms(self, user_obj: Any, app_label: str) -> bool:
        return isinstance(user_obj, User) and user_obj.is_active and role_may_open(role_of(user_obj), app_label)

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        """Names what the role grants, for those who ask for a list; `has_perm` does not need it."""
        if not isinstance(user_obj, User) or not user_obj.is_active:
            return set()
        return {perm for perm in every_permission() if role_may(role_of(user_obj), perm)}

    def get_user_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        return set()

    def get_group_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        return self.get_all_permissions(user_obj, obj)


def every_permission() -> set[str]:
    from django.apps import apps

    return {f"{m._meta.app_label}.{verb}_{m._meta.model_name}" for m in apps.get_models() for verb in m._meta.default_permissions}


def is_admin_token(password: str) -> bool:
    """Compares in constant time with BENCHWARMERS_ADMIN_TOKEN. One that is unset or too short opens nothing."""
    token = settings.ADMIN_TOKEN
    return len(token) >= SHORTEST_ADMIN_TOKEN and hmac.compare_digest(password.encode("utf-8", "replace"), token.encode("utf-8", "replace"))
