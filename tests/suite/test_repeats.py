"""Requests that come twice: one answer, whatever becomes of the first reply."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client
from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response

from suite.api.problems import Conflict, NotYet, Problem
from suite.api.repeats import idempotent
from suite.api.view import View
from suite.models import Idempotency
from tests import factories
from tests.live import Bench
from tests.suite.driving import Driver


class Doing(View):
    """Does what `next` says, and counts how often it was asked to."""

    scopes = {"POST": ("ask",)}
    next: list[Exception | Response] = []
    done = 0

    @idempotent
    def post(self, request: Request) -> Response:
        Doing.done += 1
        found = Doing.next.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


urlpatterns = [path("doing", Doing.as_view())]


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


def test_the_same_body_in_another_order_is_the_same_request(driver: Driver) -> None:
    key = factories.tag("k-")
    first = driver.send("POST", "benchmarks", b'{"name": "one", "category": "c"}', Idempotency_Key=key)
    again = driver.send("POST", "benchmarks", b'{ "category":"c", "name":"one" }', Idempotency_Key=key)
    assert (first.status, again.status, again.json) == (201, 201, first.json)
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    kept = datetime.fromisoformat(first.headers["idempotency-expires"]) - datetime.fromisoformat(first.json["created_at"])
    assert kept >= timedelta(hours=24) - timedelta(seconds=1)
    other = driver.send("POST", "benchmarks", {"name": "two"}, Idempotency_Key=key)
    assert (other.status, other.json["code"]) == (422, "idempotency_key_reused")


def test_a_launch_may_hold_its_key_in_the_body(driver: Driver) -> None:
    benchmark = driver.benchmark()["id"]
    body = {"benchmark": benchmark, "idempotency_key": factories.tag("k-")}
    first, again = (driver.send("POST", "runs", body) for _ in range(2))
    assert (first.status, first.json["code"]) == (again.status, again.json["code"]) == (422, "subset_missing")
    assert again.headers["idempotent-replayed"] == "true"
    assert driver.send("POST", "benchmarks", {"name": "x", "idempotency_key": "k"}).json["code"] == "unknown_field", "elsewhere it is a header"


def made() -> Response:
    return Response({"id": "made"}, status=201)


def ask(body: str = '{"a": 1}', key: str = "k-1") -> Any:
    client = Client(headers={"host": "127.0.0.1"}, raise_request_exception=False)
    return client.post("/doing", body, content_type="application/json", headers={"idempotency-key": key})


@pytest.mark.urls(__name__)
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (lambda: Problem(503, "dry_run_late", "The hosts are busy.", retry_after_s=30), 503),
        (lambda: Problem(502, "upstream_error", "It failed."), 502),
        (lambda: Problem(504, "late", "It came too late."), 504),
        (lambda: NotYet("A run told in words", "Wait."), 501),
        (lambda: OperationalError("the database is away"), 503),
        (lambda: RuntimeError("a bug"), 500),
        (lambda: Response({"code": "busy"}, status=503), 503),
        (lambda: Response({"code": "odd"}, status=599), 599),
    ],
    ids=["busy", "upstream", "late", "unbuilt", "database", "bug", "answered", "answered oddly"],
)
def test_what_failed_by_the_servers_own_fault_is_done_when_it_is_asked_again(failure: Callable[[], Any], status: int) -> None:
    Doing.next, Doing.done = [failure(), failure(), made()], 0
    for _ in range(2):
        failed = ask()
        assert failed.status_code == status
        assert "Idempotent-Replayed" not in failed
        assert "Idempotency-Expires" not in failed
        assert not Idempotency.objects.exists()
    done, again = ask(), ask()
    assert (done.status_code, again.status_code, again.json()) == (201, 201, {"id": "made"})
    assert again["Idempotent-Replayed"] == "true"
    assert Doing.done == 3


@pytest.mark.urls(__name__)
@pytest.mark.django_db
def test_a_failure_does_not_hold_its_key_to_its_body() -> None:
    Doing.next, Doing.done = [Problem(503, "dry_run_late", "The hosts are busy."), made()], 0
    assert ask('{"a": 1}').status_code == 503
    assert ask('{"a": 2}').status_code == 201
    assert ask('{"a": 1}').status_code == 422
    assert Doing.done == 2


@pytest.mark.urls(__name__)
@pytest.mark.django_db
@pytest.mark.parametrize("refusal", [lambda: Conflict("taken", "It is taken."), lambda: Problem(402, "budget_exceeded", "It is spent."), made])
def test_a_refusal_is_an_answer_and_kept(refusal: Callable[[], Any]) -> None:
    Doing.next, Doing.done = [refusal()], 0
    first, again = ask(), ask()
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert "Idempotent-Replayed" not in first
    assert again["Idempotent-Replayed"] == "true"
    assert Doing.done == 1


@pytest.mark.urls(__name__)
@pytest.mark.django_db
def test_a_failure_under_a_key_stands_in_the_log_once(caplog) -> None:
    Doing.next, Doing.done = [RuntimeError("a bug")], 0
    assert ask().status_code == 500
    assert caplog.text.count("A view failed: Doing") == 1


def test_a_door_that_is_not_built_keeps_no_key(driver: Driver) -> None:
    key = factories.tag("k-")
    for _ in range(2):
        answer = driver.send("POST", "runs", {"request": "Compare them"}, Idempotency_Key=key)
        assert (answer.status, answer.headers.get("idempotent-replayed")) == (501, None)
    assert driver.send("POST", "runs", {"benchmark": "bm_0"}, Idempotency_Key=key).json["code"] != "idempotency_key_reused"
