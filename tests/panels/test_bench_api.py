"""The rest of the server's own API: keys, usage, status, its description, its doors."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.urls import URLPattern, get_resolver
from django.utils import timezone
from django_q.models import OrmQ

from access.fields import CHECKS
from access.models import AuditEntry, Key
from health.models import Heartbeat
from panels import urls
from panels.roster_shape import COLLECTION, ENDPOINT, MODEL
from tests.panels.conftest import Api, make_attempt, make_collection, make_model, make_panel, ok, problem

pytestmark = pytest.mark.django_db


# ------------------------------------------------------------------ keys


def test_a_key_is_shown_once_and_works(operator: Api) -> None:
    asked = {"name": "bot", "owner": "ada", "scopes": ["read"], "rpm": 30, "budget_usd": 0.1, "expires_at": "2999-01-31T12:00:00Z", "models": ["a/*"]}
    response = operator.post("keys", asked)
    made = ok(response, 201)
    assert made["key"].startswith("bw_live_")
    assert response["Cache-Control"] == "no-store"
    assert (made["budget_usd"], made["rpm"], made["models"], made["collections"]) == ("0.1", 30, ["a/*"], None)
    assert Api({"x-api-key": made["key"]}).get("status").status_code == 200
    for later in (operator.get("keys"), operator.get("keys/bot")):
        assert made["key"].encode() not in later.content
    assert made["key"] not in str(list(AuditEntry.objects.values_list("changes", flat=True)))


def test_a_change_to_a_key_holds_at_once(operator: Api) -> None:
    made = ok(operator.post("keys", {"name": "bot", "scopes": ["read"]}), 201)
    bot = Api({"x-api-key": made["key"]})
    ok(bot.get("status"))
    assert ok(operator.patch("keys/bot", {"scopes": ["ask"]}))["scopes"] == ["ask"]
    problem(bot.get("status"), 403)
    ok(operator.delete("keys/bot"), 204)
    problem(bot.get("verdicts/pending"), 401, code="invalid_key")
    problem(operator.delete("keys/bot"), 404)
    ok(operator.post("keys", {"name": "bot"}), 201)  # the name is free again
    assert Key.objects.filter(name="bot").count() == 2


def test_only_admins_make_change_and_revoke_keys(operator: Api, api_of: Callable[..., Api], user_api: Callable[..., Api]) -> None:
    ok(operator.post("keys", {"name": "bot"}), 201)
    for api in (api_of("read", "ask", "judge", "operate"), user_api("olga", "operator")):
        problem(api.post("keys", {"name": "mine", "scopes": ["admin"]}), 403, code="not_allowed")
        problem(api.patch("keys/bot", {"scopes": ["admin"]}), 403)
        problem(api.delete("keys/bot"), 403)
        ok(api.get("keys"))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": 3}, "name"),
        ({"name": "x", "scopes": "ask"}, "scopes"),
        ({"name": "x", "scopes": ["fly"]}, "scopes"),
        ({"name": "x", "rpm": 0}, "rpm"),
        ({"name": "x", "rpm": True}, "rpm"),
        ({"name": "x", "budget_usd": "lots"}, "budget_usd"),
        ({"name": "x", "expires_at": "tomorrow"}, "expires_at"),
        ({"name": "x", "collections": ["a", 1]}, "collections[1]"),
        ({"name": "x", "digest": "0"}, "digest"),
        ({"name": "operator"}, "name"),
    ],
)
def test_a_wrong_key_is_400_naming_the_field(operator: Api, body: dict[str, Any], field: str) -> None:
    problem(operator.post("keys", body), 400, field, "invalid_request")


# ------------------------------------------------------------------ usage


def test_usage_sums_the_ledger_by_month(operator: Api) -> None:
    november, october = datetime(2026, 11, 5, tzinfo=UTC), datetime(2026, 10, 5, tzinfo=UTC)
    make_attempt(started_at=november, key_name="bot")
    make_attempt(started_at=november, cost_pusd=1, status="error", estimated=True, key_name="bot")
    make_attempt(started_at=november, cost_pusd=None, model="venus")
    make_attempt(started_at=october)
    page = ok(operator.get("usage"))
    assert page["next"] is None
    assert [(row["month"], row["model"], row["calls"], row["cost_usd"], row["unpriced_calls"]) for row in page["data"]] == [
        ("2026-11", "mercury", 2, "0.001320000001", 0),
        ("2026-11", "venus", 1, None, 1),
        ("2026-10", "mercury", 1, "0.00132", 0),
    ]
    first = page["data"][0]
    assert (first["input_tokens"], first["output_tokens"], first["failed"], first["estimated_calls"]) == (1600, 400, 1, 1)
    assert [(row["key"], row["calls"]) for row in ok(operator.get("usage?by=key&month=2026-11"))["data"]] == [("", 1), ("bot", 2)]


def test_usage_comes_in_pages(operator: Api) -> None:
    for month in (9, 10, 11):
        for model in ("a", "b"):
            make_attempt(started_at=datetime(2026, month, 2, tzinfo=UTC), model=model)
    seen: list[tuple[str, str]] = []
    path = "usage?limit=4"
    for _ in range(2):
        page = ok(operator.get(path))
        seen += [(row["month"], row["model"]) for row in page["data"]]
        path = f"usage?limit=4&page_token={page['next']}"
    assert page["next"] is None
    assert seen == [(f"2026-{month:02}", model) for month in (11, 10, 9) for model in ("a", "b")]


def test_months_are_those_of_the_time_zone_of_budgets(operator: Api, settings: Any) -> None:
    settings.BENCH_TIME_ZONE = "Pacific/Auckland"
    make_attempt(started_at=datetime(2026, 10, 31, 12, tzinfo=UTC))  # the first of November there
    assert [row["month"] for row in ok(operator.get("usage"))["data"]] == ["2026-11"]
    assert len(ok(operator.get("usage?month=2026-11"))["data"]) == 1
    assert ok(operator.get("usage?month=2026-10"))["data"] == []


@pytest.mark.parametrize(("query", "field"), [("by=colour", "by"), ("month=2026-13", "month"), ("month=11", "month"), ("page_token=!", "page_token")])
def test_a_wrong_question_about_usage_is_400(operator: Api, query: str, field: str) -> None:
    problem(operator.get(f"usage?{query}"), 400, field)


# ------------------------------------------------------------------ status


def test_status_tells_what_runs_and_what_waits(operator: Api, settings: Any, outbox_folder: Path) -> None:
    settings.REDIS_URL = ""  # the database's own broker, also where the run has a Redis
    now = timezone.now()
    OrmQ.objects.create(key="benchwarmers", payload="x", lock=now - timedelta(seconds=30))
    OrmQ.objects.create(key="benchwarmers", payload="x", lock=now + timedelta(seconds=300))  # being worked on
    Heartbeat.objects.create(name="one", at=now)
    Heartbeat.objects.create(name="dead", at=now - timedelta(minutes=5))
    outbox_folder.mkdir()
    (outbox_folder / "web-1.jsonl").write_bytes(b"{}\n")
    (outbox_folder / "rejected.jsonl").write_bytes(b"{}\n{}\n")
    found = ok(operator.get("status"))
    assert set(found) == {"version", "url", "mode", "database", "queue", "outbox", "schedules"}
    assert (found["version"], found["mode"], found["url"]) == (settings.VERSION, "full", "http://localhost")
    assert (found["queue"]["waiting"], found["queue"]["workers"]) == (1, 1)
    assert 29 <= found["queue"]["oldest_s"] < 600
    assert found["outbox"] == {"files": 1, "bytes": 3, "rejected_bytes": 6}


def test_status_with_nothing_going_on(operator: Api, settings: Any) -> None:
    settings.REDIS_URL = ""
    found = ok(operator.get("status"))
    assert (found["queue"], found["outbox"]["bytes"]) == ({"waiting": 0, "oldest_s": None, "workers": 0}, 0)


# ------------------------------------------------------------------ the description


def described(operator: Api) -> dict[str, Any]:
    found: dict[str, Any] = ok(operator.get("schema"))
    return found


def test_describing_warns_of_nothing(operator: Api, capfd: pytest.CaptureFixture[str]) -> None:
    security = described(operator)["components"]["securitySchemes"]
    assert set(security) == {"key", "session"}
    assert capfd.readouterr().err == ""


def test_every_path_is_described(operator: Api) -> None:
    paths = described(operator)["paths"]
    routes = {re.sub(r"<\w+:(\w+)>", r"{\1}", f"/bench/{p.pattern}") for p in urls.urlpatterns}
    verbs = {f"/bench/models/{{alias}}/{verb}" for verb in ("retire", "restore", "probe", "baseline", "history", "evidence")}
    assert set(paths) == (routes - {"/bench/", "/bench/schema"}) | verbs
    operations = [said["operationId"] for methods in paths.values() for name, said in methods.items() if name in ("get", "post", "patch", "delete")]
    assert len(operations) == len(set(operations))
    for path, methods in paths.items():
        for method, said in methods.items():
            if method in ("get", "post", "patch", "delete"):
                assert said["operationId"], path
                assert said["description"], path


@pytest.mark.parametrize("accept", ["application/json", "text/html", "text/csv", "*/*"])
@pytest.mark.parametrize("path", ["schema", "models", "usage?format=csv"])
def test_what_a_client_accepts_does_not_keep_the_answer_from_it(operator: Api, path: str, accept: str) -> None:
    assert Api({**operator.headers, "accept": accept}, operator.client).get(path).status_code == 200


@pytest.mark.parametrize(
    ("shape", "fields"), [("KeyAsked", CHECKS), ("ModelAsked", MODEL), ("EndpointAsked", [*ENDPOINT, "key"]), ("CollectionAsked", COLLECTION)]
)
def test_the_description_has_the_fields_that_are_taken(operator: Api, shape: str, fields: Any) -> None:
    assert set(described(operator)["components"]["schemas"][shape]["properties"]) == set(fields)


@pytest.mark.parametrize(
    ("path", "shape"),
    [("panels", "PanelListed"), ("models", "Model"), ("endpoints", "Endpoint"), ("collections", "Collection"), ("keys", "Key"), ("usage", "UsageRow")],
)
def test_lists_answer_what_the_description_says(operator: Api, path: str, shape: str) -> None:
    make_model()
    make_collection()
    make_panel()
    [first, *_] = ok(operator.get(path))["data"]
    assert set(first) == set(described(operator)["components"]["schemas"][shape]["properties"])


def test_one_of_a_kind_answers_what_the_description_says(operator: Api) -> None:
    make_model()
    make_collection()
    panel = make_panel()
    schemas = described(operator)["components"]["schemas"]
    cases = {f"panels/{panel.pk}": "PanelWhole", "models/mercury": "ModelWithRecord", "collections/core": "CollectionWithRecord", "status": "Status"}
    for path, shape in cases.items():
        assert set(ok(operator.get(path))) == set(schemas[shape]["properties"]), path
    assert set(ok(operator.get(f"panels/{panel.pk}"))["seats"][0]) == set(schemas["SeatWhole"]["properties"])


@pytest.mark.parametrize("path", [str(p.pattern) for p in urls.urlpatterns if str(p.pattern)])
def test_every_path_is_documented(path: str) -> None:
    document = (Path(__file__).parents[2] / "docs" / "API.md").read_text(encoding="utf-8")
    assert f"/bench/{re.sub(r'<[a-z]+:', '<', path)}`" in document


# ------------------------------------------------------------------ doors


METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def every_path() -> list[str]:
    """Every route below /bench but the catch-all, with something in place of its names."""
    patterns = [p for p in urls.urlpatterns if isinstance(p, URLPattern)]
    return [re.sub(r"<[^>]+>", "x", str(p.pattern)) for p in patterns if str(p.pattern)]


OPEN = ("client", "client/x")  # the client's public code


@pytest.mark.parametrize("path", [*(p for p in every_path() if p not in OPEN), "models/x/retire"])
def test_no_path_answers_nobody(outside_loopback: None, keyless: Api, path: str) -> None:
    stranger = Api({"authorization": "Bearer bw_live_unknown"})
    for method in METHODS:
        problem(keyless.send(method, path), 401, code="missing_key")
        problem(stranger.send(method, path), 401, code="invalid_key")


@pytest.mark.parametrize("path", [*every_path(), "models/x/retire"])
def test_who_may_only_read_changes_nothing(api_of: Callable[..., Api], path: str) -> None:
    reader = api_of("read")
    for method in ("POST", "PATCH", "DELETE"):
        assert reader.send(method, path).status_code in (403, 405)


# What the gateway's own entry answers; who may ask may use it.
ASKING = ("ask", "estimate", "calls/x/cancel", "panels/x/cancel", "panels/x/compare")


def test_callers_without_a_key_ask_and_judge_and_nothing_else(keyless: Api) -> None:
    allowed = {"verdicts/pending", "panels", "collections", "schema", "client"}
    for path in every_path():
        status = keyless.get(path).status_code
        assert status == 200 if path in allowed else status in (403, 404, 405), path
        if path != "verdict" and path not in ASKING:
            assert keyless.post(path, {}).status_code in (403, 405), path


def test_a_request_that_came_through_a_proxy_needs_a_key(db: None) -> None:
    problem(Api({"x-forwarded-for": "10.0.0.1"}).get("verdicts/pending"), 401, code="missing_key")


def test_a_session_needs_its_token_to_write(user_api: Callable[..., Api]) -> None:
    api = user_api("olga", "operator")
    api.client.handler.enforce_csrf_checks = True
    problem(api.post("collections", {"name": "core"}), 403, code="not_allowed")


@pytest.mark.parametrize("path", ["", "nothing", "models/", "verdict/x", "panels/", "a/b/c", "%00"])
def test_unknown_paths_are_404_for_everyone(operator: Api, keyless: Api, path: str) -> None:
    for api in (operator, keyless):
        for method in METHODS:
            problem(api.send(method, path), 404, code="not_found")


def test_the_project_serves_these_paths() -> None:
    assert get_resolver().resolve("/bench/verdict").func.view_class.__name__ == "Verdict"  # type: ignore[attr-defined]
