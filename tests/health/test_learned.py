"""What providers tell of limits, as it is written down: once, for the model and for all that share its key; and what holds of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from catalog import load, roster
from catalog.models import Endpoint, Model
from health import calls, learned, ledger
from health.attempt import Attempt, Order
from health.learned import Notes, applied, in_force, rest_of
from health.models import Allowance, LearnedLimit, Rest
from health.resting import LIMIT
from panels.snapshot import current_version, load_snapshot
from tests.fake import FakeProvider, reply, status
from tests.health.test_limits_background import a_model
from wire.conversation import Message, Request, Role, Text
from wire.limit_headers import Told, said

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
GROQ = "https://api.groq.com/openai/v1"
pytestmark = pytest.mark.usefixtures("tables")


@pytest.fixture(autouse=True)
def fresh_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process that has just started knows."""
    monkeypatch.setattr(calls, "notes", Notes())


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def later(model: roster.Model, folder: Path, seconds: float, *told: Told, notes: Notes | None = None) -> None:
    """Has an answer told something at a time."""
    if line := (notes or Notes()).line_of(model, told, at(seconds)):
        ledger.commit([line], folder)


def models(*aliases: str, base_url: str = "http://127.0.0.1/v1") -> list[roster.Model]:
    endpoint = Endpoint.objects.create(name="here", base_url=base_url)
    for alias in aliases:
        Model.objects.create(alias=alias, endpoint=endpoint, served_name=alias)
    found = load.load_models()
    return [found[alias] for alias in aliases]


def limits() -> dict[tuple[str, str, str], int]:
    return {(one.scope.partition(":")[0], one.measure, one.window): one.limit for one in learned.learned()}


A_MINUTE = Told("requests", "minute", 10, 4, 30.0)


def test_a_limit_is_the_models_own_and_the_largest_is_the_endpoints(folder: Path) -> None:
    one, two = models("one", "two")
    later(one, folder, 0, A_MINUTE)
    later(two, folder, 1, Told("requests", "minute", 60), Told("tokens", "day", 1000))
    found = {(r.scope, r.measure, r.window): r.limit for r in learned.learned()}
    here = f"endpoint:{one.endpoint.id}"
    assert found == {
        (f"model:{one.id}", "requests", "minute"): 10,
        (f"model:{two.id}", "requests", "minute"): 60,
        (f"model:{two.id}", "tokens", "day"): 1000,
        (here, "requests", "minute"): 60,
        (here, "tokens", "day"): 1000,
    }
    later(two, folder, 100, Told("requests", "minute", 5))
    assert {r.limit for r in learned.learned() if r.scope == here and r.measure == "requests"} == {10}


def test_where_each_model_has_limits_of_its_own_the_endpoint_has_none(folder: Path) -> None:
    (one,) = models("one", base_url=GROQ)
    later(one, folder, 0, A_MINUTE)
    assert limits() == {("model", "requests", "minute"): 10}
    assert [a.scope for a in learned.allowances()] == [f"model:{one.id}"]


def test_what_is_known_moves_no_version_and_what_flaps_moves_it_once_a_minute(folder: Path) -> None:
    (one,) = models("one")
    later(one, folder, 0, A_MINUTE)
    version = current_version()
    later(one, folder, 1, A_MINUTE)  # by another process, which knows nothing yet
    later(one, folder, 2, Told("requests", "minute", 20))  # too soon after the last change
    assert (current_version(), limits()["model", "requests", "minute"]) == (version, 10)
    later(one, folder, 61, Told("requests", "minute", 20))
    assert current_version() > version
    assert limits()["endpoint", "requests", "minute"] == 20


def test_a_process_writes_only_what_it_has_not_written(folder: Path) -> None:
    (one,) = models("one")
    notes = Notes()
    assert set(notes.line_of(one, [A_MINUTE], at(0))) == {"learned", "allowances"}
    assert notes.line_of(one, [A_MINUTE], at(1)) == {}
    spent = Told("requests", "minute", 10, 0, 20.0)
    assert set(notes.line_of(one, [spent], at(2))) == {"allowances"}  # at once: nothing is left
    assert notes.line_of(one, [spent], at(3)) == {}
    assert set(notes.line_of(one, [A_MINUTE], at(8))) == {"allowances"}
    assert "learned" not in notes.line_of(one, [Told("requests", "minute", 11)], at(30))
    assert "learned" in notes.line_of(one, [Told("requests", "minute", 11)], at(61))
    assert "learned" in notes.line_of(one, [Told("requests", "minute", 11)], at(61 + 86_401))
    assert notes.line_of(one, [], at(99_999)) == {}


def test_an_allowance_is_what_was_said_last_whoever_writes_first(folder: Path) -> None:
    (one,) = models("one")
    later(one, folder, 10, Told("requests", "minute", 10, 3, 50.0))
    later(one, folder, 0, Told("requests", "minute", 10, 9, 60.0))
    (left,) = learned.allowances()
    assert (left.limit, left.remaining, left.resets_at, left.told_at) == (10, 3, at(60), at(10))
    later(one, folder, 20, Told("percent", "5h", 100, 37.5))
    assert Allowance.objects.get(measure="percent").remaining == 37


