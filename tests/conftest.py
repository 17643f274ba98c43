"""Fixtures that all tests share: the fake provider and the running server, each made once a run."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from django.test import TransactionTestCase
from hypothesis import HealthCheck, settings

from tests import emptying
from tests.fake import FakeProvider
from tests.live import Bench, Live

# A shared machine is slow now and then: what a property says does not depend on how long it took.
settings.register_profile("house", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("house")


TransactionTestCase._fixture_teardown = emptying.empty  # type: ignore[method-assign]

# A run that is told to end still ends its server and drops its database.
signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def fake_provider() -> Iterator[FakeProvider]:
    provider = FakeProvider()
    yield provider
    provider.close()


@pytest.fixture
def fake(fake_provider: FakeProvider) -> Iterator[FakeProvider]:
    """The run's fake provider, its scripts and calls forgotten after each test."""
    yield fake_provider
    fake_provider.forget()


@pytest.fixture(scope="session")
def live() -> Iterator[Live]:
    """The running server. The run fails if it did not end cleanly or its log holds a traceback."""
    server = Live()
    try:
        server.start()
        yield server
    finally:
        wrong = server.stop()
    assert not wrong, "the server's run had faults:\n\n" + "\n\n".join(wrong)


@pytest.fixture
def bench(live: Live, fake: FakeProvider) -> Bench:
    """One test's own part of the bench."""
    return Bench(live, fake)
