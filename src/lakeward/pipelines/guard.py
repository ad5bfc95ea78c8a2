"""Puts what is expected of a build's outputs around them: the audit, and the quarantine that bad rows go to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from lakeward.compute.engine import Engine
from lakeward.control.expectation_results import ExpectationResults
from lakeward.control.ledger import Ledger
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import LakewardError, NameTaken
from lakeward.pipelines.audit import BuildAudit
from lakeward.pipelines.expectation_check import Expected, check_expectations
from lakeward.pipelines.graph import Graph
from lakeward.pipelines.judged_rows import READER
from lakeward.pipelines.quarantine import Apart, check_quarantine
from lakeward.storage.facade import Storage
from lakeward.storage.requests import BuildResult, Output, ReadRequest
from lakeward.types.schema import Schema, name_key


@dataclass
class Guard:
    """Guards the outputs of builds.

    Args:
        tree, ledger, storage: of the workspace.
        engine: computes what is expected.
        results: keeps what was found.
    """

    tree: Tree
    ledger: Ledger
    storage: Storage
    engine: Engine
    results: ExpectationResults

    def expected(self, graph: Graph, schemas: Sequence[Schema]) -> list[Expected]:
        """Return what each output is expected to be, checked against its columns.

        Raises:
            SpecError, SqlError: with file and line.
        """
        return check_expectations(graph, schemas, self.engine, lambda name: self.tree.dataset(name).schema)

    def build(
        self,
        pipeline: str | None,
        outputs: Sequence[Output],
        expected: Sequence[Expected],
        versions: Mapping[int, int],
        noted: Callable[[DatasetRecord, LakewardError], None],
        run: Callable[[Sequence[Output]], BuildResult],
    ) -> BuildResult:
        """Run a build under guard.

        Args:
            pipeline: its name; None: it runs once, and nobody applied it.
            outputs: what it writes.
            expected: of each of them. Where rows are to be taken out, the output's `rows` gives all of them.
            versions: of the datasets that it reads, by id.
            noted: is told an error of the rows before it is raised.
            run: builds the outputs that it is given.

        Raises:
            ExpectationFailed: an expectation failed; no output was changed.
        """
        if not any(each.expectations for each in expected):
            return run(outputs)
        others = self._others(outputs, expected, versions)
        audit = BuildAudit(pipeline, self.engine, self.storage, self.results, others)
        guarded: list[Output] = []
        quarantines: list[Output] = []
        for output, each in zip(outputs, expected, strict=True):
            if not each.parted:
                guarded.append(audit.guard(output, each))
                continue
            opened = {name: partial(self._open, record, version) for name, (record, version) in others.items()}
            schema, name, told = output.dataset.schema, output.dataset.name, partial(noted, output.dataset)
            apart = Apart(output.rows, each, schema, name, engine=self.engine, others=opened, noted=told)
            guarded.append(audit.guard(replace(output, rows=apart.good_rows), each, apart))
            quarantines.append(Output(self._quarantine(output.dataset, apart, pipeline), "append", apart.bad_rows))
        result = run([*guarded, *quarantines])
        unused = {each.dataset.name for each in quarantines}
        kept = tuple(each for each in result.transactions if each.committed or each.dataset not in unused)
        return replace(result, transactions=kept, warnings=(*result.warnings, *audit.warnings))

    def _others(
        self, outputs: Sequence[Output], expected: Sequence[Expected], versions: Mapping[int, int]
    ) -> dict[str, tuple[DatasetRecord, int]]:
        """Return the datasets that are read besides, each at the version that the build reads it at, if it does."""
        own = {name_key(output.dataset.name) for output in outputs}
        names = dict.fromkeys(name for each in expected for name in each.scope.others if name_key(name) not in own)
        records = {name: self.tree.dataset(name) for name in names}
        heads = {**self.ledger.heads([record.id for record in records.values()]), **versions}
        return {name: (record, heads.get(record.id, 0)) for name, record in records.items()}

    def _open(self, record: DatasetRecord, version: int, columns: Sequence[str]) -> pa.RecordBatchReader:
        request = ReadRequest(columns=tuple(columns), version=version or None)
        return self.storage.read(record, request, reader=READER)

    def _quarantine(self, dataset: DatasetRecord, apart: Apart, pipeline: str | None) -> DatasetRecord:
        """Return the quarantine of a dataset, made on the same arm if it is missing."""
        name = apart.quarantine
        record = self.tree.find(name)
        if record is None:
            self.tree.check_unused(name)
            actor = f"pipeline {pipeline}" if pipeline is not None else "run"
            try:
                return self.tree.create_dataset(name, apart.schema, arm=dataset.arm, actor=actor)
            except NameTaken:
                # Somebody else made it in this instant; a twin under another spelling is still an error.
                record = self.tree.find(name)
                if record is None:
                    raise
        check_quarantine(name, apart.schema, record.schema)
        return record


def all_rows(dataset: DatasetRecord, expected: Expected) -> DatasetRecord:
    """Return the dataset as its compute has to see it: rows without a key are refused once bad ones are taken out."""
    return replace(dataset, schema=Schema(dataset.schema.columns)) if expected.parted else dataset
