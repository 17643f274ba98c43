"""Probes through the running server's own doors: asked for, done by its queue, shown, and paid for only where somebody asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.fake import reply, status
from tests.live import Bench, eventually


@pytest.fixture
def playing(bench: Bench) -> Iterator[Any]:
    """Makes models that are not ad hoc, and takes them out of play afterwards: another test's explorer seats are not for them."""
    made: list[str] = []

    def make(name: str, *answers: Any, **more: Any) -> str:
        made.append(bench.model(name, *answers, ad_hoc=False, **more))
        bench.load()
        return made[-1]

    yield make
    for alias in made:
        if bench.live.api("GET", f"models/{alias}")["status"] != "retired":
            bench.live.api("POST", f"models/{alias}/retire", {"reason": "The test is over."})


def probes(bench: Bench, alias: str, count: int, **of: str) -> list[dict[str, Any]]:
    query = "&".join([f"model={quote(alias)}", *(f"{k}={v}" for k, v in of.items())])
    found = eventually(lambda: rows if len(rows := bench.live.api("GET", f"probes?{query}")["data"]) >= count else None, f"{count} probes of {alias}")
    return list(found)


def test_a_probe_is_asked_for_done_by_the_queue_and_shown_with_its_cost(bench: Bench, playing: Any) -> None:
    alias = playing("fast", reply("OK", usage=(14, 1)), facts={"input_usd_per_mtok": "0.5", "output_usd_per_mtok": "1.5"})
    shown = bench.live.api("GET", f"models/{alias}")
    assert (shown["health"]["last_ok_at"], shown["speed"]) == (None, None)
    queued = bench.live.api("POST", f"models/{alias}/probe", {"kind": "word"}, status=202)
    assert queued["new"] is True
    assert float(queued["expected_cost_usd"]) > 0
    (probe,) = probes(bench, alias, 1)
    assert (probe["kind"], probe["outcome"], probe["cost_usd"]) == ("word", "ok", "0.0000085")
    (row,) = bench.live.attempts(1, model=alias)
    assert (row["id"], row["purpose"], row["cost_pusd"]) == (probe["attempt"], "probe", 8_500_000)
    eventually(lambda: bench.live.api("GET", f"models/{alias}")["health"]["last_ok_at"], "the newest good answer")
    (entry,) = bench.live.rows("access.AuditEntry", action="model.probe", target=alias)
    assert entry["actor"].startswith("key ")
    estimate = next(m for m in bench.live.api("GET", "probes/estimate?kind=word")["models"] if m["model"] == alias)
    assert (estimate["cost_usd"], estimate["calls"]) == ("0.0000085", 1)


def test_speed_is_measured_with_a_short_and_a_long_stream_and_shown(bench: Bench, playing: Any) -> None:
    alias = playing("quick", reply(["one ", "two ", "three ", "four"], usage=(20, 40)).dripping(200, 0.05))
    bench.live.api("POST", f"models/{alias}/probe", {"kind": "perf"}, status=202)
    assert {p["kind"] for p in probes(bench, alias, 2)} == {"short", "long"}
    speed = eventually(lambda: s if {"short", "long"} <= (s := bench.live.api("GET", f"models/{alias}")["speed"] or {}).keys() else None, "both speeds")
    assert speed["tokens_per_s"] == speed["long"]["tokens_per_s"]
    assert speed["long"]["of"] == 1
    assert speed["long"]["at"].endswith("Z")
    assert speed["long"]["tokens_per_s"] > 0
    assert speed["short"]["ttft_ms"] >= 0
    assert all(call.stream for call in bench.fake.calls_to(alias))


def test_a_missing_model_becomes_a_suspect_with_the_reason_and_stays_in_play_until_it_was_asked_again(bench: Bench, playing: Any) -> None:
    playing("good", reply("OK"))
    alias = playing("gone", status(404, "The model does not exist."))
    bench.live.api("POST", f"models/{alias}/probe", {}, status=202)
    health = eventually(lambda: h if (h := bench.live.api("GET", f"models/{alias}")["health"])["suspect_since"] else None, "the suspicion")
    assert "no such model" in health["reason"]
    assert bench.live.api("GET", f"models/{alias}")["status"] == "active"
    (confirm,) = bench.live.rows("health.Errand", kind="confirm", subject=alias)
    assert confirm["state"] == "waiting"
    assert len(bench.fake.calls_to(alias)) == 1


def test_what_cannot_be_probed_is_refused_with_the_reason(bench: Bench, playing: Any) -> None:
    adhoc = bench.model("adhoc", reply("OK"))
    alias = playing("plain", reply("OK"))
    for path, body, words in (
        (f"models/{adhoc}/probe", {}, "ad hoc"),
        (f"models/{alias}/probe", {"kind": "poke"}, "kind must be one of word, perf, drift"),
        (f"models/{alias}/probe", {"sort": "word"}, "sort is no field"),
        (f"models/{alias}/baseline", {}, "no baseline"),
    ):
        assert words in bench.live.api("POST", path, body, status=400)["detail"]
    bench.live.api("POST", "models/nobody/probe", {}, status=404)
    bench.live.api("POST", "models/nobody/baseline", {}, status=404)
    assert "kind" in bench.live.api("GET", "probes?kind=poke", status=400)["detail"]
    assert "kind" in bench.live.api("GET", "probes/estimate?kind=poke", status=400)["detail"]
    assert not bench.fake.calls_to(adhoc)


def test_who_may_only_read_asks_for_no_probe(bench: Bench, playing: Any) -> None:
    alias = playing("plain", reply("OK"))
    reader = bench.live.key("", scopes=["read"])
    assert bench.live.send("GET", f"/bench/probes?model={alias}", key=reader).status == 200
    assert bench.live.send("GET", "/bench/probes/estimate", key=reader).status == 200
    for verb in ("probe", "baseline"):
        assert bench.live.send("POST", f"/bench/models/{alias}/{verb}", {}, key=reader).status == 403
    assert bench.live.send("GET", "/bench/probes", key=bench.live.key("", scopes=["ask"])).status == 403


def test_nothing_is_spent_while_no_schedule_is_on_and_nobody_asks(bench: Bench, playing: Any) -> None:
    alias = playing("quiet", reply("OK"))
    schedules = {s["name"]: s for s in bench.live.api("GET", "schedules")["data"]}
    assert not any(schedules[name]["enabled"] for name in ("probe", "perf", "drift"))
    assert not bench.fake.calls_to(alias)
