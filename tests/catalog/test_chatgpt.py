"""The provider of a ChatGPT plan: its addresses, whose account a token is, its own kind of list, and a roster file that names it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from access import secrets
from catalog import providers, served
from catalog.models import Endpoint
from catalog.token_claims import claims_of
from panels import rosterfile
from tests.catalog.pages import Pages
from wire.errors import Fault

PROVIDER = providers.get("chatgpt")
BASE = "https://chatgpt.com/backend-api/codex"


def token(payload: Any) -> str:
    inner = base64.urlsafe_b64encode(json.dumps(payload).encode()).rstrip(b"=").decode()
    return f"eyJhbGciOiJub25lIn0.{inner}.c2ln"


@pytest.mark.parametrize("base", [BASE, BASE + "/", BASE + "/responses"])
def test_its_paths_have_no_version(base: str) -> None:
    assert PROVIDER.chat_url(base, "m", False) == f"{BASE}/responses"
    assert PROVIDER.models_url(BASE) == f"{BASE}/models?client_version=0.153.4"
    assert PROVIDER.count_url(base, "m") is None


def test_another_clients_list_can_be_asked_for() -> None:
    assert PROVIDER.models_url(f"{BASE}?client_version=1.2.3") == f"{BASE}/models?client_version=1.2.3"


def test_a_token_says_whose_account_it_is() -> None:
    key = token({"https://api.openai.com/auth": {"chatgpt_account_id": "acct-42"}})
    assert PROVIDER.headers(key) == {"Authorization": f"Bearer {key}", "chatgpt-account-id": "acct-42"}
    assert PROVIDER.headers("") == {}


@pytest.mark.parametrize(
    "key",
    [
        "sk-plain",
        "a.b.c",
        "a.%%%.c",
        token([]),
        token({"https://api.openai.com/auth": "acct-42"}),
        token({"https://api.openai.com/auth": {"chatgpt_account_id": 5}}),
        token({"https://api.openai.com/auth": {"chatgpt_account_id": "a\r\nx-evil: 1"}}),
        "x." + "A" * 30_000 + ".y",
    ],
)
def test_without_an_account_that_a_header_can_carry_there_is_none(key: str) -> None:
    assert PROVIDER.headers(key) == {"Authorization": f"Bearer {key}"}


def test_claims_that_are_nested_without_end_are_none() -> None:
    assert claims_of(f"a.{base64.urlsafe_b64encode(b'[' * 12_000).decode().rstrip('=')}.c") == {}


def test_its_list_names_models_by_their_slug() -> None:
    listed = PROVIDER.read_models(
        {
            "models": [
                {"slug": "gpt-x", "display_name": "X", "context_window": 272_000, "input_modalities": ["text", "image"], "supported_reasoning_levels": [{}]},
                {"slug": "gpt-plain", "visibility": "list", "supported_reasoning_levels": []},
                {"slug": "reviewer", "visibility": "hide"},
            ]
        }
    )
    assert [one.served_name for one in listed] == ["gpt-x", "gpt-plain"]
    assert listed[0].facts == {"context_window": 272_000, "vision": True, "audio": False, "files": False, "reasoning": True}
    assert listed[1].facts == {}


@pytest.mark.parametrize("body", [{}, [1], {"models": [1]}, {"models": [{"slug": 5}]}, {"models": "x"}])
def test_what_is_no_list_is_refused(body: Any) -> None:
    with pytest.raises(ValueError, match=r"[Ll]ist"):
        PROVIDER.read_models(body)


def test_a_spent_plan_says_when_it_is_good_again() -> None:
    error = PROVIDER.read_error(429, {}, b'{"error":{"type":"usage_limit_reached","message":"You\'ve hit your usage limit.","resets_in_seconds":120}}')
    assert (error.code, error.retry_after_s) == ("rate_limit_exceeded", 120.0)
    assert PROVIDER.read_error(401, {}, b'{"detail":"Unauthorized"}').fault is Fault.KEY
    assert "Stream must be" in PROVIDER.read_error(400, {}, b'{"detail":"Stream must be set to true"}').message


@pytest.mark.django_db
def test_its_models_are_listed_and_its_connection_is_tested(pages: Pages) -> None:
    key = token({"https://api.openai.com/auth": {"chatgpt_account_id": "acct-42"}})
    pages.put("/backend-api/codex/models?client_version=0.153.4", {"models": [{"slug": "gpt-x"}, {"slug": "gpt-y"}]})
    row = Endpoint.objects.create(name="plan", kind="chatgpt", base_url=f"{pages.url}/backend-api/codex", key_sealed=secrets.seal(key))
    assert [one.served_name for one in served.list_served(row)] == ["gpt-x", "gpt-y"]
    assert pages.asked[0][1]["chatgpt-account-id"] == "acct-42"
    tested = served.test_connection(row)
    assert (tested.ok, tested.models) == (True, 2)


@pytest.mark.django_db
def test_a_roster_file_may_name_it() -> None:
    rosterfile.load(json.dumps({"endpoints": [{"name": "plan", "kind": "chatgpt", "base_url": BASE, "quirks": {"always_stream": False, "refuses": "top_p"}}]}))
    assert Endpoint.objects.get().kind == "chatgpt"
    assert '"always_stream": false' in json.dumps(Endpoint.objects.get().quirks)
