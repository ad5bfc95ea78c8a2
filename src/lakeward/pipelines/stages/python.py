"""The stage of a `python` node: rows that a function of the project makes of the rows of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakeward.errors import ComputeError, LakewardError, TimeLimitExceeded
from lakeward.pipelines.models.timed import SETTING
from lakeward.pipelines.nodes import PythonNode, StageNode
from lakeward.pipelines.origin import Origin, Path
from lakeward.pipelines.python.code import Call, parse_call
from lakeward.pipelines.python.loading import Code
from lakeward.pipelines.python.results import WrongRows, batches_of, checked
from lakeward.pipelines.python.written import python_node
from lakeward.pipelines.stage import Running, Site, Stage, Tools
from lakeward.time_limit import TimeLimit
from lakeward.types.logical import LogicalType, parse_type
from lakeward.types.table import arrow_type

NOTHING_WRITTEN = "nothing was written"


@dataclass(frozen=True, kw_only=True)
class PythonStage(Stage):
    """Gives what a function of the project returns for the rows of its inputs."""

    name = "python"
    opaque = True

    call: Call
    inputs: Mapping[str, Mapping[str, LogicalType]]
    code: Mapping[str, str]

    @classmethod
    def read(cls, body: dict[str, Any], path: Path, origin: Origin) -> StageNode:
        """See `Stage.read`."""
        return python_node(body, path, origin)

    @classmethod
    def bind(cls, node: StageNode, site: Site) -> PythonStage:
        """See `Stage.bind`."""
        assert isinstance(node, PythonNode)
        call = parse_call(node.python.call)
        assert call is not None, "read_spec has checked it"
        columns = {name: parse_type(text) for name, text in node.python.columns.items()}
        return cls(node=site.node, columns=columns, call=call, inputs=site.columns, code=site.code)

    def load(self, tools: Tools) -> Running:
        """See `Stage.load`. Runs the files as they were applied."""
        code = Code(self.code)
        try:
            function = vars(code.run(self.call.file))[self.call.function]
        except (Exception, SystemExit) as error:
            raised = code.raised(error)
            raise ComputeError(
                f"node {self.node}: {self.call} can't be loaded: {raised}",
                safe=NOTHING_WRITTEN,
                next_step=f"mend {raised.file or self.call.file}, then: lakeward apply",
                node=self.node,
                file=raised.file,
                line=raised.line,
            ) from error
        return _Calling(self, code, function, tools.models.time_limit)

    def made_from(self, column: str) -> Sequence[tuple[str, str]]:
        """See `Stage.made_from`. Every column may be made from every one that the function gets."""
        return [(name, each) for name, columns in self.inputs.items() for each in columns]


@dataclass(frozen=True)
class _Calling:
    """See `Running`."""

    stage: PythonStage
    code: Code
    function: Callable[..., object]
    seconds: float | None

    def needs(self, columns: Sequence[str], key: Sequence[str]) -> Mapping[str, Sequence[str]]:
        return {name: list(given) for name, given in self.stage.inputs.items()}

    def run(
        self, inputs: Mapping[str, pa.RecordBatchReader], columns: Sequence[str], key: Sequence[str]
    ) -> pa.RecordBatchReader:
        schema = pa.schema([pa.field(name, arrow_type(self.stage.columns[name])) for name in columns])
        rows = (batch.select(list(columns)) for batch in self._rows(inputs))
        return pa.RecordBatchReader.from_batches(schema, rows)

    def _rows(self, inputs: Mapping[str, pa.RecordBatchReader]) -> Iterator[pa.RecordBatch]:
        """Call the function, and yield what it gives once it is checked.

        What runs in a thread can't be ended: its time is looked at when it asks for rows and when it gives some.
        """
        limit = TimeLimit(self.seconds, _never, SETTING)
        noted: list[Exception] = []
        given = {
            name: pa.RecordBatchReader.from_batches(rows.schema, self._noting(rows, noted, limit))
            for name, rows in inputs.items()
        }
        try:
            with closing(self._called(given)) as batches:
                while (batch := self._next(batches, limit)) is not None:
                    yield batch
        except (Exception, SystemExit) as error:
            if noted:
                raise noted[0] from error
            if isinstance(error, TimeLimitExceeded):
                raise
            raise self._failed(error) from error
        finally:
            limit.close()
            for rows in inputs.values():
                rows.close()
        if noted:
            # The function went on without the rest of its input.
            raise noted[0]

    def _called(self, given: Mapping[str, pa.RecordBatchReader]) -> Generator[pa.RecordBatch]:
        with closing(batches_of(self.function(**given))) as batches:
            yield from checked(batches, self.stage.columns)

    def _next(self, batches: Iterator[pa.RecordBatch], limit: TimeLimit) -> pa.RecordBatch | None:
        with limit.running():
            batch = next(batches, None)
        self._check(limit)
        return batch

    def _check(self, limit: TimeLimit) -> None:
        if limit.expired:
            raise limit.exceeded(f"node {self.stage.node}: {self.stage.call}")

    def _noting(self, rows: pa.RecordBatchReader, noted: list[Exception], limit: TimeLimit) -> Iterator[pa.RecordBatch]:
        """Yield an input's rows; an error of theirs is noted, as what the function makes of it is not known."""
        try:
            while True:
                self._check(limit)
                with limit.waiting():
                    batch = next(rows, None)
                if batch is None:
                    return
                yield batch
        except Exception as error:
            noted.append(error)
            raise

    def _failed(self, error: BaseException) -> LakewardError:
        if isinstance(error, WrongRows):
            return self._error(f"{self.stage.call} {error}", None, None, "let the function and `columns` say the same")
        raised = self.code.raised(error)
        return self._error(str(raised), raised.file, raised.line, f"mend {raised.file or self.stage.call.file}")

    def _error(self, reason: str, file: str | None, line: int | None, mend: str) -> ComputeError:
        return ComputeError(
            f"node {self.stage.node}: {reason}",
            safe=NOTHING_WRITTEN,
            next_step=f"{mend}, then: lakeward apply",
            node=self.stage.node,
            function=str(self.stage.call),
            file=file,
            line=line,
        )


def _never() -> None:
    """End nothing: Python has no safe way to stop what a thread does."""
