"""Users and what their roles come to, the first admin, and the operator key that the command line of the same machine uses."""

from __future__ import annotations

import os
from pathlib import Path

from django.db import transaction

from access import audit, keys
from access.caller import ROLE_SCOPES, SCOPES, Caller
from access.fields import FieldError
from access.models import Key, Role, User

ADMIN_NAME = "admin"
OPERATOR_KEY_FILE = "operator.key"


def role_of(user: User) -> str:
    """A superuser, as `createsuperuser` makes one, is an admin whatever the role says: Django lets them do everything anyway."""
    return Role.ADMIN.value if user.is_superuser else user.role


def caller_of_user(user: User) -> Caller:
    return Caller(kind="user", judge=user.get_username(), scopes=ROLE_SCOPES[role_of(user)], team=user.team)


def ensure_admin() -> User:
    """Gives the user who administers this server, making `admin` (without a password) where no admin is.

    Shape: `admin` while that user is an active admin, else the longest-standing active admin, else `admin`, made or reinstated: who can run this
    function owns the machine.
    """
    with transaction.atomic():
        admins = [u for u in User.objects.filter(is_active=True).order_by("pk") if role_of(u) == Role.ADMIN]
        if found := next((u for u in admins if u.username == ADMIN_NAME), None) or next(iter(admins), None):
            return found
        user = User.objects.filter(username=ADMIN_NAME).first()
        if user is None:
            user = User(username=ADMIN_NAME)
            user.set_unusable_password()
        user.role, user.is_active = Role.ADMIN, True
        user.save()
        audit.record("server", "user.ensure_admin", ADMIN_NAME)
        return user


def named(name: str) -> User | None:
    """Gives an active user by name."""
    return User.objects.filter(username=name, is_active=True).first()


def ensure_operator_key(home: Path) -> None:
    """Writes a key that may do everything to `operator.key` (mode 0600) in the data folder, unless the one there belongs to this database.

    Shape: a key that was revoked stays as it is, since somebody meant it; removing the file brings a new one.
    """
    path = home / OPERATOR_KEY_FILE
    try:
        held = path.read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeError):
        held = ""
    if held and Key.objects.filter(digest=keys.digest(held)).exists():
        path.chmod(0o600)
        return
    with transaction.atomic():  # a file that cannot be written leaves no key behind
        _, secret = mint_operator_key()
        write_private(path, secret + "\n")


def mint_operator_key() -> tuple[Key, str]:
    """Several data folders may share one database; each server's key gets a name of its own."""
    taken = set(Key.objects.filter(revoked_at=None, name__startswith="operator").values_list("name", flat=True))
    name, number = "operator", 1
    while True:
        if name not in taken:
            try:
                return keys.mint(name, owner="local", scopes=list(SCOPES), actor="server")
            except FieldError:  # another server took the name meanwhile
                taken.add(name)
        number += 1
        name = f"operator-{number}"


def write_private(path: Path, text: str) -> None:
    """Puts a file in place whole, and readable by its owner only from its first moment on."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
