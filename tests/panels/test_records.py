"""The record: a pure function over verdicts, and the Beta posterior below it."""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panels.beta import distribution, quantile, rate
from panels.records import records
from panels.tally import Judged


def judged(
    call: str, useful: bool | None = None, real: int = 0, false: int = 0, judge: str = "ada", model: str = "mercury", collection: str = "core"
) -> Judged:
    return Judged(call=call, judge=judge, collection=collection, model=model, useful=useful, real=real, false=false)


def binomial_tail(x: Fraction, a: int, b: int) -> float:
    """The same distribution by another road: for whole parameters it is a sum of binomial terms, exact in fractions."""
    n = a + b - 1
    return float(sum(comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(a, n + 1)))


@pytest.mark.parametrize(
    ("p", "a", "b", "expected"),
    [
        # The limits of Clopper and Pearson, as printed tables have them: 2 of 11, 3 of 11, 0 of 10, 10 of 10, 5 of 10.
        (0.025, 3, 9, 0.0602),
        (0.975, 3, 9, 0.5178),
        (0.975, 1, 10, 0.3085),
        (0.025, 10, 1, 0.6915),
        (0.025, 5, 6, 0.1871),
        (0.975, 6, 5, 0.8129),
    ],
)
def test_quantiles_agree_with_printed_tables(p: float, a: float, b: float, expected: float) -> None:
    assert quantile(p, a, b) == pytest.approx(expected, abs=5e-5)


def test_closed_forms_are_met_exactly() -> None:
    assert quantile(0.025, 1, 1) == pytest.approx(0.025, abs=1e-12)
    assert quantile(0.975, 4, 1) == pytest.approx(0.975**0.25, abs=1e-12)
    assert quantile(0.025, 1, 7) == pytest.approx(1 - 0.975 ** (1 / 7), abs=1e-12)
    # Beta(1/2, 1/2) is the arcsine law: its quartiles are known, and its parameters are no whole numbers.
    assert quantile(0.25, 0.5, 0.5) == pytest.approx(0.14644660940672624, abs=1e-10)


@given(st.integers(1, 60), st.integers(1, 60), st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100))
def test_the_distribution_is_the_binomial_sum(a: int, b: int, x: Fraction) -> None:
    assert distribution(float(x), a, b) == pytest.approx(binomial_tail(x, a, b), abs=1e-11)


@given(st.floats(0, 5000), st.floats(0, 5000))
def test_a_rate_lies_in_its_interval_and_the_interval_in_zero_to_one(yes: float, no: float) -> None:
    found = rate(yes, yes + no)
    assert 0 <= found.low < found.mean < found.high <= 1
    assert distribution(found.high, 1 + yes, 1 + no) - distribution(found.low, 1 + yes, 1 + no) == pytest.approx(0.95, abs=1e-6)


def test_many_verdicts_narrow_the_interval_around_the_share() -> None:
    found = rate(700_000, 1_000_000)
    assert found.low == pytest.approx(0.7, abs=0.001)
    assert found.high - found.low < 0.002


def test_nothing_judged_is_no_record() -> None:
    assert records([]) == []


def test_useful_counts_only_where_somebody_said_so() -> None:
    [record] = records([judged("c1", True), judged("c2", False), judged("c3", None, real=2)])
    assert (record.judged, record.useful.yes, record.useful.of) == (3, 1, 2)
    assert record.useful.mean == pytest.approx(0.5)
    assert record.real == 2


def test_an_answer_with_a_false_claim_is_confidently_wrong_however_useful() -> None:
    [record] = records([judged("c1", True, real=3, false=1), judged("c2", False, false=4), judged("c3", True), judged("c4", False)])
    assert (record.confidently_wrong.yes, record.confidently_wrong.of) == (2, 4)
    assert record.confidently_wrong.mean == pytest.approx(0.5)
    assert (record.real, record.false) == (3, 5)


def test_two_judges_of_one_call_weigh_as_one() -> None:
    [record] = records([judged("c1", True, real=1), judged("c1", False, real=1, false=1, judge="bob"), judged("c2", True)])
    assert (record.judged, record.judges) == (2, 2)
    assert (record.useful.yes, record.useful.of) == (1.5, 2)
    assert (record.confidently_wrong.yes, record.confidently_wrong.of) == (0.5, 2)
    assert (record.real, record.false) == (1, 0.5)


def test_a_judge_who_says_neither_does_not_halve_the_word_of_one_who_does() -> None:
    [record] = records([judged("c1", True), judged("c1", None, false=1, judge="bob")])
    assert (record.useful.yes, record.useful.of) == (1, 1)


def test_three_judges_make_whole_numbers_again() -> None:
    [record] = records([judged("c1", True, judge=name) for name in "abc"])
    assert record.useful.yes == 1


def test_records_stand_by_collection_and_model() -> None:
    found = records([judged("c1", True, collection="b"), judged("c2", True, collection="a", model="z"), judged("c3", True, collection="a", model="y")])
    assert [(r.collection, r.model) for r in found] == [("a", "y"), ("a", "z"), ("b", "mercury")]


verdict_lists = st.lists(
    st.builds(
        Judged,
        call=st.sampled_from(["c1", "c2", "c3", "c4"]),
        judge=st.sampled_from(["ada", "bob", "eve"]),
        collection=st.just("core"),
        model=st.sampled_from(["m1", "m2"]),
        useful=st.sampled_from([True, False, None]),
        real=st.integers(0, 5),
        false=st.integers(0, 5),
    ),
    unique_by=lambda v: (v.call, v.judge),
)


@given(verdict_lists, st.randoms(use_true_random=False))
def test_the_order_of_verdicts_changes_nothing(verdicts: list[Judged], shuffler: random.Random) -> None:
    shuffled = list(verdicts)
    shuffler.shuffle(shuffled)
    assert records(shuffled) == records(verdicts)


@given(verdict_lists)
def test_shares_never_leave_their_calls(verdicts: list[Judged]) -> None:
    for record in records(verdicts):
        assert 0 <= record.useful.yes <= record.useful.of <= record.judged
        assert 0 <= record.confidently_wrong.yes <= record.confidently_wrong.of == record.judged
