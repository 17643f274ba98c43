"""Onboarding, schedules and settings through the doors that clients have: the server's own API, with its queue at work."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.fake import reply, status
from tests.live import Bench, eventually

ENDED = ("done", "failed", "cancelled")


@pytest.fixture
def onboards(bench: Bench) -> Iterator[Bench]:
    """An endpoint without models; what a test puts on the bench is gone again after it, so that it takes no explorer's seat in another."""
    bench.endpoint()
    bench.load()
    yield bench
    for row in bench.live.listed("models"):
        if row["endpoint"] == here(bench):
            bench.live.api("DELETE", f"models/{quote(row['alias'], safe='')}")


def here(bench: Bench) -> str:
    return f"{bench.tag}-here"


def post(bench: Bench, names: list[str], mode: str = "quick", code: int = 202, query: str = "", **more: Any) -> dict[str, Any]:
    body = {"endpoint": here(bench), "served_names": names, "mode": mode, **more}
    return dict(bench.live.api("POST", f"onboard{query}", body, status=code))


def ended(bench: Bench, batch: str) -> dict[str, Any]:
    def look() -> Any:
        found = bench.live.api("GET", f"onboard/{batch}")
        return found if all(m["state"] in ENDED for m in found["models"]) else None

    return dict(eventually(look, f"the end of {batch}"))


def calls(bench: Bench, name: str) -> int:
    return sum(call.model == name for call in bench.fake.calls)


def model(bench: Bench, alias: str) -> dict[str, Any]:
    return dict(bench.live.api("GET", f"models/{quote(alias, safe='')}"))


def test_a_quick_model_is_registered_checked_and_in_play(onboards: Bench) -> None:
    name = f"{onboards.tag}/quick"
    batch = post(onboards, [name])["batch"]
    found = ended(onboards, batch)
    (one,) = found["models"]
    assert (found["state"], found["progress"], one["state"], one["alias"]) == ("done", 1.0, "done", name)
    assert {stage: came["outcome"] for stage, came in one["stages"].items()} == {"register": "ok", "check": "ok"}
    assert [line["said"].split(":")[0] for line in one["log"]] == ["register", "check"]
    assert calls(onboards, name) == 1
    assert model(onboards, name)["status"] == "active"
    assert not model(onboards, name)["ad_hoc"]
    (row,) = onboards.live.attempts(1, model=name)
    assert (row["purpose"], row["status"], row["endpoint"]) == ("onboard", "ok", here(onboards))
    assert onboards.live.ask(name).status == 200


def test_a_full_one_is_timed_too_and_says_that_there_is_no_suite(onboards: Bench) -> None:
    name = f"{onboards.tag}/full"
    (one,) = ended(onboards, post(onboards, [name], "full")["batch"])["models"]
    assert {stage: came["outcome"] for stage, came in one["stages"].items()} == {"register": "ok", "check": "ok", "speed": "ok", "suite": "skipped"}
    assert calls(onboards, name) == 3
    assert one["unpriced"] == 3
    assert one["cost_usd"] is None  # not 0: nobody knows


def test_an_ad_hoc_one_is_never_called(onboards: Bench) -> None:
    name = f"{onboards.tag}/ad-hoc"
    (one,) = ended(onboards, post(onboards, [name], "quick_ad_hoc")["batch"])["models"]
    assert (one["state"], list(one["stages"])) == ("done", ["register"])
    assert model(onboards, name)["ad_hoc"]
    assert calls(onboards, name) == 0


def test_one_that_is_there_goes_further_under_its_alias_and_not_the_same_way_twice(onboards: Bench) -> None:
    name = f"{onboards.tag}/further"
    first = post(onboards, [name], "quick_ad_hoc")["batch"]
    ended(onboards, first)
    again = post(onboards, [name], "quick_ad_hoc", code=200)
    assert (again["batch"], again["models"], again["done"]) == (first, 0, {name: first})
    (one,) = ended(onboards, post(onboards, [name], "quick")["batch"])["models"]
    assert (one["state"], one["alias"]) == ("done", name)
    assert not model(onboards, name)["ad_hoc"]
    assert post(onboards, [name], "quick_ad_hoc", code=200)["models"] == 0


