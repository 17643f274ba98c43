"""What a run's summary says of review work: by origin, by pair, by which way an answer was wrong."""

from __future__ import annotations

from typing import Any

import pytest

from suite.review import scores
from suite.review.scores import Answered, Member
from tests.fake import reply
from tests.live import Bench
from tests.suite.driving import Driver

CODE = "def double(n):\n    total = n + n\n    return total\n"


def half(pair: str, lines: list[int], origin: str = "planted") -> dict[str, Any]:
    return {
        "task_id": f"{origin}-{pair}-{len(lines)}",
        "input": {"code": CODE.replace("double", f"f{pair}"), "canary": "canary 1234"},
        "expected": {"lines": lines},
        "source": {"origin": origin, "pair": pair, "path": f"{pair}.py"},
        "cluster": pair,
    }


def test_planted_and_real_faults_have_figures_of_their_own(bench: Bench) -> None:
    driver = Driver(bench)
    model = bench.model("reviewer", reply("It is the second.\nANSWER: 2"))
    bench.load()
    rows = [half(str(i), lines) for i in range(3) for lines in ([2], [])] + [half("9", [1], "real"), half("9", [], "real")]
    subset = driver.subset(rows, grader={"kind": "review_line"})
    told = driver.ended(driver.launch(subset, model)["id"])["summary"]["review"]
    assert set(told) == {"planted", "real"}
    planted = told["planted"]
    assert (planted["faulty"], planted["clean"], planted["pairs"]) == (3, 3, 3)
    assert (planted["recall"]["rate"], planted["specificity"]["rate"], planted["pair_accuracy"]["rate"], planted["balanced_accuracy"]) == (1.0, 0.0, 0.0, 0.5)
    assert planted["confident_wrong"]["rate"] == 0.5
    assert (told["real"]["recall"]["rate"], told["real"]["confident_wrong"]["rate"]) == (0.0, 1.0)
    asked = bench.fake.calls_to(model)[0].json["messages"][0]["content"]
    assert asked.startswith("[canary 1234]\n\n")
    assert "planted" not in asked, "who is asked learns nothing of how it was made"


def test_other_kinds_have_no_such_figures(bench: Bench) -> None:
    driver = Driver(bench)
    model = bench.model("calm", reply("ANSWER: 4"))
    bench.load()
    subset = driver.subset([{"task_id": "a", "input": {"question": "2 + 2?"}, "expected": {"value": 4}}])
    assert driver.ended(driver.launch(subset, model)["id"])["summary"]["review"] is None


def answered(pair: str, is_faulty: bool, is_right: bool, cluster: str = "") -> Answered:
    return Answered(Member("real", pair, is_faulty), is_right, not is_right, cluster)


CASES = [
    ("a half alone makes no pair", [answered("a", True, True)], (0, None, None)),
    ("both halves right", [answered("a", True, True), answered("a", False, True)], (1, 1.0, 1.0)),
    ("always NONE", [answered(p, f, not f) for p in "abcd" for f in (True, False)], (4, 0.0, 0.5)),
    ("one of two pairs", [answered("a", True, True), answered("a", False, True), answered("b", True, True), answered("b", False, False)], (2, 0.5, 0.75)),
    ("two halves of one kind", [answered("a", True, True), answered("a", True, True), answered("b", False, True)], (0, None, 1.0)),
]


@pytest.mark.parametrize(("why", "found", "expected"), CASES, ids=[c[0] for c in CASES])
def test_a_pair_is_right_only_with_both_halves(why: str, found: list[Answered], expected: tuple[int, float | None, float | None]) -> None:
    told = scores.figures(found)
    assert (told["pairs"], told["pair_accuracy"]["rate"], told["balanced_accuracy"]) == expected


def test_an_interval_is_wider_where_tasks_come_in_clusters() -> None:
    alone = scores.rate([(i % 2 == 0, "") for i in range(40)])
    together = scores.rate([(i < 20, "a" if i < 20 else "b" if i < 30 else "c") for i in range(40)])
    assert together["ci95"][1] - together["ci95"][0] > alone["ci95"][1] - alone["ci95"][0]
    assert scores.rate([])["rate"] is None
