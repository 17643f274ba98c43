"""A call that its own worker writes down while it is being looked up is found: between the first look and the outboxes it may have left both."""

from __future__ import annotations

import pytest

from access.ids import new_id
from panels.lookup import after_a_drain


@pytest.mark.django_db(transaction=True)
def test_what_left_the_outbox_a_moment_ago_is_looked_for_again() -> None:
    answers = iter([None, "written meanwhile"])
    assert after_a_drain(lambda: next(answers), new_id("call")) == "written meanwhile"


@pytest.mark.django_db(transaction=True)
def test_what_is_no_id_of_ours_is_looked_for_once() -> None:
    answers = iter([None])
    assert after_a_drain(lambda: next(answers), "call_of_somebody_else") is None
