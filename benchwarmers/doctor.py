"""What can be wrong with a deployment: each thing looked at, with a verdict and a hint. Nothing is changed and no secret is shown."""

from __future__ import annotations

import resource
import shutil
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.utils import DatabaseError

from benchwarmers import probes, schema, serverfile, startup
from benchwarmers.refusals import Refusal

OK, INFO, WARN, FAIL = "ok", "info", "warn", "fail"
POOL = 4  # connections a web process may open (settings.DATABASES)
QUEUE_CONNECTIONS = 6  # sentinel, pusher, monitor, bell, two workers
WANTED_FILES = 8192
WANTED_FREE_BYTES = 1024**3
CLOCK_S = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    """Shape: `verdict` is ok, info, warn or fail; `hint` says what to do, empty where nothing is."""

    name: str
    verdict: str
    detail: str
    hint: str = ""


def examine() -> Iterator[Finding]:
    """Looks at everything; what breaks while it is looked at is a finding too."""
    reachable = True
    for name, look in LOOKS:
        if name in NEED_DATABASE and not reachable:
            continue
        try:
            found = look(name)
        except DatabaseError as error:
            found = Finding(name, FAIL, f"the database did not answer: {schema.first_line(error)}", "See the line about the database.")
        except OSError as error:
            found = Finding(name, FAIL, f"could not be looked at: {error.strerror}")
        if name == "database" and found.verdict == FAIL:
            reachable = False
        yield found
    if reachable:
        yield from endpoint_keys_present()


def python(name: str) -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    return Finding(name, OK if sys.version_info >= (3, 11) else FAIL, found, "" if sys.version_info >= (3, 11) else "Install Python 3.11 or later.")


def data_folder(name: str) -> Finding:
    try:
        startup.check_folder(settings.HOME)
    except Refusal as refusal:
        return Finding(name, FAIL, str(settings.HOME), str(refusal))
    mode = stat.S_IMODE(settings.HOME.stat().st_mode)
    if mode & 0o077:
        return Finding(name, WARN, f"{settings.HOME} has mode {mode:04o}", f"Others on this machine can look into it: chmod 700 {settings.HOME}")
    return Finding(name, OK, str(settings.HOME))


def disk(name: str) -> Finding:
    free = shutil.disk_usage(settings.HOME).free
    detail = f"{free / 1024**3:.1f} GB free"
    return Finding(name, OK if free > WANTED_FREE_BYTES else WARN, detail, "" if free > WANTED_FREE_BYTES else "Make room, or lower BENCH_KEEP_TEXT_DAYS.")


def database(name: str) -> Finding:
    try:
        schema.reach()
    except Refusal as refusal:
        return Finding(name, FAIL, "not reachable", str(refusal))
    with connection.cursor() as cursor:
        if schema.is_sqlite():
            (mode,) = one(cursor, "PRAGMA journal_mode")
            if mode != "wal":
                return Finding(name, FAIL, f"SQLite with journal mode {mode}", "Put the data folder on a local disk: network drives cannot do WAL.")
            return Finding(name, OK, "SQLite, journal mode wal")
        (version,) = one(cursor, "SHOW server_version")
        return Finding(name, OK, f"PostgreSQL {version}")


def one(cursor: Any, statement: str) -> tuple[Any, ...]:
    cursor.execute(statement)
    row: tuple[Any, ...] = cursor.fetchone()
    return row


def migrations(name: str) -> Finding:
    found = schema.read()
    if found.unknown:
        return Finding(name, FAIL, f"{len(found.unknown)} unknown to this version", "The database was used by a newer version: install that one.")
    if found.pending:
        return Finding(name, WARN, f"{len(found.pending)} to be applied", "serve applies them (PostgreSQL: serve --migrate, after a backup).")
    return Finding(name, OK, "in step")


