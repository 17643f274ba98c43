"""Answers that are kept for a day: written down once however often their line is, forgotten for good, gone when their day is over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from django.db import connection

from access.ids import new_id
from health import jobs
from panels import history, stored
from panels.models import StoredResponse
from tests.panels.conftest import make_attempt, make_panel

pytestmark = pytest.mark.django_db


def item(**more: Any) -> dict[str, Any]:
    now = datetime.now(UTC)
    return {
        "id": new_id("resp"),
        "panel": "",
        "judge": "ada",
        "key_id": 7,
        "collection": "core",
        "model": "bench/core",
        "kept": orjson.dumps({"items": ["a\x00b"]}).decode(),
        "created_at": now.isoformat(),
        "expires_at": (now + timedelta(hours=24)).isoformat(),
        **more,
    }


def commit(*items: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        stored.commit_responses(cursor, items)


def test_a_line_that_is_committed_again_changes_nothing() -> None:
    one = item()
    commit(one, item())
    commit(one)
    row = StoredResponse.objects.get(pk=one["id"])
    assert StoredResponse.objects.count() == 2
    assert orjson.loads(row.kept) == {"items": ["a\x00b"]}
    assert row.expires_at.isoformat() == one["expires_at"]


def test_what_was_emptied_is_not_brought_back_by_its_line() -> None:
    one = item()
    commit(one)
    assert stored.empty(pk=one["id"])
    commit(one)
    assert StoredResponse.objects.get(pk=one["id"]).kept == ""


def test_what_is_past_its_day_is_deleted_by_a_job() -> None:
    now = datetime.now(UTC)
    old, young = item(expires_at=now.isoformat()), item()
    commit(old, young)
    assert jobs.registered["responses"].function is stored.forget_expired
    assert stored.forget_expired(now) == 1
    assert [r.pk for r in StoredResponse.objects.all()] == [young["id"]]


def test_deleting_a_panels_texts_takes_what_is_kept_of_its_answer() -> None:
    panel = make_panel({}).pk
    direct = make_attempt().panel
    for name in (panel, direct):
        commit(one := item(panel=name))
        assert history.delete_texts(name, "ada")
        assert StoredResponse.objects.get(pk=one["id"]).kept == ""
