"""Judges what datasets themselves are expected to be, whoever writes them, before anybody can see what was written.

A writer learns with its intent what is expected of its dataset, so it costs nothing where that is nothing. What a
pipeline expects of its outputs is judged before, by itself: see `audit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from lakeward.access.guard import itself
from lakeward.compute.engine import Engine
from lakeward.control.expectation_results import ExpectationResult, ExpectationResults
from lakeward.control.ledger import Ledger
from lakeward.control.records import OpenTransaction
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.pipelines.audit import failure, judged, line
from lakeward.pipelines.expectation import Scope
from lakeward.pipelines.expectation_check import Declared, Expected, check_declared
from lakeward.pipelines.judged_rows import Guarded, JudgedRows
from lakeward.pipelines.key_bounds import KeyBounds
from lakeward.pipelines.origin import Origin
from lakeward.storage.facade import Storage
from lakeward.storage.requests import BuildResult, Output, PreparedVersion
from lakeward.types.digest import Digest
from lakeward.types.schema import Schema, name_key

KEY = "expectations"
"""The key that a file has them under, as the output of a pipeline does."""


@dataclass(frozen=True)
class DatasetJudging:
    """Judges the datasets of one workspace; see `lakeward.storage.judging`.

    Args:
        tree, ledger, storage: of the workspace.
        engine: computes.
        results: keeps what was found.
    """

    tree: Tree
    ledger: Ledger
    storage: Storage
    engine: Engine
    results: ExpectationResults

    def of(self, outputs: Sequence[Output], pipeline: str | None) -> DatasetJudgement:
        """See `Judging.of`."""
        return DatasetJudgement(self, pipeline, outputs)

    def schema_of(self, name: str) -> Schema:
        """Return the columns of a dataset."""
        return self.tree.dataset(name).schema


class DatasetJudgement:
    """Judges one build, once all of its outputs are prepared: what one of them knows may be expected of another."""

    def __init__(self, judging: DatasetJudging, pipeline: str | None, outputs: Sequence[Output]) -> None:
        self._judging = judging
        self._pipeline = pipeline
        self._watched = [_Watched(output) for output in outputs]
        self._seen = 0

    @property
    def outputs(self) -> list[Output]:
        """See `Judgement.outputs`."""
        return [
            replace(
                each.output,
                rows=partial(self._rows, each),
                opened=partial(self._opened, each),
                audit=partial(self._prepared, each),
                audit_nothing=partial(self._nothing, each),
            )
            for each in self._watched
        ]

    def told(self, result: BuildResult) -> BuildResult:
        """See `Judgement.told`."""
        found = {each.output.dataset.id: each for each in self._watched if each.warnings}
        if not found:
            return result
        by_name = {each.output.dataset.name: each.warnings for each in found.values()}
        written = tuple(replace(each, warnings=by_name.get(each.dataset, ())) for each in result.transactions)
        lines = [f"{name}: {warning}" for name, warnings in by_name.items() for warning in warnings]
        return replace(result, transactions=written, warnings=(*result.warnings, *lines))

    @property
    def _asked(self) -> bool:
        return any(each.guarded.expected.expectations for each in self._watched if each.guarded is not None)

    def _opened(self, watched: _Watched, transaction: OpenTransaction) -> None:
        """Every output is opened before anything is computed."""
        if watched.output.opened is not None:
            watched.output.opened(transaction)
        dataset = watched.output.dataset
        expected = Expected(dataset.name, (), Scope(dataset.schema, {}, {}))
        if transaction.expectations:
            origin = Origin(f"what is expected of {dataset.name}")
            declared = Declared(dataset.name, transaction.expectations, (KEY,), origin)
            # Whoever declared it saw the datasets that it names; who writes need not.
            with itself():
                expected = check_declared(declared, dataset.schema, self._judging.schema_of)
        watched.guarded = Guarded(watched.output, expected, None, KeyBounds(dataset.schema), transaction)

    def _rows(self, watched: _Watched) -> pa.RecordBatchReader:
        # A request that is repeated is compared before it is opened.
        return watched.output.rows() if watched.guarded is None or not self._asked else watched.guarded.incoming()

    def _prepared(self, watched: _Watched, prepared: PreparedVersion) -> Digest | None:
        found = watched.output.audit(prepared) if watched.output.audit is not None else None
        if watched.guarded is not None:
            watched.guarded.prepared = prepared
        self._arrived()
        return found

    def _nothing(self, watched: _Watched) -> None:
        if watched.output.audit_nothing is not None:
            watched.output.audit_nothing()
        self._arrived()

    def _arrived(self) -> None:
        self._seen += 1
        if self._seen < len(self._watched) or not self._asked:
            return
        with itself():
            self._judge([each.guarded for each in self._watched if each.guarded is not None])

    def _judge(self, guarded: list[Guarded]) -> None:
        judging = self._judging
        rows = JudgedRows(judging.storage, self._others(guarded), guarded)
        title = f"pipeline {self._pipeline!r}" if self._pipeline is not None else "the write"
        # Where nothing is written, the version stays that was judged when it was.
        for each in guarded:
            if each.expected.expectations and each.prepared is not None:
                each.results = judged(each, rows, judging.engine, judging.results, title, self._pipeline)
                judging.results.keep_behind(each.output.dataset.id, each.version, each.results)
        refused = [each for each in guarded if any(result.refused for result in each.results)]
        if refused:
            names = ", ".join(each.output.dataset.name for each in refused)
            what = f"{title} was refused: it is not what is expected of {names}"
            raise failure(refused, what, self._pipeline)

    def _others(self, guarded: Sequence[Guarded]) -> dict[str, tuple[DatasetRecord, int]]:
        """Return the datasets that are read besides, at their newest versions."""
        own = {name_key(each.output.dataset.name) for each in guarded}
        names = dict.fromkeys(name for each in guarded for name in each.expected.scope.others)
        records = {name: self._judging.tree.dataset(name) for name in names if name_key(name) not in own}
        heads = self._judging.ledger.heads([record.id for record in records.values()]) if records else {}
        return {name: (record, heads.get(record.id, 0)) for name, record in records.items()}


@dataclass
class _Watched:
    """One output, and what is known of it by now."""

    output: Output
    guarded: Guarded | None = field(default=None)

    @property
    def warnings(self) -> tuple[str, ...]:
        results: Sequence[ExpectationResult] = self.guarded.results if self.guarded is not None else ()
        return tuple(line(each) for each in results if not each.good and not each.refused)
