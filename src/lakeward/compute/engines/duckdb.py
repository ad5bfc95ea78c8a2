"""DuckDB as the engine: sealed from files, network, extensions and settings; limited in memory, disk and time.

How inputs get in is decided in `docs/decisions/003-compute-inputs.md` and `010-inputs-in-place.md`: files are read
where they lie, and are then the only ones that the sealed connection can open. Of what can only be streamed, a query
that scans one or two inputs, each once, reads them as they come; otherwise all are loaded into temporary tables first,
because a stream can be read only once and tells the optimizer nothing of its size. Which columns an input needs, and
how often it is scanned, is read from DuckDB's own plan.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import duckdb
import pyarrow as pa

from lakeward.compute.duckdb_result import ResultColumn
from lakeward.compute.duckdb_session import ResultStream, Session
from lakeward.compute.engine import BATCH_ROWS, Engine, Input
from lakeward.compute.memory import divided
from lakeward.compute.scratch import Scratch, remove_abandoned
from lakeward.compute.sql import without_semicolon
from lakeward.in_place import InPlace
from lakeward.types.logical import LogicalType
from lakeward.types.schema import Schema

_SEAL = (
    "SET GLOBAL TimeZone = 'UTC'",
    "SET GLOBAL errors_as_json = true",
    # In a notebook or an interactive Python it would draw over what the user prints.
    "SET enable_progress_bar = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
"""In this order, after connecting: once external access is off, DuckDB takes no temporary directory or allowed path.
Global, so that cursors inherit them."""

DESCRIBED = 256
"""The columns of so many queries are remembered."""
OPENED_AT_A_TIME = 2
"""So many databases are opened at a time, in threads: it takes 12 ms of a core."""


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
        self._described = lru_cache(DESCRIBED)(self._describe)
        self._opener = ThreadPoolExecutor(OPENED_AT_A_TIME, thread_name_prefix="lakeward-open")
        self._ahead: Future[duckdb.DuckDBPyConnection] | None = None
        remove_abandoned(temp_directory)

    def share(self, parts: int) -> DuckDBEngine:
        """See `Engine.share`: memory, threads and space to spill are divided, and time is not."""
        shared = DuckDBEngine(
            memory_limit=divided(self._memory_limit, parts),
            threads=max(1, self.threads // parts),
            temp_directory=self._temp_directory,
            temp_limit=divided(self._temp_limit, parts) if self._temp_limit is not None else None,
            time_limit=self._time_limit,
        )
        shared._described = self._described
        return shared

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
        """See `Engine.describe`. What was told is remembered: nothing else decides it than the texts and the types."""
        found = self._described(without_semicolon(sql), tuple(inputs.items()), tuple((steps or {}).items()))
        return {column.name: column.type for column in found}

    def _describe(
        self, sql: str, inputs: tuple[tuple[str, Schema], ...], steps: tuple[tuple[str, str], ...]
    ) -> tuple[ResultColumn, ...]:
        with Session(self._cursor(), None, self._memory_limit, self._time_limit) as session:
            session.bind(dict(inputs))
            known = [name for name, _ in inputs]
            for name, text in steps:
                session.add_step(name, without_semicolon(text), known)
                known.append(name)
            return tuple(session.describe(sql, known))

    def run(self, sql: str, inputs: Mapping[str, Input], batch_rows: int = BATCH_ROWS) -> pa.RecordBatchReader:
        """See `Engine.run`."""
        self.get_ready()
        text = without_semicolon(sql)
        # Whatever it is run on, it was checked and bound before where no file can be opened.
        columns = self._described(text, tuple((name, each.schema) for name, each in inputs.items()), ())
        in_place = _placed(inputs)
        scratch = Scratch(self._temp_directory)
        try:
            connection = self._connect(scratch.path, {path for place in in_place.values() for path in place.paths})
            session = Session(connection, scratch, self._memory_limit, self._time_limit)
        except BaseException:
            scratch.close()
            raise
        try:
            reader = session.start(text, columns, inputs, in_place, batch_rows)
        except BaseException:
            session.close()
            raise
        return pa.RecordBatchReader.from_batches(reader.schema, ResultStream(session, reader, self._free))

    def _free(self, session: Session, held: list[pa.RecordBatchReader]) -> None:
        """Free a query's database, in a thread if nobody can see it: what it held in memory takes it 10 ms of a core.

        Where it was the one that is used next, the next one is opened after it, and waits for it.
        """
        if not session.holds_only_memory:
            held.clear()
            session.close()
            return
        session.tidy()

        def renewed() -> duckdb.DuckDBPyConnection:
            freed()
            return self._open()

        def freed() -> None:
            held.clear()
            session.close()

        with self._lock:
            if self._ahead is None:
                self._ahead = self._opener.submit(renewed)
            else:
                self._opener.submit(freed)

    def get_ready(self) -> None:
        """See `Engine.get_ready`. At most one database is open ahead, which nobody has used and one query will use."""
        with self._lock:
            if self._ahead is None:
                self._ahead = self._opener.submit(self._open)

    def _connect(self, temp_directory: Path | None, readable: Collection[str] = ()) -> duckdb.DuckDBPyConnection:
        """Return a sealed database of its own, see `_sealed`: the one that was opened ahead, or another one."""
        with self._lock:
            ahead, self._ahead = self._ahead, None
        connection = self._open() if ahead is None else ahead.result()
        if temp_directory is not None:
            connection.execute("SET temp_directory = ?", [str(temp_directory)])
        return _sealed(connection, readable)

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a session of its own on one database that never holds a row: a new database costs 20 ms, this 0.1."""
        with self._lock:
            if self._describer is None:
                self._describer = _sealed(self._open())
            return self._describer.cursor()

    def _open(self) -> duckdb.DuckDBPyConnection:
        """Open a database that is not sealed yet, and spills nowhere."""
        config: dict[str, Any] = {
            "memory_limit": self._memory_limit,
            "temp_directory": "",
            "autoload_known_extensions": False,
            "autoinstall_known_extensions": False,
            "allow_community_extensions": False,
            "python_enable_replacements": False,
            # What a plain Arrow type would lose (hugeint, bit …) is cast or refused by then; "lossless" would only wrap
            # booleans in an extension type.
            "arrow_lossless_conversion": False,
            # It keeps what it read of files for the next query, and here there is none.
            "enable_external_file_cache": False,
        }
        if self._temp_limit is not None:
            config["max_temp_directory_size"] = self._temp_limit
        if self._threads is not None:
            config["threads"] = self._threads
        return duckdb.connect(":memory:", config=config)


def _sealed(connection: duckdb.DuckDBPyConnection, readable: Collection[str] = ()) -> duckdb.DuckDBPyConnection:
    """Seal a database, which can then read the files at the paths `readable`, and nothing else."""
    if readable:
        connection.execute("SET allowed_paths = ?", [sorted(readable)])
    for statement in _SEAL:
        connection.execute(statement)
    return connection


def _placed(inputs: Mapping[str, Input]) -> dict[str, InPlace]:
    """Return how those inputs are read that can be read in place."""
    places = {name: each.in_place() for name, each in inputs.items() if each.in_place is not None}
    return {name: place for name, place in places.items() if place is not None}
