"""Every path that the contract names is there, and each asks for what it wants of its caller."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from suite import urls
from tests.live import Bench
from tests.suite.driving import Driver

RUN, TASK, ART = "run_00000000000000000000000000", "tsk_00000000000000000000000000", "art_00000000000000000000000000"
SUB, IMP, BM = "sub_00000000000000000000000000", "imp_00000000000000000000000000", "bm_00000000000000000000000000"
# Number: methods and paths. What a path does is tried elsewhere; this says that nobody took it away.
PATHS: dict[int, list[str]] = {
    116: [
        "POST runs", "GET runs", f"GET runs/{RUN}", f"PATCH runs/{RUN}", f"DELETE runs/{RUN}", f"POST runs/{RUN}/fork", f"POST runs/{RUN}/halt",
        f"POST runs/{RUN}/publish", f"POST runs/{RUN}/narrate", f"POST runs/{RUN}/rescore", f"POST runs/{RUN}/requeue", f"GET runs/{RUN}/events",
        f"GET runs/{RUN}/tasks", f"GET runs/{RUN}/tasks/{TASK}/payload", f"GET runs/{RUN}/artifacts", f"GET runs/{RUN}/artifacts/{ART}",
        f"GET runs/{RUN}/artifacts/{ART}/content", f"GET runs/{RUN}/report", f"GET runs/{RUN}/fingerprint", f"GET runs/{RUN}/blocked-hosts",
        f"GET runs/{RUN}/cost",
    ],
    117: ["GET compare", "POST sweeps", "GET sweeps", "GET sweeps/swp_00000000000000000000000000"],
    118: [
        "GET registry/benchmarks", f"GET registry/benchmarks/{BM}", f"GET registry/subsets/{SUB}", f"GET registry/subsets/{SUB}/leaderboard",
        f"GET registry/subsets/{SUB}/runs", f"GET registry/subsets/{SUB}/versions", f"GET registry/subsets/{SUB}/diff", f"GET impls/{IMP}",
        f"GET impls/{IMP}/code", f"GET impls/{IMP}/runs", f"GET benchmarks/{BM}/coverage",
    ],
    119: [
        "POST benchmarks", f"PATCH benchmarks/{BM}", f"DELETE benchmarks/{BM}", f"POST benchmarks/{BM}/subsets", f"PATCH subsets/{SUB}",
        f"DELETE subsets/{SUB}", f"POST subsets/{SUB}/tasks", "POST subsets:distill", "POST impls", "POST impls:from-run", f"PATCH impls/{IMP}",
        f"DELETE impls/{IMP}", f"POST impls/{IMP}/dry-run",
    ],
    120: [f"{method} build/subsets/no-such-slug/{part}" for method in ("GET", "PATCH") for part in ("recipe", "samples")],
    121: [
        "GET secrets", "POST secrets", "GET secrets/sec_1", "PATCH secrets/sec_1", "DELETE secrets/sec_1", "GET host-policy", "POST host-policy",
        "DELETE host-policy/1", "PUT host-policy/default", "POST host-policy/starter-pack", "GET host-policy/blocked-hosts",
    ],
    122: [
        "GET billing/balance", "PATCH billing/controls", "POST billing/topups", "GET billing/topups", "GET billing/topups/top_00000000000000000000000000",
        "GET billing/transactions", "GET billing/usage-trend", "GET billing/export?type=runs",
    ],
    123: [
        "GET webhooks", "POST webhooks", "GET webhooks/whk_1", "PATCH webhooks/whk_1", "DELETE webhooks/whk_1", "POST webhooks/whk_1/rotate-secret",
        "POST webhooks/whk_1/test", "GET webhooks/whk_1/deliveries", "POST webhooks/whk_1/deliveries/whd_1/retry",
    ],
    124: [
        "GET me", "GET settings", "GET settings/default_trials", "PUT settings/no_such_thing", "DELETE settings/no_such_thing", "GET settings/schema",
        "GET doctor", "GET harnesses", "GET backends", "GET openapi.json",
    ],
}  # fmt: skip


@pytest.mark.parametrize("number", PATHS)
def test_the_paths_of_the_contract_are_there(bench: Bench, number: int) -> None:
    driver = Driver(bench)
    for said in PATHS[number]:
        method, _, path = said.partition(" ")
        answer = driver.send(method, path, {} if method in ("POST", "PATCH", "PUT") else None)
        assert answer.status not in (405, 500), (said, answer.status)
        assert answer.status != 404 or answer.json["code"] not in ("not_found", "unknown_path"), said
        if answer.status >= 400:
            assert answer.headers["content-type"].startswith("application/problem+json"), said
            assert set(answer.json) >= {"type", "title", "status", "detail", "instance", "code", "request_id"}, said


def wanting() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Gives each method of each path, with the scopes of which one opens it."""
    for pattern in urls.urlpatterns:
        view = getattr(pattern.callback, "view_class", None)
        for method, scopes in getattr(view, "scopes", {}).items():
            if scopes and hasattr(view, method.lower()):
                yield method, re.sub(r"<plain:\w+>", "x", str(pattern.pattern)), scopes


def test_every_path_names_the_scope_that_is_missing_and_lets_nobody_in_without_a_key(bench: Bench) -> None:
    stranger = Driver(bench, bench.key(owner="stranger", scopes=["judge"]))
    asker = Driver(bench, bench.key(owner="stranger", scopes=["ask"]))
    looked_at = list(wanting())
    assert len(looked_at) > 90
    for method, path, scopes in looked_at:
        body = {} if method in ("POST", "PATCH", "PUT") else None
        who, has = (asker, "ask") if "judge" in scopes else (stranger, "judge")
        refused = who.send(method, path, body)
        assert refused.status == 403, (method, path, refused.status, refused.body[:300])
        assert (refused.json.get("required_scope"), refused.json.get("granted")) == (scopes[0], [has]), (method, path, refused.json)
        if "judge" in scopes:
            continue  # on the server's own machine nobody in particular may ask and judge
        nobody = bench.live.send(method, f"/v1/{path}", body)
        assert (nobody.status, nobody.headers["content-type"]) == (401, "application/problem+json"), (method, path)
    events = stranger.send("GET", f"runs/{RUN}/events", accept="text/event-stream")
    assert (events.status, events.json["required_scope"]) == (403, "runs:read")
