"""Discover and candidates through the server's own API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from access.ids import new_id
from catalog.endpoint_keys import set_key
from catalog.models import Endpoint, KnownProvider, Listing, Model, Offer, Source
from tests.catalog.pages import Pages, serving
from tests.panels.conftest import Api, make_endpoint, make_model, ok, problem

pytestmark = pytest.mark.django_db

CANARY = "sk-canary-0123456789abcdef"
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def pages() -> Iterator[Pages]:
    with serving() as found:
        yield found


def offer(provider: str, served_name: str, source: str = "models_dev", seen: datetime = LONG_AGO, **fields: Any) -> None:
    row: dict[str, Any] = {"digest": "x", "seen_at": timezone.now(), "first_seen_at": seen}
    Offer.objects.create(source=source, provider=provider, served_name=served_name, **{**row, **fields})
    Source.objects.update_or_create(name=source, defaults={"digest": new_id("digest"), "read_at": timezone.now()})


@pytest.fixture
def catalog(db: None) -> None:
    """Two models at three providers, one of which has an endpoint here."""
    KnownProvider.objects.create(
        source="models_dev",
        provider="acme",
        title="Acme",
        base_url="https://api.acme.example/v1",
        kind="openai",
        key_env="ACME_KEY",
        doc="https://acme.example",
    )
    make_endpoint("groq-eu", base_url="https://api.groq.com/openai/v1")
    facts = {"context_window": 131072, "tools": True, "vision": False}
    offer("groq", "llama-3.3-70b-instruct", facts=facts, prices={"input_usd_per_mtok": "0.59", "output_usd_per_mtok": "0.79"}, about={"open_weights": True})
    offer("acme", "meta-llama/Llama-3.3-70B-Instruct", prices={"input_usd_per_mtok": "0.1", "output_usd_per_mtok": "0.3"}, about={"released": "2024-12-06"})
    offer("acme", "owl-2", facts={"vision": True}, title="Owl 2", about={"released": "2026-11-25"}, seen=timezone.now() - timedelta(days=1))


def test_a_model_is_shown_with_its_routes_and_what_a_missing_endpoint_would_need(operator: Api, catalog: None) -> None:
    make_model("fast", endpoint=Endpoint.objects.get(name="groq-eu"), served_name="llama-3.3-70b-instruct")
    found = ok(operator.get("discover"))
    owl, llama = found["data"]
    assert (found["total"], found["next"]) == (2, None)
    assert {s["name"] for s in found["sources"]} == {"models_dev", "openrouter", "freellmapi"}
    assert (owl["model"], owl["title"], owl["new"], owl["reachable"], owl["on_roster"]) == ("owl-2", "Owl 2", True, False, [])
    assert (llama["model"], llama["new"], llama["reachable"], llama["on_roster"]) == ("meta/llama-3-3-70b-instruct", False, True, ["fast"])
    assert llama["facts"]["context_window"]["value"] == 131072
    assert llama["facts"]["context_window"]["source"] == "models_dev"
    assert llama["cheapest"]["provider"] == "acme"
    assert llama["cheapest"]["input_usd_per_mtok"] == "0.1"
    assert [(r["provider"], r["endpoint"], r["reachable"]) for r in llama["routes"]] == [("groq", "groq-eu", True), ("acme", None, False)]
    assert llama["routes"][1]["needs"] == {"kind": "openai", "base_url": "https://api.acme.example/v1", "key_env": "ACME_KEY", "doc": "https://acme.example"}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["owl-2", "meta/llama-3-3-70b-instruct"]),
        ("text=OWL", ["owl-2"]),
        ("provider=groq", ["meta/llama-3-3-70b-instruct"]),
        ("provider=groq-eu", ["meta/llama-3-3-70b-instruct"]),
        ("can=tools", ["meta/llama-3-3-70b-instruct"]),
        ("can=tools,vision", []),
        ("min_context=100000", ["meta/llama-3-3-70b-instruct"]),
        ("max_price=0.3", ["meta/llama-3-3-70b-instruct"]),
        ("max_price=0.3&provider=groq", []),
        ("free=1", []),
        ("open_weights=1", ["meta/llama-3-3-70b-instruct"]),
        ("reachable=1", ["meta/llama-3-3-70b-instruct"]),
        ("new=1", ["owl-2"]),
        ("sort=price", ["meta/llama-3-3-70b-instruct", "owl-2"]),
        ("model=owl-2", ["owl-2"]),
        ("model=nobody", []),
        ("text=%00", []),
    ],
)
def test_filters(operator: Api, catalog: None, query: str, found: list[str]) -> None:
    assert [row["model"] for row in ok(operator.get(f"discover?{query}"))["data"]] == found


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("can=fly", "can"),
        ("min_context=-1", "min_context"),
        ("min_context=9999999999", "min_context"),
        ("max_price=cheap", "max_price"),
        ("max_price=-1", "max_price"),
        ("max_price=NaN", "max_price"),
        ("max_price=1e999999", "max_price"),
        ("free=yes", "free"),
        ("sort=luck", "sort"),
        ("limit=0", "limit"),
        ("page_token=x", "page_token"),
    ],
)
def test_what_cannot_be_looked_for_is_refused_by_name(operator: Api, catalog: None, query: str, field: str) -> None:
    assert problem(operator.get(f"discover?{query}"), 400)["field"] == field


def test_pages(operator: Api, catalog: None) -> None:
    first = ok(operator.get("discover?limit=1"))
    second = ok(operator.get(f"discover?limit=1&page_token={first['next']}"))
    assert [first["data"][0]["model"], second["data"][0]["model"], second["next"]] == ["owl-2", "meta/llama-3-3-70b-instruct", None]


def test_reading_needs_the_scope(api_of: Callable[..., Api], keyless: Api) -> None:
    for path in ("discover", "candidates"):
        ok(api_of("read").get(path))
        problem(api_of("ask").get(path), 403)
        assert keyless.get(path).status_code in (401, 403)


# ------------------------------------------------------------------ candidates


@pytest.fixture
def there(pages: Pages, db: None) -> Endpoint:
    pages.put("/v1/models", {"data": [{"id": "a", "context_length": 8192}, {"id": "b"}, {"id": "text-embedding-1"}]})
    return make_endpoint("lab", base_url=f"{pages.url}/v1")


def test_what_an_endpoint_serves_beyond_the_roster(operator: Api, there: Endpoint, pages: Pages) -> None:
    make_model("mine", endpoint=there, served_name="b")
    make_model("lost", endpoint=there, served_name="gone")
    before = ok(operator.get("candidates"))
    assert before["data"] == []
    assert before["listings"] == [{"endpoint": "lab", "hub": None, "models": 0, "gone": None, "listed_at": None, "tried_at": None, "error": ""}]
    found = ok(operator.get("candidates?refresh=1"))
    [only] = found["data"]
    assert (only["endpoint"], only["served_name"], only["chat"], only["on_roster"], only["offers"]) == ("lab", "a", True, None, [])
    assert only["facts"]["context_window"]["value"] == 8192
    assert only["facts"]["context_window"]["source"] == "endpoint list"
    assert (found["listings"][0]["gone"], found["listings"][0]["models"], found["listings"][0]["error"]) == (["gone"], 3, "")
    asked = len(pages.asked)
    everything = ok(operator.get("candidates?all=1&endpoint=lab"))["data"]
    assert [(c["served_name"], c["chat"], c["on_roster"]) for c in everything] == [("a", True, None), ("b", True, "mine"), ("text-embedding-1", False, None)]
    assert len(pages.asked) == asked


def test_what_catalogs_say_of_a_candidate_stands_beside_what_its_endpoint_says(operator: Api, catalog: None) -> None:
    now = timezone.now()
    served = [{"name": "llama-3.3-70b-instruct", "facts": {"context_window": 32768}, "chat": True}]
    Listing.objects.create(endpoint=Endpoint.objects.get(name="groq-eu"), served=served, listed_at=now, tried_at=now)
    [one] = ok(operator.get("candidates"))["data"]
    assert {name: (fact["value"], fact["source"]) for name, fact in one["facts"].items() if name in ("context_window", "tools", "input_usd_per_mtok")} == {
        "context_window": (32768, "endpoint list"),
        "tools": (True, "models_dev"),
        "input_usd_per_mtok": ("0.59", "models_dev"),
    }
    assert [(o["source"], o["provider"]) for o in one["offers"]] == [("models_dev", "groq")]


def test_an_endpoint_that_fails_is_told_and_its_key_is_not(operator: Api, there: Endpoint, pages: Pages) -> None:
    set_key(there, CANARY, "test")
    ok(operator.get("candidates?refresh=1"))
    pages.put("/v1/models", {"error": CANARY}, 401)
    reply = operator.get("candidates?refresh=1&endpoint=lab")
    found = ok(reply)
    assert "refused the key (401)" in found["listings"][0]["error"]
    assert found["listings"][0]["gone"] is None
    assert [one["served_name"] for one in found["data"]] == ["a", "b"]
    assert CANARY.encode() not in reply.content


def test_asking_endpoints_needs_an_operator(api_of: Callable[..., Api], there: Endpoint, pages: Pages) -> None:
    problem(api_of("read").get("candidates?refresh=1"), 403)
    assert pages.asked == []
    ok(api_of("operate", "read").get("candidates?refresh=1"))
    assert pages.asked


@pytest.mark.parametrize("query", ["endpoint=nobody", "endpoint=nobody&refresh=1"])
def test_an_endpoint_that_is_none_is_404(operator: Api, query: str) -> None:
    problem(operator.get(f"candidates?{query}"), 404)


def test_a_candidate_is_gone_from_the_list_once_it_is_on_the_roster(operator: Api, there: Endpoint) -> None:
    ok(operator.get("candidates?refresh=1"))
    Model.objects.create(alias="x", endpoint=there, served_name="a")
    assert [one["served_name"] for one in ok(operator.get("candidates"))["data"]] == ["b"]
