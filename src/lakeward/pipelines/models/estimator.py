"""The estimator that a project's function returns: made, checked, seeded, and given its features as it takes them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from lakeward.errors import ComputeError, UsageError
from lakeward.pipelines.models.predict import NOTHING_WRITTEN
from lakeward.pipelines.python.code import Call
from lakeward.pipelines.python.loading import Code

REGRESSION, CLASSIFICATION = "regression", "classification"
EXTRA = "pip install 'lakeward[models]'"


@dataclass(frozen=True)
class Written:
    """A function of a project's file that returns an estimator.

    Args:
        node: the node that names it.
        call: the file and the function.
        code: the files of the project that it needs, as they were applied, by their paths.
    """

    node: str
    call: Call
    code: Mapping[str, str]


def scikit_learn() -> ModuleType:
    """Return scikit-learn.

    Raises:
        UsageError: it is not installed, with the command that does.
    """
    try:
        for module in ("pandas", "skl2onnx", "sklearn.base", "sklearn.compose", "sklearn.metrics", "sklearn.pipeline"):
            importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f"fitting a model needs packages that are not installed: {error}", next_step=EXTRA) from None
    return importlib.import_module("sklearn")


def make_estimator(written: Written, task: str, seed: int) -> Any:
    """Run a project's file, and return the estimator that its function makes.

    Every `random_state` that is None becomes the seed, so that fitting again gives the same.

    Raises:
        ComputeError: the file or function raised, or what it returned is no estimator for the task.
        UsageError: scikit-learn is not installed.
    """
    sklearn = scikit_learn()
    code = Code(written.code)
    try:
        made = vars(code.run(written.call.file))[written.call.function]()
    except (Exception, SystemExit) as error:
        raise failed(written, str(code.raised(error))[:500]) from error
    if isinstance(made, type) or not isinstance(made, sklearn.base.BaseEstimator):
        what = f"the class {made.__name__}" if isinstance(made, type) else f"a {type(made).__name__}"
        raise failed(written, f"{written.call} returned {what}, and a scikit-learn estimator or Pipeline is wanted")
    fits = {REGRESSION: sklearn.base.is_regressor, CLASSIFICATION: sklearn.base.is_classifier}
    if not fits[task](made):
        other = CLASSIFICATION if task == REGRESSION else REGRESSION
        raise failed(
            written,
            f"{type(made).__name__} is no estimator for {task}",
            f"write `task: {other}`" if fits[other](made) else f"let {written.call} return one",
        )
    unset = [
        name for name, value in made.get_params().items() if value is None and name.split("__")[-1] == "random_state"
    ]
    return made.set_params(**dict.fromkeys(unset, seed))


def takes_names(estimator: Any) -> bool:
    """Say whether an estimator begins with a ColumnTransformer, which chooses columns by their names."""
    sklearn = scikit_learn()
    first = estimator.steps[0][1] if isinstance(estimator, sklearn.pipeline.Pipeline) else estimator
    return isinstance(first, sklearn.compose.ColumnTransformer)


def features_for(estimator: Any, features: pa.Table, written: Written) -> Any:
    """Return features as an estimator takes them: a data frame if it chooses by names, else a matrix of floats.

    Raises:
        ComputeError: there are texts, and nothing in the estimator that chooses them.
    """
    if takes_names(estimator):
        return features.to_pandas()
    texts = [field.name for field in features.schema if pa.types.is_string(field.type)]
    if texts:
        raise failed(
            written,
            f"feature {texts[0]!r} is text, and {type(estimator).__name__} takes numbers",
            "begin with make_column_transformer((OneHotEncoder(handle_unknown='ignore'), "
            f"[{texts[0]!r}]), remainder='passthrough') in a Pipeline",
        )
    columns = [column.to_numpy(zero_copy_only=False) for column in features.combine_chunks().columns]
    return np.stack(columns, axis=1).astype(np.float32, copy=False)


def failed(written: Written, message: str, next_step: str | None = None) -> ComputeError:
    """Return the error of a node that can't be fitted."""
    return ComputeError(
        f"node {written.node}: {message}",
        safe=f"{NOTHING_WRITTEN}, and no version of the model was made",
        next_step=next_step or f"mend {written.call.file}, then: lakeward apply",
        node=written.node,
        file=written.call.file,
    )
