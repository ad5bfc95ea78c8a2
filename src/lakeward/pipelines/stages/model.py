"""The stage of a `model` node: the rows of its input, with what a registered model predicts for each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import pyarrow as pa

from lakeward.compute.engine import BATCH_ROWS
from lakeward.pipelines.models.binding import BoundModel, bind
from lakeward.pipelines.models.model_format import Model
from lakeward.pipelines.models.predict import Prediction
from lakeward.pipelines.models.written import model_node
from lakeward.pipelines.nodes import ModelNode, StageNode
from lakeward.pipelines.origin import Origin, Path
from lakeward.pipelines.stage import Running, Site, Stage, Tools
from lakeward.storage.pump import prefetched

INPUT = "input"


@dataclass(frozen=True, kw_only=True)
class ModelStage(Stage):
    """Gives the rows of its input with the outputs of a registered model as columns more."""

    name = "model"

    model: BoundModel

    @classmethod
    def read(cls, body: dict[str, Any], path: Path, origin: Origin) -> StageNode:
        """See `Stage.read`."""
        return model_node(body, path, origin)

    @classmethod
    def bind(cls, node: StageNode, site: Site) -> ModelStage:
        """See `Stage.bind`."""
        assert isinstance(node, ModelNode)
        before = site.columns[INPUT]
        bound = bind(site.node, node, before, site.models, site.origin)
        columns = {**before, **{output.name: type_ for output, type_ in bound.outputs}}
        return cls(node=site.node, columns=columns, batch_rows=min(bound.batch_rows, BATCH_ROWS), model=bound)

    def load(self, tools: Tools) -> Running:
        """See `Stage.load`."""
        return _Predicting(self, tools.models.load(self.model.version, tools.threads))

    def made_from(self, column: str) -> Sequence[tuple[str, str]]:
        """See `Stage.made_from`. An output is made from all features."""
        return [(INPUT, each) for each in (self.model.columns if self.predicts(column) else (column,))]

    def predicts(self, column: str) -> bool:
        """Say whether a column is an output of the model."""
        return any(column == output.name for output, _ in self.model.outputs)


@dataclass(frozen=True)
class _Predicting:
    """See `Running`."""

    stage: ModelStage
    model: Model

    def needs(self, columns: Sequence[str], key: Sequence[str]) -> Mapping[str, Sequence[str]]:
        wanted = {*columns, *self.stage.model.columns, *key}
        return {INPUT: [name for name in self.stage.columns if name in wanted and not self.stage.predicts(name)]}

    def run(
        self, inputs: Mapping[str, pa.RecordBatchReader], columns: Sequence[str], key: Sequence[str]
    ) -> pa.RecordBatchReader:
        rows, prediction = inputs[INPUT], Prediction(self.stage.model, self.model, key)
        given = prediction.schema(rows.schema)
        schema = pa.schema([given.field(name) for name in columns])
        return pa.RecordBatchReader.from_batches(schema, _selected(prediction, rows, schema))


def _selected(prediction: Prediction, rows: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with prefetched(rows, size=attrgetter("nbytes")) as ahead:
        for batch in prediction.over(ahead):
            yield pa.RecordBatch.from_arrays([batch.column(name) for name in schema.names], schema=schema)
