"""Who rests after a failure, and for how long: the contract's classes, and what happens to rests that meet."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from catalog import providers
from health.models import Rest
from health.resting import KEY, LIMIT, OVERLOAD, Resting, commit_rests, line_of, line_of_success, load_rests, rest_after
from wire.errors import Empty, Fault, Garbage, TimedOut, Truncated, Unreachable, UpstreamError

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ENDPOINT, MODEL = "endpoint:groq", "model:fast"


def refusal(status: int, text: str = "no", **headers: str) -> UpstreamError:
    body = b'{"error": {"message": "' + text.encode() + b'"}}'
    return providers.get("openai").read_error(status, {"content-type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}, body)


def rest(error: UpstreamError, *standing: Resting, at: datetime = NOW) -> Resting | None:
    return rest_after(error, "groq", "fast", {r.scope: r for r in standing}, at)


def seconds(found: Resting | None, at: datetime = NOW) -> float:
    assert found is not None
    return (found.until - at).total_seconds()


@pytest.mark.parametrize(
    ("error", "scope", "kind", "wait_s"),
    [
        (refusal(401), ENDPOINT, KEY, 120),
        (refusal(402), ENDPOINT, KEY, 120),
        (refusal(403), ENDPOINT, KEY, 120),
        (refusal(429), ENDPOINT, LIMIT, 120),
        (refusal(429, retry_after="600"), ENDPOINT, LIMIT, 600),
        (refusal(429, "Please retry in 59.44s"), ENDPOINT, LIMIT, 59.44),
        (refusal(429, "You have insufficient_quota"), ENDPOINT, KEY, 120),
        (refusal(400, "Incorrect API key provided"), ENDPOINT, KEY, 120),
        (refusal(400, "Your credit balance is too low"), ENDPOINT, KEY, 120),
        (refusal(503), MODEL, OVERLOAD, 30),
        (refusal(503, retry_after="7"), MODEL, OVERLOAD, 7),
        (refusal(529), MODEL, OVERLOAD, 30),
        (Unreachable("nobody there"), MODEL, OVERLOAD, 30),
    ],
)
def test_a_failure_rests_whom_it_is_the_fault_of(error: UpstreamError, scope: str, kind: str, wait_s: float) -> None:
    found = rest(error)
    assert found is not None
    assert (found.scope, found.kind, found.step, found.since) == (scope, kind, 0, NOW)
    assert seconds(found) == pytest.approx(wait_s, abs=1)
    assert found.reason == error.message


@pytest.mark.parametrize(
    "error",
    [
        refusal(400),
        refusal(400, "maximum context length is 8192 tokens"),
        refusal(404),
        refusal(404, "The model `fast` does not exist"),
        refusal(413),
        refusal(422),
        refusal(403, "This violates our content policy"),
        refusal(500),
        refusal(502),
        refusal(504),
        TimedOut("slow"),
        Truncated("cut"),
        Garbage("?"),
        Empty("nothing"),
        UpstreamError("cannot be said", code="unfit", fault=Fault.CALLER),
    ],
)
def test_a_failure_of_the_caller_or_of_chance_rests_nobody(error: UpstreamError) -> None:
    assert rest(error) is None


@pytest.mark.parametrize(
    ("error", "steps"),
    [
        (Unreachable("gone"), [30, 120, 600, 600, 600]),
        (refusal(503), [30, 120, 600, 600, 600]),
        (refusal(401), [120, 600, 3600, 3600, 3600]),
        (refusal(429), [120, 600, 3600, 86400, 86400]),
    ],
)
def test_who_fails_again_after_a_rest_rests_longer(error: UpstreamError, steps: list[float]) -> None:
    at, standing, found = NOW, [], []
    for _ in steps:
        last = rest(error, *standing, at=at)
        assert last is not None
        found.append(seconds(last, at))
        at, standing = last.until + timedelta(seconds=1), [last]
    assert found == steps


def test_failures_during_one_rest_are_one_step() -> None:
    """Fifty calls under way when a server goes down are one outage."""
    first = rest(Unreachable("gone"))
    assert first is not None
    again = rest(Unreachable("gone"), first, at=NOW + timedelta(seconds=1))
    assert again is not None
    assert again.step == 0


def test_steps_of_another_kind_of_rest_do_not_count() -> None:
    before = Resting(ENDPOINT, KEY, 3, NOW - timedelta(hours=1), "", NOW - timedelta(hours=2))
    assert seconds(rest(refusal(429), before)) == 120
    assert seconds(rest(refusal(401), before)) == 3600


@pytest.mark.parametrize(("asked", "wait_s"), [(0.0, 1), (0.2, 1), (42.5, 42.5), (10 * 86400.0, 7 * 86400)])
def test_what_a_provider_asks_for_is_bounded(asked: float, wait_s: float) -> None:
    error = UpstreamError("slow down", code="rate_limit_exceeded", fault=Fault.KEY, retry_after_s=asked)
    assert seconds(rest(error)) == wait_s


# ------------------------------------------------------------------ what is committed


def a_rest(scope: str = ENDPOINT, until_s: float = 60, since_s: float = 0) -> Resting:
    return Resting(scope, LIMIT, 0, NOW + timedelta(seconds=until_s), "slow down", NOW + timedelta(seconds=since_s))


def commit(*lines: dict[str, list[dict[str, object]]]) -> dict[str, Resting]:
    with connection.cursor() as cursor:
        for line in lines:
            commit_rests(cursor, line["rests"])
    return load_rests()


@pytest.mark.django_db
def test_a_rest_survives_as_it_was() -> None:
    assert commit(line_of(a_rest())) == {ENDPOINT: a_rest()}


@pytest.mark.django_db
def test_the_later_deadline_stays_whoever_writes_first() -> None:
    long, short = a_rest(until_s=600), a_rest(until_s=60, since_s=1)
    for order in ((long, short), (short, long)):
        Rest.objects.all().delete()
        assert commit(*[line_of(r) for r in order]) == {ENDPOINT: long}


@pytest.mark.django_db
def test_a_call_that_went_through_ends_what_began_before_it() -> None:
    began = a_rest(since_s=10)
    assert commit(line_of(began), line_of_success([ENDPOINT], NOW + timedelta(seconds=5))) == {ENDPOINT: began}
    assert commit(line_of_success([ENDPOINT, MODEL], NOW + timedelta(seconds=15))) == {}
