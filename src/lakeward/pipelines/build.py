"""Runs a pipeline: pins the versions of its sources once, and writes all of its outputs as one build."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from lakeward.compute.engine import Engine, Input
from lakeward.control.ledger import Ledger
from lakeward.control.records import Window
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import ComputeError, LakewardError, NameTaken, StorageFull, UnknownVersion
from lakeward.pipelines.compile import Compiled, compile_output
from lakeward.pipelines.graph import Graph, read_graph
from lakeward.pipelines.outputs import check_existing, output_schema
from lakeward.pipelines.spec import Pipeline, strategy_classes
from lakeward.pipelines.up_to_date import UpToDate
from lakeward.storage.facade import Storage
from lakeward.storage.recovery import Recovery
from lakeward.storage.requests import BuildResult, Output, ReadRequest
from lakeward.types.conform import to_reader
from lakeward.types.schema import Schema

WRITER = "pipeline.output"
READER = "pipeline.source"
DEFAULT_ARM = "postgres"


@dataclass(frozen=True)
class BuildProgress:
    """How far a build is: rows that were computed for one output so far."""

    pipeline: str
    dataset: str
    rows: int


Progress = Callable[[BuildProgress], None]


@dataclass
class _Failure:
    """What the compute of an output raised.

    On their way to the caller its rows may cross other libraries, which keep only an exception's text.
    """

    raised: LakewardError | None = None


@dataclass
class Builder:
    """Builds pipelines one at a time.

    Args:
        tree, ledger, storage, recovery: of the workspace.
        engine: runs the queries.
        up_to_date: says which pipelines have nothing to do.
        progress: called for every batch of rows.
    """

    tree: Tree
    ledger: Ledger
    storage: Storage
    recovery: Recovery
    engine: Engine
    up_to_date: UpToDate
    progress: Progress | None = None
    writers: dict[str, str] = field(default_factory=dict)
    """The applied pipeline that writes a dataset, by the dataset's name: for errors."""

    def build(self, pipeline: Pipeline, fingerprint: str, *, full: bool = False) -> BuildResult:
        """Run a pipeline once, if it has anything to do. Its outputs become visible together, or not at all.

        Args:
            pipeline: which one.
            fingerprint: its own, as it was applied.
            full: run it even if its outputs are up to date.

        Raises:
            UnknownObject: a source does not exist.
            UnknownVersion: a source was never written.
            SchemaError: an output's dataset exists with other columns.
            ComputeError: a query failed while it ran; nothing was written.
        """
        graph = read_graph(pipeline)
        sources = {name: self.tree.dataset(name) for name in pipeline.sources.values()}
        versions = self._pinned(pipeline, list(sources.values()))
        standing = self.up_to_date.standing(graph, fingerprint, sources)
        if standing.reason is None and not full:
            for dataset_id in standing.unpublished:
                self.recovery.recover(dataset_id)
            return BuildResult(None, pipeline.name, ())
        schemas = {name: record.schema for name, record in sources.items()}
        # All of them are described before a dataset is created, so that a wrong one leaves nothing behind.
        needed = [output_schema(graph, index, self.engine, schemas) for index in range(len(pipeline.spec.outputs))]
        failure = _Failure()
        outputs = [
            self._output(graph, index, schema, sources, versions, fingerprint, failure)
            for index, schema in enumerate(needed)
        ]
        try:
            return self.storage.build(outputs, writer=WRITER, pipeline=pipeline.name)
        except Exception as error:
            if failure.raised is not None and failure.raised is not error:
                raise failure.raised from error
            raise

    def _pinned(self, pipeline: Pipeline, sources: Sequence[DatasetRecord]) -> dict[int, int]:
        """Return one consistent set of versions of the sources, by dataset id."""
        versions = self.ledger.heads([record.id for record in sources])
        for record in sources:
            if not versions.get(record.id):
                writer = self.writers.get(record.name)
                raise UnknownVersion(
                    f"pipeline {pipeline.name!r} reads dataset {record.name}, to which nothing was ever written",
                    safe="nothing was built",
                    next_step=f"lakeward build {writer}" if writer else f"lakeward dataset import {record.name} FILE",
                    pipeline=pipeline.name,
                    dataset=record.name,
                )
        return versions

    def _output(
        self,
        graph: Graph,
        index: int,
        schema: Schema,
        sources: dict[str, DatasetRecord],
        versions: dict[int, int],
        fingerprint: str,
        failure: _Failure,
    ) -> Output:
        output = graph.pipeline.spec.outputs[index]
        compiled = compile_output(graph, output)
        dataset = self._dataset(graph, index, schema)
        strategy = strategy_classes()[output.strategy]()
        read = {node: sources[name] for node, name in compiled.sources.items()}
        return Output(
            dataset,
            strategy.verb(first=not dataset.head_version),
            partial(self._rows, graph.pipeline, dataset, compiled, read, versions, failure),
            allow_empty=output.allow_empty,
            windows={record.id: Window(0, versions[record.id]) for record in read.values()},
            fingerprint=fingerprint,
        )

    def _dataset(self, graph: Graph, index: int, schema: Schema) -> DatasetRecord:
        """Return the output's dataset, created if it is missing."""
        output = graph.pipeline.spec.outputs[index]
        record = self.tree.find(output.dataset)
        if record is None:
            try:
                return self.tree.create_dataset(
                    output.dataset, schema, arm=output.arm or DEFAULT_ARM, actor=f"pipeline {graph.pipeline.name}"
                )
            except NameTaken:
                # Somebody else made it in this instant; a twin under another spelling is still an error.
                record = self.tree.find(output.dataset)
                if record is None:
                    raise
        check_existing(graph, index, schema, record.schema)
        return record

    def _rows(
        self,
        pipeline: Pipeline,
        dataset: DatasetRecord,
        compiled: Compiled,
        read: dict[str, DatasetRecord],
        versions: dict[int, int],
        failure: _Failure,
    ) -> pa.RecordBatchReader:
        """Start the compute of one output, in the dataset's Arrow schema."""

        def opened(record: DatasetRecord, columns: Sequence[str]) -> pa.RecordBatchReader:
            request = ReadRequest(columns=tuple(columns), version=versions[record.id])
            return self.storage.read(record, request, reader=READER)

        inputs = {node: Input(record.schema, partial(opened, record)) for node, record in read.items()}
        try:
            result = self.engine.run(compiled.sql, inputs)
            rows = pa.RecordBatchReader.from_batches(result.schema, self._counted(result, pipeline, dataset, failure))
            return to_reader(rows, dataset.schema, dataset=dataset.name)
        except LakewardError as error:
            failure.raised = _named(error, pipeline, dataset)
            raise failure.raised from error

    def _counted(
        self, result: pa.RecordBatchReader, pipeline: Pipeline, dataset: DatasetRecord, failure: _Failure
    ) -> Iterator[pa.RecordBatch]:
        rows = 0
        try:
            for batch in result:
                rows += batch.num_rows
                yield batch
                if self.progress is not None:
                    self.progress(BuildProgress(pipeline.name, dataset.name, rows))
        except LakewardError as error:
            failure.raised = _named(error, pipeline, dataset)
            raise failure.raised from error


def _named(error: LakewardError, pipeline: Pipeline, dataset: DatasetRecord) -> LakewardError:
    """Return an error of the engine with the pipeline and output in front; any other error names its thing already."""
    if not isinstance(error, ComputeError | StorageFull):
        return error
    named = type(error)(
        f"pipeline {pipeline.name!r}, output {dataset.name}: {error.message}",
        safe=f"dataset {dataset.name} is unchanged",
        next_step=error.next_step,
    )
    named.fields.update(error.fields, pipeline=pipeline.name, dataset=dataset.name)
    return named
