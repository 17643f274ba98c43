"""What may be concluded from scores, by tables of known values and by playing chance."""

from __future__ import annotations

import random
from math import isinf

import pytest

from suite.statistics import gates, intervals, multiple, paired, power, reducers, selfcheck


@pytest.mark.parametrize(
    ("passed", "scored", "low", "high"), [(164, 200, 0.761, 0.867), (20, 20, 0.839, 1.0), (0, 20, 0.0, 0.161), (1, 1, 0.207, 1.0), (50, 100, 0.404, 0.596)]
)
def test_a_rate_has_wilsons_interval(passed: int, scored: int, low: float, high: float) -> None:
    found = intervals.wilson(passed, scored)
    assert found is not None
    assert (round(found.low, 3), round(found.high, 3)) == (low, high)
    assert found.estimate == passed / scored


def test_nothing_scored_has_no_rate_and_an_impossible_one_is_refused() -> None:
    assert intervals.wilson(0, 0) is None
    assert intervals.mean([]) is None
    with pytest.raises(ValueError, match="no rate"):
        intervals.wilson(3, 2)


@pytest.mark.parametrize(("freedom", "t"), [(1, 12.706), (2, 4.303), (5, 2.571), (9, 2.262), (30, 2.042), (199, 1.972), (100_000, 1.960)])
def test_students_t_is_the_tables(freedom: int, t: float) -> None:
    assert round(intervals.student(0.975, freedom), 3) == t


def test_a_mean_of_independent_scores_has_the_usual_standard_error() -> None:
    found = intervals.mean([0.0, 0.5, 1.0, 1.0, 0.25])
    assert found is not None
    assert found.stderr is not None
    assert found.estimate == 0.55
    assert round(found.stderr, 6) == 0.2  # sd 0.447214 over the root of 5
    assert round(found.high - found.estimate, 4) == round(2.7764 * 0.2, 4)


def test_clusters_widen_what_they_repeat() -> None:
    scores = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    alone, together = intervals.mean(scores), intervals.mean(scores, ["a"] * 4 + ["b"] * 4)
    assert alone
    assert together
    assert alone.stderr
    assert together.stderr
    assert together.stderr > 2 * alone.stderr
    assert together.clusters == 2


def test_one_cluster_tells_nothing_of_its_error() -> None:
    found = intervals.mean([1.0, 0.0], ["a", "a"])
    assert found is not None
    assert found.stderr is None
    assert isinf(found.low)
    assert isinf(found.high)


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    draw, held, tries = random.Random(5), 0, 400
    for _ in range(tries):
        values, clusters = [], []
        for cluster in range(30):
            likes = draw.random() < 0.6
            for _ in range(draw.randint(1, 6)):
                values.append(float(draw.random() < (0.9 if likes else 0.1)))
                clusters.append(cluster)
        found = intervals.mean(values, clusters)
        assert found is not None
        held += found.low <= 0.58 <= found.high
    assert held / tries > 0.9


@pytest.mark.parametrize(("truth", "alike", "groups", "size"), [(0.1, 0.3, 30, 5), (0.05, 0.3, 12, 6), (0.9, 0.6, 40, 2), (0.5, 0.5, 30, 5), (0.3, 0.4, 8, 10)])
def test_intervals_of_clustered_rates_hold_the_truth_near_the_ends_too(truth: float, alike: float, groups: int, size: int) -> None:
    draw, held, tries = random.Random(11), 0, 300
    for _ in range(tries):
        passes, clusters = [], []
        for cluster in range(groups):
            here = draw.betavariate(truth * (1 - alike) / alike, (1 - truth) * (1 - alike) / alike)
            for _ in range(size):
                passes.append(draw.random() < here)
                clusters.append(cluster)
        found = intervals.rate(passes, clusters)
        assert found is not None
        assert 0 <= found.low <= found.estimate <= found.high <= 1
        held += found.low <= truth <= found.high
    assert held / tries > 0.91


@pytest.mark.parametrize(
    ("truth", "alike", "groups", "kind"), [(0.1, 0.3, 12, "big"), (0.5, 0.05, 50, "big"), (0.5, 0.3, 12, "uneven"), (0.1, 0.8, 20, "uneven")]
)
def test_intervals_of_rates_hold_the_truth_where_clusters_differ_in_size(truth: float, alike: float, groups: int, kind: str) -> None:
    draw, held, tries = random.Random(3), 0, 300
    for _ in range(tries):
        passes, clusters = [], []
        for cluster in range(groups):
            size = draw.randint(1, 30) if kind == "uneven" else 4 * groups if cluster == 0 else 4
            here = draw.betavariate(truth * (1 - alike) / alike, (1 - truth) * (1 - alike) / alike)
            passes += [draw.random() < here for _ in range(size)]
            clusters += [cluster] * size
        found = intervals.rate(passes, clusters)
        assert found is not None
        held += found.low <= truth <= found.high
    assert held / tries > 0.9  # one cluster with half of all outcomes: 0.76 while each counted as one


