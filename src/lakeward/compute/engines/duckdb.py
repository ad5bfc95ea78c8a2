"""DuckDB as the engine: sealed from files, network, extensions and settings; limited in memory, disk and time.

How inputs get in is decided in `docs/decisions/003-compute-inputs.md`: a query that scans one or two inputs, each once,
reads them as they come; otherwise all are loaded into temporary tables first, because a stream can be read only once
and tells the optimizer nothing of its size. Which columns an input needs, and how often it is scanned, is read from
DuckDB's own plan.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from lakeward.compute import duckdb_gate
from lakeward.compute.duckdb_errors import planning_error, running_error
from lakeward.compute.duckdb_plan import read_plan
from lakeward.compute.duckdb_types import Unsupported, export_type, seen_type, to_logical
from lakeward.compute.engine import BATCH_ROWS, Engine, Input
from lakeward.compute.memory import divided
from lakeward.compute.scratch import Scratch, remove_abandoned
from lakeward.compute.single_use import SingleUse
from lakeward.compute.sql import without_semicolon
from lakeward.errors import SchemaError
from lakeward.time_limit import TimeLimit
from lakeward.types.logical import LogicalType
from lakeward.types.quoting import duckdb_name
from lakeward.types.schema import Schema
from lakeward.types.table import arrow_schema, duckdb_type

Result = TypeVar("Result")

_EXPLAIN = "EXPLAIN (FORMAT JSON) "
_SEAL = (
    "SET GLOBAL TimeZone = 'UTC'",
    "SET GLOBAL errors_as_json = true",
    # In a notebook or an interactive Python it would draw over what the user prints.
    "SET enable_progress_bar = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
"""In this order, after connecting: DuckDB refuses a temporary directory once external access is off. Global, so that
cursors inherit them."""


class DuckDBEngine(Engine):
    """DuckDB in this process, one private in-memory database per query.

    Args:
        memory_limit: what one query may hold in memory before it spills ("1GB").
        threads: of one query; None: one per core.
        temp_directory: where queries spill, each into a private directory that is removed with it.
        temp_limit: what one query may spill ("50GB"); None: nine tenths of the space that is free.
        time_limit: seconds that one query may compute; None: any. Waiting for its sources, or for whoever reads its
            result, does not count.
    """

    name = "duckdb"

    def __init__(
        self,
        *,
        memory_limit: str = "1GB",
        threads: int | None = None,
        temp_directory: Path,
        temp_limit: str | None = None,
        time_limit: float | None = None,
    ) -> None:
        self._memory_limit = memory_limit
        self._temp_limit = temp_limit
        self._time_limit = time_limit
        self._threads = threads
        self._temp_directory = temp_directory
        self._describer: duckdb.DuckDBPyConnection | None = None
        self._lock = Lock()
        remove_abandoned(temp_directory)

    def share(self, parts: int) -> DuckDBEngine:
        """See `Engine.share`: memory, threads and space to spill are divided, and time is not."""
        return DuckDBEngine(
            memory_limit=divided(self._memory_limit, parts),
            threads=max(1, self.threads // parts),
            temp_directory=self._temp_directory,
            temp_limit=divided(self._temp_limit, parts) if self._temp_limit is not None else None,
            time_limit=self._time_limit,
        )

    @property
    def threads(self) -> int:
        """See `Engine.threads`."""
        return self._threads or os.cpu_count() or 1

    @property
    def temp_directory(self) -> Path:
        """See `Engine.temp_directory`."""
        self._temp_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._temp_directory

    def describe(
        self, sql: str, inputs: Mapping[str, Schema], steps: Mapping[str, str] | None = None
    ) -> dict[str, LogicalType]:
        """See `Engine.describe`."""
        with _Session(self._cursor(), None, self._memory_limit, self._time_limit) as session:
            session.bind(inputs)
            known = list(inputs)
            for name, text in (steps or {}).items():
                session.add_step(name, without_semicolon(text), known)
                known.append(name)
            return {column.name: column.type for column in session.describe(without_semicolon(sql), known)}

    def run(self, sql: str, inputs: Mapping[str, Input], batch_rows: int = BATCH_ROWS) -> pa.RecordBatchReader:
        """See `Engine.run`."""
        scratch = Scratch(self._temp_directory)
        try:
            session = _Session(self._connect(scratch.path), scratch, self._memory_limit, self._time_limit)
        except BaseException:
            scratch.close()
            raise
        try:
            reader = session.start(without_semicolon(sql), inputs, batch_rows)
        except BaseException:
            session.close()
            raise
        return pa.RecordBatchReader.from_batches(reader.schema, _Stream(session, reader))

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a session of its own on one database that never holds a row: a new database costs 20 ms, this 0.1."""
        with self._lock:
            if self._describer is None:
                self._describer = self._connect(None)
            return self._describer.cursor()

    def _connect(self, temp_directory: Path | None) -> duckdb.DuckDBPyConnection:
        config: dict[str, Any] = {
            "memory_limit": self._memory_limit,
            "temp_directory": str(temp_directory) if temp_directory else "",
            "autoload_known_extensions": False,
            "autoinstall_known_extensions": False,
            "allow_community_extensions": False,
            "python_enable_replacements": False,
            # What a plain Arrow type would lose (hugeint, bit …) is cast or refused by then; "lossless" would only wrap
            # booleans in an extension type.
            "arrow_lossless_conversion": False,
        }
        if self._temp_limit is not None:
            config["max_temp_directory_size"] = self._temp_limit
        if self._threads is not None:
            config["threads"] = self._threads
        connection = duckdb.connect(":memory:", config=config)
        for statement in _SEAL:
            connection.execute(statement)
        return connection


