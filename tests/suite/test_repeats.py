"""Requests that come twice: one answer, whatever becomes of the first reply."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests import factories
from tests.live import Bench
from tests.suite.driving import Driver


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
