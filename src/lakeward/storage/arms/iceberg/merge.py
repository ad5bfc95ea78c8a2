"""Keyed writes: the rows of a batch are matched with a snapshot's by key, as sets; what changes is one snapshot.

Nothing is rewritten: rows that change or go are marked in position delete files, one for each data file that has any,
and rows that come are in new data files ("merge on read"). So the cost follows the batch, and the key columns of the
files that can hold its keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg.table import FileScanTask, Table

from lakeward.clock import Faults
from lakeward.control.records import Counts
from lakeward.storage.arm import Delta, NothingToWrite, WriteTask
from lakeward.storage.arms.iceberg.comparing import PIECE_ROWS, Part, differs, part_rows, parts_of, told_apart
from lakeward.storage.arms.iceberg.deletes import FILE_SHIFT, DeleteWriter
from lakeward.storage.arms.iceberg.files import RollingWriter
from lakeward.storage.arms.iceberg.marks import Marks
from lakeward.storage.arms.iceberg.producers import RowDelta
from lakeward.storage.arms.iceberg.pruning import files_with_keys
from lakeward.storage.arms.iceberg.scans import DELETED_ROWS, FileScan, all_rows, files_of, live_rows
from lakeward.storage.arms.iceberg.trouble import catalog_errors
from lakeward.storage.duck import PULL_ROWS, given, joined, memory_limit
from lakeward.storage.identity import IdentityCounter, with_identity
from lakeward.storage.staged_batch import BATCH, StagedBatch, alias, aliased, key_columns, same_key
from lakeward.storage.verbs import Verb
from lakeward.types.digest import Digest, duckdb_digest_sql, row_hash_duckdb
from lakeward.types.schema import CREATED_AT, ROW_ID, ROW_INDEX, Column
from lakeward.types.table import arrow_schema

MATCH = "matched"
"""Each row of the snapshot that the batch is about: `position` in the batch (null: the batch does not name the row),
`removes` (it is to be deleted), `file` and `row`."""

CHANGED = "changed"
"""The same of each row that was read, less those that stay as they are; with its identity, and its hash before and
after, if hashes are wanted."""

_IDENTITY = (ROW_INDEX, ROW_ID, CREATED_AT)
_COMPARED = "compared"


@dataclass(frozen=True)
class Merged:
    """What a keyed write comes to.

    Args:
        change: its snapshot.
        counts: of the version.
        delta: what it does to the digest; None: not computed.
        next_row_id, next_row_index: what the next row gets.
    """

    change: RowDelta
    counts: Counts
    delta: Delta | None
    next_row_id: int
    next_row_index: int


class Merge:
    """One keyed write to one snapshot.

    Args:
        connection: where the batch is; all of the work happens there.
        staged: the batch.
        task: the write.
        verb: what it does with a row.
        loaded: the table.
        parent: the snapshot that is matched, on which the new one goes on.
        target_bytes: a data file is closed at this size.
        faults: called between the steps.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        staged: StagedBatch,
        task: WriteTask,
        verb: Verb,
        loaded: Table,
        parent: int,
        target_bytes: int,
        faults: Faults,
    ) -> None:
        self._connection = connection
        self._staged = staged
        self._task = task
        self._schema = task.table.schema
        self._verb = verb
        self._loaded = loaded
        self._parent = parent
        self._target_bytes = target_bytes
        self._faults = faults
        self._what = f"dataset {task.table.name}"
        transaction = task.transaction
        # Without the parent's digest, nothing could be done with the rows' hashes.
        self._hashes = transaction.parent_digest is not None or not transaction.parent_row_count
        self._tasks: tuple[FileScanTask, ...] = ()
        self._dead: npt.NDArray[np.int64] = np.empty(0, np.int64)

    def run(self) -> Merged | NothingToWrite:
        """Match, compare, and write files; what is returned has to be committed.

        Raises:
            DuplicateKey: the dataset holds a key of the batch more than once; nothing was written.
        """
        with catalog_errors(self._what):
            self._match()
        self._staged.refuse_ambiguous(
            f"SELECT position FROM {MATCH} WHERE position IS NOT NULL GROUP BY position HAVING count(*) > 1"
        )
        self._task.check()
        self._compare()
        counts = self._counts()
        if not (counts.added or counts.updated or counts.deleted):
            return NothingToWrite(counts.unchanged, counts.skipped)
        self._task.check()
        delta = self._delta(counts) if self._hashes else None
        transaction = self._task.transaction
        counter = IdentityCounter(
            transaction.next_row_index, transaction.next_row_id, transaction.opened_at, transaction.version
        )
        change = self._write(counts, counter)
        return Merged(change, counts, delta, counter.row_id, counter.row_index)

    # Which rows -----------------------------------------------------------------------------------------------------

    def _match(self) -> None:
        """Find the rows of the snapshot that have a key of the batch, reading key columns only."""
        _, tasks = files_of(self._loaded, self._parent)
        keys = key_columns(self._schema)
        if not self._verb.clears:
            tasks = files_with_keys(self._connection, self._loaded.schema(), tasks, keys)
        if not tasks:
            self._execute(
                f"CREATE OR REPLACE TEMP TABLE {MATCH} (position BIGINT, removes BOOLEAN, file BIGINT, row BIGINT)"
            )
            return
        live = live_rows(self._loaded, tasks, aliased(self._schema), {alias(key) for key in keys}, places=True)
        self._tasks = live.tasks
        if live.tables:
            self._dead = live.tables[DELETED_ROWS]["place"].to_numpy()
        join = "LEFT JOIN" if self._verb.clears else "JOIN"
        self._execute(
            f"CREATE OR REPLACE TEMP TABLE {MATCH} AS "
            f"SELECT b.position, coalesce(b.removes, true) AS removes, t.file, t.row FROM ({live.sql}) AS t "
            f"{join} {BATCH} AS b ON {same_key(self._schema, 't', 'b')}",
            live,
        )

    def _compare(self) -> None:
        """Read the matched rows in full, from the files that have any, where it has to be known what is in them."""
        self._execute(
            f"CREATE OR REPLACE TEMP TABLE {CHANGED} (position BIGINT, file BIGINT, row BIGINT, removes BOOLEAN, "
            f"{ROW_INDEX} BIGINT, {ROW_ID} BIGINT, {CREATED_AT} TIMESTAMPTZ, old_hash UHUGEINT, new_hash UHUGEINT)"
        )
        # What is deleted is read for its hash only, what is skipped not at all.
        wanted = "NOT removes" if self._verb.updates else "false"
        if self._hashes and (self._verb.updates or self._verb.removes):
            wanted = "true"
        pieces = self._all(
            f"SELECT file, row // {PIECE_ROWS}, count(*) FROM {MATCH} WHERE {wanted} GROUP BY ALL ORDER BY ALL"
        )
        parts = parts_of(pieces, part_rows(memory_limit(self._connection), self._staged.rows, self._staged.bytes))
        first: Sequence[Column] = self._schema.columns
        rest: Sequence[Column] = ()
        if self._verb.updates and not self._hashes:
            read = sorted({number for part in parts for number in part.files})
            first, rest = told_apart(self._schema, [self._tasks[number] for number in read])
        for part in parts:
            self._task.check()
            self._compare_part(part, wanted, first, rest)

    def _compare_part(self, part: Part, wanted: str, first: Sequence[Column], rest: Sequence[Column]) -> None:
        """Add those rows of a part that differ to `CHANGED`: by the first columns, or else by the rest."""
        tasks = [self._tasks[number] for number in part.files]
        places = ", ".join(f"({number}, {place})" for place, number in enumerate(part.files))
        rows = (
            f"(SELECT m.*, p.place FROM {MATCH} AS m JOIN (VALUES {places}) AS p(file, place) ON p.file = m.file "
            f"WHERE {wanted} AND ((m.file << {FILE_SHIFT}) | m.row) BETWEEN {part.low} AND {part.high})"
        )
        held = f"position, file, row, removes, {', '.join(_IDENTITY)}, old_hash, new_hash"
        self._execute(
            f"CREATE OR REPLACE TEMP TABLE {_COMPARED} AS SELECT * FROM ({self._with_columns(rows, tasks, first)}) "
            f"WHERE {'true' if rest else 'differs'}"
        )
        sql = f"INSERT INTO {CHANGED} SELECT {held} FROM {_COMPARED} WHERE differs"
        if rest:
            # Most rows that change are told by a few columns. Only what those say nothing of is read on.
            files = all_rows(self._loaded, tasks, aliased(self._schema), {alias(each) for each in rest}, places=True)
            sql += (
                f" UNION ALL SELECT {', '.join(f'm.{name.strip()}' for name in held.split(','))} "
                f"FROM ({files.sql}) AS t JOIN {_COMPARED} AS m ON m.place = t.file AND m.row = t.row "
                f"JOIN {BATCH} AS b ON b.position = m.position WHERE NOT m.differs AND {differs(rest, 't.', 'b.')}"
            )
        self._execute(sql)

    def _with_columns(self, rows: str, tasks: Sequence[FileScanTask], columns: Sequence[Column]) -> str:
        """Return the query of matched rows: whether they differ in some columns, with their identity and hashes."""
        wanted = {alias(column) for column in columns}
        files = all_rows(self._loaded, tasks, aliased(self._schema), {*wanted, *_IDENTITY}, places=True)
        pairs = [f"t.{name} AS old_{name}" for name in sorted(wanted)]
        batch = ""
        if self._verb.updates:
            pairs += [f"b.{name} AS new_{name}" for name in sorted(wanted)]
            batch = f"LEFT JOIN {BATCH} AS b ON b.position = m.position"
        told = f"removes OR {differs(columns, 'old_', 'new_')}" if self._verb.updates else "true"
        hashes = "NULL::UHUGEINT AS old_hash, NULL::UHUGEINT AS new_hash"
        if self._hashes:
            new = "NULL::UHUGEINT"
            if self._verb.updates:
                new = f"CASE WHEN differs AND NOT removes THEN {row_hash_duckdb(aliased(self._schema, 'new'))} END"
            old = f"CASE WHEN differs THEN {row_hash_duckdb(aliased(self._schema, 'old'))} END"
            hashes = f"{old} AS old_hash, {new} AS new_hash"
        identity = ", ".join(f"t.{name}" for name in _IDENTITY)
        return (
            f"SELECT position, file, row, place, removes, differs, {', '.join(_IDENTITY)}, {hashes} FROM ("
            f"SELECT *, {told} AS differs FROM ("
            f"SELECT m.position, m.file, m.row, m.place, m.removes, {identity}, {', '.join(pairs)} "
            f"FROM ({files.sql}) AS t JOIN {rows} AS m ON m.place = t.file AND m.row = t.row {batch}))"
        )

    def _counts(self) -> Counts:
        ((matched, absent, removed),) = self._all(
            "SELECT count(position), count(*) - count(position), count(*) FILTER (removes AND position IS NOT NULL) "
            f"FROM {MATCH}"
        )
        ((updated,),) = self._all(f"SELECT count(*) FROM {CHANGED} WHERE NOT removes")
        rows, removing, kept = self._staged.rows, self._staged.removing, matched - removed
        added = rows - removing - kept
        unchanged = kept - updated if self._verb.updates else 0
        deleted = removed + absent
        return Counts(
            rows_in=rows,
            added=added,
            updated=updated,
            unchanged=unchanged,
            deleted=deleted,
            skipped=(removing - removed) + (0 if self._verb.updates else kept),
            row_count=self._task.transaction.parent_row_count + added - deleted,
        )

    def _delta(self, counts: Counts) -> Delta:
        removed = self._sums("old_hash", CHANGED)
        added = self._sums("new_hash", f"{CHANGED} WHERE NOT removes")
        if counts.added:
            query = duckdb_digest_sql(aliased(self._schema), self._added("b.*"))
            added += Digest.of_row(self._all(query)[0])
        return Delta(added, removed)

    def _sums(self, column: str, rows: str) -> Digest:
        (row,) = self._all(
            f"SELECT count(*), coalesce(sum(CAST({column} >> 64 AS UBIGINT)), 0), "
            f"coalesce(sum(CAST({column} & 18446744073709551615::UHUGEINT AS UBIGINT)), 0) FROM {rows}"
        )
        return Digest.of_row(row)

    def _added(self, columns: str) -> str:
        """Return the query of the batch's rows that are added."""
        return (
            f"SELECT {columns} FROM {BATCH} AS b ANTI JOIN (SELECT position FROM {MATCH} WHERE position IS NOT NULL) "
            "AS m ON m.position = b.position WHERE NOT b.removes"
        )

    # Files ----------------------------------------------------------------------------------------------------------

    def _write(self, counts: Counts, counter: IdentityCounter) -> RowDelta:
        prefix = f"{self._task.transaction.version:08d}"
        writer = RollingWriter(self._loaded, prefix, self._target_bytes, self._what, self._schema)
        deletes = DeleteWriter(self._loaded, prefix, self._what)
        try:
            if counts.added or counts.updated:
                writer.write_all(self._new_rows(counts, counter), self._task.check)
            self._faults.at("prepare:files")
            removed: set[str] = set()
            if counts.updated or counts.deleted:
                removed = Marks(self._connection, self._tasks, self._dead).write(
                    self._doomed(), deletes, self._task.check
                )
            self._faults.at("prepare:deletes")
        except BaseException:
            writer.delete()
            deletes.delete()
            raise
        return RowDelta(self._parent, tuple(writer.files), tuple(deletes.files), frozenset(removed))

    def _new_rows(self, counts: Counts, counter: IdentityCounter) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the new data files: those that are updated, then those that are added, in their order."""
        business = arrow_schema(self._schema)
        columns = ", ".join(f"b.{alias(column)}" for column in self._schema.columns)
        if counts.updated:
            identity = ", ".join(f"m.{name}" for name in _IDENTITY)
            yield from self._stream(
                f"SELECT {columns}, {identity}, CAST({self._task.transaction.version:d} AS BIGINT) "
                f"FROM {BATCH} AS b JOIN {CHANGED} AS m ON b.position = m.position WHERE NOT m.removes",
                with_identity(business),
            )
        if counts.added:
            added = f"{self._added(columns)} ORDER BY b.position"
            yield from (counter.number(batch) for batch in self._stream(added, business))

    def _stream(self, sql: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        # `sql` and not `execute`: the latter would materialise the result before its first batch.
        return joined(self._connection.sql(sql).to_arrow_reader(PULL_ROWS), schema)

    def _doomed(self) -> str:
        """Return the query of the rows that are marked: `file` and `row`."""
        doomed = f"SELECT file, row FROM {CHANGED}"
        return doomed if self._hashes else f"{doomed} UNION ALL SELECT file, row FROM {MATCH} WHERE removes"

    # DuckDB ---------------------------------------------------------------------------------------------------------

    def _execute(self, sql: str, reads: FileScan | None = None) -> None:
        with given(self._connection, reads.tables if reads is not None else {}):
            self._connection.execute(sql).fetchall()

    def _all(self, sql: str) -> list[tuple[int, ...]]:
        return self._connection.execute(sql).fetchall()
