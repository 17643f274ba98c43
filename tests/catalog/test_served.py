"""What endpoints serve: listed, tested, added."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from access.models import AuditEntry
from catalog import endpoint_keys, prices, served, web
from catalog.models import Endpoint, Model
from catalog.shape import ShapeError
from tests.catalog.pages import Pages

LIST = {
    "object": "list",
    "data": [
        {"id": "fake/fast", "context_length": 131072, "pricing": {"prompt": "0.0000005", "completion": "0.0000015"}, "supported_parameters": ["tools"]},
        {"id": "fake/slow", "max_model_len": 4096},
        {"id": "bench/odd"},
    ],
}


@pytest.fixture
def there(pages: Pages, endpoint: Endpoint) -> Endpoint:
    """An endpoint that lists three models."""
    pages.put("/v1/models", LIST)
    endpoint.base_url = f"{pages.url}/v1"
    endpoint.save()
    return endpoint


def test_what_is_served_is_listed_with_the_key(there: Endpoint, pages: Pages) -> None:
    endpoint_keys.set_key(there, "sk-canary-123456", "admin")
    assert [one.served_name for one in served.list_served(there)] == ["fake/fast", "fake/slow", "bench/odd"]
    assert pages.asked[0][1]["authorization"] == "Bearer sk-canary-123456"


def test_a_good_connection_says_how_many_models_it_lists(there: Endpoint) -> None:
    tested = served.test_connection(there)
    assert (tested.ok, tested.models, tested.message) == (True, 3, "Endpoint groq-eu answers and lists 3 models.")
    assert tested.latency_ms >= 0


@pytest.mark.parametrize(
    ("body", "status", "content_type", "said"),
    [
        ("<html>token=abc123</html>", 200, "text/html", "not a model API (got text/html, status 200)"),
        ("<html>token=abc123</html>", 404, "text/html", "not a model API (got text/html, status 404)"),
        ({"token": "abc123"}, 200, "application/json", "not a model API (got application/json, status 200)"),
        ({"data": [{"token": "abc123"}]}, 200, "application/json", "it lists no models"),
        ({"error": {"message": "token=abc123"}}, 401, "application/json", "wants a key (401)"),
        ({"error": {"message": "token=abc123"}}, 402, "application/json", "no credit"),
        ({"error": {"message": "token=abc123"}}, 404, "application/json", "Check the base URL"),
        ({"error": {"message": "token=abc123, try again in 7s"}}, 429, "application/json", "left alone for 7 s (429)"),
        ({"error": {"message": "token=abc123"}}, 500, "application/json", "status 500"),
        ("token=abc123", 302, "text/plain", "not followed"),
        (None, 200, "text/plain", "broke off"),
    ],
)
def test_a_bad_connection_says_what_is_wrong_and_shows_nothing_of_the_page(
    pages: Pages, endpoint: Endpoint, body: Any, status: int, content_type: str, said: str
) -> None:
    pages.put("/v1/models", body, status, content_type)
    endpoint.base_url = pages.url
    tested = served.test_connection(endpoint)
    assert not tested.ok
    assert said in tested.message
    assert "groq-eu" in tested.message
    for leak in ("abc123", "<html"):
        assert leak not in tested.message


def test_a_refused_key_is_called_one(pages: Pages, endpoint: Endpoint) -> None:
    pages.put("/v1/models", {"error": "no"}, 401)
    endpoint.base_url = pages.url
    endpoint_keys.set_key(endpoint, "sk-canary-123456", "admin")
    tested = served.test_connection(endpoint)
    assert "refused the key (401). Check the key" in tested.message
    assert "canary" not in tested.message


@pytest.mark.parametrize("base", ["http://169.254.169.254", "http://2852039166/", "http://[fd00:ec2::254]/v1"])
def test_a_metadata_address_is_not_tested(endpoint: Endpoint, base: str) -> None:
    endpoint.base_url = base
    tested = served.test_connection(endpoint)
    assert not tested.ok
    assert "refused" in tested.message


def test_an_unreadable_key_and_an_unknown_kind_are_told(endpoint: Endpoint) -> None:
    endpoint.key_sealed = "not sealed by us"
    assert "stored key cannot be read" in served.test_connection(endpoint).message
    endpoint.key_sealed, endpoint.kind = "", "telepathy"
    assert "there is no kind telepathy" in served.test_connection(endpoint).message


def test_models_are_added_with_what_the_list_says(there: Endpoint) -> None:
    fast, slow = served.add_models(there, ["fake/fast", "fake/slow"], "admin")
    assert (fast.alias, fast.served_name, fast.facts) == ("fake/fast", "fake/fast", {})
    assert fast.listed_facts == {"context_window": 131072, "tools": True, "structured_output": False, "reasoning": False}
    assert fast.listed_at is not None
    assert slow.listed_facts == {"context_window": 4096}
    assert prices.prices_of(fast) == {}
    assert prices.prices_of(fast, "endpoint list") == {"input_usd_per_mtok": "0.5", "output_usd_per_mtok": "1.5"}
    assert [(entry.actor, entry.action, entry.target) for entry in AuditEntry.objects.order_by("id")] == [
        ("admin", "model.add", "fake/fast"),
        ("admin", "model.add", "fake/slow"),
    ]


def test_adding_twice_adds_once(there: Endpoint) -> None:
    served.add_models(there, ["fake/fast", "fake/fast"], "admin")
    assert served.add_models(there, ["fake/fast"], "admin") == []
    assert Model.objects.count() == 1


def test_aliases_are_made_unique_ignoring_case_and_never_look_like_a_collection(there: Endpoint) -> None:
    other = Endpoint.objects.create(name="other", kind="openai", base_url="http://127.0.0.1:9")
    Model.objects.create(alias="FAKE/Fast", endpoint=other, served_name="x")
    Model.objects.create(alias="fake/slow", endpoint=other, served_name="y")
    Model.objects.create(alias="fake/slow@GROQ-eu", endpoint=other, served_name="z")
    assert [row.alias for row in served.add_models(there, ["fake/fast", "fake/slow", "bench/odd"], "admin")] == [
        "fake/fast@groq-eu",
        "fake/slow@groq-eu-2",
        "bench-odd",
    ]


def test_a_long_served_name_is_cut_to_an_alias_that_is_free() -> None:
    long, taken = "x" * 300, set()
    for _ in range(5):
        alias = served.free_alias(long, "e" * 200, taken)
        assert len(alias) <= 200
        assert alias not in taken
        taken.add(alias)


def test_models_are_added_without_facts_where_the_endpoint_does_not_answer(endpoint: Endpoint) -> None:
    [row] = served.add_models(endpoint, ["any/name"], "admin")
    assert (row.listed_facts, row.listed_at) == ({}, None)


def test_a_list_that_was_just_asked_is_not_asked_again(there: Endpoint, pages: Pages) -> None:
    listed = served.list_served(there)
    served.add_models(there, ["fake/slow"], "admin", listed)
    assert len(pages.asked) == 1


def test_a_name_that_cannot_be_one_is_refused(there: Endpoint) -> None:
    with pytest.raises(ShapeError):
        served.add_models(there, ["fake/fast", "a\nb"], "admin")
    assert Model.objects.count() == 0


def test_errors_have_stable_codes(endpoint: Endpoint, pages: Pages) -> None:
    endpoint.base_url = pages.url
    with pytest.raises(web.WebError) as caught:
        served.list_served(endpoint)
    assert (caught.value.code, caught.value.status) == ("refused", 404)


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"kind": "telepathy"}, "kind"),
        ({"base_url": "ftp://x"}, "base_url"),
        ({"base_url": "http://169.254.169.254"}, "base_url"),
        ({"key_env": "PATH"}, "key_env"),
        ({"limits": {"requests": 5}}, "limits"),
        ({"quirks": {"token_param": "x"}}, "quirks"),
        ({"name": "GROQ-EU"}, "name"),
    ],
)
def test_endpoints_are_checked_where_they_are_written(endpoint: Endpoint, fields: dict[str, Any], wrong: str) -> None:
    row = Endpoint(**{"name": "new", "kind": "openai", "base_url": "http://h", **fields})
    with pytest.raises(ValidationError) as caught:
        row.full_clean()
    assert wrong in caught.value.message_dict


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"alias": "bench/x"}, "alias"),
        ({"alias": "FAST"}, "alias"),
        ({"served_name": ""}, "served_name"),
        ({"facts": {"context_window": "x"}}, "facts"),
        ({"facts": {"input_usd_per_mtok": "1"}}, "facts"),
        ({"limits": {"x": 1}}, "limits"),
        ({"quirks": []}, "quirks"),
    ],
)
def test_models_are_checked_where_they_are_written(endpoint: Endpoint, make_model: Any, fields: dict[str, Any], wrong: str) -> None:
    make_model("fast")
    row = Model(**{"alias": "new", "endpoint": endpoint, "served_name": "x", **fields})
    with pytest.raises(ValidationError) as caught:
        row.full_clean()
    assert wrong in caught.value.message_dict


def test_a_good_row_is_left_as_it_is_but_for_what_says_nothing(endpoint: Endpoint, make_model: Any) -> None:
    endpoint.limits = {"requests": {"minute": 5, "day": None}, "tokens": {}}
    endpoint.full_clean()
    assert endpoint.limits == {"requests": {"minute": 5}}
    row = make_model("fast", facts={"tools": True})
    row.full_clean()
    assert row.facts_at is None
    row.facts = {"tools": False}
    row.full_clean()
    assert row.facts_at is not None
    assert row.merged_facts()["tools"].since == row.facts_at
