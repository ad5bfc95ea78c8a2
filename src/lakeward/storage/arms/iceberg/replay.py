"""Carries out on a snapshot what became of another arm's version: rows that are gone are marked, others are files."""

from __future__ import annotations

import duckdb
import numpy as np
from pyiceberg.table import Table

from lakeward.clock import Faults
from lakeward.errors import StorageError
from lakeward.storage.arm import WriteTask
from lakeward.storage.arms.iceberg.deletes import DeleteWriter
from lakeward.storage.arms.iceberg.files import RollingWriter
from lakeward.storage.arms.iceberg.marks import Marks
from lakeward.storage.arms.iceberg.producers import RowDelta
from lakeward.storage.arms.iceberg.scans import DELETED_ROWS, files_of, live_rows
from lakeward.storage.arms.iceberg.trouble import catalog_errors
from lakeward.storage.duck import given
from lakeward.storage.sides import Difference
from lakeward.types.schema import ROW_ID

GOING = "going"
"""The ids of the rows that are gone, in the connection; then their `file` and `row`."""


class Replay:
    """One replay on one snapshot.

    Args:
        connection: a DuckDB connection of its own, where the rows that are gone are named.
        task: the write.
        loaded: the table.
        parent: the snapshot that it starts from.
        target_bytes: a data file is closed at this size.
        faults: called between the steps.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        task: WriteTask,
        loaded: Table,
        parent: int,
        target_bytes: int,
        faults: Faults,
    ) -> None:
        self._connection = connection
        self._task = task
        self._loaded = loaded
        self._parent = parent
        self._target_bytes = target_bytes
        self._faults = faults
        self._what = f"dataset {task.table.name}"

    def run(self, difference: Difference) -> RowDelta:
        """Write the files; what is returned has to be committed.

        Raises:
            StorageError: the snapshot has not the rows that are to go.
        """
        prefix = f"{self._task.transaction.version:08d}"
        writer = RollingWriter(self._loaded, prefix, self._target_bytes, self._what, self._task.table.schema)
        deletes = DeleteWriter(self._loaded, prefix, self._what)
        try:
            removed = self._remove(difference, deletes) if difference.rows_gone else set()
            self._faults.at("prepare:deletes")
            if difference.rows_come:
                writer.write_all(difference.come(), self._task.check)
            self._faults.at("prepare:files")
        except BaseException:
            writer.delete()
            deletes.delete()
            raise
        return RowDelta(self._parent, tuple(writer.files), tuple(deletes.files), frozenset(removed))

    def _remove(self, difference: Difference, deletes: DeleteWriter) -> set[str]:
        with given(self._connection, {"gone": difference.gone()}):
            self._connection.execute(f"CREATE TEMP TABLE {GOING}_ids AS SELECT {ROW_ID} AS id FROM gone").fetchall()
        with catalog_errors(self._what):
            table, tasks = files_of(self._loaded, self._parent)
        if not tasks:
            raise self._missing(0, difference.rows_gone)
        live = live_rows(table, tasks, self._task.table.schema, {ROW_ID}, places=True)
        with given(self._connection, live.tables):
            self._connection.execute(
                f"CREATE TEMP TABLE {GOING} AS SELECT t.file, t.row FROM ({live.sql}) AS t "
                f"JOIN {GOING}_ids AS g ON g.id = t.{ROW_ID}"
            ).fetchall()
        ((found,),) = self._connection.execute(f"SELECT count(*) FROM {GOING}").fetchall()
        if found != difference.rows_gone:
            raise self._missing(found, difference.rows_gone)
        dead = live.tables[DELETED_ROWS]["place"].to_numpy() if live.tables else np.empty(0, np.int64)
        marks = Marks(self._connection, live.tasks, dead)
        return marks.write(f"SELECT file, row FROM {GOING}", deletes, self._task.check)

    def _missing(self, found: int, wanted: int) -> StorageError:
        name = self._task.table.name
        return StorageError(
            f"dataset {name}: its Iceberg table has {found:,} of {wanted:,} rows that are to be replaced",
            safe="the arm that serves the dataset was not touched",
            next_step=f"`lakeward verify {name}` compares the arms",
            dataset=name,
        )
