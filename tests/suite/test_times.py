"""One form of a time, wherever the suite says one: UTC with three decimals of a second and a Z."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from suite.api import shapes
from suite.models import Benchmark, Impl, Run, Subset
from suite.running.launching import fingerprint
from tests import factories
from tests.fake import reply, status
from tests.live import Bench
from tests.suite.driving import Driver, sums

ANY_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z|UTC|[+-]\d\d(?::?\d\d)?))?")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def times(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Gives every time that stands in a text of a JSON value, with where it stands; of a field that is named as one whatever it says."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name.endswith("_at") and isinstance(inner, int | float):
                yield f"{at}.{name}", str(inner)
            yield from times(inner, f"{at}.{name}")
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from times(inner, f"{at}[{i}]")
    elif isinstance(value, str):
        yield from ((at, found) for found in ANY_TIME.findall(value))


class Held:
    """Looks at the times of many answers. `wrong` are those in another form, with where they stood."""

    def __init__(self) -> None:
        self.count, self.wrong = 0, list[str]()

    def look(self, value: Any, where: str) -> None:
        found = list(times(value))
        self.count += len(found)
        self.wrong += [f"{where} {at}: {said}" for at, said in found if not TIME.fullmatch(said)]


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench, bench.key(owner=factories.tag("kim-"), team=factories.tag("team-"), scopes=["admin"]))


def gets(told: dict[str, Any], filled: dict[str, str]) -> Iterator[str]:
    for path, methods in told["paths"].items():
        if "get" in methods and "501" not in methods["get"]["responses"] and set(re.findall(r"{(\w+)}", path)) <= set(filled):
            yield path


def test_every_time_that_the_suite_answers_has_one_form(bench: Bench, driver: Driver) -> None:
    prices = {"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"}
    calm = bench.model("calm", reply("ANSWER: 4", usage=(20, 8)), facts=prices)
    torn = bench.model("torn", status(500), reply("ANSWER: 4", usage=(20, 8)), facts=prices)
    bench.load()
    driver.api("POST", "billing/topups", {"amount_cents": 500}, 201)
    driver.api("PATCH", "billing/controls", {"monthly_cap_cents": 400})
    driver.api("PUT", "settings/default_trials", {"value": 1})
    subset = driver.subset(sums(3, wrong=1))
    run = driver.ended(driver.launch(subset, calm, limits={"run": {"cost": 1}}, metadata={"by": "kim"})["id"])
    tried = driver.ended(driver.launch(subset, torn, trials=2)["id"])
    replayed = driver.ended(driver.api("POST", "runs", {"replay": {"from_run": run["id"]}, "sut": calm}, 201)["id"])
    halted = driver.launch(subset, calm, limits={"run": {"cost": 1e-9}})["id"]
    driver.ended(halted, "halted")
    driver.api("POST", f"runs/{run['id']}/rescore", {})
    sweep = driver.api("POST", "sweeps", {"anchor": run["id"], "models": [calm, torn]}, 201)
    driver.api("PATCH", f"build/subsets/{subset['id']}/recipe", {"config": {"trials": 2}, "note": "twice"})
    gone = driver.ended(driver.launch(subset, calm)["id"])["id"]
    assert driver.send("DELETE", f"runs/{gone}?confirm={gone}").status == 204

    filled = {
        "task": driver.api("GET", f"runs/{run['id']}/tasks")["data"][0]["id"],
        "benchmark": subset["benchmark"],
        "subset": subset["id"],
        "slug": subset["id"],
        "impl": run["impl"]["id"],
        "key": "default_trials",
        "sweep": sweep["id"],
        "topup_id": driver.api("GET", "billing/topups")["data"][0]["id"],
    }
    more = {
        "/v1/impls": f"?subset={subset['id']}",
        "/v1/compare": f"?runs={run['id']},{replayed['id']}",
        "/v1/benchmarks/{benchmark}/coverage": "?range=0-2",
        "/v1/runs/{run}/gate": "?require=pass_rate=0.5",
        "/v1/runs/{run}": "?expand=summary,benchmark,subset",
    }
    told = driver.api("GET", "openapi.json")
    held, read = Held(), 0
    for one in (run["id"], tried["id"], replayed["id"], halted, gone):
        here = filled | {"run": one, "artifact": ""}
        for path in gets(told, here):
            if "{run}" not in path and one != run["id"]:
                continue
            if "{artifact}" in path:
                continue
            address = path.removeprefix("/v1/").format(**here) + more.get(path, "")
            for answer in (driver.send("GET", address), driver.send("GET", address, accept="text/event-stream")):
                said = answer.json if "json" in answer.headers["content-type"] else answer.text
                held.look(said, address)
                read += 1
        for artifact in driver.api("GET", f"runs/{one}/artifacts?include_versions=true")["data"] if one != gone else ():
            content = driver.send("GET", f"runs/{one}/artifacts/{artifact['id']}/content")
            assert content.status == 200
            lines = content.text.splitlines() if content.headers["content-type"].startswith("application/x-ndjson") else []
            for said in [json.loads(line) for line in lines] or [content.text]:
                held.look(said, artifact["name"])
            read += 1
    assert not held.wrong
    assert held.count > 300
    assert read > 100


def test_what_says_until_when_a_key_holds_has_the_form(bench: Bench, driver: Driver) -> None:
    body = {"name": "sums", "category": "math"}
    first = driver.send("POST", "benchmarks", body, idempotency_key="once")
    again = driver.send("POST", "benchmarks", body, idempotency_key="once")
    assert again.headers["idempotent-replayed"] == "true"
    assert TIME.fullmatch(first.headers["idempotency-expires"])
    assert TIME.fullmatch(again.headers["idempotency-expires"])
    assert first.json == again.json
    held = Held()
    held.look(first.json, "benchmarks")
    assert (held.count, held.wrong) == (2, [])


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ("2026-11-30T19:53:08.123456+00:00", "2026-11-30T19:53:08.123Z"),
        ("2026-11-30T19:53:08+00:00", "2026-11-30T19:53:08.000Z"),
        ("2026-11-30T19:53:08.123Z", "2026-11-30T19:53:08.123Z"),
        ("2026-11-30T20:53:08.999999+01:00", "2026-11-30T19:53:08.999Z"),
        (None, None),
    ],
)
def test_runs_that_were_made_before_say_it_so_too_and_stay_the_same(kept: str | None, said: str | None) -> None:
    at = datetime(2026, 11, 30, tzinfo=UTC)
    parent = Benchmark(pk="bm_1", name="Sums", owner="kim", created_at=at, updated_at=at)
    subset = Subset(pk="sub_1", benchmark=parent, slug="all", created_at=at, updated_at=at)
    impl = Impl(pk="imp_1", digest="d", language="builtin", grader={"kind": "math"}, benchmark=parent, subset=subset)
    phase = {"name": "Materialize", "status": "ok", "started_at": kept, "finished_at": kept, "cost": None, "model": None}
    run = Run(pk="run_1", benchmark=parent, subset=subset, impl=impl, version=1, selection={"digest": "s"}, sut={}, created_at=at, launch={}, phases=[phase])
    before = fingerprint(run)
    told = shapes.run(run)["phases"]
    assert [(one["started_at"], one["finished_at"]) for one in told] == [(said, said)]
    assert {**told[0], "started_at": kept, "finished_at": kept} == phase
    assert fingerprint(run) == before
