"""Plugins of simonw's llm as one more kind of provider: called in this process, paced, counted and recorded like all others."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from catalog import providers
from catalog.models import Endpoint
from catalog.served import list_served
from tests.live import Live

pytest.importorskip("llm_echo")

FACTS = {"vision": True, "input_usd_per_mtok": "1", "output_usd_per_mtok": "2"}
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 40).decode()


@pytest.fixture(scope="module")
def echo(live: Live) -> str:
    live.roster(
        {
            "endpoints": [{"name": "plugins", "kind": "llm", "base_url": "http://127.0.0.1:9/unused"}],
            "models": [
                {
                    "alias": "plugin-echo",
                    "endpoint": "plugins",
                    "served_name": "echo",
                    "facts": {"vision": True, "input_usd_per_mtok": "1", "output_usd_per_mtok": "2"},
                    "ad_hoc": True,  # other tests' explorer seats go to whoever sat out longest
                },
                {"alias": "plugin-gone", "endpoint": "plugins", "served_name": "no-such-model", "ad_hoc": True},
            ],
            "collections": [{"name": "plugged", "members": ["plugin-echo", "plugin-echo"], "explorers": 0}],
        }
    )
    return "plugin-echo"


def asked(live: Live, **body: Any) -> Any:
    return live.send("POST", "/v1/chat/completions", body, key=live.operator_key)


def test_a_plugin_answers_and_is_on_the_record(live: Live, echo: str) -> None:
    reply = asked(live, model=echo, messages=[{"role": "system", "content": "be kind"}, {"role": "user", "content": "hello there"}])
    assert reply.status == 200
    said = json.loads(reply.json["choices"][0]["message"]["content"])
    assert (said["prompt"], said["system"]) == ("hello there", "be kind")
    seat = live.api("GET", f"panels/{reply.headers['x-bench-panel']}")["seats"][0]
    assert seat["status"] == "ok"
    assert seat["usage"]["output_tokens"] > 0
    assert float(seat["cost_usd"]) > 0


def test_a_plugin_streams(live: Live, echo: str) -> None:
    reply = asked(live, model=echo, messages=[{"role": "user", "content": "stream this"}], stream=True)
    chunks = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: {")]
    assert "stream this" in "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])
    assert reply.text.rstrip().endswith("data: [DONE]")


def test_plugins_sit_on_panels(live: Live, echo: str) -> None:
    reply = asked(live, model="bench/plugged", messages=[{"role": "user", "content": "side by side"}])
    assert [s["status"] for s in reply.json["bench"]["seats"]] == ["ok", "ok"]


def test_images_reach_a_plugin(live: Live, echo: str) -> None:
    content = [{"type": "text", "text": "what is it"}, {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}]
    reply = asked(live, model=echo, messages=[{"role": "user", "content": content}])
    assert len(json.loads(reply.json["choices"][0]["message"]["content"])["attachments"]) == 1


def test_a_plugin_that_is_not_there_is_the_endpoints_failure(live: Live, echo: str) -> None:
    reply = asked(live, model="plugin-gone", messages=[{"role": "user", "content": "x"}])
    assert reply.status == 502
    assert reply.json["error"]["code"] == "upstream_error"


def test_what_is_installed_is_listed() -> None:
    assert "llm" in {p.kind for p in providers.every()}
    assert "echo" in {m.served_name for m in list_served(Endpoint(name="plugins", kind="llm", base_url="http://127.0.0.1:9"))}
