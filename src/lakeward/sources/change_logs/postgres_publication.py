"""The tables whose changes PostgreSQL logs for us: a publication, and what is asked of the catalog about them.

A table in a publication must say which of its rows a change is of. Where it can't, PostgreSQL refuses its owner every
update and delete from then on. So that is looked at before a table is taken in, and such tables are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from lakeward.control.db import Database, Queries
from lakeward.errors import SchemaError, SourceError
from lakeward.sources.change_logs.pgoutput import Relation
from lakeward.sources.connector import SourceTable
from lakeward.sources.connectors.postgres import PostgresColumn, column_of
from lakeward.sources.connectors.postgres_errors import PostgresErrors

QUERIES = Queries.beside(__file__)
MINIMUM_SERVER = 140_000
"""PostgreSQL 14, as `server_version_num` counts."""
_GENERATED_SINCE = 180_000
_ADDS_SAFELY = {14: 140_018, 15: 150_013, 16: 160_009, 17: 170_005}
"""Where a table that joins a publication while others write loses nothing, by major version; all later ones are.

Before PostgreSQL's commit 4909b38af0, of April 2025, a transaction that wrote to the table when it was added, and went
on afterwards, was decoded as if the table had never been added. Tried with the servers themselves: 14.17, 15.12, 16.8
and 17.4 tell of no row of such a transaction that comes after, nor of later ones; 14.18, 15.13, 16.9 and 17.5 of all.
Commit d87d07b7ad, of June 2025, also bounds the memory that it takes; until then decoding can fail by it, and loses
nothing.
"""

_ROOT = sql.SQL("publish_via_partition_root = true")
_GENERATED = sql.SQL("publish_via_partition_root = true, publish_generated_columns = stored")
_CREATE = sql.SQL("CREATE PUBLICATION {} FOR TABLE {} WITH ({})")
_ADD = sql.SQL("ALTER PUBLICATION {} ADD TABLE {}")
_REMOVE = sql.SQL("ALTER PUBLICATION {} DROP TABLE {}")
_NOTE = sql.SQL("COMMENT ON PUBLICATION {} IS {}")
_DROP = sql.SQL("DROP PUBLICATION IF EXISTS {}")


@dataclass(frozen=True)
class Published:
    """What the publication has.

    Args:
        tables: their full names.
        since: where in the log the slot was made; None: that is not finished.
        whole: whether it has every change of them. Its owner can have changed that.
    """

    tables: tuple[str, ...]
    since: int | None
    whole: bool


class Publication:
    """One publication.

    Args:
        database: of the source.
        errors: names what it says.
        name: the publication's.
    """

    def __init__(self, database: Database, errors: PostgresErrors, name: str) -> None:
        self._database = database
        self._errors = errors
        self._name = name

    def check_server(self) -> Any:
        """Return what the server says of itself.

        Raises:
            SourceError: its log can't be followed, with what to set.
        """
        [server] = self._database.fetch(QUERIES["server"])
        if server.version < MINIMUM_SERVER or server.encoding == "SQL_ASCII":
            what = f"is version {server.version // 10_000}" if server.version < MINIMUM_SERVER else "has no encoding"
            raise self._errors.said(f"{what}; changes are followed from 14 on, where the encoding is known", final=True)
        if server.standby:
            raise self._errors.said(
                "is a standby, and can't begin to log changes", "name the primary in the source's URL", final=True
            )
        if server.wal_level != "logical":
            raise self._errors.said(
                f"wal_level is {server.wal_level}, and has to be logical",
                "ALTER SYSTEM SET wal_level = 'logical', restart the server, then repeat",
                final=True,
            )
        if server.slots_taken >= int(server.slots):
            raise self._errors.said(
                f"all {server.slots} replication slots are taken",
                "drop one that nobody needs: SELECT slot_name, active FROM pg_replication_slots; "
                "or set max_replication_slots higher and restart the server",
            )
        return server

    def check_tables(self, tables: Sequence[SourceTable]) -> dict[str, bool]:
        """Return for each table whether it is published already.

        Raises:
            SchemaError: its changes can't be followed.
        """
        if not tables:
            raise SchemaError("no table is named whose changes are to be followed", safe="nothing was changed")
        found = {f"{row.schema}.{row.name}": row for row in self._asked(tables)}
        for table in tables:
            _check(table, found.get(table.full_name))
        return {table.full_name: found[table.full_name].published for table in tables}

    def oids(self, tables: Sequence[SourceTable]) -> dict[str, int]:
        """Return by full name what the log knows the published ones of these tables by."""
        return {f"{row.schema}.{row.name}": row.oid for row in self._asked(tables) if row.published}

    def published(self) -> Published | None:
        """Return what it has; None: there is no publication."""
        for row in self._database.fetch(QUERIES["publication"], {"name": self._name}):
            tables = self._database.fetch(QUERIES["published"], {"name": self._name})
            note = row.note or ""
            names = tuple(f"{each.schema}.{each.table}" for each in tables)
            return Published(names, int(note) if note.isdigit() else None, row.whole)
        return None

    def publish(self, tables: Sequence[SourceTable], server: Any) -> None:
        """Log changes of these tables, which are not in it yet.

        Raises:
            SourceError: the user may not.
        """
        names = sql.SQL(", ").join(sql.SQL("ONLY {}").format(_identifier(table)) for table in tables)
        if self.published() is None:
            options = _GENERATED if server.version >= _GENERATED_SINCE else _ROOT
            self._run(_CREATE.format(sql.Identifier(self._name), names, options), server)
        elif tables:
            self._run(_ADD.format(sql.Identifier(self._name), names), server)

    def check_addition(self, server: Any) -> None:
        """Refuse to add to a log that is read already where the server may lose changes by it.

        Raises:
            SourceError: it may.
        """
        if server.version < _ADDS_SAFELY.get(server.version // 10_000, 0):
            safe = _ADDS_SAFELY[server.version // 10_000]
            raise self._errors.said(
                f"before {safe // 10_000}.{safe % 10_000} it can lose changes of tables that are added to a log",
                "update the server; or drop the log and follow all tables anew",
                final=True,
            )

    def note(self, since: int | None) -> None:
        """Note where the slot begins; None: it is not there yet."""
        text = sql.Literal("" if since is None else str(since))
        self._run(_NOTE.format(sql.Identifier(self._name), text), None)

    def forget(self, names: Sequence[str]) -> None:
        """Take tables out; those that are not in it are left alone."""
        for row in self._database.fetch(QUERIES["published"], {"name": self._name}):
            if f"{row.schema}.{row.table}" in names:
                self._run(_REMOVE.format(sql.Identifier(self._name), sql.Identifier(row.schema, row.table)), None)

    def drop(self) -> None:
        """Remove it."""
        self._run(_DROP.format(sql.Identifier(self._name)), None)

    def columns(self, relation: Relation) -> list[PostgresColumn]:
        """Return the columns of a table as the log had it, in order."""
        columns = relation.columns
        asked = {
            "types": [each.type for each in columns],
            "modifiers": [each.modifier for each in columns],
            "names": [each.name for each in columns],
        }
        with self._errors.named():
            return [column_of(dict(row)) for row in self._database.fetch(QUERIES["columns"], asked)]

    def _asked(self, tables: Sequence[SourceTable]) -> list[Any]:
        names = {"schemas": [table.schema for table in tables], "names": [table.name for table in tables]}
        return list(self._database.fetch(QUERIES["tables"], {**names, "publication": self._name}))

    def _run(self, statement: sql.Composed, server: Any) -> None:
        try:
            with self._database.driver() as connection:
                connection.execute(statement)
                connection.commit()
        except psycopg.errors.InsufficientPrivilege as error:
            raise self._refused(str(error).strip(), server) from None

    def _refused(self, text: str, server: Any) -> SourceError:
        who = "" if server is None else f"GRANT CREATE ON DATABASE {server.database} TO {server.user}, and "
        return self._errors.said(text, f"{who}let the user own the tables, or be a superuser; then repeat", final=True)


def _identifier(table: SourceTable) -> sql.Identifier:
    return sql.Identifier(table.schema, table.name)


def _check(table: SourceTable, found: Any) -> None:
    """Refuse a table whose changes can't be followed.

    Raises:
        SchemaError: with why.
    """
    if found is None:
        raise _unfit(table, "is not there", "look at the source's tables")
    if not found.is_table:
        raise _unfit(table, "is no table, and has no changes of its own", "follow the tables that it reads")
    if not found.logged:
        raise _unfit(table, "is not logged", f"ALTER TABLE {table.full_name} SET LOGGED")
    if found.inherited:
        raise _unfit(
            table, "has tables that inherit from it, whose rows are its own", "follow each of them; or sync it"
        )
    if missing := [name for name in found.unlogged if name in {column.name for column in table.columns}]:
        raise _unfit(
            table,
            f"has generated columns that the log does not have: {', '.join(missing)}",
            "sync it; or let them be STORED, on a server from version 18 on",
        )
    for identity in found.identities:
        lacking = [name for name in table.primary_key if name not in identity["columns"]]
        if identity["whole"] or (identity["columns"] and not lacking):
            continue
        where = "" if identity["name"] == table.name else f" (in its partition {identity['name']})"
        what = (
            f"does not log {', '.join(lacking)} of a changed row" if lacking else "does not log which row was changed"
        )
        raise _unfit(
            table, what + where, f"give it a primary key; or ALTER TABLE {table.full_name} REPLICA IDENTITY FULL"
        )


def _unfit(table: SourceTable, what: str, next_step: str) -> SchemaError:
    return SchemaError(
        f"{table.full_name} {what}: its changes can't be followed",
        safe="nothing was changed",
        next_step=next_step,
        table=table.full_name,
    )
