"""Backups: one file that holds the database as it was at one moment, and the data folder's files. Never a secret's key.

A backup is a gzipped tar: `manifest.json`; `database.sqlite3` (SQLite's own online copy) or one `tables/<name>.copy` a table (PostgreSQL's COPY text, all
from one snapshot); `files/…`. Provider keys are inside, sealed; what unseals them (the secrets file) and `operator.key` are not.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sqlite3
import tarfile
import tempfile
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management.color import no_style
from django.db import connection, transaction

from benchwarmers import schema
from benchwarmers.refusals import Refusal

FORMAT = 1
# Not in a backup: what belongs to one running server, what is a secret, what is a copy already.
LEFT_OUT = frozenset({"operator.key", "server.json", "serve.lock", "migrate.lock", "backups", "secrets.keys", "version", "demo"})


@dataclass(frozen=True, slots=True)
class Manifest:
    """Shape: `engine` is sqlite or postgresql; `migrations` are [app, name] pairs."""

    format: int
    version: str
    engine: str
    made_at: str
    migrations: list[list[str]]
    tables: list[str]


# ------------------------------------------------------------------ making one


def make(target: Path, home: Path) -> Manifest:
    """Writes a backup, whole or not at all; a server may be running. Errors: Refusal, DatabaseError, OSError."""
    if target.exists():
        raise Refusal(f"{target} exists. Name a file that does not.")
    now = schema.read()
    engine = connection.vendor
    manifest = Manifest(FORMAT, settings.VERSION, engine, datetime.now(UTC).isoformat(timespec="seconds"), [list(m) for m in sorted(now.applied)], _tables())
    descriptor, part = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as raw, tarfile.open(fileobj=raw, mode="w:gz", compresslevel=3) as tar, tempfile.TemporaryDirectory() as scratch:
            _add_bytes(tar, "manifest.json", json.dumps(asdict(manifest), indent=1).encode())
            # The files first: a ledger line that moves from its outbox file into the database meanwhile is then in both, and lines are counted once.
            _add_files(tar, home)
            if engine == "sqlite":
                copy_sqlite(Path(scratch) / "database.sqlite3")
                tar.add(Path(scratch) / "database.sqlite3", "database.sqlite3")
            else:
                _add_tables(tar, manifest.tables, Path(scratch))
        Path(part).replace(target)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
    return manifest


def copy_sqlite(target: Path) -> None:
    """Copies the SQLite database as it is at one moment, while others write."""
    connection.ensure_connection()
    copy = sqlite3.connect(target)
    try:
        os.chmod(target, 0o600)
        connection.connection.backup(copy, pages=4096)
        copy.execute("PRAGMA journal_mode=DELETE")
    finally:
        copy.close()


def _tables() -> list[str]:
    """Every table that a model of this code has, present in the database."""
    there = set(connection.introspection.table_names())
    ours = {m._meta.db_table for m in apps.get_models(include_auto_created=True) if m._meta.managed and not m._meta.proxy}
    return sorted((ours | {"django_migrations"}) & there)


def _add_bytes(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    entry.mode = 0o600
    entry.mtime = int(datetime.now(UTC).timestamp())
    tar.addfile(entry, io.BytesIO(content))


def _add_files(tar: tarfile.TarFile, home: Path) -> None:
    for path in sorted(home.rglob("*")):
        first = path.relative_to(home).parts[0]
        if first in LEFT_OUT or first.startswith((".", "benchwarmers.sqlite3", "test.sqlite3")) or not path.is_file() or path.is_symlink():
            continue
        try:
            content = path.read_bytes()  # at once: an outbox file may be truncated while tar reads it
        except OSError:
            continue
        _add_bytes(tar, f"files/{path.relative_to(home).as_posix()}", content)


def _add_tables(tar: tarfile.TarFile, tables: list[str], scratch: Path) -> None:
    quote = connection.ops.quote_name
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        for table in tables:
            path = scratch / table
            columns = _columns(cursor, table)
            with path.open("wb") as file, cursor.copy(f"COPY {quote(table)} ({', '.join(map(quote, columns))}) TO STDOUT WITH (FORMAT csv, HEADER)") as copy:
                for block in copy:
                    file.write(block)
            tar.add(path, f"tables/{table}.copy")
            path.unlink()


def _columns(cursor: Any, table: str) -> list[str]:
    return [c.name for c in connection.introspection.get_table_description(cursor, table)]


# ------------------------------------------------------------------ putting one back


def read_manifest(source: Path) -> Manifest:
    """Errors: Refusal where this is no backup, of another engine, or of newer code."""
    try:
        with tarfile.open(source) as tar:
            held = tar.extractfile("manifest.json")
            manifest = Manifest(**json.loads(held.read() if held else b""))
    except FileNotFoundError:
        raise Refusal(f"{source} does not exist.") from None
    except (OSError, tarfile.TarError, KeyError, ValueError, TypeError, EOFError):
        raise Refusal(f"{source} is no backup of Benchwarmers.") from None
    if manifest.format > FORMAT or {tuple(m) for m in manifest.migrations} - schema.known_migrations():
        raise Refusal(f"{source} was made with Benchwarmers {manifest.version}, and this is {settings.VERSION}. Install that version or a later one.")
    if manifest.engine != connection.vendor:
        raise Refusal(f"{source} holds a {manifest.engine} database, and this server uses {connection.vendor}. Set or unset DATABASE_URL.")
    return manifest


def put_back(source: Path, home: Path) -> Path | None:
    """Replaces database and files by a backup's, then brings the schema up to date. Shape: where the old state was kept; None if there was none.

    The caller holds the data folder's lock. Errors: Refusal before anything is changed; DatabaseError, OSError.
    """
    manifest = read_manifest(source)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=home, prefix=".restoring-") as scratch:
        room = Path(scratch)
        try:
            with tarfile.open(source) as tar:
                tar.extractall(room, filter="data")
        except (OSError, tarfile.TarError, EOFError) as error:
            raise Refusal(f"{source} cannot be read to its end: {schema.first_line(error)}. Nothing was changed.") from None
        if manifest.engine == "sqlite":
            _check_sqlite(room / "database.sqlite3", source)
        kept = _keep_old(home)
        with schema.one_at_a_time(home):
            if manifest.engine == "sqlite":
                _replace_sqlite(room / "database.sqlite3")
            else:
                _replace_tables(manifest, room / "tables")
            _replace_files(room / "files", home)
            schema.apply()
            _move_roster_version()
    return kept


def _keep_old(home: Path) -> Path | None:
    if schema.read().is_empty:
        return None
    folder = home / "backups"
    folder.mkdir(mode=0o700, exist_ok=True)
    kept = folder / f"before-restoring-{datetime.now(UTC):%Y%m%dT%H%M%S%f}.tar.gz"
    make(kept, home)
    return kept


def _check_sqlite(path: Path, source: Path) -> None:
    try:
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            (verdict,) = database.execute("PRAGMA integrity_check").fetchone()
        finally:
            database.close()
    except sqlite3.Error as error:
        verdict = str(error)
    if verdict != "ok":
        raise Refusal(f"The database in {source} is damaged ({verdict}). Nothing was changed.")


def _replace_sqlite(new: Path) -> None:
    """Puts the file in the old one's place. The old journal goes first: left beside a new database, it would be played into it."""
    connection.close()
    path = Path(connection.settings_dict["NAME"])
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    os.chmod(new, 0o600)
    new.replace(path)


