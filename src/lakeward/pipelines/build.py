"""Runs a pipeline: pins the versions of its sources once, and writes all of its outputs as one build."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from lakeward.compute.engine import Engine
from lakeward.control.ledger import Ledger
from lakeward.control.records import Window
from lakeward.control.routes import ARM_MODES
from lakeward.control.source_windows import Happened, SourceWindows
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import (
    ComputeError,
    DuplicateKey,
    LakewardError,
    NameTaken,
    NotIncremental,
    StorageFull,
    UnknownVersion,
)
from lakeward.happenings import told
from lakeward.pipelines.compile import Compiled, Compiler
from lakeward.pipelines.datasets import Datasets, about_build, datasets_of
from lakeward.pipelines.expectation_check import Expected
from lakeward.pipelines.graph import Graph, read_graph
from lakeward.pipelines.guard import Guard, all_rows
from lakeward.pipelines.latest import pinned
from lakeward.pipelines.models.registered import ModelCatalog
from lakeward.pipelines.outputs import check_existing, output_schema
from lakeward.pipelines.progress import BuildProgress, Progress
from lakeward.pipelines.source_input import source_inputs
from lakeward.pipelines.spec import OutputSpec, Pipeline, strategy_classes
from lakeward.pipelines.stage_runner import Reads, Stages
from lakeward.pipelines.up_to_date import UpToDate
from lakeward.pipelines.windows import Asked, BuildWindows, decide, everything
from lakeward.stopping import Stop, current
from lakeward.storage.facade import Storage
from lakeward.storage.recovery import Recovery
from lakeward.storage.requests import BuildResult, Output
from lakeward.types.conform import to_reader
from lakeward.types.schema import Schema

WRITER = "pipeline.output"
RUN_WRITER = "run.output"


@dataclass
class _Failure:
    """What the compute of an output raised.

    On their way to the caller its rows may cross other libraries, which keep only an exception's text.
    """

    raised: LakewardError | None = None

    def note(self, pipeline: Pipeline, dataset: DatasetRecord, error: LakewardError) -> None:
        """Take note of an error of a later step, unless it is that of an earlier one."""
        self.raised = self.raised or _named(error, pipeline, dataset)


@dataclass
class Builder:
    """Builds pipelines, from any number of threads.

    Args:
        tree, ledger, storage, recovery: of the workspace.
        engine: runs the queries.
        up_to_date: says which pipelines have nothing to do.
        source_windows: says how far outputs have read, and what happened to sources since.
        guard: judges what is built.
        models: where models are looked up.
        stages: makes what runs the queries and models of one build.
        progress: called for every batch of rows, from the thread that builds.
    """

    tree: Tree
    ledger: Ledger
    storage: Storage
    recovery: Recovery
    engine: Engine
    up_to_date: UpToDate
    source_windows: SourceWindows
    guard: Guard
    models: ModelCatalog
    stages: Callable[[], Stages]
    progress: Progress | None = None
    writers: dict[str, str] = field(default_factory=dict)
    """The applied pipeline that writes a dataset, by the dataset's name: for errors."""
    ids: Mapping[str, uuid.UUID] = field(default_factory=dict)
    """By which the build of a pipeline is to be known, by its name; of others by any."""

    def build(self, pipeline: Pipeline, fingerprint: str, *, full: bool = False) -> BuildResult:
        """Run a pipeline once, if it has anything to do. Its outputs become visible together, or not at all.

        Args:
            pipeline: which one.
            fingerprint: its own, as it was applied.
            full: run it even if its outputs are up to date.

        Raises:
            UnknownObject: a source does not exist, or an output was renamed or dropped.
            UnknownVersion: a source was never written.
            SchemaError: an output's dataset exists with other columns.
            ComputeError: a query failed while it ran; nothing was written.
            NotIncremental: an output requires a delta, and can't have one.
            ExpectationFailed: the rows are not as expected; no output was changed.
        """
        found = pinned(pipeline, fingerprint, self.models)
        graph, fingerprint = read_graph(found.pipeline), found.fingerprint
        datasets = datasets_of(self.tree, pipeline)
        versions = self.pinned(pipeline, list(datasets.sources.values()))
        standing = self.up_to_date.standing(graph, fingerprint, datasets) if not full else None
        if standing is not None and standing.reason is None:
            for dataset_id in standing.unpublished:
                self.recovery.recover(dataset_id)
            return BuildResult(None, pipeline.name, ())
        return self._run(graph, fingerprint, datasets, versions, full=full)

    def once(self, pipeline: Pipeline) -> BuildResult:
        """Run a pipeline that is not applied: all rows of its sources, whatever was built before.

        Raises:
            LakewardError: as `build` does.
        """
        graph = read_graph(pipeline)
        datasets = datasets_of(self.tree, pipeline)
        return self._run(graph, None, datasets, self.pinned(pipeline, list(datasets.sources.values())))

    def described(self, graph: Graph, sources: Mapping[str, DatasetRecord]) -> tuple[Compiler, list[Schema]]:
        """Return a compiler, and the columns of every output.

        Raises:
            SqlError, SchemaError, SpecError: a query is wrong.
        """
        compiler = Compiler(graph, self.engine, {name: record.schema for name, record in sources.items()}, self.models)
        return compiler, [output_schema(graph, index, compiler) for index in range(len(graph.pipeline.spec.outputs))]

    @told("build", about_build)
    def _run(
        self,
        graph: Graph,
        fingerprint: str | None,
        datasets: Datasets,
        versions: Mapping[int, int],
        *,
        full: bool = False,
    ) -> BuildResult:
        """Write every output; without a fingerprint, as a run of no pipeline."""
        pipeline = graph.pipeline
        self.engine.get_ready()
        # All of them are described before a dataset is created, so that a wrong one leaves nothing behind.
        compiler, needed = self.described(graph, datasets.sources)
        expected = self.guard.expected(graph, needed)
        if fingerprint is None:
            ids = {name: record.id for name, record in datasets.sources.items()}
            windows = [everything(graph, output, ids, versions) for output in pipeline.spec.outputs]
        else:
            windows = self.windows(graph, fingerprint, datasets, versions, full=full)
        for output, each in zip(pipeline.spec.outputs, windows, strict=True):
            if each.rebuild and output.require_incremental and not full:
                raise _not_incremental(pipeline, output.dataset, each.reason)
        failure = _Failure()
        stages = self.stages()
        try:
            outputs = [
                self._output(
                    graph,
                    index,
                    schema,
                    compiler,
                    datasets,
                    windows[index],
                    expected[index],
                    fingerprint,
                    stages,
                    failure,
                )
                for index, schema in enumerate(needed)
            ]
            name, writer = (None, RUN_WRITER) if pipeline.one_off else (pipeline.name, WRITER)
            run = partial(self.storage.build, writer=writer, pipeline=name, build_id=self.ids.get(pipeline.name))
            return self.guard.build(name, outputs, expected, versions, partial(failure.note, pipeline), run)
        except Exception as error:
            if failure.raised is not None and failure.raised is not error:
                raise failure.raised from error
            if isinstance(error, DuplicateKey):
                raise _repeated(error, pipeline) from error
            raise
        finally:
            stages.close()

    def explain(self, pipeline: Pipeline, fingerprint: str, *, full: bool = False) -> list[BuildWindows]:
        """Return what a build of each output would read now, and why; the arguments are those of `build`."""
        found = pinned(pipeline, fingerprint, self.models)
        graph, fingerprint = read_graph(found.pipeline), found.fingerprint
        datasets = datasets_of(self.tree, pipeline)
        versions = self.pinned(pipeline, list(datasets.sources.values()))
        return self.windows(graph, fingerprint, datasets, versions, full=full)

    def pinned(self, pipeline: Pipeline, sources: Sequence[DatasetRecord]) -> dict[int, int]:
        """Return one consistent set of versions of the sources, by dataset id."""
        versions = self.ledger.heads([record.id for record in sources])
        for record in sources:
            if not versions.get(record.id):
                writer = self.writers.get(record.name)
                raise UnknownVersion(
                    f"{pipeline.title} reads dataset {record.name}, to which nothing was ever written",
                    safe="nothing was built",
                    next_step=f"lakeward build {writer}" if writer else f"lakeward dataset import {record.name} FILE",
                    pipeline=pipeline.name,
                    dataset=record.name,
                )
        return versions

    def windows(
        self,
        graph: Graph,
        fingerprint: str,
        datasets: Datasets,
        versions: Mapping[int, int],
        *,
        full: bool = False,
    ) -> list[BuildWindows]:
        """Return what a build of each output reads, and why.

        Args:
            graph: the pipeline's.
            fingerprint: its own, as it was applied.
            datasets: the pipeline's.
            versions: up to which version each source is read, by dataset id.
            full: whether everything is to be computed.
        """
        outputs = graph.pipeline.spec.outputs
        # What needs every row in any case asks the ledger nothing.
        asking = [output.dataset for output in outputs if strategy_classes()[output.strategy].takes_delta]
        written = {name: record for name, record in datasets.outputs.items() if name in asking}
        lasts = self.source_windows.last_builds([record.id for record in written.values()]) if written else {}
        ids = {name: record.id for name, record in datasets.sources.items()}
        found: list[BuildWindows] = []
        for output in outputs:
            record = written.get(output.dataset)
            last = lasts.get(record.id) if record is not None else None
            happened: Mapping[int, Happened] = {}
            if last is not None:
                new = {id_: Window(last.watermarks.get(id_, 0), versions[id_]) for id_ in ids.values()}
                happened = self.source_windows.happened(new)
            asked = Asked(last, fingerprint, ids, versions, happened, full)
            found.append(decide(graph, output, strategy_classes()[output.strategy](), asked))
        return found

    def _output(
        self,
        graph: Graph,
        index: int,
        schema: Schema,
        compiler: Compiler,
        datasets: Datasets,
        windows: BuildWindows,
        expected: Expected,
        fingerprint: str | None,
        stages: Stages,
        failure: _Failure,
    ) -> Output:
        output = graph.pipeline.spec.outputs[index]
        compiled = compiler.compile(output)
        stages.expect(compiled)
        dataset = self._dataset(graph, index, schema, datasets)
        strategy = strategy_classes()[output.strategy]()
        read = {node: (datasets.sources[name], windows.sources[node].window) for node, name in compiled.sources.items()}
        return Output(
            dataset,
            strategy.verb(rebuild=windows.rebuild),
            partial(
                self._rows,
                graph.pipeline,
                all_rows(dataset, expected),
                compiled,
                read,
                stages,
                dataset.schema.primary_key,
                failure,
            ),
            allow_empty=output.allow_empty,
            windows={record.id: window for record, window in read.values()},
            fingerprint=fingerprint,
            opened=partial(stages.opened, None if graph.pipeline.one_off else graph.pipeline.name),
        )

    def mode_of_new(self, pipeline: Pipeline, output: OutputSpec) -> str:
        """Return the mode that an output's dataset is made in: that of its arm alone, or as the writer's flag says."""
        if output.arm is not None:
            return ARM_MODES[output.arm]
        return self.storage.flags.mode_of_new(RUN_WRITER if pipeline.one_off else WRITER)

    def _dataset(self, graph: Graph, index: int, schema: Schema, datasets: Datasets) -> DatasetRecord:
        """Return the output's dataset, created if it is missing."""
        output = graph.pipeline.spec.outputs[index]
        record = datasets.outputs.get(output.dataset)
        if record is None:
            # Nobody said that a new one is meant, where an old one had the name.
            self.tree.check_unused(output.dataset)
            try:
                actor = "run" if graph.pipeline.one_off else f"pipeline {graph.pipeline.name}"
                mode = self.mode_of_new(graph.pipeline, output)
                return self.tree.create_dataset(output.dataset, schema, mode=mode, actor=actor)
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
        read: Mapping[str, tuple[DatasetRecord, Window]],
        stages: Stages,
        key: Sequence[str],
        failure: _Failure,
    ) -> pa.RecordBatchReader:
        """Start the compute of one output, in the dataset's Arrow schema. The key names rows in errors."""
        inputs = source_inputs(self.storage, read)
        windows = {node: window for node, (_, window) in read.items()}
        try:
            result = stages.run(compiled, Reads(inputs, windows, key))
            counted = self._counted(result, pipeline, dataset, failure, current())
            rows = pa.RecordBatchReader.from_batches(result.schema, counted)
            return to_reader(rows, dataset.schema, dataset=dataset.name)
        except LakewardError as error:
            failure.raised = _named(error, pipeline, dataset)
            raise failure.raised from error

    def _counted(
        self,
        result: pa.RecordBatchReader,
        pipeline: Pipeline,
        dataset: DatasetRecord,
        failure: _Failure,
        stop: Stop | None,
    ) -> Iterator[pa.RecordBatch]:
        rows = 0
        try:
            for batch in result:
                if stop is not None:
                    stop.check()
                rows += batch.num_rows
                yield batch
                if self.progress is not None:
                    self.progress(BuildProgress(pipeline.name, dataset.name, rows))
        except LakewardError as error:
            failure.raised = _named(error, pipeline, dataset)
            raise failure.raised from error


