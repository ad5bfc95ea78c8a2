"""Loads a package: one build of all its tables, of the package's id and of the pipeline's state. Here is its commit.

Until then dlt's jobs have only looked at the files, which stay in the package. A process that dies before leaves a
package that dlt loads again from its files; one that dies after it finds the id of the package in the datasets, and
does nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

import pyarrow as pa

from lakeward.control.tree import DatasetRecord
from lakeward.dlt.merging import Merging
from lakeward.dlt.own_tables import LoadedAlready, OwnTables, made
from lakeward.dlt.package import LoadPackage, rows_of
from lakeward.dlt.tables import TableLoad, Tables
from lakeward.storage.requests import BuildResult, Output
from lakeward.wiring.counted_batches import CountedBatches
from lakeward.wiring.workspace import Workspace

WRITER = "dlt.load"

log = logging.getLogger("lakeward.dlt")


class Loading:
    """One package on its way into datasets.

    Args:
        workspace: where they are.
        tables: what is done with each table.
        own: dlt's own tables.
        package: what is loaded.
    """

    def __init__(self, workspace: Workspace, tables: Tables, own: OwnTables, package: LoadPackage) -> None:
        self._workspace = workspace
        self._tables = tables
        self._own = own
        self._package = package
        self._counted: list[CountedBatches] = []

    def commit(self) -> BuildResult | None:
        """Load the package; None: it was loaded before.

        Raises:
            DataError, UsageError: the rows or the tables are refused; every dataset is unchanged.
            ConflictError: somebody else holds a dataset, or changed it.
        """
        package = self._package
        try:
            self._own.check_new(package.load_id)
            loads = self._tables.loads(list(package.files), package.emptied)
            records = {each.name: made(self._workspace, each.declaration) for each in loads}
            merging = Merging(self._workspace.pipelines.engine, self._workspace.storage, package.files, records)
            outputs = [self._output(each, records[each.name], merging) for each in loads]
            gone = self._tables.gone(package.emptied)
            outputs += [Output(each, "replace", partial(rows_of, (), each.schema, each.name), True) for each in gone]
            outputs += self._own.outputs(package)
            return self._workspace.storage.build(outputs, writer=WRITER, pipeline=None)
        except LoadedAlready as again:
            log.info("%s", again)
            return None
        except Exception as error:
            # On its way through other libraries an error of a file's rows may have kept only its text.
            raised = next((each.raised for each in self._counted if each.raised is not None), None)
            if raised is not None and raised is not error:
                raise raised from error
            raise

    def _output(self, load: TableLoad, record: DatasetRecord, merging: Merging) -> Output:
        verb, rows = self._how(load, record, merging)
        return Output(record, verb, partial(self._count, rows, record), allow_empty=True)

    def _how(
        self, load: TableLoad, record: DatasetRecord, merging: Merging
    ) -> tuple[str, Callable[[], pa.RecordBatchReader]]:
        """Return the verb that a table is written by, and what opens its rows."""
        files = self._package.files.get(load.name, ())
        plain = partial(rows_of, files, record.schema, record.name)
        afresh = load.disposition == "replace" or load.name in self._package.emptied
        keys = load.keys
        if keys is None or not keys.of_dataset or (afresh and not files):
            return ("replace" if afresh else "append"), plain
        if afresh:
            return "replace", partial(merging.standing, load)
        if keys.strategy == "insert-only":
            return "append_new", plain
        if load.root == load.name and not keys.merge and keys.hard_delete is None:
            return "upsert", plain if keys.strategy == "upsert" else partial(merging.standing, load)
        return "changes", partial(merging.changes, load)

    def _count(self, rows: Callable[[], pa.RecordBatchReader], record: DatasetRecord) -> pa.RecordBatchReader:
        opened = rows()
        counted = CountedBatches(opened, f"loading {record.name}", None, None)
        self._counted.append(counted)
        return pa.RecordBatchReader.from_batches(opened.schema, counted)
