"""Benchmarks made through the public door: rows of every kind, and of no kind."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from tests.live import Bench
from tests.suite.driving import Driver, sums


@pytest.fixture
def driver(bench: Bench) -> Driver:
    return Driver(bench)


def row(**more: Any) -> dict[str, Any]:
    return {"task_id": "a", "input": {"question": "2 + 2?"}, "expected": {"value": 4}, **more}


BAD_ROWS: list[tuple[list[Any], str, str]] = [
    ([row(task_id="")], "invalid_row", "/tasks/0/task_id"),
    ([row(task_id="x" * 256)], "invalid_row", "/tasks/0/task_id"),
    ([row(task_id="a\u0007")], "invalid_row", "/tasks/0/task_id"),
    ([row(), row()], "duplicate_task_id", "/tasks/1/task_id"),
    ([row(), row(task_id="b", speed=3)], "invalid_row", "/tasks/1/speed"),
    ([{"task_id": "a"}], "invalid_row", "/tasks/0/input"),
    ([row(expected={"value": "four"})], "invalid_row", "/tasks/0/expected/value"),
    ([row(input={"question": "?", "kind": "math"}, expected={"value": 4, "kind": "claim"})], "invalid_row", "/tasks/0/expected/kind"),
    ([row(source={"licence": 3})], "invalid_row", "/tasks/0/source/licence"),
    ([row(source={"colour": "red"})], "invalid_row", "/tasks/0/source/colour"),
    (["row"], "invalid_row", "/tasks/0"),
    ([row(task_id=str(i)) for i in range(1001)], "too_many_tasks", "/tasks"),
]


@pytest.mark.parametrize(("tasks", "code", "pointer"), BAD_ROWS)
def test_a_wrong_row_takes_none_and_is_named(driver: Driver, tasks: list[Any], code: str, pointer: str) -> None:
    benchmark = driver.benchmark()["id"]
    answer = driver.send("POST", f"benchmarks/{benchmark}/subsets", {"slug": "s", "tasks": tasks, "grader": {"kind": "math"}})
    assert (answer.status, answer.json["code"], answer.json["errors"][0]["pointer"]) == (422, code, pointer)
    assert driver.api("GET", f"benchmarks/{benchmark}/subsets")["data"] == []


def test_a_frozen_subset_takes_no_more_and_never_thaws(driver: Driver) -> None:
    subset = driver.subset(sums(2))
    assert driver.send("POST", f"subsets/{subset['id']}/tasks", {"tasks": [row(task_id="new")]}).json["code"] == "subset_frozen"
    assert driver.send("PATCH", f"subsets/{subset['id']}", {"rolling": True}).status == 409


def test_a_rolling_subset_gets_a_version_with_what_is_new(driver: Driver) -> None:
    subset = driver.subset([], rolling=True)
    assert (subset["version"], subset["runnable"]) == (0, False)
    first = driver.api("POST", f"subsets/{subset['id']}/tasks", {"tasks": sums(3)})
    assert (first["version"], first["added"], first["unchanged"]) == (1, 3, 0)
    same = driver.api("POST", f"subsets/{subset['id']}/tasks", {"tasks": sums(4)})
    assert (same["version"], same["added"], same["unchanged"], same["tasks"]) == (2, 1, 3, 4)
    nothing = driver.api("POST", f"subsets/{subset['id']}/tasks", {"tasks": sums(4)})
    assert (nothing["version"], nothing["added"]) == (2, 0)
    clash = driver.send("POST", f"subsets/{subset['id']}/tasks", {"tasks": [row(task_id="t0")]})
    assert (clash.status, clash.json["code"], clash.json["task_ids"]) == (409, "task_conflict", ["t0"])
    digests = [v["digest"] for v in driver.api("GET", f"registry/subsets/{subset['id']}/versions")["data"]]
    assert len(set(digests)) == 2
    assert [d["task_id"] for d in driver.api("GET", f"registry/subsets/{subset['id']}/diff?from=1&to=2")["data"]] == ["t3"]
    assert driver.api("PATCH", f"subsets/{subset['id']}", {"rolling": False})["rolling"] is False


def test_a_versions_digest_is_of_its_rows_by_the_characters_of_their_ids_on_any_database(driver: Driver) -> None:
    odd = ["z", "Z", "a", "_", "é", "e\u0301\u0323", "ß", "10", "9", "A b", "a-b", "ab", "\U0001f600", "\ufb01", "\uffee"]
    rows = [{**one, "task_id": name} for one, name in zip(sums(len(odd)), odd, strict=True)]
    subset = driver.subset(rows[:7], rolling=True)
    driver.api("POST", f"subsets/{subset['id']}/tasks", {"tasks": rows[7:]})
    told = driver.api("GET", f"build/subsets/{subset['id']}/samples?limit=100")["data"]
    whole = hashlib.sha256()
    for _, digest in sorted((row["task_id"], row["digest"]) for row in told):
        whole.update(bytes.fromhex(digest))
    assert driver.api("GET", f"registry/subsets/{subset['id']}")["digest"] == whole.hexdigest()


def test_the_same_rows_have_the_same_digest_in_any_order(driver: Driver) -> None:
    one, other = driver.subset(sums(5)), driver.subset(list(reversed(sums(5))))
    assert one["digest"] == other["digest"]
    assert one["id"] != other["id"]


def test_rows_come_as_lines_too_also_more_than_a_body_takes(bench: Bench, driver: Driver) -> None:
    import requests

    subset = driver.subset([], rolling=True)
    lines = "\n".join(json.dumps(r) for r in sums(3000)).encode()
    with requests.Session() as session:
        session.trust_env = False
        headers = {"authorization": f"Bearer {driver.key}", "content-type": "application/x-ndjson"}
        answer = session.post(f"{bench.live.url}/v1/subsets/{subset['id']}/tasks", data=lines, headers=headers, timeout=60)
        assert (answer.status_code, answer.json()["tasks"]) == (200, 3000)
        broken = session.post(f"{bench.live.url}/v1/subsets/{subset['id']}/tasks", data=lines + b"\n{oops", headers=headers, timeout=60)
        assert (broken.status_code, broken.json()["code"]) == (422, "invalid_row")


HOSTILE = ["\u0000", "\ud835", "\u202e\u200b", "\U0001f600" * 50, "</script><script>alert(1)</script>", "{{ 7*7 }}", "\\u0000", "=cmd|'/C calc'!A0"]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_kept_as_it_came(bench: Bench, driver: Driver, text: str) -> None:
    from tests.fake import reply

    model = bench.model("calm", reply(f"{text.encode('utf-8', 'replace').decode()} ANSWER: 4"))
    bench.load()
    subset = driver.subset([row(input={"question": f"2 + 2? {text}"})])
    run = driver.ended(driver.launch(subset, model)["id"])
    (task,) = driver.api("GET", f"runs/{run['id']}/tasks")["data"]
    payload = driver.api("GET", f"runs/{run['id']}/tasks/{task['id']}/payload")
    # A lone half of a pair cannot be sent in UTF-8: the door reads it as U+FFFD.
    assert payload["input"]["question"] == f"2 + 2? {text}".replace("\ud835", "\ufffd")


def test_a_grader_that_is_none_is_refused(driver: Driver) -> None:
    benchmark = driver.benchmark()["id"]
    for grader, code in (
        ({"kind": "vibes"}, "grader_unknown"),
        *(({"kind": kind}, "grader_unknown") for kind in (["math"], [], {"math": 1}, {}, 1, 0, 1.5, True, False, "", "MATH")),
        ({"kind": "math", "speed": 1}, "unknown_field"),
        ({"pass_threshold": 0}, "invalid_request"),
        ("math", "invalid_request"),
    ):
        answer = driver.send("POST", f"benchmarks/{benchmark}/subsets", {"slug": "s", "tasks": [], "grader": grader})
        assert (answer.status, answer.json["code"]) == (422, code), grader


def test_a_name_that_shows_nothing_is_none(driver: Driver) -> None:
    made = driver.benchmark()["id"]
    subset = driver.subset([], made)["id"]
    for name in ("", " ", "\u00a0", "\u200b", "\u202e", "\u2060\ufeff", "\t\n"):
        for method, path, more in (
            ("POST", "benchmarks", {}),
            ("PATCH", f"benchmarks/{made}", {}),
            ("PATCH", f"subsets/{subset}", {}),
            *([("POST", f"benchmarks/{made}/subsets", {"slug": "s", "tasks": []})] if name else []),
        ):
            answer = driver.send(method, path, {"name": name, **more})
            assert (answer.status, answer.json["code"]) == (422, "invalid_request"), (path, name)
    assert driver.api("POST", "benchmarks", {"name": "\u200f\u05d0\u05d1"}, 201)["name"] == "\u200f\u05d0\u05d1"


def test_a_subset_without_grader_stands_in_the_catalog_only(bench: Bench, driver: Driver) -> None:
    model = bench.model("calm")
    bench.load()
    benchmark = driver.benchmark()["id"]
    subset = driver.api("POST", f"benchmarks/{benchmark}/subsets", {"slug": "s", "tasks": [row()]}, 201)
    assert subset["runnable"] is False
    assert driver.send("POST", "runs", {"benchmark": benchmark, "subset": subset["id"], "sut": model}).json["code"] == "subset_not_runnable"


def test_rows_of_several_kinds_are_graded_by_their_own(bench: Bench, driver: Driver) -> None:
    from tests.fake import reply

    model = bench.model("calm", reply("ANSWER: 4"))
    bench.load()
    tasks = [
        row(task_id="m", input={"kind": "math", "question": "2 + 2?"}, expected={"kind": "math", "value": 4}),
        row(task_id="c", input={"kind": "claim", "claim": "It adds.", "code": "a + b"}, expected={"kind": "claim", "value": True}),
    ]
    run = driver.ended(driver.launch(driver.subset(tasks, grader={}), model)["id"])
    outcomes = {t["task_id"]: t["outcome"] for t in driver.api("GET", f"runs/{run['id']}/tasks")["data"]}
    assert outcomes == {"m": "passed", "c": "unparsed"}


CODE = """
from bench_task import BenchTask

