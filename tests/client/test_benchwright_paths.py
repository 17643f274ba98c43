"""The SDK beside the server's own description: every call that it makes is described there, and nearly all that is described can be called."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from benchwright import Benchwright

from tests.client.scripted import scripted
from tests.live import Bench

# Enough of an answer for every call to be read.
ANSWER = {"id": "x_1", "status": "ok", "data": [], "next": None, "summary": {}, "etag": 1, "rulings": [], "pairs": []}
CALLS: list[Callable[[Benchwright], Any]] = [
    lambda bw: bw.runs.launch(benchmark="bm_1", sut="mercury"),
    lambda bw: bw.runs.preview(benchmark="bm_1", sut="mercury"),
    lambda bw: bw.runs.list(filters={"status": "ok"}),
    lambda bw: bw.runs.get("run_1"),
    lambda bw: bw.runs.wait("run_1"),
    lambda bw: bw.runs.events("run_1"),
    lambda bw: bw.runs.tasks("run_1"),
    lambda bw: bw.runs.payload("run_1", "tsk_1"),
    lambda bw: bw.runs.artifacts("run_1"),
    lambda bw: bw.runs.artifact("run_1", "art_1"),
    lambda bw: bw.runs.artifact_content("run_1", "art_1"),
    lambda bw: bw.runs.report("run_1"),
    lambda bw: bw.runs.fingerprint("run_1"),
    lambda bw: bw.runs.gate("run_1", ["pass_rate=0.9"]),
    lambda bw: bw.runs.cost("run_1"),
    lambda bw: bw.runs.blocked_hosts("run_1"),
    lambda bw: bw.runs.narrate("run_1"),
    lambda bw: bw.runs.fork("run_1", "why", code="x"),
    lambda bw: bw.runs.rescore("run_1"),
    lambda bw: bw.runs.rescorings("run_1"),
    lambda bw: bw.runs.rescoring("run_1", "rsc_1"),
    lambda bw: bw.runs.wait_for_rescoring("run_1", "rsc_1"),
    lambda bw: bw.runs.cancel_rescoring("run_1", "rsc_1"),
    lambda bw: bw.runs.requeue("run_1"),
    lambda bw: bw.runs.halt("run_1", reason="enough"),
    lambda bw: bw.runs.kill("run_1"),
    lambda bw: bw.runs.update("run_1", metadata={"a": 1}),
    lambda bw: bw.runs.publish("run_1"),
    lambda bw: bw.benchmarks.create(name="x"),
    lambda bw: bw.benchmarks.update("bm_1", name="y"),
    lambda bw: bw.benchmarks.delete("bm_1"),
    lambda bw: bw.subsets.create(benchmark="bm_1", slug="s"),
    lambda bw: bw.subsets.list("bm_1"),
    lambda bw: bw.subsets.append_tasks("sub_1", []),
    lambda bw: bw.subsets.update("sub_1", rolling=False),
    lambda bw: bw.subsets.delete("sub_1"),
    lambda bw: bw.subsets.distill(runs=["run_1"]),
    lambda bw: bw.subsets.distill(sweep="swp_1", dry_run=True),
    lambda bw: bw.subsets.from_verdict("call_1"),
    lambda bw: bw.packs.list(),
    lambda bw: bw.packs.load("starter"),
    lambda bw: bw.impls.create(code="x"),
    lambda bw: bw.impls.create_from_run(from_run="run_1"),
    lambda bw: bw.impls.list("sub_1"),
    lambda bw: bw.impls.get("imp_1"),
    lambda bw: bw.impls.code("imp_1"),
    lambda bw: bw.impls.runs("imp_1"),
    lambda bw: bw.impls.dry_run("imp_1"),
    lambda bw: bw.impls.update("imp_1", label="y"),
    lambda bw: bw.impls.delete("imp_1"),
    lambda bw: bw.built.recipe("slug"),
    lambda bw: bw.built.set_recipe("slug", {"trials": 2}, "why"),
    lambda bw: bw.built.samples("slug"),
    lambda bw: bw.built.set_samples("slug", "why", remove=["t"]),
    lambda bw: bw.registry.benchmarks.list(),
    lambda bw: bw.registry.benchmarks.get("bm_1"),
    lambda bw: bw.registry.benchmarks.coverage("bm_1", "0-5"),
    lambda bw: bw.registry.subsets.list("bm_1", passes=True),
    lambda bw: bw.registry.subsets.get("sub_1"),
    lambda bw: bw.registry.subsets.leaderboard("sub_1"),
    lambda bw: bw.registry.subsets.admission("sub_1"),
    lambda bw: bw.registry.subsets.admission("sub_1", "imp_1", fresh=True),
    lambda bw: bw.registry.subsets.runs("sub_1"),
    lambda bw: bw.registry.subsets.versions("sub_1"),
    lambda bw: bw.registry.subsets.diff("sub_1"),
    lambda bw: bw.registry.self_checks(),
    lambda bw: bw.sweeps.create(models=["mercury"], anchor="run_1"),
    lambda bw: bw.sweeps.list(),
    lambda bw: bw.sweeps.get("swp_1"),
    lambda bw: bw.compare(["run_1", "run_2"]),
    lambda bw: bw.me(),
    lambda bw: bw.doctor(),
    lambda bw: bw.backends(),
    lambda bw: bw.harnesses(),
    lambda bw: bw.openapi(),
    lambda bw: bw.billing.balance.get(),
    lambda bw: bw.billing.controls.get(),
    lambda bw: bw.billing.controls.update(alert_enabled=True),
    lambda bw: bw.billing.topups.create(5),
    lambda bw: bw.billing.topups.list(),
    lambda bw: bw.billing.topups.get("top_1"),
    lambda bw: bw.billing.transactions.list(),
    lambda bw: bw.billing.usage_trend(),
    lambda bw: bw.billing.export(),
    lambda bw: bw.settings.list(),
    lambda bw: bw.settings.get("default_trials"),
    lambda bw: bw.settings.set("default_trials", 2),
    lambda bw: bw.settings.delete("default_trials"),
    lambda bw: bw.settings.schema(),
    lambda bw: bw.secrets.create(name="A", value="b"),
    lambda bw: bw.secrets.list(),
    lambda bw: bw.secrets.get("sec_1"),
    lambda bw: bw.secrets.update("sec_1", value="c"),
    lambda bw: bw.secrets.delete("sec_1"),
    lambda bw: bw.host_policy.list(),
    lambda bw: bw.host_policy.add("example.org"),
    lambda bw: bw.host_policy.delete("hp_1"),
    lambda bw: bw.host_policy.default("block"),
    lambda bw: bw.host_policy.starter_pack(),
    lambda bw: bw.host_policy.blocked_hosts(),
    lambda bw: bw.webhooks.create(url="https://ci.example", events=["run.finished"]),
    lambda bw: bw.webhooks.list(),
    lambda bw: bw.webhooks.get("whk_1"),
    lambda bw: bw.webhooks.update("whk_1", description="y"),
    lambda bw: bw.webhooks.delete("whk_1"),
    lambda bw: bw.webhooks.rotate_secret("whk_1"),
    lambda bw: bw.webhooks.test_delivery("whk_1"),
    lambda bw: bw.webhooks.deliveries("whk_1"),
    lambda bw: bw.webhooks.retry_delivery("whk_1", "whd_1"),
]
# Only a browser's session makes and ends tokens; the same description stands at two paths.
NOT_CALLED = re.compile(r"/v1/tokens|/v1/schema")


def operations(description: Any) -> dict[tuple[str, str], Any]:
    return {
        (method.upper(), path): operation
        for path, item in description["paths"].items()
        for method, operation in item.items()
        if method in ("get", "post", "put", "patch", "delete") and path.startswith("/v1/")
    }


def matching(method: str, path: str, known: dict[tuple[str, str], Any]) -> tuple[str, str] | None:
    """Finds the operation of a request; a path without a parameter there goes before one with it."""
    found = [
        (m, template)
        for m, template in known
        if m == method and re.fullmatch("".join("[^/]+" if part.startswith("{") else re.escape(part) for part in re.split(r"(\{[^}]+\})", template)), path)
    ]
    return min(found, key=lambda one: one[1].count("{"), default=None)


def resolved(description: Any, node: Any) -> Any:
    while isinstance(node, dict) and "$ref" in node:
        found = description
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node


@pytest.fixture(scope="module")
def asked() -> list[tuple[str, str, dict[str, str], bytes]]:
    with scripted((200, {"content-type": "application/json"}, json.dumps(ANSWER).encode())) as server:
        with Benchwright(api_key="x", base_url=server.url) as bw:
            for call in CALLS:
                call(bw)
        return server.asked


def test_every_call_is_one_that_the_server_describes(bench: Bench, asked: list[tuple[str, str, dict[str, str], bytes]]) -> None:
    with Benchwright(api_key=bench.live.operator_key, base_url=bench.live.url) as bw:
        description = bw.openapi()
    known = operations(description)
    assert len(known) > 50
    reached = set()
    for method, target, _, body in asked:
        path = unquote(urlsplit(target).path)
        operation = matching(method, path, known)
        assert operation is not None, f"{method} {path} is not described"
        reached.add(operation)
        content = resolved(description, known[operation].get("requestBody") or {}).get("content") or {}
        schema = resolved(description, (content.get("application/json") or {}).get("schema") or {})
        if body and schema.get("properties") and schema.get("additionalProperties") is False:
            assert set(json.loads(body)) <= set(schema["properties"]), f"{method} {path} has no such field"
    left = {one for one in known if one not in reached and not NOT_CALLED.match(one[1])}
    assert not left, "described, and no call of the SDK goes there"


def test_what_makes_something_goes_under_a_key(asked: list[tuple[str, str, dict[str, str], bytes]]) -> None:
    keyed = {(method, urlsplit(target).path) for method, target, headers, _ in asked if "idempotency-key" in headers}
    made = {
        ("POST", "/v1/runs"),
        ("POST", "/v1/runs/run_1/fork"),
        ("POST", "/v1/benchmarks"),
        ("POST", "/v1/benchmarks/bm_1/subsets"),
        ("POST", "/v1/subsets/sub_1/tasks"),
        ("POST", "/v1/impls"),
        ("POST", "/v1/sweeps"),
        ("POST", "/v1/secrets"),
        ("PATCH", "/v1/secrets/sec_1"),
        ("POST", "/v1/host-policy"),
        ("PATCH", "/v1/billing/controls"),
        ("POST", "/v1/billing/topups"),
        ("POST", "/v1/webhooks"),
    }
    assert made <= keyed
