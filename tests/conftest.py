"""Fixtures that all tests share: the fake provider and the running server, each made once a run."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from django.test import TransactionTestCase
from hypothesis import HealthCheck, settings

from tests import emptying
from tests.benchwarmers.deployment import Deployment
from tests.fake import FakeProvider
from tests.live import Bench, Database, Live

# A shared machine is slow now and then: what a property says does not depend on how long it took.
settings.register_profile("house", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("house")


TransactionTestCase._fixture_teardown = emptying.empty  # type: ignore[method-assign]

# A run that is told to end still ends its server and drops its database.
signal.signal(signal.SIGTERM, signal.default_int_handler)


# Fixtures that open a database, each on its own or by another.
DATABASES = frozenset({"db", "transactional_db", "live", "deployment"})
SERVERS = (Live, Deployment, Database)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--second-database", action="store_true", help="Leaves out what no database can fail: pure rules, and what is marked formats.")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("second_database"):
        return
    left_out = [item for item in items if not can_fail_by_database(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]


def can_fail_by_database(item: pytest.Item) -> bool:
    """Tells whether a test opens a database, or stands among tests that start servers of their own."""
    if item.get_closest_marker("formats"):
        return False
    if item.get_closest_marker("django_db") or DATABASES & set(getattr(item, "fixturenames", ())):
        return True
    module = getattr(item, "module", None)
    return any(value is server for value in vars(module).values() for server in SERVERS)


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
