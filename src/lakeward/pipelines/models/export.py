"""A fitted estimator → an ONNX graph that is shown to predict the same."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lakeward.pipelines.models.estimator import Written, failed, features_for, scikit_learn, takes_names
from lakeward.pipelines.models.formats.onnx import Onnx, graph_of
from lakeward.pipelines.models.model_format import Declared, DeclaredOutput
from lakeward.pipelines.models.registered import Signature

PREDICTION, PROBABILITY = "prediction", "probability"
TOLERANCE = 1e-4
"""How far a graph, which computes with floats of 32 bits, may be from its estimator: as it is for probabilities, times
the larger of the number itself and the spread of the target for numbers."""

_CHECKED_AT_ONCE = 65_536


@dataclass(frozen=True)
class Exported:
    """An ONNX model and what it takes and gives."""

    content: bytes
    signature: Signature


def export(estimator: Any, name: str, features: pa.Schema, written: Written) -> Exported:
    """Convert a fitted estimator.

    Args:
        estimator: fitted.
        name: of the model, kept in the file.
        features: their names, with the types `float` or `string`.
        written: where it came from, for errors.

    Raises:
        ComputeError: it can't be converted; names the class, and a similar one that can.
    """
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    if takes_names(estimator):
        kinds = [StringTensorType if pa.types.is_string(field.type) else FloatTensorType for field in features]
        inputs = [(field.name, kind([None, 1])) for field, kind in zip(features, kinds, strict=True)]
    else:
        inputs = [("features", FloatTensorType([None, len(features)]))]
    probable = hasattr(estimator, "predict_proba")
    try:
        # Without ZipMap, which gives a map for each row. A name of our own: the default one is random.
        graph = convert_sklearn(estimator, name, inputs, options={"zipmap": False} if probable else None)
    except Exception as error:
        raise _not_converted(estimator, error, written) from error
    content = graph.SerializeToString()
    tensors = [output.name for output in graph.graph.output]
    outputs = [DeclaredOutput(PREDICTION, tensor=tensors[0])]
    if probable:
        outputs += [
            DeclaredOutput(each, tensor=tensors[1], column=column)
            for column, each in probability_names(estimator.classes_)
        ]
    return Exported(content, Onnx().describe(content, Declared(dict.fromkeys(features.names), outputs)))


def probability_names(classes: Sequence[object]) -> Iterator[tuple[int, str]]:
    """Yield the columns of probabilities with their names: of two classes the second, else each with its label."""
    if len(classes) == 2:
        yield 1, PROBABILITY
    else:
        for column, label in enumerate(classes):
            yield column, f"{PROBABILITY}_{label}"


def check_equal(estimator: Any, exported: Exported, features: pa.Table, spread: float, written: Written) -> None:
    """Compare an ONNX model with its estimator on rows, through what a model node runs.

    Args:
        estimator: the fitted one.
        exported: what was made of it.
        features: the rows.
        spread: the standard deviation of the target; 0 for labels.
        written: where the estimator came from, for errors.

    Raises:
        ComputeError: they predict something else.
    """
    model = graph_of(exported.content, exported.signature, threads=1)
    for start in range(0, features.num_rows, _CHECKED_AT_ONCE):
        rows = features.slice(start, _CHECKED_AT_ONCE).combine_chunks()
        (batch,) = rows.to_batches()
        found = {name: np.asarray(values).reshape(-1) for name, values in model.predict(batch).items()}
        given = features_for(estimator, rows, written)
        wrong = _differences(estimator, found, given, spread)
        if wrong.any():
            first = int(np.argmax(wrong))
            row = rows.slice(first, 1).to_pylist()[0]
            missing = any(value != value for value in row.values())
            raise failed(
                written,
                f"the ONNX model predicts something else than the {type(estimator).__name__} that it was made of, for "
                f"{int(wrong.sum())} of {rows.num_rows} rows: {found[PREDICTION][first]} for "
                f"{estimator.predict(given)[first]}, where {row}",
                "let a SimpleImputer fill what is missing: not every converter keeps what an estimator does with NaN"
                if missing
                else "bring the features to a similar size (StandardScaler), or choose another estimator",
            )


def _differences(estimator: Any, found: dict[str, Any], given: Any, spread: float) -> Any:
    """Return for which rows a prediction differs. A label may, where two classes are equally probable."""
    wanted = estimator.predict(given)
    if not hasattr(estimator, "classes_"):
        allowed = TOLERANCE * np.maximum(np.abs(wanted), spread)
        return ~(np.abs(found[PREDICTION] - wanted) <= allowed)
    wrong = found[PREDICTION] != wanted.astype(found[PREDICTION].dtype)
    if not hasattr(estimator, "predict_proba"):
        return wrong
    probabilities = estimator.predict_proba(given)
    two = np.sort(probabilities, axis=1)[:, -2:]
    wrong &= two[:, -1] - two[:, 0] > TOLERANCE
    for column, name in probability_names(estimator.classes_):
        wrong |= ~(np.abs(found[name] - probabilities[:, column]) <= TOLERANCE)
    return wrong


def _not_converted(estimator: Any, error: Exception, written: Written) -> Exception:
    from skl2onnx import supported_converters

    sklearn = scikit_learn()
    parts = [each for each in estimator.get_params().values() if isinstance(each, sklearn.base.BaseEstimator)]
    last = estimator.steps[-1][1] if isinstance(estimator, sklearn.pipeline.Pipeline) else estimator
    names = [type(each).__name__ for each in (*parts, estimator)]
    # The converter names the class in some of its errors only; the others are of the one that predicts.
    culprit = next((name for name in names if f"{name}'" in str(error)), type(last).__name__)
    kind = next((each for each in ("Regressor", "Classifier") if culprit.endswith(each)), "")
    others = [each for each in supported_converters(from_sklearn=True) if each.endswith(kind) and each not in names]
    near = difflib.get_close_matches(culprit, others, n=1, cutoff=0.0)
    why = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}…"
    return failed(
        written,
        f"skl2onnx can't make an ONNX model of {culprit} ({why})",
        f"use an estimator that it knows, such as {near[0]}" if near else "use an estimator that it knows",
    )
