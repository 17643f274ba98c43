"""Moves the roster's version when somebody's rights change: personal tokens may what their owners may."""

from django.db import migrations

MOVE = "INSERT INTO access_rosterversion (id, version) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET version = access_rosterversion.version + 1"
# Not at each sign-in, which writes last_login alone.
VERBS = {"update": "UPDATE OF username, role, is_active, is_superuser, team", "delete": "DELETE"}


def create(apps, schema_editor):
    drop(apps, schema_editor)
    for verb, when in VERBS.items():
        name = f"access_user_moves_roster_{verb}"
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"CREATE TRIGGER {name} AFTER {when} ON access_user FOR EACH STATEMENT EXECUTE FUNCTION access_move_roster_version()")
        else:
            schema_editor.execute(f"CREATE TRIGGER {name} AFTER {when} ON access_user BEGIN {MOVE}; END")


def drop(apps, schema_editor):
    on = " ON access_user" if schema_editor.connection.vendor == "postgresql" else ""
    for verb in VERBS:
        schema_editor.execute(f"DROP TRIGGER IF EXISTS access_user_moves_roster_{verb}{on}")


class Migration(migrations.Migration):
    dependencies = [("access", "0005_audit_target")]
    operations = [migrations.RunPython(create, drop)]