def force(folder: Path, *told: Told, now: datetime = NOW) -> dict[str, Any]:
    (one,) = models("one")
    later(one, folder, 0, *told)
    return in_force(now).get(f"model:{one.id}", {})


IN_FORCE: list[tuple[list[Told], dict[str, Any]]] = [
    ([Told("requests", "minute", 10), Told("tokens", "day", 99)], {"requests": {"minute": 10}, "tokens": {"day": 99}}),
    ([Told("requests", "month", 5), Told("concurrent", None, 2)], {"requests": {"month": 5}, "parallel": 2}),
    # Shown, not held to.
    ([Told("requests", "second", 2), Told("requests", "5h", 9), Told("percent", "week", 100), Told("neurons", "day", 9)], {}),
    ([Told("requests", None, 50)], {}),
    ([Told("requests", "minute", 0), Told("tokens", "minute", 10**9)], {}),
    # Input and output apart: what counts towards them is not ours to estimate, nor towards their sum.
    ([Told("tokens", "minute", 40, None, None, "input"), Told("tokens", "minute", 50), Told("tokens", "day", 60)], {"tokens": {"day": 60}}),
]


@pytest.mark.parametrize(("told", "expected"), IN_FORCE)
def test_what_calls_are_held_to(folder: Path, told: list[Told], expected: dict[str, Any]) -> None:
    assert force(folder, *told) == expected


def test_what_was_only_said_in_a_refusal_is_believed_for_a_week(folder: Path) -> None:
    said = Told("requests", "minute", 20, 0, None, "", "refusal")
    assert force(folder, said, now=at(6 * 86_400)) == {"requests": {"minute": 20}}
    assert in_force(at(8 * 86_400)) == {}


def test_the_snapshot_knows_what_was_learned(folder: Path) -> None:
    one, two = models("one", "two")
    notes = Notes()
    ledger.commit([notes.line_of(one, [A_MINUTE], datetime.now(UTC))], folder)
    snapshot = load_snapshot()
    assert snapshot.models["one"].learned == {"requests": {"minute": 10}}
    assert snapshot.models["two"].learned == {}
    assert snapshot.models["two"].endpoint.learned == {"requests": {"minute": 10}}
    assert applied({"two": two}, {}) == {"two": two}


# ------------------------------------------------------------------ nothing left

RESTS: list[tuple[list[Told], str, str, float | None]] = [
    ([Told("requests", "minute", 10, 0, 12.0)], "", "endpoint:here", 12.0),
    ([Told("requests", "minute", 10, 0, 12.0)], GROQ, "model:fast", 12.0),
    ([Told("tokens", "minute", 10, 0, 360.0)], "", "endpoint:here", 60.0),  # when all of it is back is not when some is
    ([Told("requests", "day", 10, 0, 3600.0), Told("tokens", "minute", 9, 0, 5.0)], "", "endpoint:here", 3600.0),
    ([Told("tokens", "minute", 10, 0, 7.0, "input")], "", "endpoint:here", 7.0),
    ([Told("requests", "minute", 10, 1, 12.0)], "", "", None),
    ([Told("requests", "minute", 10, 0, None)], "", "", None),
    ([Told("percent", "week", 100, 0, 100.0)], "", "", None),
    ([Told("requests", "minute", 10, None, 12.0)], "", "", None),
]


@pytest.mark.parametrize(("told", "base_url", "scope", "wait_s"), RESTS)
def test_nothing_left_rests_who_is_concerned_until_there_is_more(told: list[Told], base_url: str, scope: str, wait_s: float | None) -> None:
    rest = rest_of(a_model(base_url=base_url or "http://127.0.0.1/v1"), told, NOW)
    assert (rest is None) is (wait_s is None)
    if rest is not None:
        assert (rest.scope, rest.kind, (rest.until - NOW).total_seconds()) == (scope, LIMIT, wait_s)


# ------------------------------------------------------------------ background calls

HI = Request(dialect="openai-chat", model="x", messages=(Message(Role.USER, (Text("hi"),)),))


def background(fake: FakeProvider, *answers: Any, **limits: Any) -> roster.Model:
    endpoint = Endpoint.objects.create(name="here", base_url=fake.url, limits=limits)
    Model.objects.create(alias="fast", endpoint=endpoint, served_name="fast")
    fake.script("fast", *answers)
    found = load.load_model("fast")
    assert found is not None
    return found


def probe(model: roster.Model) -> calls.Asked:
    return calls.ask(model, HI, purpose="probe", judge="nobody", timeout_s=10, wait_max_s=0)


