"""What tells others how the server is."""

from __future__ import annotations

import json

from tests.live import Bench, eventually


def test_it_is_ready_once_its_queue_has_rung(bench: Bench) -> None:
    live = bench.live
    assert live.send("GET", "/livez").json["status"] == "ok"
    answer = eventually(lambda: answer if (answer := live.send("GET", "/readyz")).status == 200 else None, "readiness")
    assert {"database", "migrations", "outbox", "queue"} <= answer.json["checks"].keys()


def test_metrics_are_for_the_operator_and_for_loopback(bench: Bench) -> None:
    live = bench.live
    away = {"x-forwarded-for": "203.0.113.9"}
    assert live.send("GET", "/metrics").status == 200
    assert live.send("GET", "/metrics", headers=away, key=live.operator_key).status == 200
    assert live.send("GET", "/metrics", headers=away).status in (401, 403)
    assert live.send("GET", "/metrics", headers=away, key=bench.key()).status == 403


def test_each_call_is_one_line_of_json_without_its_query(bench: Bench) -> None:
    fast = bench.model("fast")
    bench.load()
    body = {"model": fast, "messages": [{"role": "user", "content": "hi"}]}
    answer = bench.live.send("POST", f"/v1/chat/completions?key={bench.key()}&odd=query-canary", body)
    wanted = answer.headers["x-request-id"]
    lines = eventually(lambda: [line for line in bench.live.log_text().splitlines() if wanted in line], "the call's line")
    assert len(lines) == 1
    told = json.loads(lines[0])
    assert (told["status"], told["path"], told["model"]) == (200, "/v1/chat/completions", fast)
    assert "query-canary" not in bench.live.log_text()
