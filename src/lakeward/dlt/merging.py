"""Merges as dlt means them: which rows of a package stand, and which of the dataset go. Queries, run within memory.

A row of a root table is met by the primary key, or by the merge key, of any row of the package. It goes, and with it
the rows of nested tables that belong to it, unless the package has them again. Of several rows of the package with one
primary key one stands: by the column to sort by, or else the last one written. One that is marked as deleted stands for
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from lakeward.compute.engine import Engine, Input
from lakeward.control.tree import DatasetRecord
from lakeward.dlt.package import rows_of
from lakeward.dlt.tables import Keys, TableLoad
from lakeward.storage.facade import Storage
from lakeward.storage.requests import ReadRequest
from lakeward.storage.verbs import verb_named
from lakeward.types.conform import to_reader
from lakeward.types.logical import parse_type
from lakeward.types.quoting import duckdb_name
from lakeward.types.schema import OP, Column, Schema

READER = "dlt.load"

_PLACE = "place\x01"
"""The place of a row in the package, under a name that no column can have."""
_IN_ORDER = f"{duckdb_name(_PLACE)} NULLS FIRST"
_LAST = f"{duckdb_name(_PLACE)} DESC"
_RANK = duckdb_name("rank\x01")

FRESH, HELD, ROOT_FRESH, ROOT_HELD = "fresh", "held", "root_fresh", "root_held"
"""The inputs: rows of the package and of the dataset; and of its root table, for a nested one."""


@dataclass(frozen=True)
class Merging:
    """One merge.

    Args:
        engine: runs the queries.
        storage: reads the datasets, at the version that the merge starts from.
        files: of the package, by table.
        records: the datasets, by table.
    """

    engine: Engine
    storage: Storage
    files: Mapping[str, Sequence[Path]]
    records: Mapping[str, DatasetRecord]

    def changes(self, load: TableLoad) -> pa.RecordBatchReader:
        """Return what a merge changes in a table's dataset, as rows with `__op`."""
        keys, schema = _keys_of(load), self.records[load.name].schema
        steps = _nested_steps(load, keys) if load.root != load.name else _root_steps(keys)
        key = _names(schema.primary_key)
        deleted = f"SELECT {key}, 'delete' AS {OP} FROM gone"
        stands = f"SELECT {_names((*schema.names, _PLACE))}, 'insert' AS {OP} FROM stands"
        # In the order of the package, so that the same load always gives the same rows the same positions.
        rows = f"SELECT {_names(schema.names)}, {OP} FROM ({stands} UNION ALL BY NAME {deleted}) ORDER BY {_IN_ORDER}"
        found = self._run(load, f"WITH {steps} {rows}")
        taken = verb_named("changes").input_schema(schema)
        return to_reader(found, taken, dataset=self.records[load.name].name)

    def standing(self, load: TableLoad) -> pa.RecordBatchReader:
        """Return the rows of the package that stand."""
        keys, schema = _keys_of(load), self.records[load.name].schema
        steps = _nested_steps(load, keys) if load.root != load.name else _root_steps(keys)
        found = self._run(load, f"WITH {steps} SELECT {_names(schema.names)} FROM stands ORDER BY {_IN_ORDER}")
        return to_reader(found, schema, dataset=self.records[load.name].name)

    def _run(self, load: TableLoad, sql: str) -> pa.RecordBatchReader:
        inputs = {FRESH: self._fresh(load.name), HELD: self._held(load.name)}
        if load.root != load.name:
            inputs |= {ROOT_FRESH: self._fresh(load.root), ROOT_HELD: self._held(load.root)}
        return self.engine.run(sql, {name: each for name, each in inputs.items() if name in sql})

    def _fresh(self, table: str) -> Input:
        """Return the rows of a table in the package, with their places."""
        record = self.records[table]
        placed = Schema((*record.schema.columns, Column(_PLACE, parse_type("long"), 0)))

        def opened(columns: Sequence[str]) -> pa.RecordBatchReader:
            rows = rows_of(self.files.get(table, ()), Schema(record.schema.columns), record.name)
            whole = pa.schema([*rows.schema, pa.field(_PLACE, pa.int64())])
            wanted = pa.schema([whole.field(name) for name in columns])
            return pa.RecordBatchReader.from_batches(wanted, _placed(rows, whole, columns))

        return Input(placed, opened)

    def _held(self, table: str) -> Input:
        """Return the rows of a table's dataset."""
        record = self.records[table]

        def request(columns: Sequence[str]) -> ReadRequest:
            return ReadRequest(columns=tuple(columns))

        return Input(
            Schema(record.schema.columns),
            lambda columns: self.storage.read(record, request(columns), reader=READER),
            lambda: self.storage.in_place([(record, request(record.schema.names))], reader=READER)[0],
        )


