"""Keys, prices by day, and the roster as it is read in one go."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from access import secrets
from access.models import AuditEntry
from catalog import endpoint_keys, prices, roster
from catalog.load import load_models
from catalog.models import Endpoint, Model, Price
from catalog.shape import ShapeError

CANARY = "sk-canary-0123456789"
D1, D2, D3 = date(2026, 1, 1), date(2026, 2, 1), date(2026, 3, 1)


# ------------------------------------------------------------------ keys


@pytest.mark.parametrize(
    ("name", "key_env", "variables", "stored", "key", "where"),
    [
        ("groq-eu", "", {}, "", "", "none"),
        ("groq-eu", "", {}, "stored-key", "stored-key", "stored"),
        ("groq-eu", "", {"GROQ_EU": "own"}, "stored-key", "own", "variable BENCHWARMERS_KEY_GROQ_EU"),
        ("groq-eu", "BENCHWARMERS_KEY_NAMED", {"GROQ_EU": "own", "NAMED": "named"}, "stored-key", "named", "variable BENCHWARMERS_KEY_NAMED"),
        ("groq-eu", "BENCHWARMERS_KEY_NAMED", {"GROQ_EU": "own"}, "stored-key", "own", "variable BENCHWARMERS_KEY_GROQ_EU"),
        ("groq-eu", "BENCHWARMERS_KEY_NAMED", {}, "stored-key", "stored-key", "stored"),
        ("Größe 2", "", {"GR_SSE_2": "own"}, "", "own", "variable BENCHWARMERS_KEY_GR_SSE_2"),
    ],
)
def test_a_key_is_the_named_variables_then_its_own_then_the_stored_one(
    endpoint: Endpoint, settings: Any, name: str, key_env: str, variables: dict[str, str], stored: str, key: str, where: str
) -> None:
    settings.ENVIRONMENT_KEYS = {f"BENCHWARMERS_KEY_{part}": value for part, value in variables.items()}
    endpoint.name, endpoint.key_env = name, key_env
    endpoint.key_sealed = secrets.seal(stored) if stored else ""
    assert endpoint_keys.key_of(endpoint) == key
    assert endpoint_keys.where_key_comes_from(endpoint) == where


def test_a_key_is_stored_sealed_and_the_trail_says_only_that_it_was(endpoint: Endpoint) -> None:
    endpoint_keys.set_key(endpoint, f"  {CANARY}\n", "anna")
    row = Endpoint.objects.get()
    assert CANARY not in row.key_sealed
    assert endpoint_keys.key_of(row) == CANARY
    endpoint_keys.set_key(row, "", "anna")
    assert endpoint_keys.key_of(Endpoint.objects.get()) == ""
    assert [(entry.action, entry.changes) for entry in AuditEntry.objects.order_by("id")] == [
        ("endpoint.key", {"key": ["not set", "set"]}),
        ("endpoint.key", {"key": ["set", "not set"]}),
    ]


def test_a_form_sets_a_key_on_a_row_that_it_saves_itself(endpoint: Endpoint) -> None:
    endpoint_keys.set_key(endpoint, CANARY)
    assert endpoint_keys.key_of(endpoint) == CANARY
    assert Endpoint.objects.get().key_sealed == ""
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("raw", ["sk-a b", "sk-\u200bx", "schlüssel", "sk\nx", "x" * 9000])
def test_a_key_that_no_header_carries_is_refused_and_not_repeated(endpoint: Endpoint, raw: str) -> None:
    with pytest.raises(ValueError, match="key") as caught:
        endpoint_keys.set_key(endpoint, raw, "anna")
    assert raw not in str(caught.value)
    assert Endpoint.objects.get().key_sealed == ""


def test_an_unreadable_key_says_whose_it_is_and_where_it_is_kept(endpoint: Endpoint, settings: Any) -> None:
    endpoint.key_sealed = secrets.seal(CANARY)
    settings.SECRET_KEYS = ["quite-another-secret-0123456789"]
    with pytest.raises(endpoint_keys.KeyUnreadable, match="groq-eu: its stored key"):
        endpoint_keys.key_of(endpoint)
    settings.ENVIRONMENT_KEYS = {"BENCHWARMERS_KEY_GROQ_EU": f"{CANARY} and more"}
    with pytest.raises(endpoint_keys.KeyUnreadable, match="variable BENCHWARMERS_KEY_GROQ_EU") as caught:
        endpoint_keys.key_of(endpoint)
    assert CANARY not in str(caught.value)


# ------------------------------------------------------------------ prices


def test_a_price_holds_from_its_day_and_one_that_does_not_change_writes_nothing(make_model: Callable[..., Model]) -> None:
    model = make_model()
    assert prices.set_prices(model, {"input_usd_per_mtok": "0.5", "output_usd_per_mtok": "1.5"}, D1) == {
        "input_usd_per_mtok": [None, "0.5"],
        "output_usd_per_mtok": [None, "1.5"],
    }
    assert prices.set_prices(model, {"input_usd_per_mtok": "0.50"}, D2) == {}
    assert Price.objects.count() == 1
    assert prices.set_prices(model, {"input_usd_per_mtok": "0.6"}, D2) == {"input_usd_per_mtok": ["0.5", "0.6"]}
    assert prices.prices_of(model, day=D1) == {"input_usd_per_mtok": "0.5", "output_usd_per_mtok": "1.5"}
    assert prices.prices_of(model, day=D3) == {"input_usd_per_mtok": "0.6", "output_usd_per_mtok": "1.5"}


def test_a_second_price_of_a_day_changes_that_days_row(make_model: Callable[..., Model]) -> None:
    model = make_model()
    prices.set_prices(model, {"input_usd_per_mtok": "1"}, D1)
    prices.set_prices(model, {"input_usd_per_mtok": "2"}, D1)
    assert [row.input_usd_per_mtok for row in Price.objects.all()] == [Decimal(2)]


def test_a_null_makes_a_price_unknown_again(make_model: Callable[..., Model]) -> None:
    model = make_model()
    prices.set_prices(model, {"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"}, D1)
    assert prices.set_prices(model, {"input_usd_per_mtok": None}, D2) == {"input_usd_per_mtok": ["1", None]}
    assert prices.prices_of(model, day=D2) == {"output_usd_per_mtok": "2"}
    assert prices.set_prices(make_model("other"), {"input_usd_per_mtok": None}, D1) == {}


@pytest.mark.parametrize("given", [{"input": "1"}, {"input_usd_per_mtok": "-1"}, {"input_usd_per_mtok": "much"}])
def test_wrong_prices_are_refused(make_model: Callable[..., Model], given: dict[str, str]) -> None:
    with pytest.raises(ShapeError):
        prices.set_prices(make_model(), given, D1)
    assert not Price.objects.exists()


def row(since: date, source: str = "hand", **amounts: str) -> Price:
    return Price(since=since, source=source, **{f"{name}_usd_per_mtok": Decimal(amount) for name, amount in amounts.items()})


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([], []),
        ([row(D1, input="1")], [roster.Price(D1, Decimal(1))]),
        ([row(D2, input="2"), row(D1, input="1")], [roster.Price(D2, Decimal(2)), roster.Price(D1, Decimal(1))]),
        # By hand wins over a later list, field by field.
        ([row(D1, input="1"), row(D2, "endpoint list", input="9", output="8")], [roster.Price(D2, Decimal(1), Decimal(8)), roster.Price(D1, Decimal(1))]),
        # Of two lists the later one.
        ([row(D2, "a", input="2"), row(D1, "b", input="1")], [roster.Price(D2, Decimal(2)), roster.Price(D1, Decimal(1))]),
        # A row of a source holds whole: what it no longer says is unknown.
        ([row(D1, input="1", output="2"), row(D2, input="1")], [roster.Price(D2, Decimal(1)), roster.Price(D1, Decimal(1), Decimal(2))]),
        ([row(D1, input="1", cache_read="0.1", cache_write="1.25")], [roster.Price(D1, Decimal(1), None, Decimal("0.1"), Decimal("1.25"))]),
    ],
)
def test_prices_of_all_sources_are_laid_over_each_other_by_day(rows: list[Price], found: list[roster.Price]) -> None:
    assert list(prices.timeline(rows)) == found


# ------------------------------------------------------------------ the roster in one go


def test_the_roster_is_read_whole(endpoint: Endpoint, make_model: Callable[..., Model], settings: Any) -> None:
    settings.ENVIRONMENT_KEYS = {"BENCHWARMERS_KEY_GROQ_EU": CANARY}
    Endpoint.objects.update(limits={"parallel": 4}, quirks={"token_param": "max_tokens", "flag": True})
    model = make_model(
        facts={"context_window": 1000},
        listed_facts={"context_window": 2000, "vision": True},
        listed_at=datetime(2026, 1, 1, tzinfo=UTC),
        limits={"requests": {"minute": 5}},
        quirks={"token_param": "max_completion_tokens"},
        ad_hoc=True,
    )
    make_model("old", status="retired", status_reason="answers nonsense")
    prices.set_prices(model, {"input_usd_per_mtok": "0.5"}, D1)
    found = load_models()
    assert list(found) == ["fast", "old"]
    fast = found["fast"]
    assert fast.endpoint == roster.Endpoint(
        endpoint.pk, "groq-eu", "openai", "http://127.0.0.1:9/v1", CANARY, {"parallel": 4}, {"token_param": "max_tokens", "flag": True}
    )
    assert (fast.context_window, fast.facts, fast.ad_hoc, fast.retired) == (1000, {"context_window": 1000, "vision": True}, True, False)
    assert fast.quirks == {"token_param": "max_completion_tokens", "flag": True}
    assert fast.limits == {"requests": {"minute": 5}}
    assert fast.price_on(D2) == roster.Price(D1, Decimal("0.5"))
    assert fast.price_on(date(2025, 1, 1)) is None
    assert (found["old"].retired, found["old"].status_reason) == (True, "answers nonsense")
    assert CANARY not in repr(found)


def test_the_roster_takes_three_queries_whatever_its_size(make_model: Callable[..., Model], django_assert_num_queries: Any) -> None:
    for number in range(20):
        prices.set_prices(make_model(f"m{number}"), {"input_usd_per_mtok": "1"}, D1)
    with django_assert_num_queries(3):
        assert len(load_models()) == 20


def test_one_unreadable_key_leaves_the_others_alone(make_model: Callable[..., Model], caplog: pytest.LogCaptureFixture) -> None:
    make_model()
    broken = Endpoint.objects.create(name="broken", kind="openai", base_url="http://h", key_sealed="not sealed by us")
    Model.objects.create(alias="deaf", endpoint=broken, served_name="x")
    with caplog.at_level(logging.WARNING):
        found = load_models()
    assert found["deaf"].endpoint.key == ""
    assert found["fast"].alias == "fast"
    assert "broken" in caplog.text
    assert "not sealed by us" not in caplog.text
