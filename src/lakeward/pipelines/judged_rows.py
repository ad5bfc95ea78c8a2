"""The rows that a build is judged by: those that its outputs would have, their versions before, and other datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from lakeward.control.expectation_results import ExpectationResult
from lakeward.control.records import OpenTransaction
from lakeward.control.tree import DatasetRecord
from lakeward.pipelines.expectation_check import Expected
from lakeward.pipelines.key_bounds import KeyBounds
from lakeward.pipelines.known import Known
from lakeward.pipelines.quarantine import Apart
from lakeward.storage.facade import Storage
from lakeward.storage.requests import Output, PreparedVersion, ReadRequest
from lakeward.storage.verbs import VERBS
from lakeward.types.schema import name_key

READER = "pipeline.expectations"

Opened = Callable[[Sequence[str]], pa.RecordBatchReader]
"""Opens the named columns of some rows."""


@dataclass
class Guarded:
    """One output, and what is known of it by now."""

    output: Output
    expected: Expected
    apart: Apart | None
    bounds: KeyBounds
    transaction: OpenTransaction | None = None
    prepared: PreparedVersion | None = None
    rows_in: int = 0
    """How many rows came for it so far."""
    results: list[ExpectationResult] = field(default_factory=list)

    @property
    def parent(self) -> int:
        """The version before; 0: there is none."""
        assert self.transaction is not None, "it is opened before anything is prepared"
        return self.transaction.parent_version

    @property
    def version(self) -> int:
        """The version that it would get; where nothing was written, one that will not be."""
        assert self.transaction is not None, "it is opened before anything is prepared"
        return self.prepared.where.version if self.prepared is not None else self.transaction.version

    @property
    def without_rows(self) -> bool:
        """Whether no row came and none went: the rows are those of the version before."""
        return not self.rows_in and (self.prepared is None or not self.prepared.counts.deleted)

    def incoming(self) -> pa.RecordBatchReader:
        """Return the output's rows, and look at them as they go by."""
        rows = self.output.rows()
        if any(each.meets for each in self.expected.expectations):
            rows = self.bounds.over(rows)
        return pa.RecordBatchReader.from_batches(rows.schema, self._counted(rows))

    def _counted(self, rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            self.rows_in += batch.num_rows
            yield batch

    def known(self, found: ExpectationResult | None) -> Known:
        """Return what one expectation can go on from.

        Args:
            found: what it found in the version before.
        """
        assert self.transaction is not None, "it is opened before anything is prepared"
        before, keyed = self.transaction.parent_row_count, VERBS[self.output.verb].keyed
        if self.prepared is None:
            return Known(before, before, True, keyed, found)
        counts = self.prepared.counts
        return Known(counts.row_count, before, not counts.updated and not counts.deleted, keyed, found)


@dataclass
class JudgedRows:
    """Opens them.

    Args:
        storage: reads what was prepared, and other datasets.
        others: the datasets that are read besides, and their versions, by name.
        guarded: the outputs of the build.
    """

    storage: Storage
    others: Mapping[str, tuple[DatasetRecord, int]]
    guarded: list[Guarded]

    def of(self, guarded: Guarded, *, only_new: bool = False) -> Opened:
        """Return what opens the rows that an output would have, or those that this build wrote."""

        def opened(columns: Sequence[str]) -> pa.RecordBatchReader:
            if guarded.prepared is not None:
                return self.storage.read_prepared(guarded.prepared, columns, guarded.parent if only_new else None)
            return self._read(guarded.output.dataset, 0 if only_new else guarded.parent, None, columns)

        return opened

    def before(self, guarded: Guarded) -> Opened:
        """Return what opens the rows of the version before."""
        return partial(self._read, guarded.output.dataset, guarded.parent, None)

    def that_can_be_met(self, guarded: Guarded) -> Opened:
        """Return what opens the rows of the version before that can have a key of those that this build wrote."""
        wrote = guarded.prepared is not None and guarded.prepared.counts.added
        return partial(self._read, guarded.output.dataset, guarded.parent if wrote else 0, guarded.bounds.where)

    def known(self, name: str) -> Opened:
        """Return what opens the rows of another dataset: as this build would leave it, if it writes it."""
        own = next((each for each in self.guarded if name_key(each.output.dataset.name) == name_key(name)), None)
        if own is not None:
            return self.of(own)
        record, version = self.others[name]
        return partial(self._read, record, version, None)

    def _read(
        self, record: DatasetRecord, version: int, where: str | None, columns: Sequence[str]
    ) -> pa.RecordBatchReader:
        if not version:
            empty = pa.schema([(name, pa.null()) for name in columns]).empty_table()
            return empty.to_reader()
        request = ReadRequest(tuple(columns), version=version, where=where)
        return self.storage.read(record, request, reader=READER)
