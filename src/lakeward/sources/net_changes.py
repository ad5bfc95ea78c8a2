"""What many changes come to: the last one of each key, as the verb `changes` takes it.

Rows never pass through a query. DuckDB is asked, over the keys alone, which change of each key is the last one; that is
a flag for each change, and the rows are read once more with the flags. So the memory of a transaction of any size is a
byte for each of its changes, and what DuckDB may use before it spills.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeward.errors import StorageError, StorageFull
from lakeward.sources.change_log import CHANGE_COLUMNS, DELETE, OP
from lakeward.sources.change_spool import ChangeSpool
from lakeward.sources.unsent_values import Present, UnsentValues

Flags = npt.NDArray[np.bool_]

_BATCH_ROWS = 65_536
_FULL = re.compile(r"out of memory|max_temp_directory_size|no space left|disk quota", re.IGNORECASE)
_OWN = frozenset(field.name for field in CHANGE_COLUMNS)


@dataclass(frozen=True)
class NetChanges:
    """What is to be written.

    Args:
        replaces: the table was emptied: its rows are `batches` and no others, without `__op`.
        rows: how many there are.
        batches: the columns of the table, and `__op` unless it `replaces`; to be read once.
    """

    replaces: bool
    rows: int
    batches: Iterator[pa.RecordBatch]


class Netting:
    """Nets changes.

    Args:
        directory: where DuckDB spills.
        memory_limit: what it may use before.
    """

    def __init__(self, directory: Path, memory_limit: str) -> None:
        self._directory = directory
        self._memory_limit = memory_limit
        self._database: duckdb.DuckDBPyConnection | None = None

    def net(self, spool: ChangeSpool, key: Sequence[str], present: Present) -> NetChanges:
        """Return what the changes of a table with this key come to.

        Args:
            spool: the changes, at least one.
            key: columns by which a row is known.
            present: reads the rows as they were before the changes.

        Raises:
            StorageFull: there is no space to spill.
        """
        if self._database is None:
            # It never holds a row: opening one for each batch of changes would cost more than a small batch itself.
            self._database = self._opened()
        with named_errors(), self._database.cursor() as connection:
            last = self._last(connection, spool, key)
        if spool.truncated:
            self._without_deletes(spool, last)
        return NetChanges(spool.truncated, int(np.count_nonzero(last)), self._rows(spool, key, last, present))

    def close(self) -> None:
        """Give up what DuckDB holds; repeating it does nothing."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _last(self, connection: duckdb.DuckDBPyConnection, spool: ChangeSpool, key: Sequence[str]) -> Flags:
        flags = np.zeros(spool.rows, np.bool_)
        if spool.first == spool.rows:
            return flags
        connection.register("changes", spool.numbered(key))
        keys = ", ".join(f"c{number}" for number in range(len(key)))
        for batch in connection.sql(f"SELECT max(n) FROM changes GROUP BY {keys}").to_arrow_reader(_BATCH_ROWS):
            flags[batch.column(0).to_numpy()] = True
        connection.unregister("changes")
        return flags

    def _without_deletes(self, spool: ChangeSpool, last: Flags) -> None:
        for start, batch in spool.batches([OP]):
            last[start : start + batch.num_rows] &= ~np.asarray(pc.equal(batch.column(0), DELETE))

    def _rows(self, spool: ChangeSpool, key: Sequence[str], last: Flags, present: Present) -> Iterator[pa.RecordBatch]:
        assert spool.schema is not None
        columns = [name for name in spool.schema.names if name not in _OWN]
        wanted = columns if spool.truncated else [*columns, OP]
        with ExitStack() as held:
            held.enter_context(named_errors())
            unsent = None
            if spool.unsent:
                unsent = UnsentValues(held.enter_context(self._opened()), spool, key, last, present)
            for start, batch in spool.batches():
                flags = last[start : start + batch.num_rows]
                if not flags.any():
                    continue
                rows = batch.filter(pa.array(flags))
                if unsent is not None:
                    rows = unsent.filled(rows, np.flatnonzero(flags) + start)
                yield rows.select(wanted)

    def _opened(self) -> duckdb.DuckDBPyConnection:
        return duckdb.connect(
            config={
                "memory_limit": self._memory_limit,
                "temp_directory": str(self._directory),
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "python_enable_replacements": False,
                "arrow_lossless_conversion": True,
            }
        )


@contextmanager
def named_errors() -> Iterator[None]:
    """Give DuckDB's failures our names."""
    try:
        yield
    except duckdb.Error as error:
        text = str(error).strip()
        if _FULL.search(text):
            raise StorageFull(
                f"changes can't be netted: {text}",
                safe="nothing of them was written, and they will come again",
                next_step="free space in the scratch directory, or raise storage.memory_limit",
            ) from error
        raise StorageError(f"changes can't be netted: {text}", safe="nothing of them was written") from error
