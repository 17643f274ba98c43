"""Keys: what may be asked of them, how they are kept, how they end."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core import serializers
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from access import keys
from access.caller import Caller
from access.fields import FieldError, checked
from access.keys import KeyRevoked, KeyRing
from access.models import AuditEntry, Key, RosterVersion

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def both(secret: str, now: datetime = NOW) -> Caller | None:
    """Finds a key in the ring and in the database, which must agree."""
    in_ring, in_database = keys.load_ring().find(secret, now), keys.find_in_database(secret, now)
    assert in_ring == in_database
    return in_ring


@pytest.mark.django_db
def test_a_secret_is_shown_once_and_kept_as_a_digest_only(make_key) -> None:
    key, secret = make_key("review-bot", owner="ana")
    assert secret.startswith("bw_live_")
    assert len(secret) >= 48
    assert key.hint == secret[:12]
    assert len(key.digest) == 64
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT * FROM "{table}"')
            assert secret not in str(cursor.fetchall()), table
    assert secret not in serializers.serialize("json", Key.objects.all())


@pytest.mark.django_db
def test_two_secrets_never_agree(make_key) -> None:
    assert len({make_key(f"k{i}")[1] for i in range(50)}) == 50


@pytest.mark.django_db
def test_a_minted_key_is_found_with_all_that_it_may(make_key) -> None:
    key, secret = make_key(
        "bot",
        owner="ana",
        scopes=["judge", "ask", "ask"],
        collections=["core"],
        models=["meta/*"],
        rpm=3,
        tpm=2**40,
        max_parallel=1,
        budget_usd="1.50",
        expires_at="2099-01-01T00:00:00+02:00",
        keep_text=False,
    )
    caller = both(secret)
    assert caller == Caller(
        kind="key",
        judge="ana",
        scopes=frozenset({"ask", "judge"}),
        key_id=key.pk,
        key_name="bot",
        collections=("core",),
        models=("meta/*",),
        rpm=3,
        tpm=2**40,
        max_parallel=1,
        budget_usd=Decimal("1.5"),
        keep_text=False,
    )


@pytest.mark.django_db
def test_a_key_may_ask_and_judge_by_default_and_judges_as_itself_without_an_owner(make_key) -> None:
    caller = both(make_key("alice")[1])
    assert caller is not None
    assert caller.scopes == {"ask", "judge"}
    assert caller.judge == "key:alice", "a key named like a user must not judge in that user's name"
    assert caller.collections is None
    assert caller.models is None
    assert not caller.is_limited


@pytest.mark.django_db
def test_unknown_expired_and_revoked_keys_are_all_nobody(make_key) -> None:
    _, good = make_key("good")
    ended, ended_secret = make_key("ended")
    Key.objects.filter(pk=ended.pk).update(expires_at=NOW)
    gone, gone_secret = make_key("gone")
    keys.revoke(gone, "test", "lost laptop")
    assert both(good) is not None
    assert both(ended_secret, NOW - timedelta(seconds=1)) is not None
    assert both(ended_secret, NOW) is None
    assert both(gone_secret) is None
    assert both("bw_live_" + "x" * 43) is None
    assert Key.objects.get(pk=gone.pk).revoked_at is not None


@pytest.mark.django_db
@pytest.mark.parametrize(
    "secret",
    [
        "",
        " ",
        "bw_live_",
        "' OR 1=1 --",
        "bw_live_'; DROP TABLE access_key; --",
        "x" * 100_000,
        "ключ",
        "\ud800",
        "\x00",
        "%",
        "Basic YWRtaW46YWRtaW4=",
        "a\nb",
    ],
)
def test_hostile_secrets_are_nobody(secret: str, make_key) -> None:
    make_key()
    assert both(secret) is None
    assert Key.objects.count() == 1


@pytest.mark.django_db
def test_a_digest_is_no_secret(make_key) -> None:
    key, _ = make_key()
    assert both(key.digest) is None


@given(st.text(max_size=80))
def test_an_empty_ring_knows_nobody(secret: str) -> None:
    assert KeyRing({}).find(secret, NOW) is None


@pytest.mark.django_db
def test_the_ring_is_read_in_one_query(make_key, django_assert_num_queries) -> None:
    for i in range(3):
        make_key(f"k{i}")
    with django_assert_num_queries(1):
        ring = keys.load_ring()
    assert len(ring.by_digest) == 3
    with pytest.raises(TypeError):
        ring.by_digest["x"] = None  # type: ignore[index]


WRONG: list[tuple[str, Any]] = [
    *[("name", v) for v in (None, 1, "", "  ", "a" * 201, "a\x00b", "a\nb", "\ud800", ["x"])],
    *[("owner", v) for v in (1, "a" * 201, "a\tb", {})],
    *[("scopes", v) for v in ("ask", [], ["fly"], ["ask", 1], [None], {"ask": True}, ["ask "] * 501, [["ask"]])],
    *[("collections", v) for v in ("core", [1], [""], ["bench/core"], ["a" * 201], [True], {})],
    *[("models", v) for v in ("fast", [None], [""], ["a\x07"], 5)],
    *[(field, v) for field in ("rpm", "tpm", "max_parallel") for v in (True, False, "3", 1.0, -1, 0, 2**63, [], float("nan"))],
    *[("budget_usd", v) for v in (True, -1, "-0.01", "NaN", "Infinity", "1e400", float("inf"), "ten", "", [], "0.0000001", 10**8, "1" * 5000, 10**5000)],
    *[("expires_at", v) for v in (1, True, "soon", "2027-01-01", "2027-01-01T00:00:00", "9999-12-31T23:59:59-12:00", NOW.replace(tzinfo=None), [])],
    *[("keep_text", v) for v in (0, 1, "true", [])],
    ("digest", "abc"),
    ("revoked_at", None),
    ("x" * 500, 1),
]


@pytest.mark.parametrize(("field", "value"), WRONG, ids=[f"{field[:12]}-{i}" for i, (field, _) in enumerate(WRONG)])
def test_a_wrong_field_is_named_and_its_value_is_not(field: str, value: Any) -> None:
    with pytest.raises(FieldError) as caught:
        checked({field: value})
    assert caught.value.field.startswith(field[:60])
    assert str(caught.value).isascii()
    assert len(str(caught.value)) < 300


@given(
    st.dictionaries(
        st.sampled_from(["name", "owner", "scopes", "collections", "models", "rpm", "budget_usd", "expires_at", "keep_text", "x"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=5,
        ),
    )
)
def test_whatever_json_brings_is_kept_clean_or_refused_by_field(fields: dict[str, Any]) -> None:
    try:
        kept = checked(fields)
    except FieldError:
        return
    json.dumps(kept, default=str, ensure_ascii=False).encode()


@pytest.mark.django_db
def test_a_key_is_not_minted_with_its_end_behind_it(make_key) -> None:
    with pytest.raises(FieldError, match="future"):
        make_key(expires_at="2001-01-01T00:00:00Z")
    assert not Key.objects.exists()
    assert not AuditEntry.objects.exists()


@pytest.mark.django_db
def test_two_live_keys_have_two_names_and_a_revoked_one_frees_its_own(make_key) -> None:
    first, _ = make_key("bot")
    with pytest.raises(FieldError, match="name"):
        make_key("bot")
    with pytest.raises(FieldError, match="name"):
        keys.refuse_taken_name("bot")
    keys.revoke(first, "test")
    keys.refuse_taken_name("bot")
    second, _ = make_key("bot")
    other, _ = make_key("other")
    with pytest.raises(FieldError, match="name"):
        keys.change(other, {"name": "bot"}, "test")
    assert keys.change(second, {"name": "bot"}, "test").name == "bot"


@pytest.mark.django_db
def test_a_change_holds_at_once_and_moves_the_rosters_version(make_key) -> None:
    key, secret = make_key(rpm=5)
    before = RosterVersion.objects.get().version
    changed = keys.change(key, {"rpm": None, "budget_usd": 2, "collections": []}, "ana")
    assert (changed.rpm, changed.budget_usd, changed.collections) == (None, Decimal(2), [])
    caller = both(secret)
    assert caller is not None
    assert caller.rpm is None
    assert not caller.may_ask_collection("core"), "an empty list names nothing"
    assert RosterVersion.objects.get().version > before
    entry = AuditEntry.objects.get(action="key.change")
    assert entry.actor == "ana"
    assert entry.changes["rpm"] == [5, None]
    assert entry.changes["budget_usd"] == [None, "2.000000"]


@pytest.mark.django_db
def test_a_change_to_the_same_is_no_change(make_key) -> None:
    key, _ = make_key(rpm=5, budget_usd="2.5")
    keys.change(Key.objects.get(pk=key.pk), {"rpm": 5, "budget_usd": 2.5}, "ana")
    assert not AuditEntry.objects.filter(action="key.change").exists()


@pytest.mark.django_db
def test_a_wrong_change_changes_nothing(make_key) -> None:
    key, _ = make_key(rpm=5)
    with pytest.raises(FieldError):
        keys.change(key, {"rpm": 6, "tpm": True}, "ana")
    assert Key.objects.get().rpm == 5


@pytest.mark.django_db
def test_a_revoked_key_stays_revoked(make_key) -> None:
    key, _ = make_key()
    keys.revoke(key, "ana", "leaked")
    first = Key.objects.get().revoked_at
    keys.revoke(key, "bo")
    assert Key.objects.get().revoked_at == first
    assert AuditEntry.objects.filter(action="key.revoke").count() == 1
    with pytest.raises(KeyRevoked):
        keys.change(key, {"rpm": 1}, "ana")


@pytest.mark.django_db
def test_a_long_name_still_fits_as_a_judge(make_key) -> None:
    caller = both(make_key("n" * 200)[1])
    assert caller is not None
    assert len(caller.judge) == 200
