"""Runs the queries of a build and the stages between them: rows stream from query to stage to query.

A stage that several queries of a build read runs once: its rows go to an Arrow file in the scratch directory, which
each of them reads from the start. One that a single query reads streams, and no row of it is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa

from lakeward.compute.engine import BATCH_ROWS, Engine, Input
from lakeward.compute.scratch import Scratch
from lakeward.control.records import OpenTransaction, Window
from lakeward.errors import StorageFull
from lakeward.pipelines.compile import Compiled, CompiledStage
from lakeward.pipelines.models.registry import Models
from lakeward.pipelines.stage import Building, Running, Tools


@dataclass(frozen=True)
class Reads:
    """What a build of one output reads of its sources, by the names of their nodes.

    Args:
        inputs: how each is opened.
        windows: its versions. Two outputs may read different ones.
        key: the output's primary key, for errors.
    """

    inputs: Mapping[str, Input]
    windows: Mapping[str, Window]
    key: Sequence[str] = ()


@dataclass
class Stages:
    """Runs the stages of one build. Close it when the build is done.

    Args:
        engine: runs the queries.
        models: where models are loaded from.
        scratch: the directory for rows that are read more than once.
        threads: how many a stage may use.
    """

    engine: Engine
    models: Models
    scratch: Path
    threads: int
    _readers: Counter[str] = field(default_factory=Counter)
    _loaded: dict[str, Running] = field(default_factory=dict)
    _spooled: dict[object, Path] = field(default_factory=dict)
    _undo: ExitStack = field(default_factory=ExitStack)
    _directory: Scratch | None = None
    _building: Building | None = None

    def expect(self, compiled: Compiled) -> None:
        """Count who reads each stage, and load it. Every output is told before the first one runs.

        Raises:
            LakewardError: a stage can't be loaded.
        """
        for name, each in compiled.stages.items():
            self._readers[name] += 1
            if self._readers[name] == 1:
                self._loaded[name] = each.stage.load(Tools(self.models, self.threads, self._in_build))
                for below in each.inputs.values():
                    self.expect(below)

    def run(self, compiled: Compiled, reads: Reads) -> pa.RecordBatchReader:
        """Start a query and what is before it, and return its result as a stream.

        Raises:
            ComputeError: a stage or a query failed; raised here or by the stream.
        """
        if compiled.name in compiled.stages:
            # Nothing is left to compute: from the stage straight to the output.
            stage = compiled.stages[compiled.name]
            return self._open(stage, reads, stage.schema.names)
        return self._query(compiled, compiled.sql, reads)

    def opened(self, pipeline: str | None, transaction: OpenTransaction) -> None:
        """Take note of the build, one of whose transactions was opened, before anything is computed."""
        self._building = Building(transaction.build_id, pipeline)

    def _in_build(self) -> Building:
        assert self._building is not None, "transactions are opened before anything is computed"
        return self._building

    def close(self) -> None:
        """Remove what was kept in the scratch directory."""
        self._undo.close()

    def _query(self, compiled: Compiled, sql: str, reads: Reads, batch_rows: int = BATCH_ROWS) -> pa.RecordBatchReader:
        inputs = {name: reads.inputs[name] for name in compiled.reads}
        for name, stage in compiled.stages.items():
            inputs[name] = Input(stage.schema, partial(self._open, stage, reads))
        return self.engine.run(sql, inputs, batch_rows)

    def _open(self, stage: CompiledStage, reads: Reads, columns: Sequence[str]) -> pa.RecordBatchReader:
        if self._readers[stage.stage.node] == 1:
            return self._running(stage, reads, columns)
        return _spool_reader(self._spool(stage, reads), columns)

    def _running(self, compiled: CompiledStage, reads: Reads, columns: Sequence[str]) -> pa.RecordBatchReader:
        """Return a stream of some of a stage's columns; the queries before it give no others than are needed."""
        running = self._loaded[compiled.stage.node]
        needed = running.needs(columns, reads.key)
        inputs = {
            name: self._input(compiled.inputs[name], reads, below, compiled.stage.batch_rows)
            for name, below in needed.items()
        }
        return running.run(inputs, columns, reads.key)

    def _input(self, compiled: Compiled, reads: Reads, columns: Sequence[str], batch_rows: int) -> pa.RecordBatchReader:
        if compiled.name in compiled.stages:
            return self._open(compiled.stages[compiled.name], reads, columns)
        return self._query(compiled, compiled.selecting(columns), reads, batch_rows)

    def _spool(self, compiled: CompiledStage, reads: Reads) -> Path:
        node = compiled.stage.node
        windows = [(name, reads.windows[name]) for name in sorted(compiled.sources)]
        known = (node, *((name, window.low, window.high) for name, window in windows))
        if known not in self._spooled:
            if self._directory is None:
                self._directory = Scratch(self.scratch)
                self._undo.callback(self._directory.close)
            path = self._directory.path / f"stage-{len(self._spooled)}.arrow"
            rows = self._running(compiled, reads, compiled.schema.names)
            try:
                with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, rows.schema, options=_LZ4) as writer:
                    for batch in rows:
                        writer.write_batch(batch)
            except OSError as error:
                raise StorageFull(
                    f"node {node}: its rows can't be kept in {self.scratch}: {error}",
                    safe="nothing was written",
                    next_step="free space there",
                    node=node,
                ) from error
            self._spooled[known] = path
        return self._spooled[known]


_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")


def _spool_reader(path: Path, columns: Sequence[str]) -> pa.RecordBatchReader:
    file = pa.OSFile(str(path), "rb")
    rows = pa.ipc.open_stream(file)
    schema = pa.schema([rows.schema.field(name) for name in columns])
    return pa.RecordBatchReader.from_batches(schema, (batch.select(columns) for batch in rows))
