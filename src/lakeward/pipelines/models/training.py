"""Trains a model on the rows of a node: Arrow data → an ONNX graph that predicts the same, and metrics.

All rows are in memory, as scikit-learn needs them. For the same rows in the same order, the same file and the same
versions of the libraries, the graph and the metrics are the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lakeward.errors import ComputeError, ValueRefused
from lakeward.pipelines.models.estimator import REGRESSION, Written, failed, features_for, make_estimator
from lakeward.pipelines.models.export import Exported, check_equal, export
from lakeward.pipelines.models.features import feature_of
from lakeward.pipelines.models.metrics import HOLDOUT, TRAIN, Metric, classification_metrics, regression_metrics
from lakeward.pipelines.models.split import held_out
from lakeward.types.logical import LogicalType
from lakeward.types.refusal import Origin

FLOAT, STRING = LogicalType("float"), LogicalType("string")


@dataclass(frozen=True)
class Training:
    """What is to be trained.

    Args:
        written: the function that makes the estimator.
        model: the name of the model.
        features: the columns that it predicts from, each as a float or as text.
        target: the column that it predicts.
        task: `regression` or `classification`.
        holdout: which part of the rows is held out, from 0 to below 1.
        split_by: the column by whose values rows are held out; None: their position.
        seed: of the split, and of the estimator's chance.
        max_rows: so many rows are taken at most.
        nan_for_null: whether a number may be null, and is NaN then.
    """

    written: Written
    model: str
    features: dict[str, LogicalType]
    target: str
    task: str
    holdout: float
    split_by: str | None
    seed: int
    max_rows: int
    nan_for_null: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        by = () if self.split_by is None else (self.split_by,)
        return tuple(dict.fromkeys((*self.features, self.target, *by)))


@dataclass(frozen=True)
class Trained:
    """A model that is not registered yet, and how well it predicts."""

    exported: Exported
    metrics: tuple[Metric, ...]


def train(rows: Iterable[pa.RecordBatch], training: Training) -> Trained:
    """Train a model.

    Args:
        rows: with the columns of the training.
        training: what is to be trained.

    Raises:
        ComputeError: too many rows or none, a null where none may be, or the estimator fails, can't be converted, or
            gives something else as ONNX; each names the node.
        UsageError: scikit-learn is not installed.
    """
    estimator = make_estimator(training.written, training.task, training.seed)
    table = _gathered(rows, training)
    features, target = _features(table, training), _target(table, training)
    by = table.column(training.split_by) if training.split_by is not None else None
    out = held_out(table.num_rows, training.holdout, training.seed, by)
    if out.all() or (training.holdout > 0 and not out.any()):
        raise failed(
            training.written,
            f"of {table.num_rows} rows {int(out.sum())} are held out, and some are needed on both sides",
            "train on more rows, or change `holdout`",
        )
    given = {part: features.filter(pa.array(mask)) for part, mask in ((TRAIN, ~out), (HOLDOUT, out)) if mask.any()}
    wanted = {TRAIN: target[~out], HOLDOUT: target[out]}
    try:
        estimator.fit(features_for(estimator, given[TRAIN], training.written), wanted[TRAIN])
    except ComputeError:
        raise
    except Exception as error:
        what = f"{type(estimator).__name__} raised {type(error).__name__}: {' '.join(str(error).split())[:500]}"
        raise failed(training.written, what) from error
    exported = export(estimator, training.model, features.schema, training.written)
    spread = float(np.std(target)) if training.task == REGRESSION else 0.0
    check_equal(estimator, exported, given.get(HOLDOUT, given[TRAIN]), spread, training.written)
    metrics = [each for part in given for each in _metrics(estimator, part, given[part], wanted[part], training)]
    return Trained(exported, tuple(metrics))


def _gathered(rows: Iterable[pa.RecordBatch], training: Training) -> pa.Table:
    batches: list[pa.RecordBatch] = []
    count = 0
    for batch in rows:
        count += batch.num_rows
        if count > training.max_rows:
            raise failed(
                training.written,
                f"there are more than {training.max_rows:,} rows (max_rows), and all of them are held in memory",
                "take a part of them in a transform before it (where hash(id) % 10 = 0), or raise `max_rows`",
            )
        batches.append(batch.select(list(training.columns)))
    if count == 0:
        raise failed(training.written, "there are no rows to train on", "look at what its input gives")
    return pa.Table.from_batches(batches).combine_chunks()


def _features(table: pa.Table, training: Training) -> pa.Table:
    """Return the features as a model node gives them to the model, so that it is trained on what it will be asked."""
    columns = []
    for name, type_ in training.features.items():
        array = _array(table, name)
        may_be_null = training.nan_for_null and type_ == FLOAT
        if array.null_count and not may_be_null:
            instead = "''" if type_ == STRING else "0"
            raise failed(
                training.written,
                f"feature {name!r} is null in {array.null_count:,} of {len(array):,} rows",
                f"leave them out or fill them in a transform before it (coalesce({name}, {instead}))"
                + (
                    ""
                    if type_ == STRING
                    else ", or write `nulls: allow`: null is NaN then, for an estimator that takes it"
                ),
            )
        try:
            array = feature_of(array, type_, Origin("", 1, lambda _: {}).column(name))
        except ValueRefused as error:
            what = f"value {error.fields['value']} {error.fields['reason']}"
            raise failed(
                training.written,
                f"feature {name!r}, row {error.fields['row']}: {what}",
                f"cast it in a transform before it: cast({name} as double) as {name}",
            ) from None
        columns.append(array.fill_null(float("nan")) if may_be_null else array)
    return pa.table(columns, names=list(training.features))


def _target(table: pa.Table, training: Training) -> Any:
    array = _array(table, training.target)
    if array.null_count:
        raise failed(
            training.written,
            f"the target {training.target!r} is null in {array.null_count:,} of {len(array):,} rows",
            f"leave them out in a transform before it: where {training.target} is not null",
        )
    if training.task == REGRESSION:
        return array.cast(pa.float64()).to_numpy(zero_copy_only=False)
    if pa.types.is_string(array.type):
        return np.array(array.to_pylist(), dtype=object)
    return array.cast(pa.int64()).to_numpy(zero_copy_only=False)


def _array(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _metrics(estimator: Any, part: str, features: pa.Table, wanted: Any, training: Training) -> Iterable[Metric]:
    given = features_for(estimator, features, training.written)
    predicted = estimator.predict(given)
    if training.task == REGRESSION:
        return regression_metrics(part, wanted, predicted)
    probabilities = estimator.predict_proba(given) if hasattr(estimator, "predict_proba") else None
    return classification_metrics(part, wanted, predicted, probabilities, estimator.classes_)
