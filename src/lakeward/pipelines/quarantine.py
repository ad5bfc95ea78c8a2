"""Takes the rows of a compute apart: good ones go to the output, bad ones to `<dataset>__quarantine`, each to one.

The output's rows are computed once, and each is told by what it fails, so that a query that depends on chance gives
every row to exactly one of both. One side is read as it comes; the other one waits in a file without a name, which goes
with the process. Both are written by one build.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

from lakeward.compute.engine import Engine, Input
from lakeward.control.records import OpenTransaction
from lakeward.errors import LakewardError, SchemaError, StorageFull
from lakeward.pipelines.expectation import ROWS
from lakeward.pipelines.expectation_check import Expected
from lakeward.pipelines.expectation_spec import quarantine_name
from lakeward.types.conform import to_reader
from lakeward.types.quoting import duckdb_name
from lakeward.types.schema import Schema, name_key

_FAILS = "fails\x01"
"""Begins the names of the columns that say which expectation a row fails. No dataset's column can have such a name."""


def quarantine_schema(schema: Schema, dataset: str) -> Schema:
    """Return the columns of a quarantine: those of the output, without its key, then the reason and the build.

    A name that the output has itself gets underscores until it is free.
    """
    return Schema.declare(
        {
            **{column.name: column.type for column in schema.columns},
            _own(schema, "reason"): "string",
            _own(schema, "build"): "uuid",
        },
        [],
        dataset,
    )


def check_quarantine(name: str, needed: Schema, existing: Schema) -> None:
    """Refuse a dataset that is there under the quarantine's name and is none.

    Raises:
        SchemaError: it has other columns.
    """
    has = {column.name: column.type for column in existing.columns}
    if has != {column.name: column.type for column in needed.columns} or existing.primary_key:
        raise SchemaError(
            f"dataset {name} exists, and has not the columns of this quarantine: those of the output, "
            f"{needed.names[-2]} and {needed.names[-1]}, without a key",
            safe="nothing was built",
            next_step="rename one of the two datasets",
            dataset=name,
        )


def _own(schema: Schema, name: str) -> str:
    taken = {name_key(column) for column in schema.names}
    while name_key(name) in taken:
        name += "_"
    return name


