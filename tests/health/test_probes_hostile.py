"""Probes of models that answer with too much, never end, or send what no table takes."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.load import load_model
from health import probe_calls
from health.models import Attempt, Probe
from health.probe_calls import WORD, Question, put
from tests.fake import FakeProvider, reply, sse, status, whole
from tests.health import probed

pytestmark = pytest.mark.usefixtures("tables")
DRIFT = Question("drift", "Say something.", keeps_answer=True, prompt="one")
ODD = "a\0b\ud800c\u202e<script>"


def ask(alias: str, question: Question = WORD, timeout_s: float = 5.0) -> probe_calls.ProbeResult:
    model = load_model(alias)
    assert model
    return put(model, question, purpose="probe", judge="schedule", timeout_s=timeout_s)


def test_a_megabyte_of_an_answer_is_kept_cut(fake: FakeProvider) -> None:
    probed.model(fake, "loud", reply("x" * 1_000_000))
    assert ask("loud", DRIFT).is_ok
    assert len(Probe.objects.get().answer) == probe_calls.ANSWER_LENGTH
    assert Attempt.objects.count() == 1


def test_an_answer_with_what_no_table_takes_is_kept_without_it(fake: FakeProvider) -> None:
    body = {
        "id": ODD,
        "object": "chat.completion",
        "model": ODD,
        "system_fingerprint": ODD,
        "choices": [{"index": 0, "finish_reason": ODD, "message": {"role": "assistant", "content": ODD}}],
        "usage": {"prompt_tokens": 10**30, "completion_tokens": -5, "total_tokens": 1e300},
    }
    probed.model(fake, "odd", whole(body))
    result = ask("odd", DRIFT)
    (row,) = Probe.objects.all()
    assert "\0" not in row.answer + row.message + str(row.seen)
    assert Attempt.objects.count() == 1, result


def test_a_refusal_with_what_no_table_takes_is_kept_without_it(fake: FakeProvider) -> None:
    probed.model(fake, "rude", *[status(500, ODD * 1000, error_code=ODD * 50)] * 4)
    ask("rude")
    (row,) = Probe.objects.all()
    assert "\0" not in row.message + row.code
    assert Attempt.objects.count() == 1


@pytest.mark.parametrize("question", [WORD, Question("perf", "Go on.", 50, stream=True)], ids=["whole", "stream"])
def test_a_model_that_never_ends_ends_with_the_probes_time(fake: FakeProvider, question: Any) -> None:
    drip = [{"choices": [{"index": 0, "delta": {"content": "x "}}]}, 0.05]
    probed.model(fake, "endless", *[sse(*(drip * 200))] * 3)
    result = ask("endless", question, timeout_s=0.5)
    assert result.outcome != "ok" or result.status in ("truncated", "partial")
    assert Probe.objects.count() == result.calls