def _not_incremental(pipeline: Pipeline, dataset: str, reason: str) -> NotIncremental:
    return NotIncremental(
        f"pipeline {pipeline.name!r}, output {dataset}: a delta is required, and everything would be computed anew: "
        f"{reason}",
        safe=f"dataset {dataset} is unchanged",
        next_step=f"lakeward build {pipeline.name} --full, if that is meant",
        pipeline=pipeline.name,
        dataset=dataset,
        reason=reason,
    )


def _repeated(error: DuplicateKey, pipeline: Pipeline) -> DuplicateKey:
    """Return the error of an output with a key twice, with the pipeline in front."""
    where = error.fields.get("where")
    step = "let the query give each key once: group by it, or select distinct on it"
    named = DuplicateKey(
        f"pipeline {pipeline.name!r}: {error.message}",
        safe=error.safe,
        next_step=step if where == "input" else error.next_step,
    )
    named.fields.update(error.fields, pipeline=pipeline.name)
    return named


def _named(error: LakewardError, pipeline: Pipeline, dataset: DatasetRecord) -> LakewardError:
    """Return an error of the engine with the pipeline and output in front; any other error names its thing already."""
    if not isinstance(error, ComputeError | StorageFull):
        return error
    named = type(error)(
        f"{pipeline.title}, output {dataset.name}: {error.message}",
        safe=f"dataset {dataset.name} is unchanged",
        next_step=error.next_step,
    )
    named.fields.update(error.fields, pipeline=pipeline.name, dataset=dataset.name)
    return named