def test_a_background_call_learns_and_keeps_to_what_was_learned(fake: FakeProvider) -> None:
    told = reply("x").with_headers(x_ratelimit_limit_requests="3", x_ratelimit_remaining_requests="2")
    model = background(fake, told)
    assert probe(model).reply is not None
    assert in_force(datetime.now(UTC))[f"endpoint:{model.endpoint.id}"] == {"requests": {"minute": 3}}
    assert probe(model).reply is not None
    assert probe(model).reply is not None
    denied = probe(model).denied  # two of three: the last is for whoever waits for an answer
    assert denied is not None
    assert denied.window == "minute"
    assert len(fake.calls_to("fast")) == 3


def test_a_background_call_that_hears_of_nothing_left_lets_the_endpoint_rest(fake: FakeProvider) -> None:
    model = background(fake, reply("x").with_headers(x_ratelimit_limit_requests="9", x_ratelimit_remaining_requests="0", x_ratelimit_reset_requests="40s"))
    probe(model)
    rest = Rest.objects.get()
    assert (rest.scope, rest.kind) == ("endpoint:here", LIMIT)
    assert probe(model).rest is not None
    assert len(fake.calls_to("fast")) == 1


def test_a_refusal_teaches_its_limit_and_rests_the_one_model_that_it_names(fake: FakeProvider) -> None:
    model = background(fake, status(429, "Rate limit reached for model `fast` in organization `o` on requests per day (RPD): Limit 40, Used 40, Requested 1."))
    probe(model)
    assert {(r.measure, r.window, r.limit, r.told_by) for r in LearnedLimit.objects.all()} == {("requests", "day", 40, "refusal")}
    assert Rest.objects.get().scope == "model:fast"


def an_attempt(model: roster.Model, **headers: str) -> Attempt:
    """A good answer with headers."""
    order = Order("att", "call", "pan", "direct", "direct", model, HI, "local", 1, 10.0)
    attempt = Attempt(order)
    attempt.limits_said = said({name.replace("_", "-"): value for name, value in headers.items()})
    return attempt


def test_headers_are_read_every_few_seconds_and_at_once_where_nothing_may_be_left() -> None:
    (one,) = models("one")
    notes = Notes()
    some = an_attempt(one, x_ratelimit_limit_requests="9", x_ratelimit_remaining_requests="5")
    none = an_attempt(one, x_ratelimit_limit_requests="9", x_ratelimit_remaining_requests="0")
    assert notes.told_by(some, at(0)) == (Told("requests", "minute", 9, 5),)
    assert notes.told_by(some, at(4)) == ()
    assert notes.told_by(none, at(4)) == (Told("requests", "minute", 9, 0),)
    assert notes.told_by(some, at(10)) == (Told("requests", "minute", 9, 5),)
    assert notes.told_by(an_attempt(one, content_type="text/plain"), at(20)) == ()


def test_what_was_told_of_a_model_that_is_no_more_is_forgotten(folder: Path) -> None:
    one, two = models("one", "two")
    for model in (one, two):
        later(model, folder, 0, A_MINUTE)
    Model.objects.filter(alias="two").delete()
    assert learned.forget_gone(NOW) == 1
    version = current_version()
    assert learned.forget_gone(NOW) == 0
    assert current_version() == version
    assert {row.scope for row in learned.learned()} == {f"model:{one.id}", f"endpoint:{one.endpoint.id}"}


def test_a_limit_without_a_hint_is_waited_out_longer_each_time_and_a_success_begins_anew(fake: FakeProvider) -> None:
    model = background(fake, *[status(429)] * 5, reply("x"), status(429))
    waits = []
    for _ in range(7):
        asked = probe(model)
        if (rest := Rest.objects.filter(scope="endpoint:here").first()) is None:
            assert asked.reply is not None
            continue
        waits.append(round((rest.until - rest.since).total_seconds()))
        assert probe(model).rest is not None  # nobody is asked meanwhile
        Rest.objects.update(since=datetime.now(UTC) - timedelta(days=2), until=datetime.now(UTC) - timedelta(seconds=1))
    assert waits == [120, 600, 3600, 86_400, 86_400, 120]
    assert len(fake.calls_to("fast")) == 7


def test_a_provider_that_says_when_again_is_believed_and_the_later_time_stays(fake: FakeProvider) -> None:
    model = background(fake, status(429, headers={"retry-after": "3000"}), status(429, headers={"retry-after": "5"}))
    calls.ask(model, HI, purpose="probe", judge="nobody", timeout_s=10, minds_rests=False)
    until = Rest.objects.get().until
    calls.ask(model, HI, purpose="probe", judge="nobody", timeout_s=10, minds_rests=False)
    assert Rest.objects.get().until == until


def test_limits_of_ever_new_names_end_somewhere(folder: Path) -> None:
    (one,) = models("one")
    for minutes in range(1, 100):
        later(one, folder, minutes, Told("requests", f"{minutes}minute", 10))
    assert LearnedLimit.objects.filter(scope=f"model:{one.id}").count() == learned.MOST_OF_ONE
    before = current_version()
    later(one, folder, 200, Told("requests", "99minute", 11))
    assert current_version() == before
    later(one, folder, 201, Told("requests", "1minute", 11))
    assert LearnedLimit.objects.get(scope=f"model:{one.id}", window="1minute").limit == 11
