"""Small datasets that people edit: their rows as a sheet, what an edit changes, the write that applies it, and undo.

An edit is checked against the dataset while the writer's slot is held, so nobody can come between the check and the
write: rows that nobody else touched are applied, and where both changed a row, nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from lakeward.control.db import Database
from lakeward.control.history import History
from lakeward.control.records import Transaction
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import ConflictError, DataError, UnknownVersion, UsageError
from lakeward.sources.formats.csv import CsvFile, write_csv
from lakeward.storage.facade import Storage
from lakeward.storage.requests import ChangesRequest, Output, ReadRequest, WriteResult
from lakeward.storage.verbs import APPEND, CHANGES, REPLACE, Verb
from lakeward.types.conform import to_reader
from lakeward.types.schema import OP, ROW_ID, ROW_INDEX, Schema
from lakeward.types.table import arrow_schema
from lakeward.wiring.actor import actor
from lakeward.wiring.edit_diff import (
    Conflict,
    Edit,
    Rows,
    Texts,
    cells,
    column_text,
    conflicts,
    difference,
    matched_by,
    sheet_schema,
    touched_keys,
    without_equal,
)

WRITER = "manual.table"
READER = "manual.table"
SHOWN_CONFLICTS = 10


@dataclass(frozen=True)
class Limits:
    """How large a dataset may be that people edit as one sheet.

    Args:
        rows: at most so many.
        size_bytes: of the rows in memory, and of the file.
    """

    rows: int = 10_000
    size_bytes: int = 10 << 20


@dataclass(frozen=True)
class Sheet:
    """The rows of a dataset at one version, in the order in which they were written, to be edited.

    Args:
        dataset: its name.
        version: of the rows; 0: before the first.
        rows: the dataset's columns; where it has no primary key, with `__row_id` in front.
        limits: what an edited file is held to.
    """

    dataset: str
    version: int
    rows: Rows
    limits: Limits

    def write(self, path: Path) -> int:
        """Write the rows to a new CSV file, which `read` takes back, and return their number.

        Null is an empty cell, an empty string is `""`; lists and structs are JSON text.

        Raises:
            UsageError: the file is there already, can't be written, or would be too large.
            ValueRefused: a text holds a NUL, which CSV can't hold.
        """
        if path.exists():
            raise UsageError(
                f"{path} exists already", safe="the file is unchanged", next_step="choose another name", path=str(path)
            )
        columns = sheet_schema(self.rows.schema).columns
        texts = pa.table({column.name: column_text(self.rows.table, column) for column in columns})
        rows = write_csv(texts.to_reader(), path)
        if path.stat().st_size > self.limits.size_bytes:
            path.unlink()
            raise _too_large(self.dataset, f"its rows are more than {self.limits.size_bytes:,} bytes as CSV")
        return rows

    def read(self, path: Path) -> Edit:
        """Read an edited CSV file, and return what it changes.

        Raises:
            SourceFileError: the file is no right CSV, or a value is not of its type, with line, column and value.
            ColumnMismatch: its columns are not those of the sheet.
            DuplicateKey, ValueRefused: a key comes twice or is empty, or a `__row_id` was made up.
            UsageError: the file is not there, or too large.
        """
        if not path.is_file():
            raise UsageError(f"{path} is no file", safe="nothing was changed", path=str(path))
        if path.stat().st_size > self.limits.size_bytes:
            raise _too_large(self.dataset, f"{path.name} is larger than {self.limits.size_bytes:,} bytes")
        try:
            types = {column.name: str(column.type) for column in sheet_schema(self.rows.schema).columns}
            return self.edit(CsvFile(path, nested=True).read(types))
        except DataError as error:
            error.safe = error.safe or f"dataset {self.dataset} is unchanged"
            if "value" in error.fields and "line" in error.fields:
                error.next_step = "correct the value in that line"
            raise

    def edit(self, rows: object) -> Edit:
        """Return what other rows than those of the sheet would change.

        Args:
            rows: all rows as they are to be, in the sheet's columns; as `Dataset.write` takes them.

        Raises:
            DuplicateKey, ValueRefused, ColumnMismatch: as `read`.
        """
        schema = self.rows.schema
        seen = sheet_schema(schema)
        # Without its key: a missing one is refused by `difference`, which knows what the rows are matched by.
        stream = to_reader(rows, Schema(seen.columns), dataset=self.dataset)
        edited = Rows(bounded(stream, self.limits, self.dataset), schema)
        return difference(self.version, self.rows, edited, self.dataset)


class Editor:
    """Lets people edit one dataset.

    Args:
        tree, storage, database: of the workspace.
        dataset_id: which dataset.
        limits: how large it may be.
    """

    def __init__(
        self, tree: Tree, storage: Storage, database: Database, dataset_id: int, limits: Limits | None = None
    ) -> None:
        self._tree = tree
        self._storage = storage
        self._database = database
        self._id = dataset_id
        self._limits = limits or Limits()

    def limited(self, limits: Limits) -> Editor:
        """Return the same editor with other limits."""
        return Editor(self._tree, self._storage, self._database, self._id, limits)

    # Looking ---------------------------------------------------------------------------------------------------------

    def open(self, version: int | None = None) -> Sheet:
        """Return the rows to edit.

        Args:
            version: the one that was edited, for rows that were read earlier; None: the newest.

        Raises:
            UsageError: there are too many rows.
            UnknownVersion: there is no such version, or not any more.
            SchemaError: the dataset has a column `__op`, so that it takes no changes.
        """
        record = self._tree.by_id(self._id)
        if record.schema.primary_key:
            CHANGES.check(record.schema, record.name)
        at = record.head_version if version is None else version
        if at == record.head_version and record.row_count > self._limits.rows:
            raise _too_large(record.name, f"it has {record.row_count:,} rows, and {self._limits.rows:,} can be edited")
        return Sheet(record.name, at, Rows(self._table(record, at), record.schema), self._limits)

    def inverse(self, version: int | None = None) -> Edit:
        """Return the edit that takes an earlier one back.

        Args:
            version: the one that the edit made; None: the newest edit's.

        Raises:
            UnknownVersion: no edit made it, or it can't be read any more.
        """
        record = self._tree.by_id(self._id)
        edit = self._edit_of(record, version)
        request = ChangesRequest(edit.parent_version, edit.version, identity=True)
        found = bounded(self._storage.changes(record, request, reader=READER), self._limits, record.name)
        operations = found[OP].to_pylist()
        theirs = [row for row, operation in enumerate(operations) if operation in ("insert", "update")]
        ours = [row for row, operation in enumerate(operations) if operation in ("delete", "before")]
        base, former = (_as_sheet(found.take(pa.array(rows, pa.int64())), record.schema) for rows in (theirs, ours))
        if not record.schema.primary_key:
            # What comes back is a new row.
            former = former.set_column(0, ROW_ID, pa.nulls(len(former), pa.int64()))
        back = difference(edit.version, Rows(base, record.schema), Rows(former, record.schema), record.name)
        return back if record.schema.primary_key else without_equal(back)

    def _edit_of(self, record: DatasetRecord, version: int | None) -> Transaction:
        edits = History(self._database).transactions(
            {record.id: record.name}, dataset_id=record.id, status="committed", writer=WRITER, most=100_000
        )
        for edit in edits:
            if version in (None, edit.version):
                return edit
        raise UnknownVersion(
            f"dataset {record.name}: " + ("nobody edited it" if version is None else f"no edit made version {version}"),
            safe="nothing was changed",
            next_step=f"`lakeward dataset history {record.name}` shows the versions, and who wrote them",
            dataset=record.name,
            version=version,
        )

    def _table(self, record: DatasetRecord, version: int) -> pa.Table:
        """Return all rows of a version in the columns of the sheet, in the order in which they were written."""
        if version == 0:
            return arrow_schema(sheet_schema(record.schema)).empty_table()
        reader = self._storage.read(record, ReadRequest(version=version, identity=True), reader=READER)
        return _as_sheet(bounded(reader, self._limits, record.name).sort_by(ROW_INDEX), record.schema)

    # Writing ---------------------------------------------------------------------------------------------------------

    def apply(self, edit: Edit, author: str | None = None) -> WriteResult:
        """Write what an edit changes, as one version; nothing changed: no version.

        With a primary key it is a `changes` write. Without one, new rows are appended; where rows change or go, the
        dataset is replaced by its rows as they are now with the edit in them, and every row gets a new `__row_id`.

        Args:
            edit: of `Sheet.edit`, `Sheet.read` or `inverse`.
            author: who edited; None: the user of this process.

        Raises:
            ConflictError: somebody else changed a row that the edit changes, too; names them with both values. Nothing
                was written.
            ValueRefused: a value can't be stored. Nothing was written.
        """
        record = self._tree.by_id(self._id)
        if edit.empty:
            return WriteResult.nothing(record.name, CHANGES.name, record.head_version, record.row_count)
        verb = _verb_of(edit)

        def rows() -> pa.RecordBatchReader:
            # Called when the dataset's slot is ours, so that the head stays as it is until the edit is decided.
            head = self.check(edit)
            written = self._replaced(edit, head) if verb is REPLACE else _changes(edit)
            return to_reader(written, verb.input_schema(head.schema), dataset=head.name)

        output = Output(record, verb.name, rows, allow_empty=True, author=author or actor())
        return self._storage.build([output], writer=WRITER).transactions[0]

    def check(self, edit: Edit) -> DatasetRecord:
        """Refuse an edit of rows that somebody else changed since they were read; return the dataset as it is now.

        Raises:
            ConflictError: see `apply`.
        """
        head = self._tree.by_id(self._id)
        if head.head_version == edit.version:
            return head
        wanted = touched_keys(edit)
        now: dict[Texts, Texts] = {}
        for batch in self._batches(head):
            keys = cells(batch, matched_by(head.schema), head.schema)
            texts = cells(batch, head.schema.names, head.schema)
            now.update((key, row) for key, row in zip(keys, texts, strict=True) if key in wanted)
        found = conflicts(edit, now)
        if found:
            raise _conflict_error(edit, head, found)
        return head

    def _batches(self, head: DatasetRecord) -> Iterator[pa.RecordBatch]:
        if head.head_version:
            yield from self._storage.read(head, ReadRequest(version=head.head_version, identity=True), reader=READER)

    def _replaced(self, edit: Edit, head: DatasetRecord) -> pa.Table:
        """Return all rows of a dataset without a key as they are now, with an edit in them."""
        table = self._table(head, head.head_version)
        keys = cells(table, (ROW_ID,), head.schema)
        instead = {edit.base.keys[before]: len(table) + after for before, after in edit.changed}
        gone = {edit.base.keys[row] for row in edit.removed}
        both = pa.concat_tables([table, edit.edited.table])
        taken = [instead.get(key, row) for row, key in enumerate(keys) if key not in gone]
        taken += [len(table) + row for row in edit.added]
        return both.take(pa.array(taken, pa.int64())).select(head.schema.names)


def bounded(batches: pa.RecordBatchReader, limits: Limits, dataset: str) -> pa.Table:
    """Read a stream to its end, unless it is too large to be edited.

    Raises:
        UsageError: it is.
    """

    def within() -> Iterator[pa.RecordBatch]:
        rows = size = 0
        for batch in batches:
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows > limits.rows:
                raise _too_large(dataset, f"there are more than {limits.rows:,} rows")
            if size > limits.size_bytes:
                raise _too_large(dataset, f"the rows take more than {limits.size_bytes:,} bytes")
            yield batch

    return pa.Table.from_batches(list(within()), schema=batches.schema)


def _as_sheet(table: pa.Table, schema: Schema) -> pa.Table:
    """Return the columns of the sheet; `__row_id` may be null there, as it is in new rows."""
    wanted = arrow_schema(sheet_schema(schema))
    return table.select(wanted.names).cast(wanted)


def _verb_of(edit: Edit) -> Verb:
    if edit.base.schema.primary_key:
        return CHANGES
    return REPLACE if edit.changed or edit.removed else APPEND


def _changes(edit: Edit) -> pa.Table:
    """Return the rows that are written, but for a replace; for a dataset with a key, `__op` says what is to be done."""
    names = edit.base.schema.names
    written = edit.edited.take([*edit.added, *(after for _, after in edit.changed)]).table.select(names)
    if not edit.base.schema.primary_key:
        return written
    operations = ["insert"] * len(edit.added) + ["update"] * len(edit.changed) + ["delete"] * len(edit.removed)
    both = pa.concat_tables([written, edit.base.take(edit.removed).table.select(names)])
    return both.append_column(OP, pa.array(operations, pa.string()))


def _too_large(dataset: str, why: str) -> UsageError:
    return UsageError(
        f"dataset {dataset} is too large to be edited by hand: {why}",
        safe="nothing was changed",
        next_step="raise the limit (--max-rows, --max-mb), or import the rows that change: `lakeward dataset import "
        f"{dataset} FILE --mode upsert`",
        dataset=dataset,
    )


def _conflict_error(edit: Edit, head: DatasetRecord, found: list[Conflict]) -> ConflictError:
    shown = "; ".join(map(str, found[:SHOWN_CONFLICTS]))
    more = f"; and {len(found) - SHOWN_CONFLICTS:,} more" if len(found) > SHOWN_CONFLICTS else ""
    rows = "1 row that this would change was" if len(found) == 1 else f"{len(found):,} rows that this would change were"
    return ConflictError(
        f"dataset {head.name}: {rows} changed by somebody else since version {edit.version}: {shown}{more}",
        safe=f"nothing was written; the dataset is at version {head.head_version}",
        next_step="look at the rows as they are now, and edit those",
        dataset=head.name,
        version=edit.version,
        head_version=head.head_version,
        conflicts=[_plain(each) for each in found],
    )


def _plain(conflict: Conflict) -> Mapping[str, object]:
    return dict(vars(conflict))
