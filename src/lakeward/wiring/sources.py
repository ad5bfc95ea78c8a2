"""Sources of a workspace: added by a reference to how they are reached, looked into, and removed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from lakeward.access.guard import may, require
from lakeward.control.sources import SourceRecord, SourceTables
from lakeward.errors import InvalidName, NameTaken, SchemaError, SettingsError, UnknownObject
from lakeward.sources.allowed import Allowed
from lakeward.sources.connector import Connector, SourceColumn, SourceTable
from lakeward.sources.known_connectors import connector_named
from lakeward.sources.references import check_reference
from lakeward.wiring.actor import actor

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


class Sources:
    """The sources of one workspace.

    Args:
        tables: where they are stored.
        allowed: what they may reach.
    """

    def __init__(self, tables: SourceTables, allowed: Allowed) -> None:
        self._tables = tables
        self.allowed = allowed

    def add(
        self,
        name: str,
        type_: str,
        options: Mapping[str, Any],
        tables: Sequence[str] = (),
        told: Callable[[str], None] = lambda text: None,
    ) -> SourceRecord:
        """Store a source once it answers and its tables can be read.

        Args:
            name: letters, digits, `_` and `-`.
            type_: the connector's name.
            options: the connector's; a secret is given as a reference, `env:NAME` or `file:/path`.
            tables: those that are synced if none is named; empty: all that keep rows themselves.
            told: is told of columns that have no type here, and how their tables are synced all the same.

        Raises:
            NameTaken, InvalidName: the name.
            SettingsError: an option is wrong, or holds a password.
            NotAllowed: it may not be reached.
            SourceError: it does not answer.
        """
        require("source.add")
        if not _NAME.fullmatch(name):
            raise InvalidName(
                f"{name!r} can't name a source",
                next_step="use up to 63 letters, digits, _ and -, beginning with a letter or digit",
                name=name,
            )
        checked = checked_options(type_, options)
        if self._tables.all(name):
            raise _taken(name)
        allowed = self.allowed if may("code.run") else self.allowed.strict()
        with self._opened(type_, checked, allowed) as connector:
            found = connector.discover()
            chosen = choose(found, tables, name)
            for table in chosen or found:
                connector.about(table)
        for table in chosen or [table for table in found if table.followed]:
            if refused := _untyped(table):
                told(f"table {table.full_name}: {'; '.join(map(_why, refused))}; {way_past(table, refused)}")
        stored = checked.model_dump(mode="json", exclude_defaults=True)
        added = self._tables.add(name, type_, stored, [table.full_name for table in chosen], actor())
        if added is None:
            raise _taken(name)
        return added

    def all(self) -> list[SourceRecord]:
        """Return every source, by name."""
        require("source.read")
        return self._tables.all()

    def find(self, name: str) -> SourceRecord:
        """Return the source of that name.

        Raises:
            UnknownObject: there is none, with those that there are.
        """
        require("source.read")
        found = self._tables.all(name)
        if not found:
            known = ", ".join(each.name for each in self._tables.all()) or "none"
            raise UnknownObject(
                f"there is no source {name!r}; there are {known}",
                next_step="lakeward source add NAME --type postgres --url env:PGURL",
                source=name,
            )
        return found[0]

    def tables(self, name: str) -> list[tuple[SourceTable, str]]:
        """Return what a source has, by asking it, each with what else a person is told of it.

        Raises:
            SourceError: it does not answer.
        """
        with self.connected(self.find(name)) as connector:
            return [(table, connector.about(table)) for table in connector.discover()]

    def remove(self, name: str) -> None:
        """Forget a source. Datasets that it fed stay, and go on where they were if it is added again.

        Raises:
            UnknownObject: there is none.
        """
        require("source.remove")
        self.find(name)
        self._tables.remove(name, actor())

    @contextmanager
    def connected(self, record: SourceRecord) -> Iterator[Connector]:
        """Hold the connector of a source."""
        # Where it leads was checked for whoever added it.
        with self._opened(record.type, checked_options(record.type, record.options), self.allowed) as connector:
            yield connector

    @contextmanager
    def _opened(self, type_: str, options: BaseModel, allowed: Allowed) -> Iterator[Connector]:
        connector = connector_named(type_).made(options, allowed)
        try:
            yield connector
        finally:
            connector.close()


def choose(found: Sequence[SourceTable], wanted: Sequence[str], source: str) -> list[SourceTable]:
    """Return the tables that are wanted, by their full names, or by their own where one schema alone has it.

    Raises:
        UnknownObject: one is not there, or a name stands for several.
    """
    chosen: list[SourceTable] = []
    for name in wanted:
        fits = [table for table in found if name in (table.full_name, table.name)]
        exact = [table for table in fits if table.full_name == name] or fits
        if len(exact) != 1:
            what = f"has several tables {name!r}: {', '.join(each.full_name for each in exact)}"
            names = [each for table in found for each in (table.full_name, table.name)]
            near = list(dict.fromkeys(get_close_matches(name, names, n=3)))
            there = ", ".join(table.full_name for table in found[:_NAMED]) or "none"
            more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
            raise UnknownObject(
                f"source {source} {what if exact else f'has no table {name!r} that its user may read'}",
                safe="nothing was changed",
                next_step=f"did you mean {' or '.join(near)}?" if near else f"name one of {there}{more}",
                source=source,
                table=name,
            )
        if exact[0] not in chosen:
            chosen.append(exact[0])
    return chosen


_NAMED = 10
"""How many tables an error names."""


def check_types(table: SourceTable, source: str, text: Sequence[str] = ()) -> None:
    """Refuse a table with a column whose type has no logical type, unless it is read as text.

    Raises:
        SchemaError: the columns are named.
    """
    if refused := _untyped(table, text):
        raise SchemaError(
            f"table {table.full_name} of source {source}: {'; '.join(map(_why, refused))}",
            safe="nothing was changed",
            next_step=way_past(table, refused),
            table=table.full_name,
            columns=[column.name for column in refused],
        )


def _untyped(table: SourceTable, text: Sequence[str] = ()) -> list[SourceColumn]:
    return [column for column in table.columns if column.type is None and column.name not in text]


def way_past(table: SourceTable, refused: Sequence[SourceColumn]) -> str:
    """Return how a table with columns that have no type is synced, or left out."""
    options = " ".join(f"--text {table.name}.{each.name}" for each in refused)
    return (
        f"sync it with {options}, which reads what the database prints; or leave it out: --exclude {table.name}; or "
        "sync a view without the column"
    )


def _why(column: SourceColumn) -> str:
    return f"column {column.name!r} is {column.native}, which has no type here: {column.refused}"


def checked_options(type_: str, given: Mapping[str, Any]) -> BaseModel:
    """Return the connector's options; what is wrong is told by its name, never by its value.

    Raises:
        SettingsError: an option is wrong, or holds a password.
    """
    model = connector_named(type_).options
    for name, value in given.items():
        for each in value if isinstance(value, list | tuple) else [value]:
            check_reference(str(each), name)
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        wrong = error.errors(include_input=False, include_url=False)[0]
        option = ".".join(map(str, wrong["loc"]))
        raise SettingsError(
            f"option {option!r} of a {type_} source: {wrong['msg']}",
            safe="nothing was changed",
            next_step=f"it has {', '.join(model.model_fields)}",
            option=option,
        ) from None


def _taken(name: str) -> NameTaken:
    return NameTaken(
        f"there is a source {name!r} already",
        safe="it is unchanged",
        next_step=f"choose another name, or `lakeward source remove {name}`",
        source=name,
    )