def test_twenty_requests_at_once_for_one_model_onboard_it_once(onboards: Bench) -> None:
    name = f"{onboards.tag}/vendor/m"
    replies: list[Any] = []
    gate = threading.Barrier(22)

    def ask() -> None:
        gate.wait()
        body = {"endpoint": here(onboards), "served_names": [name], "mode": "quick"}
        replies.append(onboards.live.send("POST", "/bench/onboard", body, key=onboards.live.operator_key))

    def refresh() -> None:
        gate.wait()
        onboards.live.send("GET", f"/bench/candidates?endpoint={here(onboards)}&refresh=1", key=onboards.live.operator_key)

    threads = [threading.Thread(target=ask) for _ in range(20)] + [threading.Thread(target=refresh) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = Counter(answer.status for answer in replies)
    assert seen[202] == 1
    assert seen[202] + seen[409] + seen[200] == 20
    batch = next(answer.json["batch"] for answer in replies if answer.status == 202)
    assert all(batch in answer.text for answer in replies)
    ended(onboards, batch)
    assert calls(onboards, name) == 1
    assert [row["alias"] for row in onboards.live.rows("catalog.Model", served_name=name)] == [name]


def test_names_that_differ_in_case_get_aliases_that_do_not(onboards: Bench) -> None:
    name = f"{onboards.tag}/Case"
    found = ended(onboards, post(onboards, [name, name.lower()], "quick_ad_hoc")["batch"])
    aliases = [m["alias"] for m in found["models"]]
    assert len({alias.casefold() for alias in aliases}) == 2


def test_one_that_its_endpoint_does_not_know_is_taken_out_of_play_with_the_providers_words(onboards: Bench) -> None:
    name, good = f"{onboards.tag}/gone", f"{onboards.tag}/good"
    onboards.fake.script(name, status(404, f"The model {name} does not exist", error_code="model_not_found"))
    found = ended(onboards, post(onboards, [name, good])["batch"])
    bad, fine = found["models"]
    assert (found["state"], bad["state"], fine["state"]) == ("failed", "failed", "done")
    assert "does not exist" in bad["message"]
    shown = model(onboards, name)
    assert shown["status"] == "retired"
    assert "does not exist" in shown["reason"]
    assert shown["evidence"]["http_status"] == 404
    assert calls(onboards, name) == 1
    onboards.fake.script(name, reply("OK"))
    (again,) = ended(onboards, post(onboards, [name])["batch"])["models"]
    assert again["state"] == "done"
    assert model(onboards, name)["status"] == "active"


def test_a_refused_request_leaves_it_in_play_and_says_so(onboards: Bench) -> None:
    name = f"{onboards.tag}/picky"
    onboards.fake.script(name, status(400, "We do not serve short questions."))
    (one,) = ended(onboards, post(onboards, [name])["batch"])["models"]
    assert (one["state"], one["stages"]["check"]["outcome"]) == ("done", "unknown")
    assert "short questions" in one["message"]
    assert model(onboards, name)["status"] == "active"


def test_cancelling_ends_what_runs_at_its_next_step_and_what_waits_never_starts(onboards: Bench) -> None:
    first, second = f"{onboards.tag}/slow", f"{onboards.tag}/waits"
    gate = onboards.fake.gate()
    onboards.fake.script(first, reply("OK").holding(gate))
    batch = post(onboards, [first, second], "full")["batch"]
    eventually(lambda: calls(onboards, first), "the first model's check")
    assert onboards.live.api("GET", f"onboard/{batch}")["state"] == "running"
    found = onboards.live.api("POST", f"onboard/{batch}/cancel", status=200)
    assert [m["state"] for m in found["models"]] == ["cancelled", "cancelled"]
    assert found["cancelled_at"]
    gate.open()
    eventually(lambda: not onboards.live.rows("health.Errand", batch=batch, state="running"), "the errand's end")
    found = onboards.live.api("DELETE", f"onboard/{batch}")
    assert [m["state"] for m in found["models"]] == ["cancelled", "cancelled"]
    assert (calls(onboards, first), calls(onboards, second)) == (1, 0)
    assert not onboards.live.rows("catalog.Model", served_name=second)
    (one,) = ended(onboards, post(onboards, [second])["batch"])["models"]
    assert one["state"] == "done"


def test_a_dry_run_tells_the_cost_and_asks_nothing(onboards: Bench) -> None:
    priced = onboards.model("priced", facts={"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"})
    onboards.load()
    found = post(onboards, [priced, f"{onboards.tag}/unknown"], "full", code=200, query="?dry_run=1")
    assert (found["models"], found["calls"], found["unpriced"]) == (2, 6, 1)
    assert 0 < float(found["cost_usd"]) < 0.01
    assert post(onboards, [priced], "quick_ad_hoc", code=200, query="?dry_run=1") == {"models": 1, "calls": 0, "cost_usd": "0", "unpriced": 0}
    # What answers no prompt is asked nothing, so it costs nothing and nothing of it is unknown.
    assert post(onboards, [priced, "text-embedding-3-small"], "quick", code=200, query="?dry_run=1") | {"cost_usd": ""} == {
        "models": 2,
        "calls": 1,
        "cost_usd": "",
        "unpriced": 0,
    }
    assert not onboards.live.rows("health.Onboarding", endpoint=here(onboards))
    assert calls(onboards, priced) == 0


WRONG = [
    ({"served_names": []}, "served_names"),
    ({"served_names": "one"}, "served_names"),
    ({"served_names": ["x"] * 501}, "served_names"),
    ({"served_names": ["fine", " spaced "]}, "served_names[1]"),
    ({"served_names": ["fine", 7]}, "served_names[1]"),
    ({"served_names": ["a\0b"]}, "served_names[0]"),
    ({"mode": "slow"}, "mode"),
    ({"mode": None}, "mode"),
    ({"endpoint": 5}, "endpoint"),
    ({"retries": 2}, "retries"),
]


@pytest.mark.parametrize(("given", "field"), WRONG)
def test_what_cannot_be_onboarded_is_refused_by_field(onboards: Bench, given: dict[str, Any], field: str) -> None:
    body = {"endpoint": here(onboards), "served_names": ["x"], "mode": "quick", **given}
    refused = onboards.live.api("POST", "onboard", body, status=400)
    assert refused["field"] == field


def test_unknown_endpoints_and_batches_are_not_found_and_readers_may_only_look(onboards: Bench) -> None:
    live = onboards.live
    assert live.api("POST", "onboard", {"endpoint": "nowhere", "served_names": ["x"], "mode": "quick"}, status=404)["code"] == "not_found"
    for method, path in (("GET", "onboard/onb_nothing"), ("DELETE", "onboard/onb_nothing"), ("POST", "onboard/onb_nothing/cancel")):
        assert live.api(method, path, status=404)["code"] == "not_found"
    reader = live.key(scopes=["read"])
    assert live.send("GET", "/bench/onboard", key=reader).status == 200
    body = {"endpoint": here(onboards), "served_names": ["x"], "mode": "quick"}
    assert live.send("POST", "/bench/onboard", body, key=reader).status == 403
    assert live.send("POST", "/bench/schedules/catalog/run", key=reader).status == 403
    assert live.send("PATCH", "/bench/settings/health.failed_probes", {"value": 4}, key=reader).status == 403


def test_batches_are_listed_newest_first(onboards: Bench) -> None:
    made = [post(onboards, [f"{onboards.tag}/{n}"], "quick_ad_hoc")["batch"] for n in range(3)]
    for batch in made:
        ended(onboards, batch)
    listed = onboards.live.api("GET", "onboard?limit=2")
    assert [b["batch"] for b in listed["data"]] == made[:0:-1]
    assert listed["data"][0]["counts"]["done"] == 1
    assert "models" not in listed["data"][0]
    more = onboards.live.api("GET", f"onboard?limit=1&page_token={listed['next']}")
    assert more["data"][0]["batch"] == made[0]


# ------------------------------------------------------------------ schedules and settings

NAMES = ["catalog", "drift", "perf", "probe", "retention", "suite"]


def test_all_schedules_but_the_catalogs_are_off_on_a_fresh_install(bench: Bench) -> None:
    listed = bench.live.api("GET", "schedules")["data"]
    assert [s["name"] for s in listed] == NAMES
    assert [s["name"] for s in listed if s["enabled"]] == ["catalog"]
    assert all(s["tells"] and s["words"] and s["cron"] == s["default_cron"] for s in listed)
    assert [len(s["next_runs"]) for s in listed] == [5, 0, 0, 0, 0, 0]
    assert {s["name"]: s["enabled"] for s in bench.live.api("GET", "status")["schedules"]} == {name: name == "catalog" for name in NAMES}


def test_a_schedule_is_changed_and_counts_on_from_now(bench: Bench) -> None:
    live = bench.live
    try:
        changed = live.api("PATCH", "schedules/probe", {"enabled": True, "cron": "15 3 * * 1", "time_zone": "Europe/Paris"})
        assert (changed["enabled"], changed["cron"], changed["time_zone"]) == (True, "15 3 * * 1", "Europe/Paris")
        assert len(changed["next_runs"]) == 5
        assert changed["next_run_at"] == changed["next_runs"][0]
        assert live.rows("access.AuditEntry", action="schedule.change", target="probe")
    finally:
        back = live.api("PATCH", "schedules/probe", {"enabled": False, "cron": None, "time_zone": None})
    assert (back["enabled"], back["cron"], back["next_run_at"]) == (False, "30 4 * * *", None)


def test_what_a_schedule_cannot_be_is_refused_by_field(bench: Bench) -> None:
    for given, field in (({"cron": "daily"}, "cron"), ({"time_zone": "Mars"}, "time_zone"), ({"enabled": "yes"}, "enabled"), ({"every": 5}, "every")):
        assert bench.live.api("PATCH", "schedules/probe", given, status=400)["field"] == field
    assert bench.live.api("PATCH", "schedules/nightly", {"enabled": True}, status=404)["code"] == "not_found"


def test_the_suite_cannot_be_switched_on_or_run_before_there_is_one(bench: Bench) -> None:
    refused = bench.live.api("PATCH", "schedules/suite", {"enabled": True}, status=400)
    assert refused["field"] == "enabled"
    assert "no benchmark is set up" in refused["detail"]
    assert "no benchmark is set up" in bench.live.api("POST", "schedules/suite/run", status=400)["detail"]


def test_a_run_asked_for_is_taken_up_by_the_queue_and_reported(bench: Bench) -> None:
    live = bench.live
    queued = live.api("POST", "schedules/probe/run", status=202)
    assert (queued["schedule"], queued["state"]) == ("probe", "waiting")

    def look() -> Any:
        run = live.api("GET", "schedules/probe")["runs"][0]
        return run if run["state"] not in ("waiting", "running") else None

    run = eventually(look, "the end of the run")
    assert (run["id"], run["state"], run["error"], run["failures"]) == (queued["id"], "done", "", 0)
    assert "models" in run["report"]


def test_settings_are_read_changed_and_put_back(bench: Bench) -> None:
    live = bench.live
    listed = {s["name"]: s for s in live.api("GET", "settings?limit=500")["data"]}
    assert listed["server.database"]["value"] in ("sqlite", "postgresql")
    assert listed["server.admin_token_is_set"]["value"] in (True, False)
    before = listed["health.failed_probes"]
    changed = live.api("PATCH", "settings/health.failed_probes", {"value": before["default"] + 1})
    assert (changed["value"], changed["changed_at"] is not None) == (before["default"] + 1, True)
    assert live.api("GET", "settings/health.failed_probes")["value"] == before["default"] + 1
    back = live.api("PATCH", "settings/health.failed_probes", {"value": None})
    assert (back["value"], back["changed_at"]) == (before["default"], None)
    assert live.api("PATCH", "settings/health.failed_probes", {"value": "many"}, status=400)["field"] == "value"
    assert live.api("PATCH", "settings/health.failed_probes", {}, status=400)["field"] == "value"
    assert live.api("PATCH", "settings/server.database", {"value": "x"}, status=400)["field"] == "name"
    assert live.api("GET", "settings/no.such", status=404)["code"] == "not_found"
    assert live.api("PATCH", "settings/no.such", {"value": 1}, status=404)["code"] == "not_found"
