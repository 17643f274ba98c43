"""Moves the roster's version on writes to tables that plans read: those that are new, and on SQLite those whose triggers went when columns came."""

from django.db import migrations

TABLES = ["health_learnedlimit"]
MOVE = "INSERT INTO access_rosterversion (id, version) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET version = access_rosterversion.version + 1"


def create(apps, schema_editor):
    run = schema_editor.execute
    if schema_editor.connection.vendor == "postgresql":
        run(f"CREATE OR REPLACE FUNCTION access_move_roster_version() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {MOVE}; RETURN NULL; END $$")
    for table in TABLES:
        for verb in ("INSERT", "UPDATE", "DELETE"):
            name = f"{table}_moves_roster_{verb.lower()}"
            run(f"DROP TRIGGER IF EXISTS {name}" + (f" ON {table}" if schema_editor.connection.vendor == "postgresql" else ""))
            if schema_editor.connection.vendor == "postgresql":
                run(f"CREATE TRIGGER {name} AFTER {verb} ON {table} FOR EACH STATEMENT EXECUTE FUNCTION access_move_roster_version()")
            else:
                run(f"CREATE TRIGGER {name} AFTER {verb} ON {table} BEGIN {MOVE}; END")


def drop(apps, schema_editor):
    for table in TABLES:
        for verb in ("INSERT", "UPDATE", "DELETE"):
            name = f"{table}_moves_roster_{verb.lower()}"
            on = f" ON {table}" if schema_editor.connection.vendor == "postgresql" else ""
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {name}{on}")


class Migration(migrations.Migration):
    dependencies = [("health", "0003_upkeep"), ("access", "0002_roster_version")]
    operations = [migrations.RunPython(create, drop)]
