"""Rows as the gateway's writer leaves them, and callers of the server's own API."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings
from django.test import Client

from access.ids import new_id
from access.keys import mint
from access.models import KeyUse, User
from catalog.models import Endpoint, Model
from health import rollups
from health.models import Attempt
from panels.models import Collection, Member, Panel, Seat

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
NUMBERS = itertools.count(1)


@pytest.fixture(autouse=True)
def outbox_folder(settings: Any, tmp_path: Path) -> Path:
    """An outbox folder of the test's own: what other tests' servers have in theirs is not looked through."""
    settings.OUTBOX_FOLDER = tmp_path / "outbox"
    return settings.OUTBOX_FOLDER


@pytest.fixture(autouse=True)
def no_static_files(settings: Any) -> None:
    """Every test client would look through all of them first."""
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "whitenoise" not in name]


@pytest.fixture
def outside_loopback(settings: Any) -> None:
    settings.ON_LOOPBACK = False


# ------------------------------------------------------------------ rows


def make_attempt(call: str = "", panel: str = "", **fields: Any) -> Attempt:
    """One ledger row of a call that went well, unless told otherwise."""
    row: dict[str, Any] = {
        "id": new_id("att"),
        "call": call or new_id("call"),
        "panel": panel or new_id("pan"),
        "request": "req-1",
        "purpose": "direct",
        "seat": "direct",
        "judge": "ada",
        "endpoint": "local",
        "model": "mercury",
        "served_name": "fake/mercury",
        "started_at": NOW,
        "latency_ms": 1500,
        "ttft_ms": 250,
        "status": "ok",
        "http_status": 200,
        "finish_reason": "stop",
        "input_tokens": 800,
        "output_tokens": 200,
        "cost_pusd": 1_320_000_000,
    }
    made = Attempt.objects.create(**(row | fields))
    zone = ZoneInfo(settings.BENCH_TIME_ZONE)
    rollups.rebuild_day(made.started_at.astimezone(zone).date(), zone)  # the ledger's own commit sums rows as it writes them
    return made


def make_panel(*seats: dict[str, Any], **fields: Any) -> Panel:
    """A panel of some seats, each with its ledger row where it was called."""
    row: dict[str, Any] = {
        "id": new_id("pan"),
        "asked_at": NOW + timedelta(seconds=next(NUMBERS)),
        "collection": "core",
        "mode": "panel",
        "status": "complete",
        "judge": "ada",
        "request": "req-1",
        "prompt": json.dumps([{"role": "user", "content": "Where is the race?"}]),
        "seconds": 2.5,
        "dialect": "openai-chat",
    }
    panel = Panel.objects.create(**(row | fields))
    for position, wanted in enumerate(seats or ({},)):
        make_seat(panel, position, **wanted)
    return panel


def make_seat(panel: Panel, position: int = 0, called: bool = True, cost_pusd: int | None = 1_320_000_000, **fields: Any) -> Seat:
    row: dict[str, Any] = {
        "call": new_id("call"),
        "position": position,
        "model": "mercury",
        "seat": "member",
        "status": "ok",
        "text": "In refresh().",
        "finish_reason": "stop",
        "seconds": 1.5,
        "ttft_seconds": 0.25,
    }
    seat = Seat.objects.create(panel=panel, **(row | fields))
    if called:
        status = seat.status if seat.status in Attempt.Status.values else "ok"
        make_attempt(
            seat.call,
            panel.pk,
            purpose=panel.mode,
            seat=seat.seat,
            model=seat.model,
            collection=panel.collection,
            judge=panel.judge,
            key_id=panel.key_id,
            key_name=panel.key_name,
            status=status,
            started_at=panel.asked_at,
            cost_pusd=cost_pusd,
        )
    return seat


def make_endpoint(name: str = "local", **fields: Any) -> Endpoint:
    return Endpoint.objects.create(**({"name": name, "kind": "openai", "base_url": "http://127.0.0.1:9/v1"} | fields))


def make_model(alias: str = "mercury", **fields: Any) -> Model:
    endpoint = fields.pop("endpoint", None) or Endpoint.objects.filter(name="local").first() or make_endpoint()
    return Model.objects.create(**({"alias": alias, "endpoint": endpoint, "served_name": f"fake/{alias}"} | fields))


def make_collection(name: str = "core", members: tuple[str, ...] = (), **fields: Any) -> Collection:
    collection = Collection.objects.create(name=name, **fields)
    for position, alias in enumerate(members):
        Member.objects.create(collection=collection, model=Model.objects.get(alias=alias), position=position)
    return collection


# ------------------------------------------------------------------ callers


class Api:
    """One caller of /bench."""

    def __init__(self, headers: dict[str, str] | None = None, client: Client | None = None) -> None:
        self.client = client or Client()
        self.headers = headers or {}

    def send(self, method: str, path: str, body: Any = None, raw: bytes | None = None) -> Any:
        data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        return self.client.generic(method, f"/bench/{path}", data, content_type="application/json", headers={"host": "localhost", **self.headers})

    def get(self, path: str) -> Any:
        return self.send("GET", path)

    def post(self, path: str, body: Any = None) -> Any:
        return self.send("POST", path, body if body is not None else {})

    def patch(self, path: str, body: Any) -> Any:
        return self.send("PATCH", path, body)

    def delete(self, path: str) -> Any:
        return self.send("DELETE", path)


def name(text: str) -> str:
    """A name as it stands in a path."""
    return quote(text, safe="")


@pytest.fixture
def api_of(db: None) -> Callable[..., Api]:
    """Callers by key: `api_of("ask", "judge", owner="ada")`."""

    def make(*scopes: str, owner: str = "", called: str = "", **fields: Any) -> Api:
        key, secret = mint(called or f"key-{next(NUMBERS)}", owner=owner, scopes=list(scopes), actor="test", **fields)
        # As of a key in use: its first use in a minute is noted, which is no matter of any list's.
        KeyUse.objects.create(key=key, last_used_at=datetime.now(UTC))
        api = Api({"authorization": f"Bearer {secret}"})
        api.key = key  # type: ignore[attr-defined]
        return api

    return make


@pytest.fixture
def operator(api_of: Callable[..., Api]) -> Api:
    return api_of("read", "ask", "judge", "operate", "admin", called="operator")


@pytest.fixture
def keyless(db: None) -> Api:
    return Api()


@pytest.fixture
def user_api(db: None) -> Callable[..., Api]:
    """Callers by session, of one role each."""

    def make(username: str, role: str) -> Api:
        client = Client()
        client.force_login(User.objects.create_user(username=username, role=role), backend="access.backends.RoleBackend")
        return Api(client=client)

    return make


def ok(response: Any, status: int = 200) -> Any:
    assert response.status_code == status, response.content[:600]
    return response.json() if response.content else None


def problem(response: Any, status: int, field: str | None = None, code: str | None = None) -> dict[str, Any]:
    """An error as it must look: problem+json, with the field that is at fault."""
    assert response.status_code == status, response.content[:600]
    assert response["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["status"] == status
    assert body["detail"]
    if field is not None:
        assert body.get("field", "") == field, body
    if code is not None:
        assert body["code"] == code
    return body
