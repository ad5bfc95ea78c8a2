"""The connection to Postgres: one engine per workspace, named queries from SQL files, driver errors under our names.

Works behind a pooler in transaction mode: no session settings, no session locks, no server-side prepared statements.
"""

from __future__ import annotations

import functools
import os
import re
import select
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote, quote_plus, unquote

import psycopg
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy.dialects.postgresql import psycopg as psycopg_dialect
from sqlalchemy.engine import URL, make_url

from lakeward.errors import (
    Contended,
    DatabaseUnavailable,
    LakewardError,
    SettingsError,
    StorageFull,
    UsageError,
)

MINIMUM_SERVER = 150_000
"""PostgreSQL 15, as `server_version_num` counts."""

_QUERY = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_ESCAPE = re.compile(r"%[0-9A-F]{2}")
_DIALECT = psycopg_dialect.dialect()  # type: ignore[no-untyped-call]


class Queries:
    """The named statements of one `.sql` file that stands beside the module that runs them.

    Each begins with `-- name: <name>` and goes on to the next; parameters are written `:name`.
    """

    def __init__(self, path: Path) -> None:
        parts = _QUERY.split(path.read_text(encoding="utf-8"))
        self._statements = {
            name: sqlalchemy.text(body.strip().rstrip(";")) for name, body in zip(parts[1::2], parts[2::2], strict=True)
        }
        self._compiled: dict[str, str] = {}

    def __getitem__(self, name: str) -> sqlalchemy.TextClause:
        return self._statements[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._statements)

    def for_driver(self, name: str) -> str:
        """Return the statement as psycopg takes it, with `%(name)s` for parameters."""
        if name not in self._compiled:
            self._compiled[name] = str(self._statements[name].compile(dialect=_DIALECT))
        return self._compiled[name]

    @classmethod
    def beside(cls, module_file: str) -> Queries:
        """Return the queries of `<module>.sql` next to `module_file` (pass `__file__`)."""
        return cls(Path(module_file).with_suffix(".sql"))


class Pipeline:
    """Sends statements of one transaction without waiting for the answers of those before. See `Database.pipeline`."""

    def __init__(self, connection: psycopg.Connection[Any], pipeline: psycopg.Pipeline) -> None:
        self._connection = connection
        self._pipeline = pipeline

    def __call__(self, queries: Queries, name: str, parameters: Mapping[str, object]) -> psycopg.Cursor[dict[str, Any]]:
        """Send a statement. Its rows can be fetched after `wait`, or when the transaction is through."""
        cursor = self._connection.cursor(row_factory=dict_row)
        return cursor.execute(queries.for_driver(name), parameters)

    def wait(self) -> None:
        """Wait for all that was sent so far; raises what went wrong with it."""
        self._pipeline.sync()


def workspace_closed() -> UsageError:
    """Return the error of whoever goes on using a closed workspace."""
    return UsageError("the workspace is closed", next_step="open it again: lakeward.open(…)")


