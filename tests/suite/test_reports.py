"""What a run leaves for people: its files, its report, what it cost."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest

from tests.fake import reply, status
from tests.http import Reply
from tests.live import Bench
from tests.suite.driving import Driver, sums
from tests.suite.test_scorers import one_method

PRICED = {"input_usd_per_mtok": "1", "output_usd_per_mtok": "2"}
FOUR = reply("ANSWER: 4", usage=(20, 8))
EVIL = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\u202egnp.exe {{ 7*7 }} <b>bold</b> ANSWER: 3"


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


def raw(driver: Driver, path: str, method: str = "GET", **headers: str) -> Reply:
    return driver.send(method, path, **headers)


def test_a_run_leaves_files_by_their_content(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR, facts=PRICED)
    bench.load()
    run = driver.ended(driver.launch(driver.subset(sums(3, wrong=1)), model)["id"])["id"]
    listed = driver.api("GET", f"runs/{run}/artifacts")["data"]
    assert {a["type"]: a["name"] for a in listed} == {
        "task_impl": "grader.json",
        "dataset": "dataset.jsonl",
        "recipe": "recipe.json",
        "log": "events.jsonl",
        "transcript": "transcript.jsonl",
        "report": "report.html",
    }
    files = {}
    for artifact in listed:
        answer = raw(driver, f"runs/{run}/artifacts/{artifact['id']}/content")
        assert (answer.status, hashlib.sha256(answer.body).hexdigest(), len(answer.body)) == (200, artifact["digest"], artifact["size"])
        assert answer.headers["etag"] == f'"{artifact["digest"]}"'
        assert answer.headers["content-disposition"].startswith(f'attachment; filename="{artifact["name"]}"')
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer.headers["content-security-policy"]
        files[artifact["type"]] = answer.body
    assert driver.api("GET", f"runs/{run}/artifacts/{listed[0]['id']}") == listed[0]
    rows = [json.loads(row) for row in files["dataset"].splitlines()]
    again = driver.subset(rows)
    assert again["digest"] == driver.api("GET", f"runs/{run}?expand=subset")["subset"]["digest"], "the rows can be sent again as they are"
    said = [json.loads(row) for row in files["transcript"].splitlines()]
    assert [(s["task_id"], s["output"], s["outcome"]) for s in said] == [
        ("t0", "ANSWER: 4", "failed"),
        ("t1", "ANSWER: 4", "passed"),
        ("t2", "ANSWER: 4", "passed"),
    ]
    assert json.loads(files["log"].splitlines()[-1])["type"] == "RunFinished"
    assert json.loads(files["recipe"])["sut"]["model"] == model
    assert json.loads(files["task_impl"]) == {"kind": "math"}


def test_a_file_is_given_whole_in_part_or_not_again(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    run = driver.ended(driver.launch(driver.subset(sums(2)), model)["id"])["id"]
    (artifact,) = driver.api("GET", f"runs/{run}/artifacts?type=dataset")["data"]
    path = f"runs/{run}/artifacts/{artifact['id']}/content"
    whole = raw(driver, path).body
    size = len(whole)
    for asked, wanted in (("bytes=0-9", whole[:10]), ("bytes=10-", whole[10:]), ("bytes=-5", whole[-5:]), (f"bytes=5-{size * 2}", whole[5:])):
        part = raw(driver, path, Range=asked)
        assert (part.status, part.body) == (206, wanted), asked
        assert part.headers["content-range"].endswith(f"/{size}")
    assert raw(driver, path, Range=f"bytes={size}-").status == 416
    for ignored in ("bytes=5-1,7-9", "lines=1-2", "bytes=-"):
        assert raw(driver, path, Range=ignored).body == whole, ignored
    assert raw(driver, path, Range="bytes=0-1", If_Range='"another"').body == whole
    assert raw(driver, path, If_None_Match=f'"{artifact["digest"]}"').status == 304
    head = raw(driver, path, "HEAD")
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(size))


def test_another_scoring_is_another_version_and_the_old_one_stays(bench: Bench, driver: Driver) -> None:
    model = bench.model("close", reply("ANSWER: 4.001", usage=(20, 8)))
    bench.load()
    run = driver.ended(driver.launch(driver.subset(sums(2)), model)["id"])["id"]
    before = driver.api("GET", f"runs/{run}/artifacts?type=report")["data"]
    driver.api("POST", f"runs/{run}/rescore", {"grader": {"kind": "math", "tolerance": 0.01}})
    (now,) = driver.api("GET", f"runs/{run}/artifacts?type=report")["data"]
    assert (before[0]["version"], now["version"]) == (1, 2)
    every = driver.api("GET", f"runs/{run}/artifacts?type=report&include_versions=true")["data"]
    assert [a["id"] for a in every] == [before[0]["id"], now["id"]]
    assert b"100.0%" in raw(driver, f"runs/{run}/report").body
    assert b"0.0%" in raw(driver, f"runs/{run}/artifacts/{before[0]['id']}/content").body


def test_what_goes_with_a_run_and_what_is_nobody_elses(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    run = driver.ended(driver.launch(driver.subset(sums(1)), model)["id"])["id"]
    (artifact,) = driver.api("GET", f"runs/{run}/artifacts?type=transcript")["data"]
    other = Driver(bench, bench.key(owner="somebody", scopes=["runs:read", "artifacts:read"]))
    for path in ("artifacts", f"artifacts/{artifact['id']}", f"artifacts/{artifact['id']}/content", "report", "cost"):
        assert other.send("GET", f"runs/{run}/{path}").status == 404, path
    bare = Driver(bench, bench.key(scopes=["runs:read"]))
    assert bare.send("GET", f"runs/{run}/artifacts").json["required_scope"] == "artifacts:read"
    assert driver.send("GET", f"runs/{run}/artifacts?type=novel").status == 422
    assert driver.send("GET", f"runs/{run}/artifacts?colour=red").json["code"] == "unknown_filter"
    assert driver.send("GET", f"runs/{run}/artifacts/art_00000000000000000000000000").json["code"] == "artifact_not_found"
    driver.send("DELETE", f"runs/{run}?confirm={run}")
    assert bench.live.rows("suite.Blob", digest=artifact["digest"]) == []
    for path in ("artifacts", f"artifacts/{artifact['id']}/content", "report"):
        assert driver.send("GET", f"runs/{run}/{path}").status == 404, path


def test_a_hidden_scorer_is_no_file_for_others(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR)
    bench.load()
    code = one_method()
    benchmark = driver.benchmark()["id"]
    subset = driver.api("POST", f"benchmarks/{benchmark}/subsets", {"slug": "s", "tasks": sums(1)}, 201)
    driver.api("POST", "impls", {"subset": subset["id"], "code": f"{code}# {benchmark}\n", "hidden": True}, 201)
    answer = driver.send("POST", "runs", {"benchmark": benchmark, "subset": subset["id"], "sut": model})
    if answer.status == 422 and answer.json["code"] == "sandbox_unavailable":
        pytest.skip("no sandbox here")
    run = driver.ended(answer.json["id"])["id"]
    driver.api("POST", f"runs/{run}/publish", {"override": "whatever it scores, others may not read it"})
    (mine,) = driver.api("GET", f"runs/{run}/artifacts?type=task_impl")["data"]
    assert (mine["name"], raw(driver, f"runs/{run}/artifacts/{mine['id']}/content").status) == ("task_impl.py", 200)
    other = Driver(bench, bench.key(owner="somebody", scopes=["runs:read", "artifacts:read", "registry:read"]))
    assert "task_impl" not in [a["type"] for a in other.api("GET", f"runs/{run}/artifacts")["data"]]
    assert other.send("GET", f"runs/{run}/artifacts/{mine['id']}/content").status == 404
    assert other.send("GET", f"impls/{answer.json['impl']['id']}/code").status == 404


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", re.sub(r"<style>.*?</style>", " ", html, flags=re.S)))


def test_a_report_says_the_rate_with_its_interval_and_what_to_mind(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm", FOUR, FOUR, FOUR, reply("let me think", finish="length"), FOUR)
    bench.load()
    tasks = [{**row, "cluster": f"repo-{i % 2}"} for i, row in enumerate(sums(20, wrong=4))]
    run = driver.ended(driver.launch(driver.subset(tasks), model, metadata={"limit": 18})["id"])
    answer = raw(driver, f"runs/{run['id']}/report")
    told = text_of(answer.body.decode())
    rate, ends = run["summary"]["pass_rate"], run["summary"]["ci95"]
    for word in (
        f"{rate:.1%}",
        f"{ends[0]:.1%}",
        f"{ends[1]:.1%}",
        "an interval over 2 clusters",
        "truncated",
        "repo-1",
        run["fingerprint"],
        run["impl"]["id"],
        "limited",
    ):
        assert word in told, word
    assert "17 scored tasks are few" in told
    assert "Coverage is 94.4%" in told
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert re.search(r"sandbox; default-src 'none'", answer.headers["content-security-policy"])
    assert raw(driver, f"runs/{run['id']}/report", If_None_Match=answer.headers["etag"]).status == 304


def test_what_models_and_authors_wrote_is_only_text_in_a_report(bench: Bench, driver: Driver) -> None:
    model = bench.model("evil", reply(EVIL, usage=(20, 8)))
    bench.load()
    benchmark = driver.benchmark("<script>alert(0)</script>")["id"]
    task = {"task_id": "a<svg onload=alert(3)>", "input": {"question": f"2 + 2? {EVIL}\u0000"}, "expected": {"value": 4}, "cluster": "<i>c</i>"}
    run = driver.ended(driver.launch(driver.subset([task], benchmark), model)["id"])["id"]
    html = raw(driver, f"runs/{run}/report").body.decode()
    assert not re.search(r"<(script|img|svg onload|b>|i>)", html)
    assert "\u202e" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "\\u202egnp.exe {{ 7*7 }}" in html
    assert "\\u0000" in html
    assert not re.search(r"(src|href|url\()\s*=?\s*[\"']?(https?:)?//", html), "nothing is fetched from anywhere"


def test_a_run_under_way_or_without_a_score_has_a_report_too(bench: Bench, driver: Driver) -> None:
    gone = bench.model("gone", status(404, {"error": {"message": "no <such> model"}}))
    bench.load()
    run = driver.launch(driver.subset(sums(10)), gone)["id"]
    assert b"still under way" in raw(driver, f"runs/{run}/report").body or driver.api("GET", f"runs/{run}")["status"] == "failed"
    driver.ended(run, "failed")
    html = raw(driver, f"runs/{run}/report").body.decode()
    assert "nothing was scored" in text_of(html)
    assert "does not answer" in html
    assert "<such>" not in html


def test_what_a_run_cost_and_for_what(bench: Bench, driver: Driver) -> None:
    model, free = bench.model("calm", status(500), FOUR, facts=PRICED), bench.model("unpriced", FOUR)
    bench.load()
    run = driver.ended(driver.launch(driver.subset(sums(3)), model)["id"])["id"]
    bench.live.attempts(4, model=model)
    told = driver.api("GET", f"runs/{run}/cost")
    assert (told["metered_usd"], told["ledger_usd"], told["billed"], told["complete"]) == ("0.000108", "0.000108", {"amount_cents": 0, "currency": "USD"}, True)
    purposes: dict[str, Any] = {p["purpose"]: p for p in told["purposes"]}
    assert list(purposes) == ["trace", "judge", "driver"]
    assert (purposes["trace"]["calls"], purposes["trace"]["failed"], purposes["trace"]["cost_usd"]) == (4, 1, "0.000108")
    assert (purposes["trace"]["tokens"]["input"], purposes["trace"]["tokens"]["output"]) == (60, 24)
    assert (purposes["trace"]["models"][0]["model"], purposes["judge"]["calls"]) == (model, 0)
    other = driver.ended(driver.launch(driver.subset(sums(1)), free)["id"])["id"]
    bench.live.attempts(1, model=free)
    told = driver.api("GET", f"runs/{other}/cost")
    assert (told["complete"], told["unpriced"], told["cost_usd"]) == (False, 1, "0")


def test_a_requeued_runs_files_are_made_anew(bench: Bench, driver: Driver) -> None:
    model = bench.model("shaky", FOUR, status(500), status(500), FOUR)
    bench.load()
    run = driver.ended(driver.launch(driver.subset(sums(3)), model, limits={"task": {"attempts": 1}})["id"])["id"]
    before = driver.api("GET", f"runs/{run}/artifacts?type=transcript")["data"][0]["digest"]
    bench.fake.script(model, FOUR)
    driver.api("POST", f"runs/{run}/requeue", {}, 202)
    driver.ended(run)
    after = driver.api("GET", f"runs/{run}/artifacts?type=transcript")["data"][0]
    assert after["digest"] != before
    assert b'"outcome":"infrastructure"' in raw(driver, f"runs/{run}/artifacts/{after['id']}/content").body, "the superseded ones are told as well"
