"""Errors of our own JSON."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from django.test import Client

pytestmark = [pytest.mark.urls("tests.access.paths"), pytest.mark.django_db]


def post(body: bytes | str, content_type: str = "application/json") -> Any:
    return Client(headers={"host": "127.0.0.1"}).generic("POST", "/fail", body, content_type=content_type)


def problem(reply: Any) -> dict[str, Any]:
    assert reply["Content-Type"] == "application/problem+json"
    body = reply.json()
    assert body["status"] == reply.status_code
    assert body["type"] == "about:blank"
    assert body["title"]
    assert body["detail"]
    for leak in ("Traceback", "sk-live", "/srv/", "10.0.0.1", "RuntimeError"):
        assert leak not in reply.content.decode()
    return body


@pytest.mark.parametrize(
    ("fault", "status", "code", "field"),
    [
        ("caller", 402, "budget_exceeded", "model"),
        ("field", 400, "invalid_request", "rpm"),
        ("missing", 404, "not_found", None),
        ("forbidden", 403, "not_allowed", None),
        ("form", 400, "invalid_request", "alias"),
        ("plain", 400, "invalid_request", None),
        ("deep", 400, "invalid_request", None),
        ("null", 400, "invalid_request", None),
        ("surrogate", 400, "invalid_request", None),
        ("taken", 409, "invalid_request", None),
        ("away", 503, "database_unavailable", None),
        ("paste", 400, "invalid_request", "key"),
        ("bug", 500, "internal_error", None),
    ],
)
def test_every_fault_is_a_problem_with_a_code(fault: str, status: int, code: str, field: str | None) -> None:
    reply = post(json.dumps({"fault": fault}))
    assert reply.status_code == status
    body = problem(reply)
    assert (body["code"], body.get("field")) == (code, field)


def test_a_wait_is_said_in_whole_seconds() -> None:
    assert post(json.dumps({"fault": "caller"}))["Retry-After"] == "2"
    assert post(json.dumps({"fault": "away"}))["Retry-After"] == "5"


def test_a_bug_goes_to_the_log(caplog) -> None:
    post(json.dumps({"fault": "bug"}))
    assert "A view failed: Fail" in caplog.text


@pytest.mark.parametrize(
    ("fault", "levels"),
    [("unbuilt", ["INFO"]), ("busy", ["WARNING"]), ("away", ["WARNING"]), ("bug", ["ERROR", "ERROR"]), ("caller", []), ("forbidden", [])],
)
def test_only_a_fault_of_this_server_is_logged_as_an_error(fault: str, levels: list[str], caplog) -> None:
    caplog.set_level("INFO")
    logging.getLogger("django.request").setLevel("ERROR")
    reply = post(json.dumps({"fault": fault}))
    assert [r.levelname for r in caplog.records if r.name in ("access.problems", "django.request")] == levels
    assert all("sk-live" not in r.getMessage() for r in caplog.records)
    if levels and fault != "bug":
        assert f"Answered {reply.status_code} {reply.json()['code']}" in caplog.text


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b'{"limit": NaN}', b"[" * 100_000 + b"]" * 100_000, b'{"limit": ' + b"9" * 5000 + b"}", b'"text"', b"[1]", b"null", b"1"],
    ids=["empty", "half", "no UTF-8", "NaN", "deep", "a huge number", "a text", "a list", "null", "a number"],
)
def test_bodies_that_cannot_be_read_are_the_callers_fault(body: bytes) -> None:
    reply = post(body)
    assert reply.status_code == 400, reply.content
    assert problem(reply)["code"] == "invalid_request"


@pytest.mark.parametrize("limit", ["x", None, [], {}, 1.5, "1" * 2000])
def test_a_serializers_error_names_the_field(limit: Any) -> None:
    body = problem(post(json.dumps({"limit": limit})))
    assert body["code"] == "invalid_request"
    assert body["field"] == "limit"
    assert body["detail"].startswith("limit: ")


def test_other_statuses_of_drf_have_codes_too() -> None:
    client = Client(headers={"host": "127.0.0.1"})
    assert problem(client.get("/fail"))["code"] == "method_not_allowed"
    assert problem(post("a=1", "application/x-www-form-urlencoded"))["code"] == "unsupported_encoding"
    reply = client.post("/ask", headers={"x-forwarded-for": "1.1.1.1"})
    assert problem(reply)["code"] == "missing_key"
