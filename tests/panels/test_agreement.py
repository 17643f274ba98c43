"""How alike models err, against figures worked out by hand, and what too little to judge by is answered with."""

from __future__ import annotations

import random
from math import exp, log, sqrt

import pytest

from panels import agreement
from panels.agreement import Errors, Independence, Pair, Table, panels_of, words_of


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("The cache is not thread-safe.", "the cache is not thread-safe", True),
        ("Line 40 leaks the file handle", "The file handle leaks (line 40)", True),
        ("Line 40 leaks the file handle", "Line 52 leaks the file handle", False),
        ("the lock is released in the error path", "the lock is not released in the error path", False),
        ("The lock isn’t held here", "the lock isn't held here", True),
        ("SQL injection in search()", "The retry loop never ends", False),
        ("Берлин — столица Франции", "берлин столица франции!", True),
        ("東京は日本の首都ではない", "東京は日本の首都ではない。", True),
        ("東京は日本の首都である", "大阪の人口は二百万人", False),
        ("!!!", "???", False),
        ("!!!", " !!! ", True),
        ("returns 0 on failure", "returns -1 on failure", False),
    ],
)
def test_two_claims_are_the_same_where_their_words_are(one, other, expected) -> None:
    assert agreement.same(words_of(one), words_of(other)) is expected


def pairs(errors: list[Errors], models: list[str]) -> list[Pair]:
    return agreement.pairs(Table(panels_of(errors), set(models)))


def independence(errors: list[Errors], members: list[str], seats: int | None = None) -> Independence:
    return agreement.independence(panels_of(errors), members, seats)


def errors(cells: tuple[int, int, int, int], shared: int = 0, names: tuple[str, str] = ("a", "b")) -> list[Errors]:
    """Panels by who was wrong: both, the first only, the other only, neither; in `shared` of the first kind the claim is the same."""
    found = []
    for n, (one, other) in enumerate([(True, True)] * cells[0] + [(True, False)] * cells[1] + [(False, True)] * cells[2] + [(False, False)] * cells[3]):
        for name, wrong in zip(names, (one, other), strict=True):
            claim = words_of("same claim" if n < shared else f"{name * 3}{name} {name * 5} alone")
            found.append(Errors(f"p{n}", name, (claim,) if wrong else ()))
    return found


@pytest.mark.parametrize(
    ("cells", "phi"),
    [
        ((20, 5, 10, 15), (20 * 15 - 5 * 10) / sqrt(25 * 25 * 30 * 20)),
        ((10, 10, 10, 10), 0.0),
        ((20, 0, 0, 20), 1.0),
        ((0, 20, 20, 0), -1.0),
        ((0, 0, 5, 20), None),
    ],
)
def test_phi_is_that_of_the_four_cells(cells, phi) -> None:
    [pair] = pairs(errors(cells), ["a", "b"])
    assert pair.phi == (None if phi is None else pytest.approx(phi))
    assert (pair.panels, pair.one_wrong, pair.other_wrong, pair.both_wrong) == (sum(cells), cells[0] + cells[1], cells[0] + cells[2], cells[0])


def test_the_odds_ratio_has_haldanes_halves_and_woolfs_interval() -> None:
    [pair] = pairs(errors((20, 5, 10, 15), shared=12), ["b", "a"])
    middle = log(20.5 * 15.5 / (5.5 * 10.5))
    spread = 1.96 * sqrt(1 / 20.5 + 1 / 5.5 + 1 / 10.5 + 1 / 15.5)
    assert (pair.odds_ratio, pair.odds_low, pair.odds_high) == pytest.approx((exp(middle), exp(middle - spread), exp(middle + spread)), rel=1e-3)
    assert pair.expected == pytest.approx(0.5 * 0.6)
    assert (pair.shared.yes, pair.shared.of) == (12, 50)


def test_only_panels_with_both_judged_count_and_a_model_that_sat_twice_made_both_seats_claims() -> None:
    more = [Errors("x", "a", (words_of("lonely"),)), Errors("p0", "a", (words_of("same claim"),)), Errors("p0", "z", ())]
    [pair] = pairs([*errors((1, 0, 0, 1)), *more], ["a", "b"])
    assert (pair.panels, pair.both_wrong, pair.shared.yes) == (2, 1, 0)
    [pair] = pairs([*errors((1, 0, 0, 1)), Errors("p0", "a", (words_of("bbbb bbbbb alone"),))], ["a", "b"])
    assert pair.shared.yes == 1


@pytest.mark.parametrize(("seats", "rho", "expected"), [(5, 0.0, 5), (5, 1.0, 1), (5, 0.25, 2.5), (4, -0.3, 4), (1, 0.5, 1), (3, 7.0, 1)])
def test_the_effective_number_is_kishs(seats, rho, expected) -> None:
    assert agreement.effective(seats, rho) == pytest.approx(expected)


def made(panels: int, common: float, members: str = "abcd", seed: int = 1) -> list[Errors]:
    """Models that are each wrong in 30% of panels; in a share `common` of panels all throw the same coin. Their errors' correlation is that."""
    luck = random.Random(seed)
    found = []
    for n in range(panels):
        together, coin = luck.random() < common, luck.random()
        for name in members:
            wrong = (coin if together else luck.random()) < 0.3
            found.append(Errors(f"p{n}", name, (words_of("wrong"),) if wrong else ()))
    return found


@pytest.mark.parametrize(("common", "least", "most"), [(0.0, 3.4, 4.0), (0.5, 1.4, 1.8), (1.0, 1.0, 1.0)])
def test_seats_that_err_together_amount_to_fewer(common, least, most) -> None:
    found = independence(made(600, common), list("abcd"))
    assert found.correlation == pytest.approx(common, abs=0.07)
    assert least <= found.effective <= most
    assert 1.0 <= found.low <= found.effective <= found.high <= 4.0
    assert not found.needs
    assert len(found.pairs) == 6


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    truth = agreement.effective(4, 0.4)
    held = sum((f := independence(made(120, 0.4, seed=n), list("abcd"))).low <= truth <= f.high for n in range(60))
    assert held >= 50


def test_fewer_seats_than_members_are_as_many_as_sit() -> None:
    found = independence(made(200, 0.5), list("aabcd"), seats=2)
    assert found.seats == 2
    assert found.effective == pytest.approx(2 / (1 + found.correlation))


@pytest.mark.parametrize(
    ("found", "members", "says"),
    [
        ([], "ab", "Needs about 30 more panels"),
        (made(12, 0.5), "abcd", "Needs about 18 more panels"),
        (made(100, 0.5), "a", "One seat is one seat"),
        (errors((0, 3, 0, 97)), "ab", "Needs about 5 more panels with a false claim"),
        (errors((0, 20, 0, 80)), "ab", "No two members have both been right and wrong"),
    ],
)
def test_too_little_to_judge_by_is_said_and_no_number_made_up(found, members, says) -> None:
    told = independence(found, list(members))
    assert (told.effective, told.low, told.high, told.correlation) == (None, None, None, None)
    assert told.needs.startswith(says)
