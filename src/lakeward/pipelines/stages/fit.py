"""The stage of a `fit` node: a model is trained on the rows of its input and registered; its metrics are the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakeward.pipelines.models.estimator import CLASSIFICATION, REGRESSION, Written
from lakeward.pipelines.models.export import PREDICTION, PROBABILITY, Exported
from lakeward.pipelines.models.registered import Feature, ModelOutput, ModelVersion, Signature
from lakeward.pipelines.models.registry import Models
from lakeward.pipelines.models.training import FLOAT, STRING, Training, train
from lakeward.pipelines.nodes import FitNode, Fitted, StageNode
from lakeward.pipelines.origin import Origin, Path
from lakeward.pipelines.python.code import parse_call
from lakeward.pipelines.spec_checks import checked_model, known_keys, listed, mapping, nearest
from lakeward.pipelines.stage import Building, Running, Site, Stage, Tools
from lakeward.types.logical import LogicalType
from lakeward.types.table import arrow_type

INPUT = "input"
NUMBERS = ("int", "long", "float", "double", "decimal")
TARGETS = {REGRESSION: NUMBERS, CLASSIFICATION: ("string", "boolean", "int", "long")}
METRICS = {
    "model": STRING,
    "version": LogicalType("long"),
    "metric": STRING,
    "part": STRING,
    "value": LogicalType("double"),
    "rows": LogicalType("long"),
}
"""The columns that it gives."""


@dataclass(frozen=True, kw_only=True)
class FitStage(Stage):
    """Trains a model, registers it as a version that is there once the build is committed, and gives its metrics."""

    name = "fit"
    opaque = True

    training: Training
    target_type: LogicalType

    @classmethod
    def read(cls, body: dict[str, Any], path: Path, origin: Origin) -> StageNode:
        """See `Stage.read`."""
        path = (*path, "fit")
        data = mapping(body["fit"], path, origin, "`input`, `estimator`, `features`, `target` and `model`")
        known_keys(data, list(Fitted.model_fields), path, origin)
        fitted = checked_model(Fitted, data, path, origin)
        assert isinstance(fitted, Fitted)
        if parse_call(fitted.estimator) is None:
            raise origin.error(
                f"'estimator' is {fitted.estimator!r}, and names no function",
                (*path, "estimator"),
                next_step="write `estimator: models/delay.py:make`: a file by its path in the project, and a function",
            )
        twice = next((each for each in fitted.features if fitted.features.count(each) > 1), None)
        if twice is not None or fitted.target in fitted.features:
            what = (
                f"feature {twice!r} stands twice"
                if twice is not None
                else f"{fitted.target!r} is a feature and the target"
            )
            raise origin.error(what, (*path, "features"), next_step="keep one of them")
        if "@" in fitted.model:
            raise origin.error(
                f"model {fitted.model!r} has an @, and a fit node makes the next version of a name",
                (*path, "model"),
                next_step=f"write `model: {fitted.model.partition('@')[0]}`",
            )
        return FitNode(fit=fitted)

    @classmethod
    def bind(cls, node: StageNode, site: Site) -> FitStage:
        """See `Stage.bind`."""
        assert isinstance(node, FitNode)
        fit, columns = node.fit, site.columns[INPUT]
        path: Path = ("nodes", site.node, "fit")
        by = () if fit.split_by is None else (("split_by", fit.split_by),)
        for key, column in (*(("features", each) for each in fit.features), ("target", fit.target), *by):
            if column not in columns:
                raise site.origin.error(
                    f"{column!r} is no column of {fit.input!r}; there are {listed(columns)}",
                    (*path, key),
                    next_step=nearest(column, list(columns)) or "write one of these",
                )
        features = {each: _feature(each, columns[each], path, site.origin) for each in fit.features}
        target = columns[fit.target]
        if target.kind not in TARGETS[fit.task]:
            other = CLASSIFICATION if fit.task == REGRESSION else REGRESSION
            raise site.origin.error(
                f"the target {fit.target!r} is {target}, and {fit.task} predicts {listed(TARGETS[fit.task])}",
                (*path, "target"),
                next_step=f"write `task: {other}`"
                if target.kind in TARGETS[other]
                else "cast it in a transform before",
            )
        call = parse_call(fit.estimator)
        assert call is not None, "read has checked it"
        training = Training(
            written=Written(site.node, call, site.code),
            model=fit.model,
            features=features,
            target=fit.target,
            task=fit.task,
            holdout=fit.holdout,
            split_by=fit.split_by,
            seed=fit.seed,
            max_rows=fit.max_rows,
            nan_for_null=fit.nulls == "allow",
        )
        return cls(node=site.node, columns=METRICS, training=training, target_type=target)

    @property
    def signature(self) -> Signature:
        """What the model will take and give, as far as that can be told before it is trained."""
        features = tuple(Feature(name, type_) for name, type_ in self.training.features.items())
        if self.training.task == REGRESSION:
            return Signature(features, (ModelOutput(PREDICTION, FLOAT),))
        label = STRING if self.target_type.kind == "string" else LogicalType("long")
        return Signature(features, (ModelOutput(PREDICTION, label), ModelOutput(PROBABILITY, FLOAT)))

    def load(self, tools: Tools) -> Running:
        """See `Stage.load`."""
        return _Fitting(self, tools.models, tools.building)

    def made_from(self, column: str) -> Sequence[tuple[str, str]]:
        """See `Stage.made_from`. Every metric is made from all that the model was trained with."""
        return [(INPUT, each) for each in self.training.columns]


def _feature(name: str, type_: LogicalType, path: Path, origin: Origin) -> LogicalType:
    if type_.kind == "string":
        return STRING
    if type_.kind in NUMBERS:
        return FLOAT
    raise origin.error(
        f"feature {name!r} is {type_}; a model is trained on numbers and text",
        (*path, "features"),
        next_step=f"cast it in a transform before: cast({name} as int) as {name}",
    )


@dataclass(frozen=True)
class _Fitting:
    """See `Running`."""

    stage: FitStage
    models: Models
    building: Callable[[], Building]

    def needs(self, columns: Sequence[str], key: Sequence[str]) -> Mapping[str, Sequence[str]]:
        return {INPUT: self.stage.training.columns}

    def run(
        self, inputs: Mapping[str, pa.RecordBatchReader], columns: Sequence[str], key: Sequence[str]
    ) -> pa.RecordBatchReader:
        schema = pa.schema([pa.field(name, arrow_type(METRICS[name])) for name in columns])
        return pa.RecordBatchReader.from_batches(schema, self._metrics(inputs[INPUT], schema))

    def _metrics(self, rows: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        trained = train(rows, self.stage.training)
        version = self._registered(trained.exported)
        facts = [{**vars(each), "model": version.name, "version": version.version} for each in trained.metrics]
        yield pa.RecordBatch.from_pylist(facts, schema=schema)

    def _registered(self, exported: Exported) -> ModelVersion:
        training, building = self.stage.training, self.building()
        return self.models.add_fitted(
            training.model,
            exported,
            origin=str(training.written.call),
            pipeline=building.pipeline,
            build_id=building.build_id,
        )
