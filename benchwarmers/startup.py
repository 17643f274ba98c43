"""What `serve` makes sure of before anything listens: the folder, the setting, the schema, the first rows. Refuses before it writes."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.db.utils import DatabaseError

from benchwarmers import archive, locks, schema, serverfile
from benchwarmers.refusals import Refusal
from benchwarmers.settings import is_loopback

LEAST_FREE_BYTES = 64 * 1024 * 1024
LEAST_TOKEN = 16
KEPT_COPIES = 5


def check_token(host: str) -> None:
    """Errors: Refusal where a server that others can reach has no secret, or one that can be guessed."""
    token = settings.ADMIN_TOKEN
    if token and len(token) < LEAST_TOKEN:
        raise Refusal(f"BENCHWARMERS_ADMIN_TOKEN is shorter than {LEAST_TOKEN} characters. Set a longer one.")
    if not token and not is_loopback(host):
        raise Refusal(
            f"Listening on {host}, others can reach this server: set BENCHWARMERS_ADMIN_TOKEN ({LEAST_TOKEN} or more characters) first, "
            "or BENCH_HOST=127.0.0.1 to serve this machine alone."
        )


def check_folder(home: Path) -> None:
    """Errors: Refusal where the data folder is somebody else's, cannot be written, or its disk is full."""
    try:
        owner = home.stat().st_uid
    except OSError as error:
        raise Refusal(f"The data folder {home} cannot be read: {error.strerror}. Set BENCHWARMERS_HOME.") from None
    me = os.geteuid()
    if owner != me and (me == 0 or not os.access(home, os.W_OK | os.X_OK)):
        raise Refusal(f"The data folder {home} belongs to user {owner}, and this is user {me}. Start as that user, or set BENCHWARMERS_HOME.")
    if not os.access(home, os.W_OK | os.X_OK):
        raise Refusal(f"The data folder {home} is read-only. Make it writable, or set BENCHWARMERS_HOME.")
    if (free := shutil.disk_usage(home).free) < LEAST_FREE_BYTES:
        raise Refusal(f"The disk of the data folder {home} has {free // 1024 // 1024} MB left; {LEAST_FREE_BYTES // 1024 // 1024} MB are needed. Make room.")


def take_folder(home: Path) -> int:
    """Makes this process the folder's one server. Shape: what holds the lock. Errors: Refusal that names the other one."""
    try:
        return locks.take(home / locks.SERVE_LOCK)
    except locks.Taken as taken:
        other = serverfile.read(home)
        where = f" at {other.url}" if other else ""
        raise Refusal(f"Another server uses the data folder {home}: process {taken.pid}{where}. Stop it, or set BENCHWARMERS_HOME.") from None
    except OSError as error:
        raise Refusal(f"The data folder {home} cannot be written: {error.strerror}. Set BENCHWARMERS_HOME.") from None


def prepare_schema(home: Path, may_migrate: bool) -> list[str]:
    """Brings the schema up to date. Shape: what was done, for a person.

    SQLite is copied first and then migrated; so is an empty PostgreSQL, without a copy. A PostgreSQL in use, which other hosts may share, is
    migrated only where `may_migrate` says so. Errors: Refusal.
    """
    schema.reach()
    try:
        with schema.one_at_a_time(home):
            now = schema.read()
            schema.refuse_newer(now, home)
            if not now.pending:
                return []
            done = []
            if not now.is_empty and not schema.is_sqlite() and not may_migrate:
                raise Refusal(
                    f"The database needs {len(now.pending)} migration(s), such as {now.pending[0]}. Other hosts may be using it: make a backup "
                    "(manage.py backup FILE), then start with --migrate."
                )
            if not now.is_empty and schema.is_sqlite():
                done.append(f"Database copied to {copy_database(home)} before migrating.")
            schema.apply()
            done.append(f"Database: {len(now.pending)} migration(s) applied.")
            return done
    except DatabaseError as error:
        raise Refusal(f"The database could not be brought up to date: {schema.first_line(error)}") from None


def copy_database(home: Path) -> Path:
    """Copies SQLite aside; the last few copies are kept."""
    folder = home / "backups"
    folder.mkdir(mode=0o700, exist_ok=True)
    copy = folder / f"before-migrating-{datetime.now(UTC):%Y%m%dT%H%M%S}.sqlite3"
    archive.copy_sqlite(copy)
    for old in sorted(folder.glob("before-migrating-*.sqlite3"))[:-KEPT_COPIES]:
        old.unlink()
    return copy


def first_rows(home: Path) -> None:
    """Makes the secrets' check value, the first admin and the operator key where they are missing. Errors: Refusal."""
    # Here, because these rooms' modules need the apps to be ready.
    from access import people, secrets

    try:
        secrets.ensure_check_value()
        people.ensure_admin()
        people.ensure_operator_key(home)
        (home / "version").write_text(settings.VERSION + "\n", encoding="utf-8")
    except secrets.SecretsMismatch as error:
        raise Refusal(str(error)) from None
    except (DatabaseError, OSError) as error:
        raise Refusal(f"The data folder {home} could not be prepared: {schema.first_line(error)}") from None
