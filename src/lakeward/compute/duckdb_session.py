"""One query's session in DuckDB: its inputs bound into a sealed connection, and its result as a stream."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TypeVar

import duckdb
import pyarrow as pa

from lakeward.access.guard import carried
from lakeward.compute import duckdb_gate
from lakeward.compute.duckdb_errors import may_be_of_files, planning_error, running_error
from lakeward.compute.duckdb_plan import Plan, read_plan
from lakeward.compute.duckdb_result import ResultColumn, exported, result_column
from lakeward.compute.duckdb_types import seen_type
from lakeward.compute.engine import Input
from lakeward.compute.scratch import Scratch
from lakeward.compute.single_use import SingleUse
from lakeward.errors import LakewardError, SchemaError
from lakeward.in_place import InPlace
from lakeward.time_limit import TimeLimit
from lakeward.types.quoting import duckdb_name
from lakeward.types.schema import Schema
from lakeward.types.table import arrow_schema

Result = TypeVar("Result")

_EXPLAIN = "EXPLAIN (FORMAT JSON) "


@dataclass(frozen=True)
class _Bound:
    """An input under its view: column `i` of its schema is called `<prefix>_c<i>` there.

    The prefix tells in the plan which scan belongs to which input, and no column name of a user reaches the scan.
    """

    name: str
    prefix: str
    schema: Schema


class Session:
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
        self._placed: list[Input] = []
        self._worker: ThreadPoolExecutor | None = None

    def __enter__(self) -> Session:
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

    def tidy(self) -> None:
        """Remove its private directory, once all is read; its memory is freed by `close`."""
        if self._scratch is not None:
            self._scratch.close()

    @property
    def holds_only_memory(self) -> bool:
        """Whether nothing but memory is left to be freed: no stream of a source, and nothing that was spilled."""
        return not self._streams and (self._scratch is None or self._scratch.is_empty)

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
        done = self._worker.submit(carried(work))
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
        return raised or self._trouble_of_files(error) or running_error(error, self._memory_limit, self._time)

    def _trouble_of_files(self, error: Exception) -> BaseException | None:
        """Return what is wrong with an input that is read in place, if that may be behind a failure."""
        return next(filter(None, map(_trouble, self._placed)), None) if may_be_of_files(error) else None

    def bind(self, schemas: Mapping[str, Schema]) -> None:
        """Make every input known with its columns, without a row."""
        for each in _named(schemas):
            self._bind(each)

    def _bind(self, bound: _Bound) -> None:
        every = range(len(bound.schema.columns))
        empty = pa.RecordBatchReader.from_batches(arrow_schema(bound.schema), iter(()))
        self._connection.register(bound.prefix, SingleUse(empty, _below(bound, every)))
        self._view(bound, _below(bound, every), bound.prefix)

    def describe(self, sql: str, names: Collection[str]) -> list[ResultColumn]:
        """Return the result's columns; the inputs are bound."""
        return _result_columns(self._relation(sql, names, step=None))

    def add_step(self, name: str, sql: str, names: Collection[str]) -> None:
        """Make a query known by a name, after the checks that every query gets."""
        self._relation(sql, names, step=name)
        self._connection.execute(f"CREATE TEMP VIEW {duckdb_name(name)} AS {sql}")

    def _relation(self, sql: str, names: Collection[str], step: str | None) -> duckdb.DuckDBPyRelation:
        """Return a query, after the checks that every query gets."""
        duckdb_gate.check(self._connection, sql, names, step)
        self._explained(sql, sql, step)
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

    def _explained(self, query: str, sql: str, step: str | None = None) -> str:
        """Return what DuckDB explains of a query, in which the text `sql` is somebody's."""
        try:
            # Planning computes, too: what is constant is evaluated then.
            with self._time.running():
                return str(self._connection.execute(_EXPLAIN + query).fetchall()[0][1])
        except duckdb.Error as error:
            trouble = self._trouble_of_files(error)
            if trouble is not None:
                raise trouble from error
            before = len((_EXPLAIN + query[: query.index(sql)]).encode())
            raise planning_error(error, sql, before, step, self._time) from None

    def start(
        self,
        sql: str,
        columns: Sequence[ResultColumn],
        inputs: Mapping[str, Input],
        in_place: Mapping[str, InPlace],
        batch_rows: int,
    ) -> pa.RecordBatchReader:
        """Bind the inputs, open those that the plan scans, and return the result's stream.

        Args:
            sql: one SELECT, which was described in a database that can open no file. So it passed the gate, and every
                table that it names is an input: of files alone, nothing needs to be looked up in a plan.
            columns: what was told then.
            inputs: what it may read, by name.
            in_place: those of them that are read in place. The connection can open their files.
            batch_rows: how many rows a batch of the result has.
        """
        bound = _named({name: each.schema for name, each in inputs.items()})
        try:
            for each in bound:
                if each.name in in_place:
                    self._place(each, inputs[each.name], in_place[each.name])
                else:
                    self._bind(each)
            query = exported(sql, columns)
            if len(in_place) < len(bound):
                plan = read_plan(json.loads(self._explained(query, sql)))
                for each in bound:
                    self._open_scanned(each, inputs[each.name], plan)
            relation = self._connection.sql(query)
            return self.interruptible(lambda: relation.to_arrow_reader(batch_rows))
        except duckdb.Error as error:
            raise self.failure(error) from error

    def _place(self, bound: _Bound, source: Input, place: InPlace) -> None:
        """Let the query see rows where they lie. Tables beside them are copied, to be scanned any number of times."""
        self._placed.append(source)
        for name, rows in place.tables.items():
            self._connection.register(f"{name}_given", rows)
            self._connection.execute(f"CREATE TEMP TABLE {duckdb_name(name)} AS FROM {duckdb_name(f'{name}_given')}")
            self._connection.unregister(f"{name}_given")
        columns = [f"{bound.prefix}.{duckdb_name(column.name)}" for column in bound.schema.columns]
        self._view(bound, columns, f"({place.sql}) AS {bound.prefix}")

    def _open_scanned(self, bound: _Bound, source: Input, plan: Plan) -> None:
        """Open an input that the plan scans, with the columns that it reads."""
        scans = [scan.columns for scan in plan.scans if scan.prefix == bound.prefix]
        if scans:
            self._open(bound, source, sorted(frozenset().union(*scans)), load=not plan.streams)

    def _open(self, bound: _Bound, source: Input, indexes: Sequence[int], *, load: bool) -> None:
        every = range(len(bound.schema.columns))
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
        # Columns that the plan never reads are null.
        read = [name if index in indexes else "NULL" for index, name in enumerate(_below(bound, every))]
        self._view(bound, read, f"{bound.prefix}_rows" if load else bound.prefix)

    def _view(self, bound: _Bound, columns: Sequence[str], source: str) -> None:
        """(Re)make the view under which the query sees the input, its columns made of expressions over a source."""
        selected = ", ".join(
            f"CAST({expression} AS {seen_type(column.type)}) AS {duckdb_name(column.name)}"
            for column, expression in zip(bound.schema.columns, columns, strict=True)
        )
        self._connection.execute(
            f"CREATE OR REPLACE TEMP VIEW {duckdb_name(bound.name)} AS SELECT {selected} FROM {source}"
        )


