"""Keyed writes of the Postgres arm: one transaction of set-wise statements, whatever the number of rows.

The input is copied into a temporary table beside its documents' hashes and key numbers. A join by key number, confirmed
on the key's values, says what becomes of each row; then the rows that go get `until = version` and the new ones are
inserted. Nobody else sees anything of it before the decision, and a process that dies leaves nothing behind.

A stored row is read only if its key is in the input, and hashed as the digest hashes it: that says whether it differs,
and what the digest loses. Refused: a comparison of the documents before it, which does not even save time, and has
another opinion of -0.0 and 0.0; and a stored hash, which every row written would pay for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
from psycopg import sql

from lakeward.clock import Faults
from lakeward.control.db import Database, Queries
from lakeward.control.ledger import Ledger
from lakeward.control.records import Counts
from lakeward.errors import StorageError
from lakeward.storage.arm import Delta, NothingToWrite, Prepared, WriteTask
from lakeward.storage.arms.postgres.copy import copy_rows
from lakeward.storage.duck import PULL_ROWS, Duck, given, joined
from lakeward.storage.filters import quote_identifier
from lakeward.storage.pump import prefetched
from lakeward.storage.staged_batch import BATCH, StagedBatch, alias, aliased, key_columns
from lakeward.storage.verbs import VERBS, Verb
from lakeward.types.digest import Digest, postgres_digest_sql, postgres_row_hash, row_text_duckdb
from lakeward.types.jsonb import encode_sql
from lakeward.types.key_number import key_number_duckdb, key_number_postgres
from lakeward.types.quoting import postgres_text
from lakeward.types.schema import Schema

QUERIES = Queries.beside(__file__)

FILL_ROWS = 20_000
"""So many rows get their key number in one transaction."""

_STAGED = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("removes", pa.bool_(), nullable=False),
        pa.field("key", pa.int64(), nullable=False),
        pa.field("hash", pa.string()),
        pa.field("data", pa.string(), nullable=False),
    ]
)

# The quoted offset keeps the lookup a lookup: one by index for each row of the input, and the condition on `until` lets
# it be that of the keys only. What is known of the table's columns is of all datasets together and often old, and would
# have the planner read a dataset for a few rows.
_PLAN = sql.SQL(
    "CREATE TEMPORARY TABLE lakeward_plan ON COMMIT DROP AS "
    "SELECT staged.position, CASE WHEN held.place IS NULL THEN CASE WHEN staged.removes THEN 'skip' ELSE 'add' END "
    "WHEN staged.removes THEN 'delete' WHEN NOT {updates} THEN 'skip' "
    "WHEN held.hash = staged.hash THEN 'keep' ELSE 'update' END AS action, "
    "held.place, held.row_id, held.row_index, held.created_at, held.hash AS old_hash, staged.hash AS new_hash "
    "FROM pg_temp.lakeward_staged AS staged LEFT JOIN LATERAL ("
    "SELECT stored.ctid AS place, stored.row_id, stored.row_index, stored.created_at, "
    "{hash} AS hash "
    "FROM lakeward.dataset_rows AS stored "
    "WHERE stored.dataset_id = {dataset_id} AND stored.key = staged.key AND coalesce(stored.until, 0) = 0 "
    "AND stored.version BETWEEN {base} AND {parent} AND {same_key} OFFSET '0') AS held ON true"
)
_CLEAR = sql.SQL(
    "WITH gone AS (UPDATE lakeward.dataset_rows AS stored SET until = {version} "
    "WHERE stored.dataset_id = {dataset_id} AND stored.version BETWEEN {base} AND {parent} AND stored.until IS NULL "
    "AND NOT EXISTS (SELECT 1 FROM pg_temp.lakeward_plan AS plan WHERE plan.row_id = stored.row_id) RETURNING data) "
)
_FILL = sql.SQL(
    "UPDATE lakeward.dataset_rows SET key = {key} WHERE ctid = ANY (ARRAY("
    "SELECT ctid FROM lakeward.dataset_rows WHERE dataset_id = {dataset_id} AND key IS NULL AND until IS NULL "
    "AND version BETWEEN {base} AND {parent} LIMIT {rows}))"
)


class RowMerge:
    """Does the keyed verbs.

    Args:
        database: where the rows are.
        duck: checks the input and makes documents of it.
        faults: called as `prepare:copy` within the transaction and as `prepare:chunk` after it.
    """

    def __init__(self, database: Database, duck: Duck, faults: Faults) -> None:
        self._database = database
        self._duck = duck
        self._faults = faults

    def prepare(self, task: WriteTask, batches: pa.RecordBatchReader) -> Prepared | NothingToWrite:
        """Match the input with the rows of the parent version, and write what differs under the new one."""
        verb = VERBS[task.transaction.verb]
        with self._duck.session() as connection:
            staged = StagedBatch(connection, task.table, verb)
            staged.load(batches)
            while True:
                with self._database.driver() as driver:
                    merge = _Merge(task, verb, staged, connection, driver)
                    with driver.transaction() as transaction:
                        Ledger.hold(driver, task.transaction)
                        numbered = not merge.unnumbered()
                        if numbered:
                            prepared = merge.run(self._faults)
                            if isinstance(prepared, NothingToWrite):
                                raise psycopg.Rollback(transaction)
                if numbered:
                    break
                self._fill(task)
        self._faults.at("prepare:chunk")
        return prepared

    def _fill(self, task: WriteTask) -> None:
        """Give rows that were written before there were key numbers theirs; each chunk stays, whatever comes next."""
        schema = task.table.schema
        number = key_number_postgres(key_columns(schema), sql.Identifier("data"))
        statement = _FILL.format(key=number, rows=sql.Literal(FILL_ROWS), **_parent(task))
        filled = FILL_ROWS
        while filled == FILL_ROWS:
            task.check()
            with self._database.driver() as driver, driver.transaction():
                Ledger.hold(driver, task.transaction)
                filled = driver.execute(statement).rowcount
                if filled < FILL_ROWS:
                    driver.execute(QUERIES.for_driver("numbered"), {"dataset_id": task.table.dataset_id})


class _Merge:
    """One keyed write within its transaction."""

    def __init__(
        self,
        task: WriteTask,
        verb: Verb,
        staged: StagedBatch,
        duck: duckdb.DuckDBPyConnection,
        driver: psycopg.Connection[Any],
    ) -> None:
        self._task = task
        self._transaction = task.transaction
        self._verb = verb
        self._staged = staged
        self._duck = duck
        self._driver = driver
        # Without the parent's digest nobody can make use of what was removed.
        self._counts_removed = task.transaction.parent_digest is not None

    def unnumbered(self) -> bool:
        """Say whether rows of the parent version may have no key number yet."""
        held = _range(self._task)
        row = self._run("unnumbered", dataset_id=held["dataset_id"], base=held["base"]).fetchone()
        assert row is not None
        return bool(row[0])

    def run(self, faults: Faults) -> Prepared | NothingToWrite:
        """Do it all, or find that there is nothing to do."""
        self._run("begin")
        self._run("stage")
        with prefetched(self._documents()) as documents:
            table = sql.SQL("pg_temp.lakeward_staged")
            copy_rows(self._driver, table, _STAGED, documents, lambda: faults.at("prepare:copy"))
        self._driver.execute(self._plan())
        row = self._run("outcome").fetchone()
        assert row is not None
        planned, added, updated, unchanged, deleted, skipped = row[:6]
        if planned != self._staged.rows:
            self._refuse_ambiguous()
        new = Digest.of_row((added + updated, *row[6:8]))
        old = Digest.of_row((updated + deleted, *row[8:10]))
        if updated or deleted:
            self._mark(updated + deleted)
        if self._verb.clears:
            cleared = self._clear()
            deleted += cleared.count
            old += cleared
        if added or updated:
            self._insert(added + updated)
        if not added and not updated and not deleted:
            return NothingToWrite(unchanged, skipped)
        transaction = self._transaction
        rows = transaction.parent_row_count + added - deleted
        knows = self._counts_removed or not transaction.parent_row_count
        return Prepared(
            counts=Counts(self._staged.rows, added, updated, unchanged, deleted, skipped, rows),
            next_row_id=transaction.next_row_id + added,
            next_row_index=transaction.next_row_index + added,
            rebases=self._task.parent is None,
            publishes=False,
            delta=Delta(new, old) if knows else None,
        )

    def _documents(self) -> Iterator[pa.RecordBatch]:
        """Stream what is copied: the staged rows in the input's order, with document, hash and key number."""
        schema = self._task.table.schema
        taken = Schema(key_columns(schema)) if self._verb.removes else schema
        # Under their own names for the document, beside ours, which no column can have.
        named = ", ".join(f"{alias(column)} AS {quote_identifier(column.name)}" for column in taken.columns)
        text = "NULL" if self._verb.removes else f"md5({row_text_duckdb(aliased(taken))})"
        query = (
            f'SELECT "position\x01", "removes\x01", {key_number_duckdb(key_columns(schema))}, "hash\x01", '
            f'{encode_sql(taken)} FROM (SELECT position AS "position\x01", removes AS "removes\x01", '
            f'CAST({text} AS VARCHAR) AS "hash\x01", {named} FROM {BATCH}) AS rows ORDER BY 3'
        )
        for batch in joined(self._duck.sql(query).to_arrow_reader(PULL_ROWS), _STAGED):
            self._task.check()
            yield batch

    def _plan(self) -> sql.Composed:
        schema = self._task.table.schema
        columns = [postgres_text(column.name) for column in key_columns(schema)]
        same = [sql.SQL("stored.data -> {0} = staged.data -> {0}").format(column) for column in columns]
        needs_hash = self._verb.updates or (self._verb.removes and self._counts_removed)
        return _PLAN.format(
            updates=sql.Literal(self._verb.updates),
            hash=postgres_row_hash(schema, sql.SQL("stored.data")) if needs_hash else sql.SQL("CAST(NULL AS text)"),
            same_key=sql.SQL(" AND ").join(same),
            **_parent(self._task),
        )

    def _refuse_ambiguous(self) -> None:
        positions = pa.table({"position": pa.array([row[0] for row in self._run("ambiguous")], pa.int64())})
        with given(self._duck, {"ambiguous": positions}):
            self._staged.refuse_ambiguous("SELECT position FROM ambiguous")
        raise AssertionError("unreachable: a plan of more rows than the input has some twice")

    def _mark(self, expected: int) -> None:
        marked = self._run("mark", **self._key()).rowcount
        if marked != expected:
            raise self._torn(f"{marked} of {expected} rows could be replaced")

    def _clear(self) -> Digest:
        """Mark the rows that the input does not name, and return their digest."""
        version = sql.Literal(self._transaction.version)
        clear = _CLEAR.format(version=version, **_parent(self._task))
        if self._counts_removed:
            counted: sql.Composable = postgres_digest_sql(self._task.table.schema, sql.SQL("SELECT data FROM gone"))
        else:
            counted = sql.SQL("SELECT count(*), 0, 0 FROM gone")
        row = self._driver.execute(clear + counted).fetchone()
        assert row is not None
        return Digest.of_row(row)

    def _insert(self, expected: int) -> None:
        transaction = self._transaction
        counters = {"next_row_id": transaction.next_row_id, "next_row_index": transaction.next_row_index}
        inserted = self._run("insert", **self._key(), **counters, opened_at=transaction.opened_at).rowcount
        if inserted != expected:
            raise self._torn(f"{inserted} of {expected} rows were inserted")

    def _key(self) -> dict[str, object]:
        return {"dataset_id": self._task.table.dataset_id, "version": self._transaction.version}

    def _torn(self, what: str) -> StorageError:
        name = self._task.table.name
        return StorageError(
            f"dataset {name}: {what}: somebody else changed its rows", safe="nothing was written", dataset=name
        )

    def _run(self, name: str, **parameters: object) -> psycopg.Cursor[Any]:
        return self._driver.execute(QUERIES.for_driver(name), parameters or None)


def _range(task: WriteTask) -> dict[str, object]:
    """Return where the rows are that the write starts from; none where the arm holds no version."""
    held = task.parent
    return {
        "dataset_id": task.table.dataset_id,
        "base": held.base_version if held is not None else 1,
        "parent": held.version if held is not None else 0,
    }


def _parent(task: WriteTask) -> dict[str, sql.Composable]:
    return {name: sql.Literal(value) for name, value in _range(task).items()}
