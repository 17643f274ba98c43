"""Who explores: the models unused longest, ties by a recorded seed from which the same order can be made again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from catalog.roster import Endpoint, Model
from panels import seating
from panels.collections import Collection
from panels.seating import Hindrance

NOW = datetime(2026, 11, 29, tzinfo=UTC)
HERE = Endpoint(1, "here", "openai", "http://127.0.0.1:9/v1", "", {}, {})


def model(alias: str, ad_hoc: bool = False) -> Model:
    return Model(1, alias, HERE, alias, {}, {}, {}, ad_hoc, False, "", ())


def collection(explorers: int, *members: str) -> Collection:
    return Collection("core", "", "review", members, (), "fixed", explorers, 300, 60, 120, None, 20, 30, False, 0.0, None, None)


def order(aliases: list[str], seed: int, explorers: int, seated: dict[str, datetime] | None = None) -> list[str]:
    return [p.alias for p in seating.seats(collection(explorers), {a: model(a) for a in aliases}, seated or {}, seed, lambda m: None)]


@given(st.lists(st.text(min_size=1, max_size=5), unique=True, min_size=2, max_size=8), st.integers(0, 2**53 - 1), st.randoms())
def test_one_seed_makes_one_order_whatever_order_the_roster_comes_in(aliases: list[str], seed: int, shuffler) -> None:
    first = order(aliases, seed, len(aliases))
    again = list(aliases)
    shuffler.shuffle(again)
    assert order(again, seed, len(aliases)) == first
    assert sorted(first) == sorted(aliases)


def test_every_order_comes_up() -> None:
    assert len({tuple(order(["a", "b", "c"], seed, 3)) for seed in range(200)}) == 6


@given(st.integers(0, 2**53 - 1))
def test_a_seed_decides_among_equals_only(seed: int) -> None:
    seated = {"late": NOW, "early": NOW - timedelta(days=2), "between": NOW - timedelta(days=1)}
    found = order(["late", "never", "between", "early", "nor this"], seed, 5, seated)
    assert set(found[:2]) == {"never", "nor this"}
    assert found[2:] == ["early", "between", "late"]


def test_members_and_what_a_prompt_does_not_fit_do_not_explore() -> None:
    models = {a: model(a) for a in ("member", "small", "free")} | {"aside": model("aside", ad_hoc=True)}
    too_small = Hindrance("context_too_small", "small holds 9 tokens.")
    places = seating.seats(collection(3, "member", "gone"), models, {}, 7, lambda m: too_small if m.alias == "small" else None)
    assert [(p.alias, p.seat, p.hindrance.code if p.hindrance else "") for p in places] == [
        ("member", "member", ""),
        ("gone", "member", "unknown"),
        ("free", "explorer", ""),
    ]


def test_what_answers_no_prompt_never_explores() -> None:
    named = ["text-embedding-3-small", "whisper-large-v3", "chatty"]
    assert order(named, 1, 3) == ["chatty"]
