"""The rows that two snapshots differ by, at the cost of the files that they differ by.

A data file that both snapshots have is not read, but for the rows that one of them has deleted and the other has not:
their positions are the difference of the delete files. Files that only one of them has are read: those that were added,
and those that a compaction has taken the place of. So nothing has to be known of the snapshots between the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg.table import FileScanTask, Table

from lakeward.storage.arm import NEW, OLD
from lakeward.storage.arms.iceberg.deletes import FILE_SHIFT, deleted_places
from lakeward.storage.arms.iceberg.scans import files_of, select_rows
from lakeward.storage.filters import quote_identifier
from lakeward.storage.identity import with_identity
from lakeward.storage.sides import PLACE, Relation, Side
from lakeward.types.schema import Schema
from lakeward.types.table import arrow_schema

Places = npt.NDArray[np.int64]
"""Rows of several files, each as one number: see `deletes`."""


class FileSide(Side):
    """Rows of one snapshot that the other may not have. A row's place is the number of its file: `own`, then `touched`.

    Args:
        name: the beginning of the names of what its relations read.
        table: the table under the columns of the snapshot.
        schema: the dataset's columns.
        own: the files that only this snapshot has.
        touched: files that both have, with other rows deleted.
        left: the places, in `touched`, of rows that only the other snapshot has deleted.
    """

    def __init__(
        self,
        name: str,
        table: Table,
        schema: Schema,
        own: Sequence[FileScanTask],
        touched: Sequence[FileScanTask],
        left: Places,
    ) -> None:
        self._name = name
        self._table = table
        self._schema = schema
        files = [task.file.file_path for task in (*own, *touched)]
        self._clean = {number: files[number] for number, task in enumerate(own) if not task.delete_files}
        self._dirty = {number: files[number] for number, task in enumerate(own) if task.delete_files}
        self._deleted = deleted_places(table, own)
        self._touched = {number: files[number] for number in np.unique((left >> FILE_SHIFT) + len(own)).tolist()}
        self._left = left + (len(own) << FILE_SHIFT)

    @property
    def files(self) -> list[str]:
        """The data files that it reads."""
        return [*self._clean.values(), *self._dirty.values(), *self._touched.values()]

    def rows(self, columns: Sequence[str], places: Sequence[int] | None = None) -> Relation:
        """See `Side`."""
        deleted, left = self._name + "deleted", self._name + "left"
        tables = {deleted: pa.table({"place": self._deleted}), left: pa.table({"place": self._left})}
        groups = (
            (self._clean, "", ""),
            (self._dirty, "ANTI JOIN", deleted),
            (self._touched, "SEMI JOIN", left),
        )
        parts = []
        for files, join, name in groups:
            wanted = files if places is None else {number: files[number] for number in files.keys() & set(places)}
            if wanted:
                parts.append(self._select(columns, wanted, join, name))
        if not parts:
            empty = with_identity(arrow_schema(self._schema)).append(pa.field(PLACE, pa.int64())).empty_table()
            return Relation(f"SELECT * FROM {quote_identifier(left)}", {left: empty})
        return Relation(" UNION ALL ".join(parts), tables)

    def _select(self, columns: Sequence[str], files: Mapping[int, str], join: str, name: str) -> str:
        number = f"CAST({list(files)} AS BIGINT[])[CAST(t.file_index AS BIGINT) + 1]"
        joined = (
            f"{join} {quote_identifier(name)} AS d ON d.place = (({number} << {FILE_SHIFT}) | t.file_row_number)"
            if join
            else ""
        )
        more = (f"{number} AS {quote_identifier(PLACE)}",)
        return select_rows(self._table, self._schema, columns, list(files.values()), joined, more)


def differing(table: Table, schema: Schema, old: int, new: int) -> tuple[FileSide, FileSide]:
    """Return the rows of two snapshots, the older one first, that may not be in the other one.

    Args:
        table: the loaded table.
        schema: the dataset's columns.
        old, new: ids of the snapshots.
    """
    before, after = files_of(table, old), files_of(table, new)
    then, now = ({task.file.file_path: task for task in tasks} for _, tasks in (before, after))
    touched = [path for path in then if path in now and _deletes(then[path]) != _deletes(now[path])]
    # All of both, and not only what the files say that the other snapshot has not: two may name the same row.
    deleted = [deleted_places(table, [tasks[path] for path in touched]) for tasks in (then, now)]
    return (
        FileSide(
            OLD,
            before[0],
            schema,
            [task for path, task in then.items() if path not in now],
            [then[path] for path in touched],
            np.setdiff1d(deleted[1], deleted[0]),
        ),
        FileSide(
            NEW,
            after[0],
            schema,
            [task for path, task in now.items() if path not in then],
            [now[path] for path in touched],
            np.setdiff1d(deleted[0], deleted[1]),
        ),
    )


def _deletes(task: FileScanTask) -> set[str]:
    return {file.file_path for file in task.delete_files}
