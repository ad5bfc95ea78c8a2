"""The handle of one dataset, which the public API returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakeward.control.history import History
from lakeward.control.records import Transaction
from lakeward.control.tree import DatasetRecord
from lakeward.storage.foreign import ForeignState, Restored
from lakeward.storage.parity import Parity
from lakeward.storage.requests import ChangesRequest, ReadRequest, WriteResult
from lakeward.types.digest import Digest
from lakeward.types.schema import Schema
from lakeward.wiring.actor import actor
from lakeward.wiring.counted_batches import Progress as FileProgress
from lakeward.wiring.editing import Editor
from lakeward.wiring.exporting import ExportResult
from lakeward.wiring.judged_dataset import JudgedDataset
from lakeward.wiring.overview import DatasetStatus, dataset_status
from lakeward.wiring.rooms import Rooms


class Dataset(JudgedDataset):
    """One dataset of an open workspace, wherever its rows are. Its properties are those of this moment."""

    def __init__(self, rooms: Rooms, record: DatasetRecord) -> None:
        self._rooms = rooms
        self._id = record.id
        # What never changes of it is enough for the storage layer, which looks at the rest when it needs it.
        self._known = record
        self.name = record.name

    @property
    def record(self) -> DatasetRecord:
        """What the control plane knows of it now."""
        return self._rooms.tree.by_id(self._id)

    @property
    def schema(self) -> Schema:
        """Its columns and key."""
        return self.record.schema

    @property
    def arm(self) -> str:
        """The arm that serves it."""
        return self.record.arm

    @property
    def version(self) -> int:
        """Its newest committed version; 0 before the first."""
        return self.record.head_version

    @property
    def row_count(self) -> int:
        """The number of rows at the newest version, from the ledger."""
        return self.record.row_count

    def write(
        self, rows: object, mode: str = "append", allow_empty: bool = False, idempotency_key: str | None = None
    ) -> WriteResult:
        """Write rows, atomically: all of them become visible at once, or none.

        Args:
            rows: an Arrow table, batch or reader, a DuckDB relation or anything else that exports an Arrow stream, or
                an iterable of dicts. Columns are matched by name; values are converted only without loss.
            mode: `append` or `replace`, which look at no key; or by the primary key: `append_new` (rows whose key is
                not there), `upsert` (update those that differ, add the others), `mirror` (as `upsert`, and delete the
                rows that are not among these), `changes` (each row says by its column `__op` whether it is an `insert`,
                `update` or `delete`) and `delete` (the key columns of rows that are to go).
            allow_empty: lets `replace` and `mirror` take zero rows. Otherwise no rows: nothing is committed.
            idempotency_key: names the request, by 1 to 200 characters. Where it is repeated with its key, within
                `ledger.idempotency_days`, nothing is written: it gets the result of the first one, with `repeated`.

        Returns:
            The version and the counts of rows; `rows_in = added + updated + unchanged + skipped`, for `changes` and
            `delete` `+ deleted`. A keyed write that changes no row commits nothing.

        Raises:
            DuplicateKey: a key comes twice in the rows, or the dataset holds one of them twice. Nothing was written.
            ValueRefused: a value can't be stored without loss; names its row, column and key. Nothing was written.
            ColumnMismatch: the columns are not the dataset's. Nothing was written.
            ConflictError: somebody else holds or changed the dataset. Nothing was written.
            KeyReused: the key came with another mode or other rows before. Nothing was written.

        Example:
            >>> orders.write([{"id": 1, "note": "first"}, {"id": 2, "note": None}]).row_count
            2
            >>> orders.write([{"id": 2, "note": "second"}, {"id": 3, "note": None}], mode="upsert").rows_updated
            1
        """
        return self._rooms.storage.write(
            self._known,
            rows,
            verb=mode,
            writer="ingest.api",
            allow_empty=allow_empty,
            idempotency_key=idempotency_key,
        )

    def read(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        version: int | None = None,
        since: int | None = None,
        identity: bool = False,
        arm: str | None = None,
    ) -> pa.RecordBatchReader:
        """Stream rows, in no particular order.

        Args:
            columns: which columns; None: all.
            where: a SQL predicate over the row's columns.
            version: the dataset as it was at this version; None: the newest when this is called.
            since: only rows that were written (added or updated) after this version; 0: all. Rows that were deleted
                since are not told of: `changes` does.
            identity: add `__row_index`, `__row_id`, `__created_at` and `__version`.
            arm: read from this arm, which must hold the version; None: the one that serves.

        Raises:
            SqlError: `where` is not a predicate over the columns.
            UsageError: `since` is negative, or later than `version`.
            UnknownVersion, ArmNotCurrent, SchemaError: see there.
        """
        chosen = tuple(columns) if columns is not None else None
        request = ReadRequest(chosen, where, version, since, identity, arm)
        return self._rooms.storage.read(self._known, request)

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        version: int | None = None,
        since: int | None = None,
        identity: bool = False,
        arm: str | None = None,
    ) -> pa.Table:
        """Return rows as one table in memory; the arguments are those of `read`.

        Example:
            >>> orders.to_arrow(columns=["id"], where="note is not null").to_pylist()
            [{'id': 1}]
        """
        return self.read(columns, where, version, since, identity, arm).read_all()

    def changes(
        self,
        since: int,
        version: int | None = None,
        columns: Sequence[str] | None = None,
        before: bool = True,
        identity: bool = False,
        arm: str | None = None,
    ) -> pa.RecordBatchReader:
        """Stream what changed between two versions, in no particular order.

        It is the net change, row by row as told apart by `__row_id`, whatever happened in between. The first column,
        `__op`, says what became of the row: `insert`, `update` (its new image), `before` (its old one), or `delete`
        (its last image). A replaced dataset has other rows: all of the old ones are deleted, all of the new ones
        inserted.

        With `before=False` it is what `write(mode="changes")` of another dataset takes. There each key may come once,
        so rows of a dataset with a primary key are then told apart by that: a replaced dataset's rows are updates of
        those that had the same key.

        Args:
            since: the older version; 0: before the first, so that every row is inserted.
            version: the newer one; None: the newest when this is called.
            columns: which columns; None: all.
            before: also the old image of each row that was updated.
            identity: add the identity columns, by which `before` and `update` of one row are found.
            arm: read from this arm, which must hold both versions; None: from one that does, or else from two.

        Raises:
            UnknownVersion: one of the versions is not there, or not any more.
            UsageError: `since` is negative, or later than `version`.
            ArmNotCurrent, SchemaError: see there.

        Example:
            >>> orders.changes(since=1).read_all().to_pylist()
            [{'__op': 'insert', 'id': 3, 'note': 'third'}]
        """
        chosen = tuple(columns) if columns is not None else None
        request = ChangesRequest(since, version, chosen, before, identity, arm)
        return self._rooms.storage.changes(self._known, request)

    def preview(
        self,
        rows: int = 10,
        where: str | None = None,
        version: int | None = None,
        identity: bool = False,
        since: int | None = None,
        columns: Sequence[str] | None = None,
        after: int | None = None,
    ) -> pa.Table:
        """Return the first rows in the order in which they were written; the other arguments are those of `read`.

        Args:
            rows: how many at most.
            where, version, identity, since, columns: as in `read`.
            after: only rows behind this `__row_index`: that of the last row of the page before.
        """
        chosen = tuple(columns) if columns is not None else None
        request = ReadRequest(chosen, where, version, since, identity, after=after)
        return self._rooms.storage.first_rows(self._known, rows, request)

    def digest(self, arm: str | None = None, version: int | None = None) -> Digest:
        """Compute the order-independent checksum of a version from the rows of an arm (None: the one that serves)."""
        return self._rooms.storage.digest(self._known, arm=arm, version=version)

    def verify(self) -> Parity:
        """Compare the digests of every arm that holds the newest version.

        Raises:
            ParityMismatch: they differ.
        """
        return self._rooms.storage.verify(self._known)

    def foreign(self, survey: bool = False) -> ForeignState | None:
        """Say what another engine did to its Iceberg table since our newest version; None: nothing. Changes nothing.

        Args:
            survey: also compare the other engine's rows with ours, which reads both.
        """
        return self._rooms.foreign.look(self.record, survey=survey)

    def adopt(self, renumber: bool = False, snapshot: int | None = None) -> WriteResult:
        """Take the rows that another engine left in its Iceberg table as a new version.

        If the other engine did nothing, nothing happens.

        Args:
            renumber: give rows without a sound `__row_id` a fresh one, and changed rows the new `__version`.
            snapshot: only if the table is still at this snapshot, as `foreign` showed it; None: wherever it is.

        Returns:
            The version and the counts of rows, compared with ours by `__row_id`.

        Raises:
            DataError: identity columns that are null, repeated or were never given, without `renumber`; other columns.
            UsageError: another arm serves the dataset: its Iceberg table is a copy, which can only be restored.
            ConflictError: the table has moved on from `snapshot`, or somebody else writes.
        """
        return self._rooms.foreign.adopt(self.record, actor=actor(), renumber=renumber, snapshot=snapshot)

    def restore(self, snapshot: int | None = None) -> Restored:
        """Set its Iceberg table back to our newest version, after another engine wrote to it.

        The other engine's snapshot stays in the table, under a tag `foreign-<its id>`. If it did nothing, nothing
        happens.

        Args:
            snapshot: only if the table is still at this snapshot, as `foreign` showed it; None: wherever it is.

        Raises:
            ConflictError: the table has moved on from `snapshot`, or somebody writes.
            Diverged: our snapshot is not in the table any more, or the other engine committed once more.
        """
        return self._rooms.foreign.restore(self.record, actor=actor(), snapshot=snapshot)

    def copy_to(self, arm: str, progress: Callable[[int], None] | None = None) -> WriteResult:
        """Bring the newest version to another arm, verified before it is visible; the serving arm stays the same.

        Args:
            arm: `postgres` or `iceberg`.
            progress: is told how many rows were read so far.
        """
        return self._rooms.storage.copy(self._known, arm, progress=progress)

    def locate(self) -> dict[str, dict[str, str]]:
        """Say, for each arm that holds the newest version, where its rows physically are."""
        return self._rooms.storage.locate(self._known)

    def export(
        self,
        path: str | Path,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        version: int | None = None,
        since: int | None = None,
        overwrite: bool = False,
        options: Mapping[str, Any] | None = None,
        progress: FileProgress | None = None,
    ) -> ExportResult:
        """Write rows to a `.csv` or `.parquet` file, which appears when it is complete.

        Args:
            path: where; a file that is there is refused, unless `overwrite`.
            columns, where, version, since: which rows, as in `read`.
            overwrite: replace a file that is there.
            options: for CSV: `delimiter`, `quote`, `header`, `null_markers`, `encoding`.
            progress: is told the rows so far.

        Raises:
            UsageError: the file is there, can't be written, or its suffix is unknown.
            SchemaError, ValueRefused: the format can't hold a type or value.
        """
        chosen = tuple(columns) if columns is not None else None
        return self._rooms.exporting.export(
            self.record,
            Path(path),
            ReadRequest(chosen, where, version, since),
            overwrite=overwrite,
            options=options,
            progress=progress,
        )

    def keep(self, version: int | None = None) -> int:
        """Keep a version readable until it is let go, however many newer ones there will be.

        Args:
            version: which one; None: the newest.

        Returns:
            The version.

        Raises:
            UnknownVersion: it is not readable.
        """
        chosen = self.version if version is None else version
        self._rooms.retention.keep(self._id, self.name, chosen, actor(), self._known.slugs)
        return chosen

    def let_go(self, version: int) -> None:
        """Leave a version that was kept to the retention policy again."""
        self._rooms.retention.let_go(self._id, self.name, version, actor(), self._known.slugs)

    def kept(self) -> list[int]:
        """Return the versions that are kept on request."""
        return self._rooms.retention.kept(self._id)

    def status(self) -> DatasetStatus:
        """Return where it is: its arm, every arm that holds its newest version, and whether another engine moved it."""
        record = self.record
        return dataset_status(record, self._rooms.replication, self._rooms.places.of(record.id))

    def history(self, most: int = 100, idle: bool = True, before: int | None = None) -> list[Transaction]:
        """Return its transactions, newest first.

        Args:
            most: at most so many.
            idle: also those that ended because there was nothing to write.
            before: the `id` of one: only what comes behind it.
        """
        past, names = History(self._rooms.database), {self._id: self.name}
        return past.transactions(names, dataset_id=self._id, idle=idle, before=before, most=most)

    @property
    def editor(self) -> Editor:
        """What people edit its rows with.

        Example:
            >>> sheet = orders.editor.open()
            >>> edit = sheet.edit(sheet.rows.table)
            >>> orders.editor.apply(edit, author="anna").committed
            False
        """
        return Editor(self._rooms.tree, self._rooms.storage, self._rooms.database, self._id)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r})"
