"""The queue's name in its broker: a Redis that several deployments share hands no ring to another's queue."""

from __future__ import annotations

from benchwarmers.settings import queue_name

REDIS = "redis://127.0.0.1:6379/0"
HERE = {"HOST": "db", "PORT": "5432", "NAME": "bench"}


def test_in_the_database_itself_it_needs_no_name_of_its_own() -> None:
    assert queue_name(HERE, "") == "benchwarmers"


def test_hosts_of_one_database_share_it_and_other_databases_do_not() -> None:
    assert queue_name(HERE, REDIS) == queue_name({**HERE, "PASSWORD": "another", "OPTIONS": {}}, REDIS)
    others = [{**HERE, "NAME": "other"}, {**HERE, "HOST": "db2"}, {**HERE, "PORT": "5433"}, {"NAME": "/data/db.sqlite3"}]
    assert len({queue_name(one, REDIS) for one in (HERE, *others)}) == 5
