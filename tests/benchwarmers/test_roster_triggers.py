"""Every table that a plan reads moves the roster's version, whatever migrations did to it: on SQLite a changed column may take triggers away."""

from __future__ import annotations

import pytest
from django.db import connection

TABLES = (
    "access_budget",
    "access_key",
    "catalog_endpoint",
    "catalog_model",
    "catalog_price",
    "health_learnedlimit",
    "health_rest",
    "panels_collection",
    "panels_member",
)


@pytest.mark.django_db
@pytest.mark.parametrize("table", TABLES)
def test_every_write_to_what_plans_read_moves_the_version(table: str) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT event_manipulation FROM information_schema.triggers WHERE event_object_table = %s", [table])
            verbs = {verb for (verb,) in cursor.fetchall()}
        else:
            cursor.execute("SELECT upper(sql) FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s", [table])
            verbs = {verb for (sql,) in cursor.fetchall() for verb in ("INSERT", "UPDATE", "DELETE") if f"AFTER {verb} ON" in sql}
    assert verbs == {"INSERT", "UPDATE", "DELETE"}