def connection_sum(name: str) -> Finding:
    if schema.is_sqlite():
        return Finding(name, INFO, "SQLite has no limit")
    with connection.cursor() as cursor:
        (most,) = one(cursor, "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int")
        (used,) = one(cursor, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")
    # A worker's pool, its writer's connection and its drain's.
    needed = settings.WORKERS * (POOL + 2) + QUEUE_CONNECTIONS
    detail = f"this server needs up to {needed}, {used} are open, {most} are allowed"
    if needed > most:
        return Finding(name, FAIL, detail, "Raise max_connections in PostgreSQL, or lower BENCH_WORKERS. Every host that shares the database adds as many.")
    return Finding(name, OK if needed * 2 <= most else WARN, detail, "" if needed * 2 <= most else "A second host would not fit.")


def secrets_readable(name: str) -> Finding:
    from access import secrets

    if schema.read().is_empty:
        return Finding(name, INFO, "the database is not set up yet")
    try:
        secrets.ensure_check_value()
    except secrets.SecretsMismatch as error:
        return Finding(name, FAIL, "the database was written with other secrets", str(error))
    return Finding(name, OK, f"{len(settings.SECRET_KEYS)} secret(s), the database can be read")


def private_files(name: str) -> Finding:
    for path in (settings.SECRETS_FILE, settings.HOME / "operator.key", settings.HOME / serverfile.NAME):
        if path.exists() and (mode := stat.S_IMODE(path.stat().st_mode)) & 0o077:
            return Finding(name, FAIL, f"{path} has mode {mode:04o}", f"chmod 600 {path}")
    return Finding(name, OK, "readable by their owner only")


def listening(name: str) -> Finding:
    try:
        startup.check_token(settings.HOST)
    except Refusal as refusal:
        return Finding(name, FAIL, settings.HOST, str(refusal))
    if running := serverfile.read(settings.HOME):
        return Finding(name, OK, f"a server runs at {running.url}, process {running.pid}")
    with socket.socket(socket.AF_INET6 if ":" in settings.HOST else socket.AF_INET) as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind((settings.HOST.strip("[]"), settings.PORT))
        except OSError as error:
            return Finding(name, WARN, f"{settings.HOST} port {settings.PORT}: {error.strerror}", "Set BENCH_PORT, or end the program that has it.")
    return Finding(name, OK, f"{settings.HOST} port {settings.PORT} is free")


def redis_broker(name: str) -> Finding:
    if not settings.REDIS_URL:
        return Finding(name, INFO, "not used; the queue is in the database")
    import redis

    try:
        redis.from_url(settings.REDIS_URL, socket_timeout=3, socket_connect_timeout=3).ping()
    except (redis.RedisError, ValueError) as error:
        return Finding(name, FAIL, f"no answer ({type(error).__name__})", "Check REDIS_URL; without Redis unset it, and the queue uses the database.")
    return Finding(name, OK, "answers")


def open_files(name: str) -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = hard == resource.RLIM_INFINITY or hard >= WANTED_FILES
    detail = "no limit" if hard == resource.RLIM_INFINITY else f"up to {hard}"
    return Finding(name, OK if enough else WARN, detail, "" if enough else "A stream needs two: raise the hard limit (ulimit -Hn, LimitNOFILE=).")


def clock(name: str) -> Finding:
    """Compares with the database's host where that is another; hosts that share limits must agree on the time."""
    if schema.is_sqlite():
        return Finding(name, OK, datetime.now(UTC).isoformat(timespec="seconds"))
    with connection.cursor() as cursor:
        (theirs,) = one(cursor, "SELECT clock_timestamp()")
    apart_s = abs((datetime.now(UTC) - theirs).total_seconds())
    return Finding(name, OK if apart_s < CLOCK_S else FAIL, f"{apart_s:.1f} s from the database's", "" if apart_s < CLOCK_S else "Set both clocks by NTP.")


def queue(name: str) -> Finding:
    if serverfile.read(settings.HOME) is None:
        return Finding(name, INFO, "no server runs here")
    check = probes.queue(datetime.now(UTC))
    return Finding(name, OK if check.ok else FAIL, check.detail, "" if check.ok else "See the server's log for lines about the queue; is the broker there?")


def outbox(name: str) -> Finding:
    from health import pulse

    found = pulse.outboxes()
    if found.rejected_bytes:
        return Finding(name, WARN, f"{found.rejected_bytes} bytes could not be written", f"See the lines set aside in {settings.OUTBOX_FOLDER}.")
    check = probes.outbox(datetime.now(UTC))
    return Finding(
        name, OK if check.ok else WARN, check.detail, "" if check.ok else "The ledger waits for the database; a running server writes it once it can."
    )


def sandbox(name: str) -> Finding:
    from suite.running import codehosts
    from suite.sandbox import box

    here = box.trouble()
    if not here:
        return Finding(name, OK, "bubblewrap makes sandboxes here")
    found = codehosts.trouble()
    return Finding(name, INFO, "another host runs code for this one") if not found else Finding(name, INFO, "benchmarks that run code are refused", found)


LOOKS: tuple[tuple[str, Callable[[str], Finding]], ...] = (
    ("python", python),
    ("data folder", data_folder),
    ("disk space", disk),
    ("database", database),
    ("migrations", migrations),
    ("connections", connection_sum),
    ("secrets", secrets_readable),
    ("private files", private_files),
    ("address", listening),
    ("redis", redis_broker),
    ("open files", open_files),
    ("clock", clock),
    ("queue", queue),
    ("outbox", outbox),
    ("sandbox", sandbox),
)


# Left out where there is no database to ask: each would wait for it anew.
NEED_DATABASE = frozenset({"migrations", "connections", "secrets", "clock", "queue", "sandbox"})


def endpoint_keys_present() -> Iterator[Finding]:
    """One finding an endpoint: where its key comes from."""
    from catalog import endpoint_keys

    try:
        for endpoint, source, problem in endpoint_keys.every_source():
            name = f"endpoint {endpoint}"
            if problem:
                yield Finding(name, FAIL, source, problem)
            else:
                yield Finding(
                    name,
                    OK if source != "none" else INFO,
                    f"key: {source}",
                    "" if source != "none" else "Right for a server of your own; else set one in the admin.",
                )
    except DatabaseError:
        return
