"""Moves the roster's version when money is granted: what may be spent is part of what a request's plan reads."""

from django.db import migrations

MOVE = "INSERT INTO access_rosterversion (id, version) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET version = access_rosterversion.version + 1"
VERBS = ("insert", "update", "delete")


def create(apps, schema_editor):
    drop(apps, schema_editor)
    for verb in VERBS:
        name = f"suite_grant_moves_roster_{verb}"
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"CREATE TRIGGER {name} AFTER {verb.upper()} ON suite_grant FOR EACH STATEMENT EXECUTE FUNCTION access_move_roster_version()")
        else:
            schema_editor.execute(f"CREATE TRIGGER {name} AFTER {verb.upper()} ON suite_grant BEGIN {MOVE}; END")


def drop(apps, schema_editor):
    on = " ON suite_grant" if schema_editor.connection.vendor == "postgresql" else ""
    for verb in VERBS:
        schema_editor.execute(f"DROP TRIGGER IF EXISTS suite_grant_moves_roster_{verb}{on}")


class Migration(migrations.Migration):
    dependencies = [("suite", "0003_connections_and_summaries"), ("access", "0002_roster_version")]
    operations = [migrations.RunPython(create, drop)]