def _replace_tables(manifest: Manifest, folder: Path) -> None:
    """Makes the schema that the backup was made with, then fills it, in two steps: a failure in between leaves an empty database, never a mixed one."""
    quote = connection.ops.quote_name
    with transaction.atomic(), connection.cursor() as cursor:
        if there := _tables():
            cursor.execute(f"DROP TABLE {', '.join(map(quote, there))} CASCADE")
    _migrate_to({(app, name) for app, name in manifest.migrations})
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(map(quote, _tables()))}")
        # Triggers write this table while the others are filled, so it is filled last.
        for table in sorted(manifest.tables, key=lambda t: t == "access_rosterversion"):
            if table == "access_rosterversion":
                cursor.execute("DELETE FROM access_rosterversion")
            with (folder / f"{table}.copy").open("rb") as file:
                columns = ", ".join(quote(c) for c in file.readline().decode().strip().split(","))
                with cursor.copy(f"COPY {quote(table)} ({columns}) FROM STDIN WITH (FORMAT csv)") as copy:
                    while block := file.read(1 << 20):
                        copy.write(block)
        for statement in connection.ops.sequence_reset_sql(no_style(), apps.get_models(include_auto_created=True)):
            cursor.execute(statement)


def _migrate_to(applied: set[tuple[str, str]]) -> None:
    """Migrates each app to the last of its migrations that a backup knows."""
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    nodes = executor.loader.graph.node_map
    passed = {parent.key for node in applied & nodes.keys() for parent in nodes[node].parents if parent.key[0] == node[0]}
    executor.migrate(sorted((applied & nodes.keys()) - passed))


def _replace_files(new: Path, home: Path) -> None:
    shutil.rmtree(home / "outbox", ignore_errors=True)  # its lines belong to the database that was replaced
    if new.is_dir():
        shutil.copytree(new, home, dirs_exist_ok=True)


def _move_roster_version() -> None:
    """Other hosts may hold a snapshot by this number: it only ever grows."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE access_rosterversion SET version = version + 1000000")
