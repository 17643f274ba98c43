"""The seed that a panel's row holds makes its explorers' order again."""

from __future__ import annotations

from panels import seating
from tests.fake import reply
from tests.live import Bench
from tests.panels.test_seating import collection, model


def test_a_recorded_seed_makes_the_same_seating_again(bench: Bench) -> None:
    bench.no_explorers_but_mine()
    names = [bench.model(f"seed{n}", reply("x"), ad_hoc=False) for n in range(4)]
    core = bench.collection([bench.model("fixed")], explorers=4)
    try:
        told = bench.ask(core).json["bench"]
        seated = [s["model"] for s in told["seats"] if s["seat"] == "explorer"]
        bench.live.attempts(5, panel=told["panel"])
        (row,) = bench.live.rows("panels.Panel", id=told["panel"])
        again = seating.seats(collection(4), {a: model(a) for a in names}, {}, row["seed"], lambda m: None)
        assert seated == [place.alias for place in again]
    finally:
        for name in names:
            bench.models[name]["ad_hoc"] = True
        bench._changed = True
        bench.load()
