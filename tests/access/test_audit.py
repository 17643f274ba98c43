"""The audit trail."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from access import audit
from access.models import AuditEntry


def test_only_what_changed_is_told() -> None:
    assert audit.diff({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 4}) == {"b": [2, 3], "c": [None, 4]}
    assert audit.diff({"gone": 1}, {}) == {"gone": [1, None]}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [("", "sk-1", ["not set", "set"]), ("sk-1", "", ["set", "not set"]), ("sk-1", "sk-2", ["set", "set"]), (None, "sk-1", ["not set", "set"])],
)
def test_a_secret_appears_only_as_set_or_not(before: str | None, after: str, told: list[str]) -> None:
    found = audit.diff({"key": before}, {"key": after}, secret_fields=("key",))
    assert found == {"key": told}
    assert "sk-" not in str(found)


def test_a_secret_that_stays_is_not_mentioned() -> None:
    assert audit.diff({"key": "sk-1"}, {"key": "sk-1"}, secret_fields={"key"}) == {}


@pytest.mark.django_db
def test_every_kind_of_value_can_be_kept() -> None:
    values = {
        "d": Decimal("0.000001"),
        "t": datetime(2026, 1, 1, tzinfo=UTC),
        "day": date(2026, 1, 1),
        "l": (1, [2]),
        "s": {"b", "a"},
        "m": {1: Decimal(2)},
        "o": audit,
    }
    audit.record("ana", "endpoint.change", "groq", audit.diff({}, values), reason="why")
    kept = AuditEntry.objects.get().changes
    assert kept["d"] == [None, "0.000001"]
    assert kept["l"] == [None, [1, [2]]]
    assert kept["s"] == [None, ["a", "b"]]
    assert kept["m"] == [None, {"1": "2"}]


@pytest.mark.django_db
def test_long_texts_are_cut_to_what_fits() -> None:
    audit.record("a" * 999, "b" * 999, "c" * 999, reason="d" * 999)
    entry = AuditEntry.objects.get()
    assert [len(entry.actor), len(entry.action), len(entry.target), len(entry.reason)] == [200, 60, 260, 500]