@dataclass(frozen=True)
class _Bound:
    """An input under its view: column `i` of its schema is called `<prefix>_c<i>` there.

    The prefix tells in the plan which scan belongs to which input, and no column name of a user reaches the scan.
    """

    name: str
    prefix: str
    schema: Schema


class _Session:
    """One sealed connection, and the inputs bound into it."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        scratch: Scratch | None,
        memory_limit: str,
        time_limit: float | None,
    ) -> None:
        self._connection = connection
        self._scratch = scratch
        self._memory_limit = memory_limit
        self._time = TimeLimit(time_limit, connection.interrupt)
        self._streams: list[SingleUse] = []
        self._worker: ThreadPoolExecutor | None = None

    def __enter__(self) -> _Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free memory and temporary files. May be called again."""
        self._time.close()
        self._connection.close()
        if self._worker is not None:
            self._worker.shutdown(wait=False)
        for stream in self._streams:
            stream.close()
        if self._scratch is not None:
            self._scratch.close()

    def interruptible(self, work: Callable[[], Result]) -> Result:
        """Do a piece of work that ends when its time is up, and also by Ctrl-C."""
        with self._time.running():
            return self._hearing_signals(work)

    def _hearing_signals(self, work: Callable[[], Result]) -> Result:
        """Do work in a thread, if this is the one that gets signals: inside DuckDB it would not hear Ctrl-C."""
        if threading.current_thread() is not threading.main_thread():
            return work()
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="lakeward-query")
        done = self._worker.submit(work)
        try:
            wait([done])
        except BaseException:
            self._connection.interrupt()
            wait([done])
            raise
        return done.result()

    def failure(self, error: Exception) -> BaseException:
        """Return what an input raised, if that is behind a failure of the run, else the failure under our names."""
        raised = next((stream.failure for stream in self._streams if stream.failure is not None), None)
        return raised or running_error(error, self._memory_limit, self._time)

    def bind(self, schemas: Mapping[str, Schema]) -> list[_Bound]:
        """Make every input known with its columns, without a row."""
        stem = "in"
        while any(name.casefold().startswith(stem) for name in schemas):
            stem += "_"
        bound = [_Bound(name, f"{stem}{number}", schema) for number, (name, schema) in enumerate(schemas.items())]
        for each in bound:
            every = range(len(each.schema.columns))
            empty = SingleUse(arrow_schema(each.schema).empty_table().to_reader(), _below(each, every))
            self._connection.register(each.prefix, empty)
            self._view(each, every)
        return bound

    def describe(self, sql: str, names: Collection[str]) -> list[_Column]:
        """Return the result's columns; the inputs are bound."""
        relation = self._relation(sql, names, step=None)
        return [_column(name, type_) for name, type_ in zip(relation.columns, relation.types, strict=True)]

    def add_step(self, name: str, sql: str, names: Collection[str]) -> None:
        """Make a query known by a name, after the checks that every query gets."""
        self._relation(sql, names, step=name)
        self._connection.execute(f"CREATE TEMP VIEW {duckdb_name(name)} AS {sql}")

    def _relation(self, sql: str, names: Collection[str], step: str | None) -> duckdb.DuckDBPyRelation:
        duckdb_gate.check(self._connection, sql, names, step)
        try:
            # Planning computes, too: what is constant is evaluated then.
            with self._time.running():
                self._connection.execute(_EXPLAIN + sql).fetchall()
        except duckdb.Error as error:
            raise planning_error(error, sql, len(_EXPLAIN), step, self._time) from None
        relation = self._connection.sql(sql)
        # Asked of the query itself: a query around it would get the second `id` as `id_1`, and the data with it.
        twice = next((name for name, count in Counter(relation.columns).items() if count > 1), None)
        if twice is not None:
            raise SchemaError(
                f"the result has two columns named {twice!r}",
                next_step=f"give one of them another name (… AS other_{twice}), or leave it out (* EXCLUDE)",
                column=twice,
                step=step,
            )
        return relation

    def start(self, sql: str, inputs: Mapping[str, Input], batch_rows: int) -> pa.RecordBatchReader:
        """Bind the inputs, open those that the plan scans, and return the result's stream."""
        bound = self.bind({name: each.schema for name, each in inputs.items()})
        query = _exported(sql, self.describe(sql, inputs))
        try:
            with self._time.running():
                explained = self._connection.execute(_EXPLAIN + query).fetchall()
            plan = read_plan(json.loads(explained[0][1]))
            for each in bound:
                scans = [scan.columns for scan in plan.scans if scan.prefix == each.prefix]
                if scans:
                    self._open(each, inputs[each.name], sorted(frozenset().union(*scans)), load=not plan.streams)
            return self.interruptible(lambda: self._connection.sql(query).to_arrow_reader(batch_rows))
        except duckdb.Error as error:
            raise self.failure(error) from error

    def _open(self, bound: _Bound, source: Input, indexes: Sequence[int], *, load: bool) -> None:
        names = [bound.schema.columns[index].name for index in indexes]
        reader = source.open(names)
        position = {name: number for number, name in enumerate(reader.schema.names)}
        missing = [name for name in names if name not in position]
        if missing or len(position) != len(names):
            reader.close()
            raise ValueError(f"input {bound.name!r} gave columns {reader.schema.names} where {names} were asked for")
        by_name = dict(zip(names, _below(bound, indexes), strict=True))
        stream = SingleUse(reader, [by_name[name] for name in reader.schema.names], self._time.waiting)
        self._streams.append(stream)
        self._connection.register(bound.prefix, stream)
        if load:
            load_all = f"CREATE TEMP TABLE {bound.prefix}_rows AS SELECT * FROM {bound.prefix}"
            self.interruptible(lambda: self._connection.execute(load_all).fetchall())
            stream.close()
        self._view(bound, indexes, f"{bound.prefix}_rows" if load else bound.prefix)

    def _view(self, bound: _Bound, indexes: Collection[int], table: str | None = None) -> None:
        """(Re)make the view under which the query sees the input. Columns that the plan never reads are null in it."""
        selected = ", ".join(
            f"CAST({f'{bound.prefix}_c{index}' if index in indexes else 'NULL'} AS {seen_type(column.type)})"
            f" AS {duckdb_name(column.name)}"
            for index, column in enumerate(bound.schema.columns)
        )
        self._connection.execute(
            f"CREATE OR REPLACE TEMP VIEW {duckdb_name(bound.name)} AS SELECT {selected} FROM {table or bound.prefix}"
        )


