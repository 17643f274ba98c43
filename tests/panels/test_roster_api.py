"""Endpoints, models and collections through the server's own API."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from access.models import AuditEntry
from catalog.models import Endpoint, Model, Offer, Price
from health.models import Meter, Rest
from panels.models import Collection
from tests.panels.conftest import Api, make_collection, make_endpoint, make_model, make_panel, name, ok, problem
from tests.panels.test_verdicts import json_values

pytestmark = pytest.mark.django_db

NAMES = ["meta-llama/Llama-3.3-70B:free", "модель ♞", "a b", "日本/モデル", "x/retire", "%2F", "a?b#c", "vendor/@tag.v1", "it's"]
CANARY = "sk-canary-0123456789abcdef"


def audited(action: str) -> dict[str, Any]:
    return AuditEntry.objects.filter(action=action).latest("id").changes


# ------------------------------------------------------------------ names in paths


@pytest.mark.parametrize("alias", NAMES)
def test_a_models_alias_may_be_any_name(operator: Api, alias: str) -> None:
    make_endpoint()
    ok(operator.post("models", {"alias": alias, "endpoint": "local"}), 201)
    assert ok(operator.get(f"models/{name(alias)}"))["alias"] == alias
    assert ok(operator.post(f"models/{name(alias)}/retire", {"reason": "slow"}))["status"] == "retired"
    assert ok(operator.post(f"models/{name(alias)}/restore", {"reason": "fast"}))["status"] == "active"
    assert ok(operator.patch(f"models/{name(alias)}", {"ad_hoc": True}))["ad_hoc"] is True
    ok(operator.delete(f"models/{name(alias)}"), 204)
    problem(operator.get(f"models/{name(alias)}"), 404)


@pytest.mark.parametrize("alias", [n for n in NAMES if "/" not in n])
def test_so_may_a_collections_and_an_endpoints(operator: Api, alias: str) -> None:
    ok(operator.post("collections", {"name": alias}), 201)
    assert ok(operator.get(f"collections/{name(alias)}"))["name"] == alias
    ok(operator.delete(f"collections/{name(alias)}"), 204)
    ok(operator.post("endpoints", {"name": alias, "base_url": "http://127.0.0.1:9/v1"}), 201)
    assert ok(operator.get(f"endpoints/{name(alias)}"))["name"] == alias
    ok(operator.delete(f"endpoints/{name(alias)}"), 204)


@pytest.mark.parametrize("noun", ["models", "collections", "endpoints", "keys"])
@pytest.mark.parametrize("unknown", ["nobody", "a%00b", "%F0%9F%A6%80", "a%2Fb", "%ff"])
def test_what_is_unknown_is_404(operator: Api, noun: str, unknown: str) -> None:
    problem(operator.get(f"{noun}/{unknown}"), 404, code="not_found")
    problem(operator.patch(f"{noun}/{unknown}", {}), 404, code="not_found")
    problem(operator.delete(f"{noun}/{unknown}"), 404, code="not_found")


# ------------------------------------------------------------------ endpoints


def test_an_endpoints_key_goes_in_and_never_comes_out(operator: Api) -> None:
    made = operator.post("endpoints", {"name": "groq", "base_url": "https://api.groq.com/openai/v1", "key": f" {CANARY}\n"})
    assert ok(made, 201)["key"] == "stored"
    replies = [made, operator.get("endpoints"), operator.get("endpoints/groq"), operator.patch("endpoints/groq", {"limits": {"parallel": 2}})]
    assert all(CANARY.encode() not in reply.content for reply in replies)
    row = Endpoint.objects.get()
    assert row.key_sealed
    assert CANARY not in row.key_sealed
    assert CANARY not in json.dumps(list(AuditEntry.objects.values("actor", "action", "target", "changes", "reason")))
    assert audited("endpoint.add")["key"] == ["not set", "set"]


def test_a_key_that_no_header_carries_is_refused_without_being_repeated(operator: Api) -> None:
    for key in (f"{CANARY}\r\nx: 1", f"{CANARY}\u200b", f"{CANARY}ü"):
        response = operator.post("endpoints", {"name": "groq", "base_url": "https://api.groq.com/openai/v1", "key": key})
        problem(response, 400, "key")
        assert b"canary" not in response.content
    assert not Endpoint.objects.exists()


def test_a_key_is_replaced_and_forgotten(operator: Api) -> None:
    make_endpoint("groq")
    assert ok(operator.patch("endpoints/groq", {"key": CANARY}))["key"] == "stored"
    assert ok(operator.patch("endpoints/groq", {"limits": {}}))["key"] == "stored"
    assert ok(operator.patch("endpoints/groq", {"key": None}))["key"] == "none"


def test_an_endpoint_that_serves_models_stays(operator: Api) -> None:
    make_model()
    problem(operator.delete("endpoints/local"), 409, code="in_use")
    assert ok(operator.get("endpoints/local"))["models"] == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": "x"}, "base_url"),
        ({"name": 5, "base_url": "http://a/v1"}, "name"),
        ({"name": "LOCAL", "base_url": "http://a.example/v1"}, "name"),
        ({"name": "x", "base_url": "ftp://a"}, "base_url"),
        ({"name": "x", "base_url": ["http://a"]}, "base_url"),
        ({"name": "x", "base_url": "http://a.example/v1", "kind": "nope"}, "kind"),
        ({"name": "x", "base_url": "http://a.example/v1", "kind": ["openai"]}, "kind"),
        ({"name": "x", "base_url": "http://a.example/v1", "key": 7}, "key"),
        ({"name": "x", "base_url": "http://a.example/v1", "key_env": "PATH"}, "key_env"),
        ({"name": "x", "base_url": "http://a.example/v1", "limits": {"requests": {"minute": "30"}}}, "limits.requests.minute"),
        ({"name": "x", "base_url": "http://a.example/v1", "limits": 3}, "limits"),
        ({"name": "x", "base_url": "http://a.example/v1", "quirks": []}, "quirks"),
        ({"name": "x", "base_url": "http://a.example/v1", "colour": 1}, "colour"),
    ],
)
def test_a_wrong_endpoint_is_400_naming_the_field(operator: Api, body: dict[str, Any], field: str) -> None:
    make_endpoint()
    problem(operator.post("endpoints", body), 400, field, "invalid_request")
    assert Endpoint.objects.count() == 1


# ------------------------------------------------------------------ models


def test_a_models_facts_come_with_their_sources(operator: Api) -> None:
    make_model("fast", facts={"vision": False}, listed_facts={"vision": True, "context_window": 131072}, listed_at=timezone.now())
    ok(operator.patch("models/fast", {"facts": {"tools": True, "input_usd_per_mtok": "0.50", "output_usd_per_mtok": 1.5}}))
    facts = ok(operator.get("models/fast"))["facts"]
    assert {fact: (said["value"], said["source"]) for fact, said in facts.items()} == {
        "context_window": (131072, "endpoint list"),
        "tools": (True, "hand"),
        "vision": (False, "hand"),
        "input_usd_per_mtok": ("0.5", "hand"),
        "output_usd_per_mtok": ("1.5", "hand"),
    }
    assert facts["context_window"]["since"].endswith("Z")


def test_a_fact_set_by_hand_can_be_taken_back(operator: Api) -> None:
    make_model("fast", facts={"vision": False, "tools": True}, listed_facts={"vision": True})
    facts = ok(operator.patch("models/fast", {"facts": {"vision": None}}))["facts"]
    assert (facts["vision"]["value"], facts["tools"]["value"]) == (True, True)


def test_a_price_holds_from_today_on_and_yesterdays_stays(operator: Api) -> None:
    model = make_model("fast")
    yesterday = timezone.now().date() - timedelta(days=1)
    Price.objects.create(model=model, since=yesterday, input_usd_per_mtok="1", output_usd_per_mtok="2")
    facts = ok(operator.patch("models/fast", {"facts": {"input_usd_per_mtok": "0.000001"}}))["facts"]
    assert (facts["input_usd_per_mtok"]["value"], facts["output_usd_per_mtok"]["value"]) == ("0.000001", "2")
    assert str(Price.objects.get(since=yesterday).input_usd_per_mtok) in ("1", "1.000000")


def test_catalogs_tell_of_a_model_from_the_moment_it_is_added_and_of_another_provider_once_it_is_said(operator: Api) -> None:
    now = timezone.now()
    for provider, size in (("groq", 131072), ("crow", 2000)):
        said = {"facts": {"context_window": size}, "prices": {"reasoning_usd_per_mtok": "3"}, "digest": "x", "first_seen_at": now, "seen_at": now}
        Offer.objects.create(source="models_dev", provider=provider, served_name="owl", **said)
    ok(operator.post("endpoints", {"name": "groq", "base_url": "https://api.groq.com/openai/v1"}), 201)
    facts = ok(operator.post("models", {"alias": "owl", "endpoint": "groq"}), 201)["facts"]
    assert {name: (fact["value"], fact["source"]) for name, fact in facts.items()} == {
        "context_window": (131072, "models_dev"),
        "reasoning_usd_per_mtok": ("3", "models_dev"),
    }
    assert all(fact["since"] for fact in facts.values())
    assert ok(operator.patch("endpoints/groq", {"provider": "crow"}))["provider"] == "crow"
    assert ok(operator.get("models/owl"))["facts"]["context_window"]["value"] == 2000
    facts = ok(operator.patch("models/owl", {"facts": {"context_window": 5}}))["facts"]
    assert (facts["context_window"]["value"], facts["context_window"]["source"]) == (5, "hand")
    facts = ok(operator.patch("models/owl", {"facts": {"context_window": None}}))["facts"]
    assert (facts["context_window"]["value"], facts["context_window"]["source"]) == (2000, "models_dev")


def test_prices_of_thinking_and_of_long_prompts_are_set_and_taken_back(operator: Api) -> None:
    make_model("fast")
    tiers = [{"above_tokens": 200000, "input_usd_per_mtok": 2.5, "output_usd_per_mtok": "15.0"}]
    facts = ok(operator.patch("models/fast", {"facts": {"input_usd_per_mtok": "1", "reasoning_usd_per_mtok": "8", "tiers": tiers}}))["facts"]
    assert facts["reasoning_usd_per_mtok"]["value"] == "8"
    assert facts["tiers"]["value"] == [{"above_tokens": 200000, "input_usd_per_mtok": "2.5", "output_usd_per_mtok": "15"}]
    said = problem(operator.patch("models/fast", {"facts": {"tiers": [{"above_tokens": 0, "input_usd_per_mtok": "1"}]}}), 400)
    assert "tiers[0].above_tokens" in json.dumps(said)
    assert "tiers" not in ok(operator.patch("models/fast", {"facts": {"tiers": None}}))["facts"]


def test_a_model_rests_while_it_or_its_endpoint_does(operator: Api) -> None:
    make_model("fast")
    until = timezone.now() + timedelta(minutes=5)
    Rest.objects.create(scope="endpoint:local", until=until, reason="429: tokens per day", since=timezone.now())
    Rest.objects.create(scope="model:fast", until=until - timedelta(minutes=3), reason="503", since=timezone.now())
    Rest.objects.create(scope="model:slow", until=until, reason="503", since=timezone.now())
    shown = ok(operator.get("models/fast"))
    assert (shown["status"], shown["reason"]) == ("resting", "429: tokens per day")
    assert shown["until"] == until.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    Rest.objects.update(until=timezone.now() - timedelta(seconds=1))
    shown = ok(operator.get("models/fast"))
    assert (shown["status"], shown["until"], shown["reason"]) == ("active", None, None)


def test_a_model_tells_what_is_left_of_its_limits(operator: Api) -> None:
    endpoint = make_endpoint(limits={"parallel": 4, "tokens": {"day": 1000}})
    model = make_model("fast", endpoint=endpoint, limits={"requests": {"month": 100}})
    today = timezone.now().date().isoformat()
    Meter.objects.create(scope=f"model:{model.pk}|requests", state=json.dumps([[], None, [today[:7], 30], 0, "UTC"]))
    Meter.objects.create(scope=f"endpoint:{endpoint.pk}|tokens", state=json.dumps([[], [today, 5000], None, 0, "UTC"]))
    Meter.objects.create(scope=f"endpoint:{endpoint.pk}|parallel", state=json.dumps([[], None, None, 1, "UTC"]))
    left = ok(operator.get("models/fast"))["limits_left"]
    assert left == {"model": {"requests": {"month": 70}}, "endpoint": {"parallel": 3, "tokens": {"day": 0}}}


def test_retiring_needs_a_reason_and_happens_once(operator: Api) -> None:
    make_model("fast")
    problem(operator.post("models/fast/retire", {}), 400, "reason")
    problem(operator.post("models/fast/retire", {"reason": "  "}), 400, "reason")
    problem(operator.post("models/fast/retire", {"reason": 3}), 400, "reason")
    problem(operator.post("models/fast/retire", {"reason": "x" * 501}), 400, "reason")
    shown = ok(operator.post("models/fast/retire", {"reason": "answers in the wrong language"}))
    assert (shown["status"], shown["reason"]) == ("retired", "answers in the wrong language")
    assert shown["evidence"]["by"] == "key operator"
    problem(operator.post("models/fast/retire", {"reason": "again"}), 400)
    problem(operator.post("models/nobody/retire", {"reason": "x"}), 404)
    problem(operator.post("models/fast/explode", {"reason": "x"}), 404)
    problem(operator.post("models/fast", {"reason": "x"}), 404)


def test_a_model_that_a_collection_seats_stays(operator: Api) -> None:
    make_model("fast")
    make_collection("core", ("fast",))
    problem(operator.delete("models/fast"), 409, code="in_use")


def test_names_are_not_changed_here(operator: Api) -> None:
    make_model("fast")
    make_collection("core")
    problem(operator.patch("models/fast", {"alias": "faster"}), 400, "alias")
    problem(operator.patch("endpoints/local", {"name": "other"}), 400, "name")
    problem(operator.patch("collections/core", {"name": "other"}), 400, "name")
    ok(operator.patch("models/fast", {"alias": "fast"}))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "alias"),
        ({"alias": "x"}, "endpoint"),
        ({"alias": "FAST", "endpoint": "local"}, "alias"),
        ({"alias": "bench/x", "endpoint": "local"}, "alias"),
        ({"alias": "x\u0000", "endpoint": "local"}, "alias"),
        ({"alias": "x", "endpoint": "nowhere"}, "endpoint"),
        ({"alias": "x", "endpoint": {"name": "local"}}, "endpoint"),
        ({"alias": "x", "endpoint": "local", "served_name": 1}, "served_name"),
        ({"alias": "x", "endpoint": "local", "facts": {"context_window": "many"}}, "facts.context_window"),
        ({"alias": "x", "endpoint": "local", "facts": {"input_usd_per_mtok": -1}}, "facts.input_usd_per_mtok"),
        ({"alias": "x", "endpoint": "local", "facts": {"contxt_window": 5}}, "facts.contxt_window"),
        ({"alias": "x", "endpoint": "local", "ad_hoc": "yes"}, "ad_hoc"),
        ({"alias": "x", "endpoint": "local", "status": "retired"}, "status"),
    ],
)
def test_a_wrong_model_is_400_naming_the_field(operator: Api, body: dict[str, Any], field: str) -> None:
    make_model("fast")
    problem(operator.post("models", body), 400, field, "invalid_request")
    assert Model.objects.count() == 1


def test_models_take_the_same_queries_however_many(operator: Api, django_assert_num_queries: Any) -> None:
    make_model("m0", limits={"parallel": 1})
    # The key; names; models and prices; learned limits, rests, meters; health; the half-life, the newest verdict, seats; runs. Verdicts are summed once.
    operator.get("models")
    with django_assert_num_queries(12):
        operator.get("models")
    for i in range(1, 9):
        make_model(f"m{i}", endpoint=make_endpoint(f"e{i}", limits={"parallel": 1}))
    with django_assert_num_queries(12):
        assert len(ok(operator.get("models"))["data"]) == 9


# ------------------------------------------------------------------ collections


def test_a_collection_keeps_its_order_and_its_repeats(operator: Api) -> None:
    for alias in ("a", "b", "c"):
        make_model(alias)
    made = ok(operator.post("collections", {"name": "core", "members": ["b", "a", "b"], "mergers": ["c"], "quorum": 2}), 201)
    assert (made["members"], made["mergers"], made["quorum"], made["timeout_s"], made["explorers"]) == (["b", "a", "b"], ["c"], 2, 300, 1)
    changed = ok(operator.patch("collections/core", {"members": ["c"], "quorum": None, "description": "adversarial review"}))
    assert (changed["members"], changed["mergers"], changed["quorum"], changed["description"]) == (["c"], ["c"], None, "adversarial review")
    assert audited("collection.change")["members"] == [["b", "a", "b"], ["c"]]


def test_a_change_that_changes_nothing_is_not_recorded(operator: Api) -> None:
    make_model("a")
    make_collection("core", ("a",))
    before = AuditEntry.objects.count()
    ok(operator.patch("collections/core", {"members": ["a"], "explorers": 1}))
    ok(operator.patch("models/a", {"ad_hoc": False, "limits": {}}))
    ok(operator.patch("endpoints/local", {"kind": "openai"}))
    assert AuditEntry.objects.count() == before


def test_a_collection_shows_the_record_of_its_models(operator: Api) -> None:
    make_collection("core")
    for useful in (True, True, False):
        ok(operator.post("verdict", {"call": make_panel().seats.get().call, "useful": useful}))
    [record] = ok(operator.get("collections/core"))["records"]
    assert (record["model"], record["judged"], record["useful"]["yes"], record["useful"]["of"], record["useful"]["mean"]) == ("mercury", 3, 2, 3, 0.6)
    make_model("mercury")
    assert [r["collection"] for r in ok(operator.get("models/mercury"))["records"]] == ["core"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": "a/b"}, "name"),
        ({"name": "x:merged"}, "name"),
        ({"name": "CORE"}, "name"),
        ({"name": "x", "members": "fast"}, "members"),
        ({"name": "x", "members": ["fast", "ghost"]}, "members[1]"),
        ({"name": "x", "members": ["fast", 3]}, "members[1]"),
        ({"name": "x", "mergers": ["ghost"]}, "mergers[0]"),
        ({"name": "x", "timeout_s": 0}, "timeout_s"),
        ({"name": "x", "timeout_s": 1.5}, "timeout_s"),
        ({"name": "x", "timeout_s": 10**30}, "timeout_s"),
        ({"name": "x", "quorum": True}, "quorum"),
        ({"name": "x", "shadow_share": 1.1}, "shadow_share"),
        ({"name": "x", "picking": "best"}, "picking"),
        ({"name": "x", "picking": []}, "picking"),
        ({"name": "x", "description": "a\u0000"}, "description"),
        ({"name": "x", "keep_text": "no"}, "keep_text"),
        ({"name": "x", "quorom": 1}, "quorom"),
    ],
)
def test_a_wrong_collection_is_400_naming_the_field(operator: Api, body: dict[str, Any], field: str) -> None:
    make_model("fast")
    make_collection("core")
    problem(operator.post("collections", body), 400, field, "invalid_request")
    assert Collection.objects.count() == 1


def test_who_may_only_ask_sees_what_may_be_asked(api_of: Callable[..., Api], keyless: Api) -> None:
    make_collection("core")
    make_collection("secret")
    limited = api_of("ask", collections=["core"])
    assert [c["name"] for c in ok(limited.get("collections"))["data"]] == ["core"]
    ok(limited.get("collections/core"))
    problem(limited.get("collections/secret"), 404)
    assert [c["name"] for c in ok(keyless.get("collections"))["data"]] == ["core", "secret"]


def test_collections_take_the_same_queries_however_many(operator: Api, django_assert_num_queries: Any) -> None:
    make_model("a")
    operator.get("collections")  # what all of them share is read once
    for i in range(9):
        make_collection(f"c{i}", ("a", "a"))
        # The key; collections and their places; the half-life and verdicts; panels of a month, and the newest.
        with django_assert_num_queries(7):
            operator.get("collections")


# ------------------------------------------------------------------ all of them


@pytest.mark.parametrize("noun", ["models", "endpoints", "collections", "keys"])
def test_lists_come_in_pages(operator: Api, noun: str) -> None:
    for i in range(4):
        make_model(f"m{i}", endpoint=make_endpoint(f"e{i}"))
        make_collection(f"c{i}")
        ok(operator.post("keys", {"name": f"k{i}"}), 201)
    seen: list[str] = []
    path = f"{noun}?limit=2"
    for _ in range(5):
        page = ok(operator.get(path))
        seen += [entry.get("alias") or entry["name"] for entry in page["data"]]
        if page["next"] is None:
            break
        path = f"{noun}?limit=2&page_token={page['next']}"
    expected = [f"{noun[0]}{i}" for i in range(4)]
    assert seen == (["k3", "k2", "k1", "k0", "operator"] if noun == "keys" else expected)


bodies = json_values | st.fixed_dictionaries(
    {},
    optional={
        field: json_values
        for field in (
            "name", "alias", "endpoint", "base_url", "kind", "key", "key_env", "limits", "facts", "quirks", "ad_hoc", "members", "mergers", "quorum",
            "timeout_s", "picking", "shadow_share", "owner", "scopes", "collections", "models", "rpm", "budget_usd", "expires_at", "reason",
        )
    },
)  # fmt: skip


@given(body=bodies, noun=st.sampled_from(["endpoints", "models", "collections", "keys"]), named=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_no_body_whatever_breaks_a_write(operator: Api, body: Any, noun: str, named: bool) -> None:
    if not Model.objects.exists():
        make_model("fast")
        make_collection("core", ("fast",))
        ok(operator.post("keys", {"name": "bot"}), 201)
    if isinstance(body, dict) and not named:
        body |= {"name": "n"} if noun != "models" else {"alias": "n", "endpoint": "local"}
        if noun == "endpoints":
            body.setdefault("base_url", "http://127.0.0.1:9/v1")
    raw = json.dumps(body).encode()
    target = {"endpoints": "local", "models": "fast", "collections": "core", "keys": "bot"}[noun]
    for response in (operator.send("POST", noun, raw=raw), operator.send("PATCH", f"{noun}/{target}", raw=raw)):
        assert response.status_code in (200, 201, 400), response.content
        if response.status_code == 400:
            assert response["Content-Type"] == "application/problem+json"
