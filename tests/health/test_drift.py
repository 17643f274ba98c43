"""Drift by simulation: a noisy model raises no alarm over many nights, a swapped one does within two; and what people do about it."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from access.models import AuditEntry
from health import drift, probes
from health.drift_distance import Heard, changed_tokens, compare, distance
from health.drift_prompts import PROMPTS
from health.models import Alert, Attempt, Errand, Probe
from tests.fake import Answer, FakeProvider, reply, status
from tests.health import probed

NAMES = [q.prompt for q in PROMPTS]
NOW = datetime(2026, 11, 29, 2, tzinfo=UTC)
LENGTHS = dict(zip(NAMES, (1, 5, 1, 1, 18, 25, 9, 8), strict=True))


class Speaker:
    """A model that says the same words each night, but for its noise: with that chance an answer comes in another wording."""

    def __init__(self, seed: int, noise: float = 0.0, tokens: int = 20) -> None:
        self.dice, self.noise, self.tokens = random.Random(seed), noise, tokens
        self.usual = {name: self.words(LENGTHS[name]) for name in NAMES}
        self.other = {name: [self.reworded(name) for _ in range(3)] for name in NAMES}

    def words(self, count: int) -> list[str]:
        return [f"w{self.dice.randrange(60)}" for _ in range(count)]

    def reworded(self, name: str) -> list[str]:
        return [self.words(1)[0] if self.dice.random() < 0.5 else word for word in self.usual[name]]

    def night(self) -> dict[str, Heard]:
        return {name: Heard(self.say(name), "stop", self.tokens + n) for n, name in enumerate(NAMES)}

    def say(self, name: str) -> str:
        return " ".join(self.dice.choice(self.other[name]) if self.dice.random() < self.noise else self.usual[name])


def lived(nights: list[dict[str, Heard]]) -> list[dict[str, Any]]:
    """The state after each night."""
    states: list[dict[str, Any]] = []
    for n, night in enumerate(nights):
        states.append(drift.following(states[-1] if states else {}, night, NOW + timedelta(days=n)))
    return states


# ------------------------------------------------------------------ the rules


@pytest.mark.parametrize("noise", [0.0, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_noisy_model_raises_no_alarm_over_many_nights(noise: float, seed: int) -> None:
    speaker = Speaker(seed, noise)
    assert "changed" not in {s["state"] for s in lived([speaker.night() for _ in range(40)])}


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("after", [3, 12])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_another_model_under_the_name_is_told_within_two_nights(noise: float, after: int, seed: int) -> None:
    before, now = Speaker(seed, noise), Speaker(seed + 100, noise)
    states = lived([before.night() for _ in range(after)] + [now.night() for _ in range(2)])
    assert [s["state"] for s in states[-2:]] == ["doubtful", "changed"]
    assert states[-1]["changed_at"] == (NOW + timedelta(days=after)).isoformat()


def test_the_same_answers_in_another_tokenizer_are_told() -> None:
    before, now = Speaker(5, tokens=20), Speaker(5, tokens=23)
    states = lived([before.night() for _ in range(4)] + [now.night() for _ in range(2)])
    assert states[-1]["state"] == "changed"
    assert "takes 23 tokens, before 20" in drift.message("m", states[-1]["newest"])


def test_counts_that_always_varied_are_no_sign() -> None:
    nights = [Speaker(1, tokens=20 + n % 3).night() for n in range(5)]
    assert not changed_tokens(Speaker(1, tokens=40).night(), nights)


def test_another_served_name_is_told_and_a_missing_one_is_not() -> None:
    def named(name: str) -> dict[str, Heard]:
        return {p: Heard(h.text, h.finish, h.input_tokens, name) for p, h in Speaker(1).night().items()}

    assert compare(named("m-2026-05"), [named("m-2025-01")] * 3).names == ("m-2025-01", "m-2026-05")
    assert compare(named(""), [named("m-2025-01")] * 3).names is None
    assert compare(named("c"), [named("a"), named("b"), named("a")]).names is None


def test_one_strange_night_is_borne_with() -> None:
    usual, guest = Speaker(1), Speaker(2)
    states = lived([usual.night() for _ in range(5)] + [guest.night()] + [usual.night() for _ in range(3)])
    assert [s["state"] for s in states[5:]] == ["doubtful", "steady", "steady", "steady"]


def test_two_strange_nights_that_are_strange_to_each_other_are_no_change() -> None:
    usual = Speaker(1)
    states = lived([usual.night() for _ in range(5)] + [Speaker(2).night(), Speaker(3).night()])
    assert states[-1]["state"] == "doubtful"


def test_the_baseline_stops_growing_so_that_it_does_not_follow_a_slow_change() -> None:
    speaker = Speaker(1)
    states = lived([speaker.night() for _ in range(30)])
    assert len(states[-1]["baseline"]) == 10
    assert states[-1]["baseline"][0]["at"] == NOW.isoformat()


@pytest.mark.parametrize(
    ("one", "other", "low", "high"),
    [("7413", "7413", 0, 0), ("7413", "7413.", 0.02, 0.5), ("A b c d", "a b  c d", 0.001, 0.1), ("a b c d", "e f g h", 0.8, 1), ("", "x", 0.8, 1)],
)
def test_how_far_answers_are_apart(one: str, other: str, low: float, high: float) -> None:
    assert low <= distance(Heard(one), Heard(other)) <= high
    assert distance(Heard(one), Heard(other)) == distance(Heard(other), Heard(one))


# ------------------------------------------------------------------ through the queue


def spoken(speaker: Speaker, night: dict[str, Heard] | None = None) -> list[Answer]:
    night = night or speaker.night()
    return [reply(night[name].text, usage=(night[name].input_tokens, 9)) for name in NAMES]


def night(fake: FakeProvider, alias: str, *answers: Answer) -> None:
    fake.script(alias, *answers)
    drift.plan(probed.SLOT + timedelta(days=next(probed.DAYS)), datetime.now(UTC))
    probed.work()


@pytest.mark.usefixtures("tables")
def test_nights_are_asked_compared_and_an_alarm_is_raised_once_until_a_person_accepts(fake: FakeProvider) -> None:
    probed.model(fake, "m")
    one, two = Speaker(1), Speaker(2)
    for _ in range(4):
        night(fake, "m", *spoken(one))
    assert len(fake.calls) == 4 * len(PROMPTS)
    assert fake.calls[0].json["temperature"] == 0
    assert drift.shown(probed.health("m").drift) is not None
    assert probed.health("m").drift["state"] == "steady"
    for _ in range(3):
        night(fake, "m", *spoken(two))
    alert = Alert.objects.get(kind="drift")
    assert "two nights in a row" in alert.message
    assert probed.health("m").drift["state"] == "changed"
    drift.accept("m", "ada")
    assert AuditEntry.objects.filter(action="model.baseline", target="m", actor="ada").exists()
    for _ in range(4):
        night(fake, "m", *spoken(two))
    assert probed.health("m").drift["state"] == "steady"
    assert Alert.objects.filter(kind="drift").count() == 1


@pytest.mark.usefixtures("tables")
def test_a_temperature_that_is_refused_is_left_out_from_then_on(fake: FakeProvider) -> None:
    probed.model(fake, "m")
    night(fake, "m", status(400, "Unsupported value: 'temperature' does not support 0 with this model."), *spoken(Speaker(1)))
    assert ["temperature" in c.json for c in fake.calls] == [True] + [False] * len(PROMPTS)
    assert probed.health("m").drift["state"] == "learning"


@pytest.mark.usefixtures("tables")
def test_a_night_with_too_few_answers_counts_for_nothing(fake: FakeProvider) -> None:
    probed.model(fake, "m")
    night(fake, "m", reply("7413"), status(500, "oops"))
    assert len(fake.calls) == 4
    assert probed.health("m").drift == {}


@pytest.mark.usefixtures("tables")
def test_what_was_answered_before_its_process_died_is_not_asked_again(fake: FakeProvider) -> None:
    probed.model(fake, "m")
    night(fake, "m", *spoken(Speaker(1)))
    ids = list(Probe.objects.filter(prompt__in=NAMES[5:]).values_list("attempt", flat=True))
    Probe.objects.filter(attempt__in=ids).delete()
    Attempt.objects.filter(pk__in=ids).update(status="lost", code="lost")
    health = probed.health("m")
    health.drift = {}
    health.save()
    Errand.objects.filter(kind="drift").update(state="running", worker="dead")
    fake.script("m", *spoken(Speaker(1))[5:])
    probed.work()
    assert len(fake.calls) == len(PROMPTS) + 3
    assert len(probed.health("m").drift["baseline"]) == 1
    # Killed behind the comparison: the night is not taken in twice.
    Errand.objects.filter(kind="drift").update(state="running", worker="dead")
    probed.work()
    assert len(probed.health("m").drift["baseline"]) == 1
    assert len(fake.calls) == len(PROMPTS) + 3


@pytest.mark.usefixtures("tables")
def test_a_model_that_is_pointed_elsewhere_begins_anew(fake: FakeProvider) -> None:
    row = probed.model(fake, "m")
    for _ in range(3):
        night(fake, "m", *spoken(Speaker(1)))
    row.served_name = "other"
    row.save()
    night(fake, "other", *spoken(Speaker(2)))
    assert probed.health("m").drift["state"] == "learning"
    assert not Alert.objects.exists()


@pytest.mark.usefixtures("tables")
def test_without_a_baseline_there_is_nothing_to_accept(fake: FakeProvider) -> None:
    probed.model(fake, "m")
    with pytest.raises(probes.ProbeError):
        drift.accept("m", "ada")
    with pytest.raises(LookupError):
        drift.accept("nobody", "ada")