def _placed(rows: pa.RecordBatchReader, whole: pa.Schema, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    first = 0
    for batch in rows:
        places = pa.array(range(first, first + batch.num_rows), pa.int64())
        yield pa.RecordBatch.from_arrays([*batch.columns, places], schema=whole).select(list(columns))
        first += batch.num_rows


def _keys_of(load: TableLoad) -> Keys:
    assert load.keys is not None, "it is merged"
    return load.keys


def _root_steps(keys: Keys) -> str:
    """Return the queries `stands`, rows of the package, and `gone`, rows that are not in the dataset any more."""
    stands = _stands(keys, FRESH, "stands")
    if keys.merge:
        key = _names(keys.of_dataset)
        return f"{stands}, gone AS ({_without(_met(keys, FRESH, HELD), key, 'stands')})"
    # By the primary key alone, what goes is what the package says is gone. No row of the dataset has to be read.
    return f"{stands}, gone AS ({_judged(keys, FRESH, 'NOT ')})"


def _nested_steps(load: TableLoad, keys: Keys) -> str:
    """Return the same for a nested table, whose rows stand and go with those of the root."""
    assert load.row is not None and load.root_key is not None and keys.row is not None, "see `Tables`"
    row, root_key, root_row = map(duckdb_name, (load.row, load.root_key, keys.row))
    once = f"SELECT *, row_number() OVER (PARTITION BY {row} ORDER BY {_LAST}) AS {_RANK} FROM {FRESH}"
    gone = f"SELECT * FROM {HELD} WHERE {root_key} IN (SELECT {root_row} FROM met)"
    return (
        f"{_stands(keys, ROOT_FRESH, 'roots')}, met AS ({_met(keys, ROOT_FRESH, ROOT_HELD)}), "
        f"stands AS (SELECT * FROM ({once}) WHERE {_RANK} = 1 AND {root_key} IN (SELECT {root_row} FROM roots)), "
        f"gone AS ({_without(gone, row, 'stands')})"
    )


def _stands(keys: Keys, fresh: str, name: str) -> str:
    """Return the query of the rows of a root table that stand."""
    return f"{name} AS ({_judged(keys, fresh, '')})"


def _judged(keys: Keys, fresh: str, negation: str) -> str:
    """Return the query of one row for each key, if it is not marked as deleted; negated, if it is."""
    present = "true"
    if keys.hard_delete is not None:
        column, by_truth = keys.hard_delete
        present = f"{duckdb_name(column)} IS NOT TRUE" if by_truth else f"{duckdb_name(column)} IS NULL"
    if not keys.primary or keys.strategy != "delete-insert":
        return f"SELECT * FROM {fresh} WHERE {negation}({present})"
    order = _LAST
    if keys.sort is not None:
        column, direction = keys.sort
        order = f"{duckdb_name(column)} {'ASC' if direction == 'asc' else 'DESC'} NULLS LAST, {order}"
    ranked = f"row_number() OVER (PARTITION BY {_names(keys.primary)} ORDER BY {order}) AS {_RANK}"
    return f"SELECT * FROM (SELECT *, {ranked} FROM {fresh}) WHERE {_RANK} = 1 AND {negation}({present})"


def _without(rows: str, key: str, others: str) -> str:
    """Return the query of rows whose key the others have not."""
    return f"SELECT * FROM ({rows}) WHERE ({key}) NOT IN (SELECT ({key}) FROM {others})"


def _met(keys: Keys, fresh: str, held: str) -> str:
    """Return the query of the rows of a root table's dataset that the package's rows meet."""
    met = [
        f"SELECT * FROM {held} WHERE ({_names(columns)}) IN (SELECT ({_names(columns)}) FROM {fresh})"
        for columns in (keys.primary, keys.merge)
        if columns
    ]
    return " UNION ".join(met)


def _names(columns: Sequence[str]) -> str:
    return ", ".join(map(duckdb_name, columns))