@pytest.mark.parametrize("groups", [8, 12])
def test_few_clusters_of_equals_are_seldom_found_to_differ(groups: int) -> None:
    draw, alarms, tries = random.Random(4), 0, 200
    for seed in range(tries):
        one, other, clusters = {}, {}, {}
        for cluster in range(groups):
            chance = draw.betavariate(0.7, 0.7)
            for i in range(draw.randint(1, 6)):
                name = f"{cluster}.{i}"
                clusters[name] = cluster
                one[name], other[name] = (float(draw.random() < chance) for _ in range(2))
        alarms += paired.compare(one, other, clusters, seed=seed).verdict != "inconclusive"
    assert alarms / tries < 0.085


@pytest.mark.parametrize(("freedom", "t"), [(1.3, 7.5005), (2.7, 3.3921), (6.7, 2.3863), (40.2, 2.0208)])
def test_students_t_takes_parts_of_a_degree(freedom: float, t: float) -> None:
    assert round(intervals.student(0.975, freedom), 4) == t


@pytest.mark.parametrize("all_are", [True, False])
def test_what_all_clusters_agree_on_is_not_certain(all_are: bool) -> None:
    found = intervals.rate([all_are] * 40, [i // 2 for i in range(40)])
    alone = intervals.wilson(40 if all_are else 0, 40)
    assert found
    assert alone
    assert found.high - found.low > alone.high - alone.low > 0.05
    one = intervals.rate([all_are] * 9, ["only"] * 9)
    assert one
    assert (one.low, one.high, one.stderr) == (0.0, 1.0, None)
    assert intervals.rate([], []) is None


@pytest.mark.parametrize(("wins", "losses", "p"), [(10, 2, 0.0386), (5, 0, 0.0625), (6, 0, 0.0313), (7, 7, 1.0), (0, 0, 1.0), (2, 10, 0.0386), (1, 0, 1.0)])
def test_mcnemar_is_exact(wins: int, losses: int, p: float) -> None:
    assert abs(paired.mcnemar(wins, losses) - p) < 6e-5


def test_mcnemar_of_very_many_tasks_is_a_number() -> None:
    assert 0.0 < paired.mcnemar(3_100, 3_000) < 1.0


def runs(n: int, wins: int, losses: int) -> tuple[dict[str, float], dict[str, float]]:
    first = {f"t{i}": float(i < wins or i >= wins + losses) for i in range(n)}
    second = {f"t{i}": float(i >= wins) for i in range(n)}
    return first, second


def test_a_clear_difference_is_found_and_named_from_the_firsts_side() -> None:
    first, second = runs(100, 20, 3)
    found = paired.compare(first, second)
    assert (found.verdict, found.method, found.wins, found.losses, found.ties) == ("better", "mcnemar", 20, 3, 77)
    assert found.difference
    assert round(found.difference.estimate, 2) == 0.17
    assert paired.compare(second, first).verdict == "worse"


def test_a_thin_difference_is_inconclusive_and_says_what_could_have_been_seen() -> None:
    found = paired.compare(*runs(50, 5, 2))
    assert found.verdict == "inconclusive"
    assert found.detectable is not None
    assert 0.1 < found.detectable < 0.2


@pytest.mark.parametrize(("n", "wins", "losses"), [(2, 1, 0), (4, 3, 0), (4, 0, 3), (3, 2, 1), (10, 9, 0)])
def test_a_difference_of_few_tasks_lies_within_what_scores_can_differ_by(n: int, wins: int, losses: int) -> None:
    found = paired.compare(*runs(n, wins, losses)).difference
    assert found
    assert -1 <= found.low <= found.estimate <= found.high <= 1


def test_only_shared_tasks_count() -> None:
    found = paired.compare({"a": 1.0, "b": 1.0, "x": 1.0}, {"a": 0.0, "b": 1.0, "y": 0.0, "z": 0.0})
    assert (found.shared, found.only_first, found.only_second) == (2, 1, 2)
    assert paired.compare({"a": 1.0}, {"b": 1.0}).reason


def test_clustered_tasks_need_more_than_a_few_clusters() -> None:
    first, second = runs(100, 30, 0)
    found = paired.compare(first, second, {f"t{i}": i % 4 for i in range(100)})
    assert (found.verdict, found.p) == ("inconclusive", None)
    assert "clusters" in found.reason


def test_the_same_seed_finds_the_same() -> None:
    draw = random.Random(3)
    first, second = ({f"t{i}": draw.random() for i in range(60)} for _ in range(2))
    clusters = {f"t{i}": i // 4 for i in range(60)}
    assert paired.compare(first, second, clusters, seed=9) == paired.compare(first, second, clusters, seed=9)


def test_equals_are_seldom_called_different() -> None:
    draw, alarms = random.Random(11), 0
    for n in range(60):
        clusters = {f"t{i}": i // 5 for i in range(150)}
        mood = [draw.random() for _ in range(30)]
        one, other = ({t: float(draw.random() < mood[c]) for t, c in clusters.items()} for _ in range(2))
        alarms += paired.compare(one, other, clusters, seed=n).verdict != "inconclusive"
    assert alarms <= 9  # 3 are expected


@pytest.mark.parametrize(
    ("n", "c", "k", "at", "hat"), [(5, 2, 3, 0.9, 0.0), (10, 3, 5, 0.9167, 0.0), (8, 6, 3, 1.0, 0.3571), (3, 3, 3, 1.0, 1.0), (4, 0, 2, 0.0, 0.0)]
)
def test_pass_at_k_and_pass_hat_k(n: int, c: int, k: int, at: float, hat: float) -> None:
    found, strict = reducers.pass_at_k(n, c, k), reducers.pass_hat_k(n, c, k)
    assert found is not None
    assert strict is not None
    assert (round(found, 4), round(strict, 4)) == (at, hat)


def test_more_than_was_tried_is_unknown_never_one() -> None:
    assert reducers.pass_at_k(2, 2, 3) is None
    assert reducers.pass_hat_k(2, 2, 3) is None
    assert reducers.average([]) is None
    with pytest.raises(ValueError, match="cannot be"):
        reducers.pass_at_k(2, 3, 1)


def test_a_majority_is_one_that_leads_alone() -> None:
    assert reducers.majority(["a", "b", "a"]) == "a"
    assert reducers.majority(["a", "b"]) is None
    assert reducers.majority([]) is None


def test_holm_adjusts_in_order_and_never_lowers() -> None:
    assert multiple.holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})
    assert multiple.holm({}) == {}


def test_how_many_tasks_a_difference_needs() -> None:
    needed = power.tasks_needed(0.05, 0.2)
    assert 600 < needed < 640
    with pytest.raises(ValueError, match="difference"):
        power.tasks_needed(0.3, 0.2)


@pytest.mark.parametrize(
    "text", ["", "pass_rate", "pass_rate=", "pass_rate=x", "pass_rate=nan", "pass_rate=1.2", "speed=3", "cost=-1", "pass_rate>=0.9", "pass_rate=1e999"]
)
def test_a_gate_that_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(gates.GateError):
        gates.read(text)


def test_a_gate_goes_by_the_figure_and_warns_where_that_is_thin() -> None:
    gate, found = gates.read("pass_rate=0.90"), intervals.wilson(28, 31)
    ruling = gates.rule(gate, 28 / 31, found, coverage=1.0)
    assert (ruling.verdict, bool(ruling.warning)) == ("pass", True)
    assert gates.rule(gate, 28 / 31, found, coverage=1.0, three_valued=True).verdict == "inconclusive"
    assert gates.rule(gate, 0.5, intervals.wilson(100, 200), coverage=1.0, three_valued=True).verdict == "fail"
    assert gates.rule(gate, 0.97, intervals.wilson(970, 1000), coverage=1.0, three_valued=True).verdict == "pass"


@pytest.mark.parametrize(("three_valued", "verdict"), [(False, "fail"), (True, "inconclusive")])
def test_a_run_that_left_tasks_out_passes_no_gate(three_valued: bool, verdict: str) -> None:
    gate = gates.read("pass_rate=0.5")
    assert gates.rule(gate, 1.0, intervals.wilson(7, 7), coverage=0.7, three_valued=three_valued).verdict == verdict
    assert gates.rule(gate, None, None, coverage=0.0, three_valued=three_valued).verdict == verdict


def test_less_is_better_of_cost() -> None:
    assert gates.rule(gates.read("cost=5"), 4.99, coverage=1.0).verdict == "pass"
    assert gates.rule(gates.read("cost=5"), 5.01, coverage=1.0).verdict == "fail"


def test_several_gates_are_as_strong_as_the_weakest() -> None:
    passing = gates.rule(gates.read("mean=0.1"), 0.5, coverage=1.0)
    failing = gates.rule(gates.read("mean=0.9"), 0.5, coverage=1.0)
    assert gates.together([passing]) == "pass"
    assert gates.together([passing, failing]) == "fail"
    assert gates.together([]) == "inconclusive"


def test_the_self_check_finds_a_sound_comparison_sound() -> None:
    draw = random.Random(2)
    one, other = ({f"t{i}": float(draw.random() < 0.6) for i in range(120)} for _ in range(2))
    found = selfcheck.a_a(one, other, seed=4, trials=120)
    assert found.is_sound
    assert found.rate.estimate < 0.1
