"""A database connection of one's own, for the few statements that every call pays for: the driver's own cursor, the same SQL on both databases.

DatabaseAway    the database cannot be reached or is locked: try again later
    Unsure      it went away during a commit, which may or may not have happened
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import orjson
from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.utils import load_backend

Result = TypeVar("Result")
LOCK_TIMEOUT_S = 5
# Serialization failures and deadlocks: the database chose a loser, who simply tries again.
LOSERS = ("40001", "40P01")
TRIES = 5


class DatabaseAway(Exception):
    """The database cannot be used now."""

    code = "database_unavailable"


class Unsure(DatabaseAway):
    """The database went away while it committed."""


class Insert:
    """One way to insert rows, as each database likes it best.

    Shape: `columns` are names and PostgreSQL's types; `conflict` is what follows the rows. `each` takes one row's values, `together` any
    number of rows as one JSON text, so that it is prepared once.
    """

    def __init__(self, into: str, columns: Mapping[str, str], conflict: str = "") -> None:
        names, self.columns = ", ".join([f'"{name}"' for name in columns]), tuple(columns)
        self.each = f"INSERT INTO {into} ({names}) VALUES ({', '.join(['%s'] * len(columns))}) {conflict}"  # noqa: S608 - all of it is ours
        typed = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
        # WHERE, or the conflict's clause could be the join's.
        self.together = f"INSERT INTO {into} ({names}) SELECT * FROM json_to_recordset(%s::json) AS new ({typed}) WHERE true {conflict}"  # noqa: S608


class Database:
    """One connection. Opens when it is first used; closed by a failure, it opens again with the next transaction. For one thread at a time."""

    def __init__(self) -> None:
        settings = copy.deepcopy(connections.settings[DEFAULT_DB_ALIAS])
        options = settings["OPTIONS"]
        options.pop("pool", None)  # a pool waits for a database that is away; this connection is for good anyway
        if "postgresql" in settings["ENGINE"]:
            # A peer that went away without a word must not hold its caller for ever.
            options.setdefault("tcp_user_timeout", 10_000)
            options.setdefault("keepalives_idle", 10)
        else:
            options["timeout"] = LOCK_TIMEOUT_S
        self._wrapper: BaseDatabaseWrapper = load_backend(settings["ENGINE"]).DatabaseWrapper(settings, DEFAULT_DB_ALIAS)
        self.is_postgresql = self._wrapper.vendor == "postgresql"
        self._cursor: Any = None
        self._later: list[tuple[str, Sequence[Any]]] = []

    def transaction(self, work: Callable[[Database], Result]) -> Result:
        """Runs work in one transaction that writes, as often as it loses against others, or with a connection that turns out to be dead.

        Errors: DatabaseAway, Unsure; whatever else the work raises, after a rollback.
        """
        for attempt in range(TRIES):
            is_new = self._cursor is None
            committing = False
            try:
                with self._wrapper.wrap_database_errors:
                    if is_new:
                        self._connect()
                    self._later.clear()
                    self._cursor.execute("BEGIN" if self.is_postgresql else "BEGIN IMMEDIATE")
                    result = work(self)
                    committing = True
                    if self._later:
                        self._send_together([*self._later, ("COMMIT", ())])
                    else:
                        self._cursor.execute("COMMIT")
                    return result
            except (OperationalError, InterfaceError) as error:
                state = getattr(error.__cause__, "sqlstate", None) or ""
                if state in LOSERS and attempt < TRIES - 1:
                    self._rollback()
                    continue
                self.close()
                is_cut = self.is_postgresql and (not state or state.startswith(("08", "57P")))
                if is_cut and committing:
                    raise Unsure("The database went away during a commit.") from error
                if is_new or attempt or not is_cut:
                    raise DatabaseAway("The database cannot be reached or is locked. Calls with limits are refused until it is back.") from error
            except BaseException:
                self._rollback()
                raise
        raise AssertionError  # the last attempt returns or raises

    def all(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Runs a statement that answers with rows."""
        return self._cursor.execute(sql if self.is_postgresql else question_marks(sql), params).fetchall()  # type: ignore[no-any-return]

    def run(self, sql: str, params: Sequence[Any] = ()) -> None:
        """Runs a statement whose answer nobody needs."""
        self._cursor.execute(sql if self.is_postgresql else question_marks(sql), params)

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Runs a statement once for each row."""
        self._cursor.executemany(sql if self.is_postgresql else question_marks(sql), rows)

    def put(self, insert: Insert, rows: Sequence[Sequence[Any]]) -> None:
        """Inserts rows, at the latest with the commit: PostgreSQL then answers once for all that is put."""
        if self.is_postgresql:
            self._later.append((insert.together, [orjson.dumps([dict(zip(insert.columns, row, strict=True)) for row in rows]).decode()]))
        else:
            self.many(insert.each, rows)

    def among(self, column: str) -> str:
        """A condition on a list of values, which `listed` makes the parameter of: one text whatever its length, so that it is prepared once."""
        if self.is_postgresql:
            return f"{column} = ANY(ARRAY(SELECT json_array_elements_text(%s::json)))"
        return f"{column} IN (SELECT value FROM json_each(%s))"  # noqa: S608 - columns are ours

    def listed(self, values: Sequence[str]) -> str:
        return orjson.dumps(values).decode()

    def django_cursor(self) -> CursorWrapper:
        """A cursor as other rooms know it, in the same transaction."""
        return self._wrapper.cursor()

    def is_ready(self) -> bool:
        """Tells whether the tables are there and can be written, to tell a bad line from a bad database."""
        try:
            self.transaction(lambda db: db.all("DELETE FROM health_permit WHERE id = '' AND EXISTS (SELECT 1 FROM health_attempt) RETURNING id"))
        except Exception:
            return False
        return True

    def close(self) -> None:
        self._cursor = None
        try:
            self._wrapper.close()
        except Exception:  # noqa: S110 - whatever a dead connection says on its way out, it is gone
            pass
        self._wrapper.connection = None

    def _connect(self) -> None:
        self._wrapper.connect()
        connection: Any = self._wrapper.connection
        if self.is_postgresql:
            import psycopg  # not there where SQLite is all that is wanted

            # The driver's plain cursor binds on the server and prepares what comes again; Django's does neither.
            connection.prepare_threshold = 2
            self._cursor = psycopg.Cursor(connection)
            self._cursor.execute(f"SET lock_timeout = '{LOCK_TIMEOUT_S}s'")
        else:
            self._cursor = connection.cursor()

    def _send_together(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> None:
        connection: Any = self._wrapper.connection
        with connection.pipeline():
            for sql, params in statements:
                self._cursor.execute(sql, params)

    def _rollback(self) -> None:
        try:
            self._cursor.execute("ROLLBACK")
        except Exception:
            self.close()


@lru_cache(maxsize=256)
def question_marks(sql: str) -> str:
    """SQLite's driver marks parameters differently."""
    return sql.replace("%s", "?")
