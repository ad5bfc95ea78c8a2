"""How well a trained model predicts, on the rows that it was trained on and on those that were held out."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

TRAIN, HOLDOUT = "train", "holdout"


@dataclass(frozen=True)
class Metric:
    """One figure.

    Args:
        metric: `mae`, `rmse`, `r2`; `accuracy`, `log_loss`, `roc_auc`.
        part: `train` or `holdout`.
        value: None: it has none for these rows, as `r2` of a single one.
        rows: of the part.
    """

    metric: str
    part: str
    value: float | None
    rows: int


def regression_metrics(part: str, wanted: Any, predicted: Any) -> Iterator[Metric]:
    """Yield the metrics of numbers: mean absolute error, root mean squared error, share of variance explained."""
    figures = importlib.import_module("sklearn.metrics")
    rows = len(wanted)
    yield Metric("mae", part, float(figures.mean_absolute_error(wanted, predicted)), rows)
    yield Metric("rmse", part, float(figures.root_mean_squared_error(wanted, predicted)), rows)
    yield Metric("r2", part, _finite(figures.r2_score(wanted, predicted)) if rows > 1 else None, rows)


def classification_metrics(
    part: str, wanted: Any, predicted: Any, probabilities: Any | None, classes: Any
) -> Iterator[Metric]:
    """Yield the metrics of labels; `log_loss` only if there are probabilities, `roc_auc` only if of two classes.

    Args:
        part: of the rows.
        wanted, predicted: the labels.
        probabilities: one column for each class, in their order; None: the estimator has none.
        classes: the labels that it was trained with.
    """
    figures = importlib.import_module("sklearn.metrics")
    rows = len(wanted)
    yield Metric("accuracy", part, float(figures.accuracy_score(wanted, predicted)), rows)
    if probabilities is None:
        return
    # A label that was only held out has no probability.
    known = bool(np.isin(wanted, classes).all())
    loss = figures.log_loss(wanted, probabilities, labels=classes) if known and len(classes) > 1 else None
    yield Metric("log_loss", part, _finite(loss), rows)
    if len(classes) == 2:
        both = known and len(np.unique(wanted)) == 2
        yield Metric(
            "roc_auc",
            part,
            _finite(figures.roc_auc_score(wanted == classes[1], probabilities[:, 1])) if both else None,
            rows,
        )


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None
