"""What endpoints list is kept: what is new there, what is gone, and what a failed try leaves alone."""

from __future__ import annotations

from typing import Any

import pytest

from catalog import candidates, model_lists, prices
from catalog.editing import UnknownEndpoint
from catalog.models import Endpoint, Listing, Model
from tests.catalog.pages import Pages

pytestmark = pytest.mark.django_db


@pytest.fixture
def there(pages: Pages, endpoint: Endpoint) -> Endpoint:
    """An endpoint that lists two models."""
    pages.put("/v1/models", {"data": [{"id": "a", "context_length": 8192, "pricing": {"prompt": "0.000001"}}, {"id": "b"}]})
    endpoint.base_url = f"{pages.url}/v1"
    endpoint.save()
    return endpoint


def test_a_list_is_kept_and_read_again_without_asking(there: Endpoint, pages: Pages) -> None:
    found = candidates.refresh("groq-eu")
    assert [one.served_name for one in found.models] == ["a", "b"]
    assert (found.error, found.listed_at) == ("", found.tried_at)
    asked = len(pages.asked)
    assert candidates.kept("groq-eu") == found
    assert list(candidates.every_kept()) == [found]
    assert len(pages.asked) == asked


def test_an_endpoint_that_is_none_is_told(db: None) -> None:
    with pytest.raises(UnknownEndpoint):
        candidates.refresh("nobody")
    assert candidates.kept("nobody") is None
    assert candidates.unlisted("nobody") is None
    assert candidates.not_chat("nobody") == frozenset()


def test_what_a_list_lacks_is_named(there: Endpoint, make_model: Any) -> None:
    for served_name in ("a", "b", "gone"):
        make_model(served_name, served_name=served_name)
    assert candidates.unlisted("groq-eu") is None
    candidates.refresh("groq-eu")
    assert candidates.unlisted("groq-eu") == {"gone"}


@pytest.mark.parametrize(
    ("body", "status"),
    [({"error": "no"}, 500), ({"error": "no"}, 401), ("<html>", 200), ({}, 200), ({"data": []}, 200), (None, 200), ({"data": [{"x": 1}]}, 200)],
)
def test_a_list_that_failed_or_is_empty_unlists_nobody(there: Endpoint, pages: Pages, make_model: Any, body: Any, status: int) -> None:
    make_model("gone", served_name="gone")
    candidates.refresh("groq-eu")
    pages.put("/v1/models", body, status)
    found = candidates.refresh("groq-eu")
    assert candidates.unlisted("groq-eu") is None
    if body != {"data": []}:
        assert [one.served_name for one in found.models] == ["a", "b"]
        assert found.error
        assert found.listed_at is not None
        assert found.listed_at < found.tried_at


def test_one_endpoint_that_hangs_up_does_not_keep_the_others_from_answering(there: Endpoint, pages: Pages) -> None:
    Endpoint.objects.create(name="dead", kind="openai", base_url="http://127.0.0.1:9/v1")
    Endpoint.objects.create(name="odd", kind="telepathy", base_url="http://127.0.0.1:9/v1")
    dead, good, odd = candidates.refresh_many()
    assert (dead.error, good.error, odd.error) == ("Nothing listens there (connection refused).", "", "There is no kind telepathy.")


def test_the_rosters_models_learn_what_their_list_says_now(there: Endpoint, pages: Pages, make_model: Any) -> None:
    row = make_model("a", served_name="a", listed_facts={"context_window": 4096, "tools": True})
    candidates.refresh("groq-eu")
    row.refresh_from_db()
    assert row.listed_facts == {"context_window": 8192, "tools": True}
    assert prices.prices_of(row, "endpoint list") == {"input_usd_per_mtok": "1"}
    at = row.listed_at
    candidates.refresh("groq-eu")
    row.refresh_from_db()
    assert row.listed_at == at


def test_a_deleted_endpoint_takes_its_list_along(there: Endpoint) -> None:
    candidates.refresh("groq-eu")
    there.delete()
    assert not Listing.objects.exists()


@pytest.mark.parametrize(
    ("listed", "asked", "is_there"),
    [
        ("llama3:latest", "llama3", True),
        ("llama3", "llama3:latest", True),
        ("llama3:8b", "llama3:70b", False),
        ("models/gemini-3", "gemini-3", True),
        ("claude-sonnet-4-20250514", "claude-sonnet-4", True),
        ("claude-sonnet-4-20250514", "claude-sonnet-4-latest", True),
        ("gpt-4o-2024-08-06", "gpt-4o", True),
        ("Meta/Llama", "meta/llama", True),
        ("org/model", "org/model:groq", True),
        ("openai/*", "openai/gpt-5", True),
        ("openai/*", "anthropic/claude", False),
        ("*", "anything", True),
        ("gpt-4o", "gpt-4", False),
        ("gpt-4o-mini", "gpt-4o", False),
        ("claude@default", "claude", True),
    ],
)
def test_a_name_in_another_spelling_is_not_missing(listed: str, asked: str, is_there: bool) -> None:
    assert (asked in candidates.Names([listed])) is is_there


def test_retired_models_are_named_too(there: Endpoint, make_model: Any) -> None:
    make_model("x", served_name="x", status=Model.Status.RETIRED)
    candidates.refresh("groq-eu")
    assert candidates.unlisted("groq-eu") == {"x"}


def test_what_was_just_listed_is_added_without_asking_again(there: Endpoint, pages: Pages) -> None:
    candidates.refresh("groq-eu")
    asked = len(pages.asked)
    assert candidates.add("groq-eu", ["a", "b", "a"], "admin") == ["a", "b"]
    assert candidates.add("groq-eu", ["a"], "admin") == []
    assert len(pages.asked) == asked
    assert Model.objects.get(alias="a").listed_facts == {"context_window": 8192}
    with pytest.raises(UnknownEndpoint):
        candidates.add("nobody", ["a"], "admin")


def test_the_catalog_schedule_asks_endpoints_too(there: Endpoint) -> None:
    from django.utils import timezone

    from health.scheduled import read_catalogs

    Endpoint.objects.create(name="dead", kind="openai", base_url="http://127.0.0.1:9/v1")
    report = read_catalogs(timezone.now(), timezone.now())
    assert report["lists"]["groq-eu"] == {"models": 2, "hub": "", "error": ""}
    assert "connection refused" in report["lists"]["dead"]["error"]


ROWS = [{"id": f"m{n}"} for n in range(6)]


@pytest.mark.parametrize(
    "pages_there",
    [
        {"/v1/models": {"data": ROWS}},
        {"/v1/models": ROWS},
        {"/v1/models": {"data": ROWS[:3], "models": [{"name": row["id"]} for row in ROWS[3:]]}},
        {"/v1/models": {"data": ROWS[:4], "links": {"next": "/p2"}}, "/p2": {"data": ROWS[4:]}},
        {"/v1/models": {"data": ROWS[:5], "links": {"next": "/p2"}}, "/p2": {"data": ROWS[5:]}},
    ],
    ids=["an object", "a list", "two lists", "two pages", "a page that is full"],
)
def test_a_list_longer_than_is_read_says_of_nobody_that_it_is_gone(
    there: Endpoint, pages: Pages, make_model: Any, pages_there: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_lists, "MOST_MODELS", 5)
    for path, body in pages_there.items():
        pages.put(path, body)
    make_model("last", served_name="m5")
    found = candidates.refresh("groq-eu")
    assert (len(found.models), found.is_whole, found.error) == (5, False, "")
    assert candidates.unlisted("groq-eu") is None