class _Stream:
    """The batches of a result; frees the session when they end, fail or are released unread.

    A generator would not do: one that was never started runs no `finally`.
    """

    def __init__(self, session: _Session, reader: pa.RecordBatchReader) -> None:
        self._session = session
        self._reader: pa.RecordBatchReader | None = reader

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._reader is None:
            raise StopIteration
        try:
            return self._session.interruptible(self._reader.read_next_batch)
        except StopIteration:
            self.close()
            raise
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            failure = self._session.failure(error)
            self.close()
            raise failure from error

    def close(self) -> None:
        """Free the session. DuckDB keeps its temporary files while a result is open, so the reader goes first."""
        if self._reader is not None:
            self._reader = None
            self._session.close()

    def __del__(self) -> None:
        self.close()


@dataclass(frozen=True)
class _Column:
    """A column of a result: its name, its logical type, and the type to cast it to on the way out, if any."""

    name: str
    type: LogicalType
    cast: str | None


def _below(bound: _Bound, indexes: Iterable[int]) -> list[str]:
    return [f"{bound.prefix}_c{index}" for index in indexes]


def _column(name: str, type_: Any) -> _Column:
    try:
        logical = to_logical(type_)
    except Unsupported as unsupported:
        raise SchemaError(
            f"result column {name!r} is of type {unsupported.type_name}, which no dataset holds: {unsupported.reason}",
            next_step=f"cast it: {unsupported.cast.replace('{}', duckdb_name(name))}",
            column=name,
            type=unsupported.type_name,
            step=None,
        ) from None
    leaves_as = duckdb_type(export_type(logical))
    return _Column(name, logical, None if str(type_).upper() == leaves_as.upper() else leaves_as)


def _exported(sql: str, columns: Sequence[_Column]) -> str:
    """Return the query with the casts of its columns; DuckDB keeps the order of an ordered subquery."""
    if not any(column.cast for column in columns):
        return sql
    selected = ", ".join(
        f"CAST({duckdb_name(column.name)} AS {column.cast}) AS {duckdb_name(column.name)}"
        if column.cast
        else duckdb_name(column.name)
        for column in columns
    )
    return f"SELECT {selected} FROM (\n{sql}\n) AS result"