class Database:
    """One Postgres database that holds a workspace.

    Args:
        url: a libpq URL, `postgresql://user:password@host:port/database?…`.

    Raises:
        SettingsError: the URL is not one of Postgres.
    """

    def __init__(self, url: str) -> None:
        self._url = _parse(url)
        # prepare_threshold=None: a pooler in transaction mode gives the next transaction another server session, where
        # a prepared statement of ours doesn't exist.
        self.engine = sqlalchemy.create_engine(
            self._url,
            pool_size=4,
            max_overflow=16,
            # client_encoding: without it a database in SQL_ASCII answers in bytes before we can refuse it by name.
            connect_args={"prepare_threshold": None, "application_name": "lakeward", "client_encoding": "utf8"},
        )

        sqlalchemy.event.listen(self.engine, "checkin", _note_time)
        sqlalchemy.event.listen(self.engine, "checkout", _check_alive)
        self._closed = False
        self._process = os.getpid()
        # The same pool. A statement that is alone needs no BEGIN and COMMIT, which are round trips of their own.
        self.single_statements = self.engine.execution_options(isolation_level="AUTOCOMMIT")

    @property
    def libpq_url(self) -> str:
        """The URL for libpq clients (ADBC, psql), password included: never print it."""
        url = self._url.set(drivername="postgresql").render_as_string(hide_password=False)
        # A space in an option, as in a socket directory, is written `+`, which libpq takes for a plus; one in a
        # password is left as it is, which libpq refuses.
        base, mark, options = url.partition("?")
        return base.replace(" ", "%20") + mark + options.replace("+", "%20")

    @property
    def sqlalchemy_url(self) -> str:
        """The URL for SQLAlchemy clients, password included: never print it."""
        return self._url.render_as_string(hide_password=False)

    @property
    def port(self) -> int | None:
        """The port that we connect to; None: by a socket, or one that libpq knows."""
        return self._url.port

    @property
    def display_url(self) -> str:
        """The URL for people: without user, password and parameters.

        Of a socket the directory and the user stay, without which nobody can use it: neither is a secret.
        """
        host = self._url.host or self._url.query.get("host") or "localhost"
        if isinstance(host, str):
            host = ",".join(dict.fromkeys(host.split(",")))  # once, however many addresses it has
            if host.startswith("/"):
                user = f"{self._url.username}@" if self._url.username else ""
                return f"postgresql://{user}/{self._url.database or ''}?host={quote(host)}"
        return f"postgresql://{host}/{self._url.database or ''}"

    @contextmanager
    def transaction(self) -> Iterator[sqlalchemy.Connection]:
        """One transaction: committed when the block ends, rolled back when it raises.

        Raises:
            DatabaseUnavailable: Postgres can't be reached, or went away.
            Contended: Postgres rolled it back for the sake of another one.
            StorageFull: it has no space left.
        """
        with self._named_errors(), self._open(self.engine).begin() as connection:
            yield connection

    @contextmanager
    def driver(self) -> Iterator[psycopg.Connection[Any]]:
        """A pooled psycopg connection for COPY and other driver work; the block commits for itself."""
        with self._named_errors(), self._open(self.engine).connect() as connection:
            driver = connection.connection.driver_connection
            assert isinstance(driver, psycopg.Connection)
            yield driver

    @contextmanager
    def statement(self) -> Iterator[sqlalchemy.Connection]:
        """A connection for one statement, which is a transaction of its own."""
        with self._named_errors(), self._open(self.single_statements).connect() as connection:
            yield connection

    @contextmanager
    def pipeline(self) -> Iterator[Pipeline]:
        """One transaction whose statements are sent together: one round trip, and one more for each `wait`.

        Committed when the block ends, rolled back when it raises. What one statement needs of another it has to find in
        the database: in READ COMMITTED each sees what is committed when it begins.
        """
        with self._named_errors(), self._open(self.single_statements).connect() as pooled:
            connection = pooled.connection.driver_connection
            assert isinstance(connection, psycopg.Connection)
            try:
                with connection.pipeline() as pipeline:
                    connection.execute("BEGIN")
                    yield Pipeline(connection, pipeline)
                    connection.execute("COMMIT")
            except BaseException:
                try:
                    connection.rollback()
                except psycopg.Error:
                    pooled.invalidate()
                raise

    def fetch(
        self, query: sqlalchemy.TextClause, parameters: Mapping[str, object] | None = None
    ) -> list[sqlalchemy.RowMapping]:
        """Run one statement in a transaction of its own and return its rows."""
        with self.statement() as connection:
            result = connection.execute(query, dict(parameters or {}))
            return list(result.mappings()) if result.returns_rows else []

    def fetch_each(self, queries: Queries, name: str, parameters: Sequence[Mapping[str, object]]) -> list[list[Any]]:
        """Run one statement with each of the parameters, sent together, and return the rows (mappings) of each."""
        with self.pipeline() as send:
            cursors = [send(queries, name, each) for each in parameters]
        return [cursor.fetchall() for cursor in cursors]

    def close(self) -> None:
        """Close every pooled connection; nothing more is done through this object."""
        self._closed = True
        self.engine.dispose()

    def _open(self, engine: sqlalchemy.Engine) -> sqlalchemy.Engine:
        if self._closed:
            raise workspace_closed()
        if self._process != os.getpid():
            # A fork shares the sockets with its parent, and has the engines of both without their threads.
            raise UsageError(
                "the workspace was opened by another process, which this one was forked from",
                safe="nothing was done",
                next_step="open it in each process: lakeward.open(…)",
            )
        return engine

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlalchemy.exc.OperationalError, sqlalchemy.exc.TimeoutError, psycopg.OperationalError) as error:
            raise self._name(error) from None
        except (sqlalchemy.exc.DataError, psycopg.DataError) as error:
            cause = error.orig if isinstance(error, sqlalchemy.exc.DBAPIError) else error
            # The driver refuses it before it is sent, wherever somebody asks for a name or a text that has one.
            if getattr(cause, "sqlstate", None) is None and "NUL (0x00)" in str(cause):
                raise UsageError(
                    "a text has a NUL character, which Postgres has not",
                    safe="nothing was changed",
                    next_step="leave it out",
                ) from None
            raise

    def _name(self, error: Exception) -> LakewardError:
        cause = error.orig if isinstance(error, sqlalchemy.exc.DBAPIError) else error
        if isinstance(cause, psycopg.errors.DiskFull):
            return StorageFull(
                f"Postgres at {self.display_url} has no space left",
                safe="the transaction was rolled back",
                next_step="free space on the database's disk, then repeat",
            )
        # The driver's own text can quote the connection string, so it is cleaned before anybody sees it.
        text = self.redacted(str(cause)).strip()
        state = cause.sqlstate if isinstance(cause, psycopg.Error) else None
        if state is not None and (state.startswith("40") or isinstance(cause, psycopg.errors.LockNotAvailable)):
            return Contended(
                f"Postgres at {self.display_url} gave up a transaction that stood in another's way: {text}",
                safe="the transaction was rolled back",
                next_step="repeat",
                database=self.display_url,
            )
        what = "can't be reached" if state is None else "gave up"
        return DatabaseUnavailable(
            f"Postgres at {self.display_url} {what}: {text}",
            next_step="check that the server runs and that LAKEWARD_DATABASE_URL names it, then `lakeward doctor`",
            database=self.display_url,
        )

    def redacted(self, text: str) -> str:
        """Return a driver's text without what is secret of the URL, in whatever form it is written."""
        secrets = [self._url.password, *(self._url.query.get(name) for name in _SECRET_OPTIONS)]
        forms = {form for each in secrets if each for form in _written_forms(str(each))}
        text = _USERINFO.sub("***", text)
        # One that is as short as a syllable, or is the user's name as well, would only garble the text, and be guessed
        # from what is masked in it.
        public = " ".join(filter(None, (*_PUBLIC, self._url.username, self._url.host, self._url.database)))
        for form in sorted(forms, key=len, reverse=True):
            if len(form) >= _SHORTEST and form not in public:
                text = text.replace(form, "***")
        return text

    def __repr__(self) -> str:
        return f"Database({self.display_url!r})"

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_SECRET_OPTIONS = ("password", "sslpassword")
_USERINFO = re.compile(r"(?<=://)[^\s/@]*:[^\s@]*(?=@)")
"""A user and password in a URL, wherever a text has one."""
_SHORTEST = 3
_PUBLIC = ("postgresql", "password", "connection", "authentication", "server")
"""What drivers say anyway."""

