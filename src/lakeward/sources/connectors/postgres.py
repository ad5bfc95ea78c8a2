"""PostgreSQL as a source: its tables, and their rows in one repeatable-read, read-only transaction, through ADBC."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import adbc_driver_manager
import adbc_driver_postgresql.dbapi
import sqlalchemy
from adbc_driver_manager.dbapi import Connection
from psycopg import sql
from pydantic import BaseModel, ConfigDict, Field

from lakeward.control.db import Database, Queries
from lakeward.errors import SettingsError, SourceRefused
from lakeward.sources.allowed import Allowed
from lakeward.sources.connector import (
    NEW,
    Connector,
    ReadWindow,
    Snapshot,
    SourceColumn,
    SourceTable,
    TableRead,
)
from lakeward.sources.connectors.postgres_changes import STATE, SYSTEM, HorizonPosition, rows_of
from lakeward.sources.connectors.postgres_cursor import CursorRows
from lakeward.sources.connectors.postgres_errors import PostgresErrors
from lakeward.sources.connectors.postgres_rows import TableRows
from lakeward.sources.connectors.postgres_types import PostgresType, Rule, as_text, rule_of

QUERIES = Queries.beside(__file__)
MINIMUM_SERVER = 130_000
"""PostgreSQL 13, the first with `pg_current_snapshot`, as `server_version_num` counts."""

# What text looks like must not depend on the server's settings. The search path stays: functions of views may need it.
_SESSION = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL DateStyle = 'ISO, YMD'",
    "SET LOCAL IntervalStyle = 'iso_8601'",
    "SET LOCAL extra_float_digits = 1",
    "SET LOCAL bytea_output = 'hex'",
)
_MOMENT = sql.SQL("SET TRANSACTION SNAPSHOT {}")
_EXPORT = "SELECT pg_export_snapshot() AS moment"


class PostgresOptions(BaseModel):
    """How PostgreSQL is reached."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field(
        description="postgresql://user@host:5432/database, or a reference to it: env:NAME or file:/path. A URL with a "
        "password can only be referred to."
    )


class PostgresSource(Connector):
    """A PostgreSQL database, 13 or newer; a standby is fine, and so is a user who may only read."""

    name: ClassVar[str] = "postgres"
    options: ClassVar[type[BaseModel]] = PostgresOptions
    cursors: ClassVar[bool] = True

    def __init__(self, database: Database) -> None:
        self.database = database
        self.errors = PostgresErrors(database)

    @classmethod
    def made(cls, options: BaseModel, allowed: Allowed) -> PostgresSource:
        """Return the database that a URL names; it is reached when it is asked for something."""
        assert isinstance(options, PostgresOptions)
        try:
            return cls(Database(allowed.database_url(allowed.resolved(options.url))))
        except SettingsError as error:
            if "setting" not in error.fields:
                raise
            raise SettingsError(
                error.message.replace("the database URL", "the source's URL"),
                safe="nothing was done",
                next_step="write postgresql://user:password@host:5432/database where env:NAME or file:/path name it",
            ) from None

    def discover(self) -> list[SourceTable]:
        """Return tables, views and foreign tables, partitioned tables as one; columns as `postgres_types` has them."""
        with self.errors.named(), self.database.transaction() as connection:
            server = connection.execute(QUERIES["server"]).one()
            self._check_server(server.version, server.encoding)
            return [_table(row) for row in connection.execute(QUERIES["tables"]).mappings()]

    @contextmanager
    def snapshot(self, exported: str | None = None) -> Iterator[Snapshot]:
        """Hold a transaction whose reads all see the moment at which it began.

        Args:
            exported: the name of a snapshot of another session, whose moment it is instead.
        """
        connection: Connection | None = None
        try:
            with self.errors.named():
                connection = adbc_driver_postgresql.dbapi.connect(self.database.libpq_url)
                connection.adbc_connection.set_autocommit(False)
                moment = [] if exported is None else [_MOMENT.format(sql.Literal(exported)).as_string()]
                for statement in (*_SESSION, *moment):
                    with connection.cursor() as cursor:
                        cursor.execute(statement)
            yield PostgresSnapshot(connection, self.errors.named, self.snapshot)
        finally:
            if connection is not None:
                with suppress(adbc_driver_manager.Error):
                    connection.close()

    def close(self) -> None:
        """Close what `discover` was asked through."""
        self.database.close()

    def _check_server(self, version: int, encoding: str) -> None:
        if version < MINIMUM_SERVER or encoding == "SQL_ASCII":
            what = f"is version {version // 10_000}" if version < MINIMUM_SERVER else "has no encoding (SQL_ASCII)"
            raise SourceRefused(
                f"PostgreSQL at {self.database.display_url} {what}; a source is 13 or newer, and knows its encoding",
                safe="nothing was written",
                source=self.database.display_url,
            )


