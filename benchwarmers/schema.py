"""The database's schema at start: in step, behind, or ahead of this code; how it is brought up to date."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.utils import DatabaseError

from benchwarmers import locks
from benchwarmers.refusals import Refusal

# Any number: all servers of one PostgreSQL must agree on it.
ADVISORY_LOCK = 0x62656E63


@dataclass(frozen=True, slots=True)
class Schema:
    """Shape: `pending` and `unknown` are "app.migration"; `unknown` were applied by other code than this, usually newer."""

    applied: frozenset[tuple[str, str]]
    pending: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        return not self.applied


@cache
def known_migrations() -> frozenset[tuple[str, str]]:
    """All migrations of this code, read from its files once."""
    return frozenset(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)


def read() -> Schema:
    """Reads what was applied and compares. Errors: DatabaseError."""
    applied = frozenset(MigrationRecorder(connection).applied_migrations())
    known = known_migrations()
    return Schema(applied, _names(known - applied), _names(applied - known))


def _names(migrations: frozenset[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(f"{app}.{name}" for app, name in sorted(migrations))


def refuse_newer(schema: Schema, home: Path) -> None:
    """Errors: Refusal where newer code has used this database."""
    if not schema.unknown:
        return
    try:
        needed = f"Benchwarmers {(home / 'version').read_text(encoding='utf-8').strip()} or later"
    except OSError:
        needed = "the version that used it last, or a later one"
    raise Refusal(
        f"The database is newer than this program ({settings.VERSION}): it has {len(schema.unknown)} migration(s) unknown here, "
        f"such as {schema.unknown[-1]}. Install {needed}, or restore a backup made with {settings.VERSION}."
    )


def is_sqlite() -> bool:
    return connection.vendor == "sqlite"


@contextmanager
def one_at_a_time(home: Path) -> Iterator[None]:
    """Holds the lock under which schemas change: a file's beside SQLite, the database's own on PostgreSQL."""
    if is_sqlite():
        with locks.waiting_for(home / locks.MIGRATE_LOCK):
            yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [ADVISORY_LOCK])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [ADVISORY_LOCK])


def apply() -> None:
    """Applies what is pending. The caller holds the lock."""
    call_command("migrate", interactive=False, verbosity=0)


def reach() -> None:
    """Errors: Refusal where the database cannot be reached."""
    try:
        connection.ensure_connection()
    except DatabaseError as error:
        where = connection.settings_dict["NAME"] if is_sqlite() else f"{connection.settings_dict['HOST'] or 'localhost'} (DATABASE_URL)"
        raise Refusal(f"The database at {where} cannot be opened: {first_line(error)}") from None


def first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