class Task(BenchTask):
    def extract(self, path, index): return {}
    def solve(self, index, input): return ""
    def score(self, index, output, expected): return 1.0
"""


def test_the_same_scorer_is_the_same_impl(driver: Driver) -> None:
    one = driver.api("POST", "impls", {"code": CODE, "label": "mine"}, 201)
    again = driver.api("POST", "impls", {"code": CODE, "label": "mine too"}, 200)
    other = driver.api("POST", "impls", {"code": CODE + "# changed\n"}, 201)
    assert one["id"] == again["id"] != other["id"]
    assert driver.send("GET", f"impls/{one['id']}/code").body.decode() == CODE


def test_the_same_scorer_serves_each_subset_and_each_author_that_brings_it(bench: Bench, driver: Driver) -> None:
    code = CODE + f"\n# {bench.tag}\n"
    parent = driver.benchmark()["id"]
    one, two = (driver.api("POST", f"benchmarks/{parent}/subsets", {"slug": slug, "tasks": sums(1)}, 201) for slug in ("one", "two"))
    first = driver.api("POST", "impls", {"code": code, "subset": one["id"]}, 201)
    second = driver.api("POST", "impls", {"code": code, "subset": two["id"]}, 201)
    assert (first["subset"], second["subset"]) == (one["id"], two["id"])
    assert driver.api("POST", "impls", {"code": code, "subset": two["id"]}, 200)["id"] == second["id"]
    assert all(driver.api("GET", f"registry/subsets/{subset['id']}")["runnable"] for subset in (one, two))
    scopes = ["registry:publish", "registry:read"]
    other, mate = (Driver(bench, bench.key(owner=f"{bench.tag}-{name}", team=f"{bench.tag}-theirs", scopes=scopes)) for name in ("other", "mate"))
    theirs = other.api("POST", "impls", {"code": code}, 201)
    assert theirs["id"] not in (first["id"], second["id"])
    assert other.api("GET", f"impls/{theirs['id']}")["owner"] == f"{bench.tag}-other"
    assert mate.api("POST", "impls", {"code": code}, 200)["id"] == theirs["id"], "a team has it once"
    assert other.send("GET", f"impls/{first['id']}").status == 404


@pytest.mark.parametrize(
    "code",
    [
        "def f(:",
        "x = 1",
        "class Task: pass",
        "class A(BenchTask):\n  def solve(self, i, x): pass",
        "class A(BenchTask): pass\nclass B(BenchTask): pass",
        "\x00",
    ],
)
def test_a_scorer_that_cannot_be_one_is_refused_before_it_is_run(driver: Driver, code: str) -> None:
    answer = driver.send("POST", "impls", {"code": code})
    assert (answer.status, answer.json["code"]) == (422, "invalid_impl")


def test_what_was_measured_by_is_not_deleted(bench: Bench, driver: Driver) -> None:
    from tests.fake import reply

    model = bench.model("calm", reply("ANSWER: 4"))
    bench.load()
    subset = driver.subset(sums(1))
    driver.ended(driver.launch(subset, model)["id"])
    assert driver.send("DELETE", f"benchmarks/{subset['benchmark']}").json["code"] == "benchmark_in_use"
    assert driver.send("DELETE", f"subsets/{subset['id']}").json["code"] == "subset_in_use"
    unused = driver.subset(sums(1))
    assert driver.send("DELETE", f"subsets/{unused['id']}").status == 204
    assert driver.send("GET", f"registry/subsets/{unused['id']}").status == 404


def test_a_slug_stands_once_in_a_benchmark(driver: Driver) -> None:
    one = driver.subset(sums(1), slug="v1")
    again = driver.send("POST", f"benchmarks/{one['benchmark']}/subsets", {"slug": "v1", "tasks": sums(1)})
    assert (again.status, again.json["code"]) == (409, "slug_taken")
    assert driver.subset(sums(1), slug="v1")["slug"] == "v1", "another benchmark has its own"
    for slug in ("", "-x", "a b", "a/b", "x" * 121):
        assert driver.send("POST", f"benchmarks/{one['benchmark']}/subsets", {"slug": slug, "tasks": []}).status == 422, slug


def test_an_id_is_composed_and_may_be_anything_that_prints(driver: Driver) -> None:
    odd = ["bm_x::cafe\u0301", "\u4e2d\u6587 / 1", "a?b#c&d", "x" * 255]
    subset = driver.subset([row(task_id=name) for name in odd])
    kept = [r["task_id"] for r in driver.api("GET", f"build/subsets/{subset['id']}/samples")["data"]]
    assert kept == ["bm_x::caf\u00e9", *odd[1:]]
    twice = driver.send("POST", f"benchmarks/{subset['benchmark']}/subsets", {"slug": "t", "tasks": [row(task_id="caf\u00e9"), row(task_id="cafe\u0301")]})
    assert (twice.status, twice.json["code"], twice.json["indexes"]) == (422, "duplicate_task_id", [1]), "composed they are one"
