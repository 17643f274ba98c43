"""Roles, the first admin, the operator key, the admin's token."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth import authenticate
from django.test import Client

from access import keys, people
from access.backends import role_may
from access.caller import SCOPES
from access.models import AuditEntry, Key, User

pytestmark = pytest.mark.django_db

TOKEN = "admin-token-0123456789"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


# ------------------------------------------------------------------ the operator key


def test_the_first_start_writes_a_key_that_may_do_everything(tmp_path: Path) -> None:
    people.ensure_operator_key(tmp_path)
    path = tmp_path / "operator.key"
    assert mode(path) == 0o600
    from django.utils import timezone

    caller = keys.find_in_database(path.read_text().strip(), timezone.now())
    assert caller is not None
    assert caller.judge == "local"
    assert caller.key_name == "operator"
    assert caller.scopes == set(SCOPES)
    assert [p.name for p in tmp_path.iterdir()] == ["operator.key"], "no draft is left"


def test_later_starts_keep_the_key_and_close_the_file(tmp_path: Path) -> None:
    people.ensure_operator_key(tmp_path)
    path = tmp_path / "operator.key"
    before = path.read_text()
    path.chmod(0o644)
    people.ensure_operator_key(tmp_path)
    assert path.read_text() == before
    assert mode(path) == 0o600
    assert Key.objects.count() == 1


@pytest.mark.parametrize("content", [b"bw_live_of_another_database\n", b"", b"\xff\xfe\x00", b"' OR 1=1 --"])
def test_a_key_that_the_database_does_not_know_is_replaced(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "operator.key"
    path.write_bytes(content)
    people.ensure_operator_key(tmp_path)
    assert Key.objects.filter(digest=keys.digest(path.read_text().strip())).exists()
    assert mode(path) == 0o600


def test_a_key_that_somebody_revoked_stays_revoked_until_its_file_is_removed(tmp_path: Path) -> None:
    people.ensure_operator_key(tmp_path)
    keys.revoke(Key.objects.get(), "ana")
    people.ensure_operator_key(tmp_path)
    assert Key.objects.count() == 1
    (tmp_path / "operator.key").unlink()
    people.ensure_operator_key(tmp_path)
    assert Key.objects.filter(revoked_at=None).count() == 1


def test_several_data_folders_on_one_database_have_a_key_each(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).mkdir()
        people.ensure_operator_key(tmp_path / name)
    assert set(Key.objects.values_list("name", flat=True)) == {"operator", "operator-2", "operator-3"}


def test_a_file_that_cannot_be_written_leaves_no_key_behind(tmp_path: Path) -> None:
    with pytest.raises(OSError):  # noqa: PT011
        people.ensure_operator_key(tmp_path / "missing")
    assert not Key.objects.exists()


# ------------------------------------------------------------------ the first admin


def test_the_first_admin_is_made_once_without_a_password() -> None:
    user = people.ensure_admin()
    assert people.ensure_admin() == user
    assert (user.username, user.role, user.is_active, user.is_staff) == ("admin", "admin", True, True)
    assert not user.has_usable_password()
    assert AuditEntry.objects.count() == 1


def test_another_admin_will_do(make_user) -> None:
    ana = make_user("admin", "ana")
    make_user("admin", "bo")
    make_user("viewer", "admin")
    assert people.ensure_admin() == ana


def test_a_superuser_is_an_admin(make_user) -> None:
    root = User.objects.create_superuser("root", password="correct horse battery")
    assert people.ensure_admin() == root
    assert people.caller_of_user(root).may("admin")


def test_where_no_admin_is_left_the_first_one_is_reinstated(make_user) -> None:
    make_user("viewer", "admin", is_active=False)
    user = people.ensure_admin()
    assert (user.username, user.role, user.is_active) == ("admin", "admin", True)


# ------------------------------------------------------------------ signing in


def test_the_admin_token_signs_in_as_admin(settings) -> None:
    settings.ADMIN_TOKEN = TOKEN
    user = authenticate(None, username="admin", password=TOKEN)
    assert user is not None
    assert user.get_username() == "admin"


@pytest.mark.parametrize(
    ("token", "username", "password"),
    [
        ("", "admin", ""),
        ("", "admin", "x"),
        ("short", "admin", "short"),
        (TOKEN, "admin", TOKEN[:-1]),
        (TOKEN, "admin", TOKEN + " "),
        (TOKEN, "admin", ""),
        (TOKEN, "admin", "ключ"),
        (TOKEN, "Admin", TOKEN),
        (TOKEN, "ana", TOKEN),
        (TOKEN, "", TOKEN),
    ],
)
def test_nothing_but_the_admin_token_signs_in_as_admin(token: str, username: str, password: str, settings) -> None:
    settings.ADMIN_TOKEN = token
    assert authenticate(None, username=username, password=password) is None


def test_the_admin_token_opens_no_other_admins_account(settings, make_user) -> None:
    settings.ADMIN_TOKEN = TOKEN
    make_user("admin", "ana")
    make_user("admin", "admin", is_active=False)
    assert authenticate(None, username="admin", password=TOKEN) is None


def test_everybody_active_signs_in_with_the_own_password(make_user) -> None:
    make_user("viewer", "vi")
    assert authenticate(None, username="vi", password="correct horse battery") is not None
    make_user("admin", "ex", is_active=False)
    assert authenticate(None, username="ex", password="correct horse battery") is None


@pytest.mark.urls("tests.access.paths")
@pytest.mark.parametrize("role", ["viewer", "judge", "operator", "admin"])
def test_every_role_may_open_the_admins_first_page(role: str, make_user) -> None:
    client = Client(headers={"host": "127.0.0.1"})
    user = make_user(role)
    assert client.login(username=user.username, password="correct horse battery")
    assert User.objects.get(pk=user.pk).is_staff


# ------------------------------------------------------------------ what roles may

RULES = [
    ("catalog.view_endpoint", "viewer"),
    ("catalog.view_price", "viewer"),
    ("health.view_attempt", "viewer"),
    ("panels.view_collection", "viewer"),
    ("panels.view_verdict", "viewer"),
    ("access.view_key", "viewer"),
    ("panels.add_verdict", "judge"),
    ("panels.change_verdict", "judge"),
    ("panels.view_panel", "operator"),
    ("panels.view_seat", "operator"),
    ("catalog.add_endpoint", "operator"),
    ("catalog.change_model", "operator"),
    ("catalog.delete_price", "operator"),
    ("panels.add_collection", "operator"),
    ("panels.change_member", "operator"),
    ("panels.delete_collection", "operator"),
    ("health.delete_rest", "operator"),
    ("panels.delete_verdict", "admin"),
    ("access.view_user", "admin"),
    ("access.add_user", "admin"),
    ("access.add_key", "admin"),
    ("access.change_key", "admin"),
    ("access.view_auditentry", "admin"),
    ("access.view_signinlink", "admin"),
    ("access.view_checkvalue", "admin"),
    ("sessions.view_session", "admin"),
    ("health.change_attempt", "admin"),
    ("catalog.fly_endpoint", "admin"),
    ("nonsense", "admin"),
    ("", "admin"),
]
ROLES = ["viewer", "judge", "operator", "admin"]


@pytest.mark.parametrize(("permission", "least"), RULES)
@pytest.mark.parametrize("role", ROLES)
def test_each_role_may_do_all_that_the_ones_before_it_may(permission: str, least: str, role: str) -> None:
    assert role_may(role, permission) is (ROLES.index(role) >= ROLES.index(least))


@pytest.mark.parametrize("role", ROLES)
def test_asking_for_one_permission_and_for_all_of_them_agree(role: str, make_user, django_assert_num_queries) -> None:
    user = make_user(role)
    with django_assert_num_queries(0):
        listed = user.get_all_permissions()
        for permission, least in RULES[:-3]:
            may = ROLES.index(role) >= ROLES.index(least)
            assert user.has_perm(permission) is may
            assert (permission in listed) is may
        assert user.has_module_perms("catalog")
        assert user.has_module_perms("sessions") is (role == "admin")


def test_who_was_deactivated_may_nothing(make_user) -> None:
    user = make_user("admin", is_active=False)
    assert not user.has_perm("catalog.view_endpoint")
    assert not user.has_module_perms("catalog")
    assert not user.get_all_permissions()
