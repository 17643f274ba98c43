"""Who sits where the record decides: pure rules, and the promise that everybody gets a turn."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.roster import Endpoint, Model
from panels import picking, seating
from panels.collections import Collection
from panels.picking import NOTHING, Belief, Beliefs, Word
from panels.seating import Hindrance

NOW = datetime(2026, 11, 29, tzinfo=UTC)
HERE = Endpoint(1, "here", "openai", "http://127.0.0.1:9/v1", "", {}, {})
ABC = ("a", "b", "c", "d")
SURE = Beliefs({"a": Belief(2, 200), "b": Belief(3, 200), "c": Belief(200, 2), "d": Belief(200, 3)})


def model(alias: str) -> Model:
    return Model(1, alias, HERE, alias, {}, {}, {}, False, False, "", ())


def collection(members: tuple[str, ...], picks: str = "record", seats: int | None = 2) -> Collection:
    return Collection("core", "", "review", members, (), picks, 0, 300, 60, 120, None, 20, 30, False, 0.0, None, None, seats)


def sit(members: tuple[str, ...] = ABC, seats: int = 2, known: Beliefs = NOTHING, seed: int = 1, able: str | None = None, **more) -> list[str]:
    found = picking.picked(members, set(members if able is None else able), seats, known, more.pop("waited", {}), seed, **more)
    return [members[i] for i in found.seated]


# ------------------------------------------------------------------ before any verdict


def test_before_any_verdict_the_order_given_decides_whatever_the_seed() -> None:
    assert {tuple(sit(seed=n)) for n in range(50)} == {("a", "b")}
    assert picking.ranked(ABC, NOTHING, 7).seated == (0, 1, 2, 3)
    assert not picking.ranked(ABC, NOTHING, 7).draws


def test_no_verdict_here_is_no_belief_whatever_is_known_from_elsewhere() -> None:
    assert picking.beliefs({}, {"a": Belief(9, 1)}) == NOTHING


@pytest.mark.parametrize(
    ("score", "elsewhere", "health", "expected"),
    [
        (None, None, None, (1, 1)),
        (Word(1.0, 100), None, None, (4, 1)),
        (Word(0.5, 100), None, None, (2.5, 2.5)),
        (None, Word(0.0, 1), None, (1, 2)),
        (None, Word(0.75, 400), None, (2.5, 1.5)),
        (None, None, Word(1.0, 10_000), (1.5, 1)),
        (Word(2.0, 1), Word(-1.0, 1), Word(0.5, 0), (2, 2)),
    ],
)
def test_what_is_known_from_elsewhere_leans_a_little_and_never_more(score, elsewhere, health, expected) -> None:
    found = picking.prior(score, elsewhere, health)
    assert (found.a, found.b) == pytest.approx(expected)


def test_a_few_verdicts_here_outweigh_all_that_is_known_from_elsewhere() -> None:
    praised = picking.prior(Word(1.0, 1e6), Word(1.0, 1e6), Word(1.0, 1e6))
    blamed = picking.prior(Word(0.0, 1e6), Word(0.0, 1e6), Word(0.0, 1e6))
    found = picking.beliefs({"praised": (0, 8), "blamed": (8, 8)}, {"praised": praised, "blamed": blamed})
    assert found.about("blamed").mean > found.about("praised").mean


# ------------------------------------------------------------------ with verdicts


def test_the_useful_sit_and_keep_the_members_order() -> None:
    assert {tuple(sit(known=SURE, seed=n)) for n in range(50)} == {("c", "d")}
    assert picking.ranked(ABC, SURE, 3).seated[:2] in ((2, 3), (3, 2))


def test_who_might_be_the_best_is_tried_and_who_cannot_be_is_not() -> None:
    known = Beliefs({"a": Belief(8, 6), "b": Belief(6, 6), "c": Belief(1, 60)})
    taken = Counter(sit(("a", "b", "c"), 1, known, n)[0] for n in range(400))
    assert taken["a"] > taken["b"] > 20
    assert taken["c"] == 0


@given(st.permutations(ABC), st.integers(0, 2**53 - 1))
def test_a_seed_and_beliefs_make_one_pick_whatever_order_the_members_come_in(members, seed) -> None:
    again = picking.draws(members, SURE, seed)
    assert again == picking.draws(ABC, SURE, seed)
    assert set(sit(tuple(members), known=SURE, seed=seed)) == set(sit(known=SURE, seed=seed))


def test_who_cannot_is_passed_over_while_others_can() -> None:
    assert sit(able="bd") == ["b", "d"]
    assert sit(known=SURE, able="ab") == ["a", "b"]
    # Too few that can: the rest is seated all the same, so that the reader sees why it did not answer.
    assert sit(able="d") == ["a", "d"]
    assert sit(able="") == ["a", "b"]


def test_who_is_asked_for_by_name_sits() -> None:
    assert sit(known=SURE, wanted=("a",)) in (["a", "c"], ["a", "d"])
    assert sit(seats=1, wanted=("b", "c", "nobody")) == ["b", "c"]


def test_a_model_listed_twice_has_two_places_and_one_draw() -> None:
    assert sit(("a", "b", "b"), 2, Beliefs({"a": Belief(2, 200), "b": Belief(200, 2)})) == ["b", "b"]


# ------------------------------------------------------------------ everybody's turn


def test_a_turn_comes_to_the_member_that_waited_longest() -> None:
    due = picking.due_after(4, 1)
    found = picking.picked(ABC, set(ABC), 1, SURE, {"a": due, "b": due + 3, "c": 0, "d": due - 1}, 1)
    assert (found.seated, found.forced) == ((1,), ("b",))
    assert "a" not in sit(seats=1, known=SURE, waited={"a": due - 1})
    assert sit(seats=1, known=SURE, waited={"a": due, "b": due + 1}, able="acd") == ["a"]


@pytest.mark.parametrize(
    ("members", "panels", "expected"),
    [
        (("a", "b"), [], {"a": 0, "b": 0}),
        (("a", "b"), [{"a"}], {"a": 0, "b": 1}),
        (("a", "b", "c"), [{"a"}, {"b", "z"}, {"a", "b"}], {"a": 0, "b": 1, "c": 3}),
    ],
)
def test_waiting_is_counted_in_panels(members, panels, expected) -> None:
    assert picking.waited(members, panels) == expected


def played(members: int, seats: int, panels: int, seed: int, processes: int = 1, unseen: int = 0, resting: bool = False) -> list[int]:
    """How long each member waited at most. A process knows its own panels at once, and others' only `unseen` panels later."""
    luck = random.Random(seed)
    names = tuple(f"m{i}" for i in range(members))
    known = Beliefs({name: Belief(1 + 60 * luck.random(), 1 + 60 * luck.random()) for name in names})
    within = picking.turn_within(members, seats)
    sat: list[tuple[int, set[str]]] = []
    longest, since = [0] * members, [0] * members
    for t in range(panels):
        process = luck.randrange(processes)
        seen = [aliases for n, (by, aliases) in enumerate(sat) if by == process or n < t - unseen][::-1][:within]
        able = {name for i, name in enumerate(names) if not (resting and (t // 40 + i) % 5 == 0)}
        chosen = {names[i] for i in picking.picked(names, able, seats, known, picking.waited(names, seen), t).seated}
        sat.append((process, chosen & able))
        for i, name in enumerate(names):
            since[i] = 0 if name in chosen or name not in able else since[i] + 1
            longest[i] = max(longest[i], since[i])
    return longest


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 9), st.integers(1, 4), st.integers(0, 1000))
def test_every_member_sits_within_the_promised_number_of_panels(members, seats, seed) -> None:
    within = picking.turn_within(members, min(seats, members))
    assert max(played(members, min(seats, members), 3 * within, seed)) < within


@pytest.mark.parametrize("seed", range(3))
def test_several_processes_that_know_of_each_other_late_keep_the_promise_but_for_what_they_had_not_seen(seed) -> None:
    assert max(played(7, 2, 400, seed, processes=4, unseen=6)) < picking.turn_within(7, 2) + 6


def test_a_member_that_comes_back_from_a_rest_is_not_forgotten() -> None:
    assert max(played(5, 1, 400, 3, resting=True)) < picking.turn_within(5, 1)


# ------------------------------------------------------------------ seats


def seated(of: Collection, known: Beliefs = NOTHING, hindered: str = "", besides: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    models = {a: model(a) for a in (*ABC, "z")}

    def check(one: Model) -> Hindrance | None:
        return Hindrance("resting", "rests.") if one.alias in hindered else None

    sits = seating.pick(of, models, known, {}, 1, check, besides)
    return [(p.alias, p.hindrance.code if p.hindrance else "") for p in seating.seats(of, models, {}, 1, check, besides, sits)]


def test_all_members_sit_where_no_number_is_said_or_it_is_no_less() -> None:
    for seats in (None, 4, 9):
        assert [a for a, _ in seated(collection(ABC, seats=seats), SURE)] == list(ABC)


def test_fixed_picking_seats_the_first_that_can() -> None:
    assert seated(collection(ABC, "fixed"), SURE, hindered="a") == [("b", ""), ("c", "")]
    assert seated(collection(ABC, "fixed"), SURE, hindered="abcd") == [("a", "resting"), ("b", "resting")]


def test_the_record_seats_the_useful_and_those_asked_for_besides() -> None:
    assert [a for a, _ in seated(collection(ABC), SURE)] == ["c", "d"]
    assert [a for a, _ in seated(collection(ABC), SURE, besides=("z", "a"))][-1] == "z"
    assert "a" in [a for a, _ in seated(collection(ABC), SURE, besides=("z", "a"))]