class PostgresSnapshot(Snapshot):
    """One transaction of a source.

    Args:
        connection: is in it.
        named: a context that names the driver's errors.
        another: a context that holds a snapshot of an exported moment.
    """

    def __init__(
        self,
        connection: Connection,
        named: Callable[[], Any],
        another: Callable[[str], AbstractContextManager[Snapshot]],
    ) -> None:
        self._connection = connection
        self._named = named
        self._another = another

    @contextmanager
    def beside(self) -> Iterator[Snapshot]:
        """Hold a transaction of another connection that sees the same moment."""
        with self._named():
            moment = self._fetch(_EXPORT)["moment"]
        with self._another(moment) as snapshot:
            yield snapshot

    def give_up(self) -> bool:
        """Ask the server to end the query that runs; it matters to nobody if it has ended."""
        with suppress(adbc_driver_manager.Error):
            self._connection.adbc_cancel()
        return True

    def read(self, window: ReadWindow) -> TableRead:
        """Stream the rows of a window, guarded by the server: see `TableRows`."""
        table = window.table
        rules = [(column.name, _rule(window, column), column.native) for column in table.columns]
        rows = TableRows(self._connection, self._named, table, rules, window.types)
        if window.cursor is not None:
            found = CursorRows(window, window.cursor, _type_of(window, window.cursor.column))
            with self._named():
                upto = found.position(self._fetch(found.highest().as_string())["value"])
            return TableRead(rows.stream(found.where()), upto.to_json(), found.follows)
        with self._named():
            position = self._position(window) if table.followed else None
        where = rows_of(window, position)
        if position is None:
            return TableRead(rows.stream(where), None, follows=True)
        before = HorizonPosition.read(window.after)
        follows = before is not None and before.leads_to(position)
        return TableRead(rows.stream(where), position.to_json(), follows)

    def _position(self, window: ReadWindow) -> HorizonPosition:
        """Return what the next read of the table may take for seen."""
        name = sql.Literal(sql.Identifier(window.table.schema, window.table.name).as_string())
        state = self._fetch(STATE.format(name).as_string())
        # A function that the user may not call fails even where it is not reached.
        identity = self._fetch(SYSTEM) if state.pop("told") else {"system": None}
        return HorizonPosition(**identity, **state, exact=window.what == NEW)

    def _fetch(self, query: str) -> dict[str, Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            [row] = cursor.fetch_arrow_table().to_pylist()
        return dict(row)


def _type_of(window: ReadWindow, name: str) -> PostgresType:
    column = next(each for each in window.table.columns if each.name == name)
    assert isinstance(column, PostgresColumn)
    return column.of


def _rule(window: ReadWindow, column: SourceColumn) -> Rule:
    """Return how a column is read: as its type says, or as text."""
    wanted = window.types[column.name]
    if wanted == column.type:
        assert isinstance(column, PostgresColumn)
        return rule_of(column.of)
    return as_text()


@dataclass(frozen=True, kw_only=True)
class PostgresColumn(SourceColumn):
    """A column that knows its type as the catalog has it."""

    of: PostgresType


def column_of(entry: Mapping[str, Any]) -> PostgresColumn:
    """Return the column that a row of the catalog tells of."""
    element = PostgresType(entry["element"], entry["element_kind"]) if entry["element"] else None
    of = PostgresType(entry["typname"], entry["kind"], entry["modifier"], element)
    rule = rule_of(of)
    return PostgresColumn(entry["name"], entry["native"], rule.type, rule.about if rule.type is None else None, of=of)


def _table(row: sqlalchemy.RowMapping) -> SourceTable:
    return SourceTable(
        row["schema"],
        row["name"],
        tuple(column_of(entry) for entry in row["columns"]),
        tuple(row["primary_key"]),
        row["rows"],
        row["followed"],
    )