class Apart:
    """The rows of one output's compute, taken apart.

    Args:
        compute: starts the query and returns its rows in the types of the output's dataset; called once.
        expected: what bad rows fail.
        schema: of the output's dataset.
        dataset: its full name, for errors.
        engine: tells good rows from bad ones.
        others: opens the other datasets that are read for that, by name.
        noted: is told an error before it is raised.
    """

    def __init__(
        self,
        compute: Callable[[], pa.RecordBatchReader],
        expected: Expected,
        schema: Schema,
        dataset: str,
        *,
        engine: Engine,
        others: Mapping[str, Callable[[Sequence[str]], pa.RecordBatchReader]],
        noted: Callable[[LakewardError], None],
    ) -> None:
        self._compute = compute
        self._parted = expected.parted
        self._scope = expected.scope
        self._schema = schema
        self._dataset = dataset
        self._engine = engine
        self._others = others
        self._noted = noted
        self._files: dict[str, IO[bytes]] = {}
        self._build: bytes | None = None
        self._started = False
        self.quarantine = quarantine_name(dataset)
        self.schema = quarantine_schema(schema, self.quarantine)
        self.rows = 0
        self.bad = 0
        self.failed = dict.fromkeys(self._parted, 0)
        """How many rows fail each of the expectations, by position."""

    def opened(self, transaction: OpenTransaction) -> None:
        """Take note of the build."""
        self._build = transaction.build_id.bytes

    def good_rows(self) -> pa.RecordBatchReader:
        """Return the rows of the output."""
        return to_reader(self._side("good", "bad"), self._schema, dataset=self._dataset)

    def bad_rows(self) -> pa.RecordBatchReader:
        """Return the rows of the quarantine."""
        return to_reader(self._side("bad", "good"), self.schema, dataset=self.quarantine)

    def _judged(self) -> pa.RecordBatchReader:
        """Return the computed rows, with what each of them fails behind its columns."""
        rows = self._compute()

        def opened(columns: Sequence[str]) -> pa.RecordBatchReader:
            if list(columns) == rows.schema.names:
                return rows
            schema = pa.schema([rows.schema.field(name) for name in columns])
            return pa.RecordBatchReader.from_batches(schema, (batch.select(columns) for batch in rows))

        inputs = {ROWS: Input(Schema(self._schema.columns), opened)}
        for name, called in self._scope.others.items():
            if name in self._others:
                inputs[called] = Input(self._scope.schemas[name], self._others[name])
        fails = [
            f"NOT ({each.holds(self._scope)}) AS {duckdb_name(f'{_FAILS}{position}')}"
            for position, each in self._parted.items()
        ]
        try:
            return self._engine.run(f"SELECT {ROWS}.*, {', '.join(fails)} FROM {ROWS}", inputs)
        except LakewardError as error:
            self._noted(error)
            raise

    def _side(self, side: str, other: str) -> pa.RecordBatchReader:
        if self._started:
            # Both are of one build, whose outputs are written one after the other.
            file = self._files[side]
            file.seek(0)
            return pa.ipc.open_stream(file)
        self._started = True
        source = self._judged()
        columns = [field for field in source.schema if not field.name.startswith(_FAILS)]
        schemas = {"good": pa.schema(columns), "bad": self._bad_schema(columns)}
        self._files[other] = file = tempfile.TemporaryFile(dir=self._engine.temp_directory)  # noqa: SIM115
        written = self._written(source, schemas, side, other, file)
        return pa.RecordBatchReader.from_batches(schemas[side], written)

    def _bad_schema(self, columns: Sequence[pa.Field]) -> pa.Schema:
        reason, build = self.schema.names[-2:]
        return pa.schema([*columns, pa.field(reason, pa.string()), pa.field(build, pa.binary(16))])

    def _written(
        self, source: pa.RecordBatchReader, schemas: dict[str, pa.Schema], side: str, other: str, file: IO[bytes]
    ) -> Iterator[pa.RecordBatch]:
        try:
            with pa.ipc.new_stream(file, schemas[other]) as spool:
                for batch in source:
                    parts = dict(zip(("good", "bad"), self._parts(batch, schemas), strict=True))
                    if parts[other].num_rows:
                        self._kept(spool, parts[other])
                    yield parts[side]
        except LakewardError as error:
            self._noted(error)
            raise

    def _kept(self, spool: pa.ipc.RecordBatchStreamWriter, batch: pa.RecordBatch) -> None:
        try:
            spool.write_batch(batch)
        except OSError as error:
            raise StorageFull(
                f"dataset {self._dataset}: rows that were taken apart can't be kept in {self._engine.temp_directory}: "
                f"{error.strerror or error}",
                safe="nothing was written",
                next_step="free space there",
            ) from error

    def _parts(self, batch: pa.RecordBatch, schemas: dict[str, pa.Schema]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        fails = {position: batch.column(f"{_FAILS}{position}") for position in self._parted}
        bad = None
        for position, mask in fails.items():
            self.failed[position] += pc.sum(mask).as_py() or 0
            bad = mask if bad is None else pc.or_(bad, mask)
        rows = batch.select(schemas["good"].names)
        taken = rows.filter(bad)
        self.rows += rows.num_rows
        self.bad += taken.num_rows
        texts = [
            pc.if_else(mask.filter(bad), pa.scalar(self._parted[position].describe()), pa.scalar(None, pa.string()))
            for position, mask in fails.items()
        ]
        reasons = pc.binary_join_element_wise(*texts, "; ", null_handling="skip")
        builds = pa.array([self._build] * taken.num_rows, pa.binary(16))
        both = pa.RecordBatch.from_arrays([*taken.columns, reasons, builds], schema=schemas["bad"])
        return rows.filter(pc.invert(bad)), both