class ResultStream:
    """The batches of a result; frees the session when they end, fail or are released unread.

    A generator would not do: one that was never started runs no `finally`.

    Args:
        session: the query's.
        reader: its result.
        ended: is given both when all batches are read, to free them: the result first.
    """

    def __init__(
        self,
        session: Session,
        reader: pa.RecordBatchReader,
        ended: Callable[[Session, list[pa.RecordBatchReader]], None],
    ) -> None:
        self._session = session
        self._reader: pa.RecordBatchReader | None = reader
        self._ended = ended

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._reader is None:
            raise StopIteration
        try:
            return self._session.interruptible(self._reader.read_next_batch)
        except StopIteration:
            held, self._reader = [self._reader], None
            self._ended(self._session, held)
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


def _trouble(source: Input) -> BaseException | None:
    """Return what is wrong with an input, in the words of whoever streams it; None if nothing is."""
    try:
        for _ in source.open(source.schema.names):
            pass
    except LakewardError as error:
        return error
    return None


def _named(schemas: Mapping[str, Schema]) -> list[_Bound]:
    """Return the inputs under prefixes that none of their names begins with."""
    stem = "in"
    while any(name.casefold().startswith(stem) for name in schemas):
        stem += "_"
    return [_Bound(name, f"{stem}{number}", schema) for number, (name, schema) in enumerate(schemas.items())]


def _result_columns(relation: duckdb.DuckDBPyRelation) -> list[ResultColumn]:
    return [result_column(name, type_) for name, type_ in zip(relation.columns, relation.types, strict=True)]


def _below(bound: _Bound, indexes: Iterable[int]) -> list[str]:
    return [f"{bound.prefix}_c{index}" for index in indexes]