_QUIET_SECONDS = 30.0
"""A connection that was idle for longer is asked whether its server is still there: a network may have forgotten it."""


def _note_time(connection: Any, record: Any) -> None:
    record.info["idle_since"] = time.monotonic()


def _check_alive(connection: psycopg.Connection[Any], record: Any, proxy: Any) -> None:
    """Refuse a pooled connection that is dead; the pool takes another one.

    A server that goes away closes the socket, which can be seen without asking: nothing is ever to be read from an idle
    connection otherwise. A ping before each use would be a round trip.
    """
    idle_since = record.info.get("idle_since")
    if idle_since is None:
        return
    poll = select.poll()
    if not connection.closed:
        poll.register(connection.fileno(), select.POLLIN)
    if connection.closed or poll.poll(0):
        raise sqlalchemy.exc.DisconnectionError("the server has closed the connection")
    if time.monotonic() - idle_since > _QUIET_SECONDS:
        try:
            connection.execute("SELECT 1")
            connection.rollback()
        except psycopg.Error as error:
            raise sqlalchemy.exc.DisconnectionError("the server does not answer") from error


def _written_forms(secret: str) -> set[str]:
    """Return how a secret may stand in a text: as it is, and percent-encoded in the ways that clients do it."""
    encoded = {quote(secret), quote(secret, safe=""), quote_plus(secret)}
    return {secret, *encoded, *(_ESCAPE.sub(lambda match: match.group().lower(), each) for each in encoded)}


def check_url(url: str) -> None:
    """Refuse what is no URL of Postgres, without repeating any of it.

    Raises:
        SettingsError: it is none.
    """
    _parse(url)


@functools.cache
def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (sqlalchemy.exc.ArgumentError, ValueError):
        parsed = None
    if parsed is None or parsed.get_backend_name() not in ("postgresql", "postgres"):
        raise _wrong_url("is not one of Postgres")
    # A password with a bare @ or / ends early, and the rest of it would be taken for the host or the database, which
    # messages name. So what could be a piece of a password is refused, and not repeated.
    if url.count("@") > 1 or any(mark in (parsed.database or "") for mark in "@/"):
        raise _wrong_url("has an @ or a / where none belongs: in a user, password or name they are written %40 and %2F")
    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    for option in parsed.query:
        if option not in known:
            raise _wrong_url(f"has an option that Postgres doesn't know: {option}")
    host = parsed.host or ""
    if host.lower().startswith("%2f"):
        # How libpq writes a socket directory in place of a host.
        parsed = parsed.set(host=None).update_query_dict({"host": unquote(host)})
    return parsed.set(drivername="postgresql+psycopg")


def _wrong_url(what: str) -> SettingsError:
    return SettingsError(
        f"the database URL {what}",
        next_step="set LAKEWARD_DATABASE_URL=postgresql://user:password@host:5432/database",
        setting="database_url",
    )
