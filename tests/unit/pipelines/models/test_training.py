"""What is trained: a graph that predicts as its estimator does, the same again for the same rows; or a refusal."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakeward.errors import ComputeError, LakewardError, UsageError
from lakeward.pipelines.models.estimator import Written
from lakeward.pipelines.models.formats.onnx import graph_of
from lakeward.pipelines.models.split import held_out
from lakeward.pipelines.models.training import Trained, Training, train
from lakeward.pipelines.python.code import Call
from lakeward.types.logical import LogicalType

START = """\
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
encoded = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["carrier"]), remainder="passthrough")
def make(): return """
TYPES = {"distance": LogicalType("float"), "carrier": LogicalType("string")}


def flights(rows: int = 400) -> pa.RecordBatch:
    """Rows with a delay that grows with the distance, and is another one for each carrier."""
    random = np.random.default_rng(7)
    distance, carrier = random.uniform(100, 3000, rows), random.choice(["AA", "DL", "UA"], rows)
    delay = distance / 100 + np.where(carrier == "UA", 12.0, 0.0) + random.normal(0, 1, rows)
    columns = {"id": range(rows), "distance": distance, "carrier": carrier, "delay": delay, "late": delay > 20}
    return pa.RecordBatch.from_pydict({name: pa.array(list(values)) for name, values in columns.items()})


def trained(estimator: str, rows: pa.RecordBatch | None = None, features: str = "distance", **change: Any) -> Trained:
    """Train with a file whose function returns an estimator."""
    facts: dict[str, Any] = {
        "target": "delay",
        "task": "regression",
        "holdout": 0.2,
        "split_by": None,
        "seed": 0,
        "max_rows": 1000,
        "nan_for_null": False,
    }
    written = Written("trained", Call("models/delay.py", "make"), {"models/delay.py": START + estimator})
    named = {name: TYPES[name] for name in features.split()}
    batch = flights() if rows is None else rows
    return train([batch] if batch.num_rows else [], Training(written, "delay", named, **{**facts, **change}))


def figures(model: Trained) -> dict[tuple[str, str], float | None]:
    """Return the metrics by name and part."""
    return {(each.metric, each.part): each.value for each in model.metrics}


def test_a_forest_over_texts_predicts_as_onnx_what_it_does_and_is_the_same_again() -> None:
    forest = "make_pipeline(encoded, RandomForestRegressor(12))"
    model = trained(forest, features="distance carrier")
    assert [str(each.type) for each in model.exported.signature.features] == ["float", "string"]
    rows = flights().select(["distance", "carrier"]).set_column(0, "distance", flights()["distance"].cast("float"))
    graph = graph_of(model.exported.content, model.exported.signature, 1)
    found = np.asarray(graph.predict(rows)["prediction"]).reshape(-1)
    out = held_out(400, 0.2, 0)
    delay = flights()["delay"].to_numpy()
    # The figures are those of an estimator. They are those of the graph, too.
    known = figures(model)
    assert known["mae", "holdout"] == pytest.approx(float(np.abs(found - delay)[out].mean()), rel=1e-4)
    assert known["rmse", "train"] == pytest.approx(float(np.sqrt(((found - delay)[~out] ** 2).mean())), rel=1e-4)
    assert (known["r2", "holdout"] or 0) > 0.9
    assert {(each.part, each.rows) for each in model.metrics} == {("train", 400 - out.sum()), ("holdout", out.sum())}
    assert trained(forest, features="distance carrier").exported.content == model.exported.content
    assert trained(forest, features="distance carrier", seed=1).exported.content != model.exported.content


def test_labels_have_probabilities_and_their_own_metrics() -> None:
    model = trained("make_pipeline(StandardScaler(), LogisticRegression())", target="late", task="classification")
    assert [(each.name, str(each.type)) for each in model.exported.signature.outputs] == [
        ("prediction", "long"),
        ("probability", "float"),
    ]
    assert {metric for metric, _ in figures(model)} == {"accuracy", "log_loss", "roc_auc"}
    assert (figures(model)["roc_auc", "holdout"] or 0) > 0.9
    carriers = trained("LogisticRegression()", target="carrier", task="classification")
    names = [each.name for each in carriers.exported.signature.outputs]
    assert names == ["prediction", "probability_AA", "probability_DL", "probability_UA"]
    assert str(carriers.exported.signature.outputs[0].type) == "string"


def test_what_has_no_figure_is_null() -> None:
    rows = flights(8)
    late = pa.array([False] * 7 + [True])
    rows = rows.set_column(4, "late", late)
    model = trained("LogisticRegression()", rows, target="late", task="classification", split_by="id", seed=3)
    assert not held_out(8, 0.2, 3, rows["id"])[7]
    assert figures(model)["roc_auc", "holdout"] is None


def test_a_split_by_a_column_does_not_depend_on_the_order_or_on_other_rows() -> None:
    by = pa.array(["a", "b", None, "c"] * 500)
    out = held_out(2000, 0.5, 1, by)
    assert (out[:4].tolist() * 500) == out.tolist()
    assert held_out(4, 0.5, 1, by.slice(0, 4).take([3, 2, 1, 0])).tolist() == out[:4].tolist()[::-1]
    # By position: those that were there stay, and the share is about right.
    assert held_out(10_000, 0.2, 0)[:100].tolist() == held_out(100, 0.2, 0).tolist()
    assert abs(held_out(10_000, 0.2, 0).mean() - 0.2) < 0.02
    assert held_out(100, 0.2, 0).tolist() != held_out(100, 0.2, 1).tolist()


@pytest.mark.parametrize(
    ("estimator", "change", "says", "next_step"),
    [
        (
            "make_pipeline(encoded, HistGradientBoostingRegressor())",
            {"features": "distance carrier"},
            "an ONNX model of HistGradientBoostingRegressor",
            "such as GradientBoostingRegressor",
        ),
        ("DummyRegressor()", {}, "skl2onnx can't make an ONNX model of DummyRegressor", "such as"),
        ("LogisticRegression()", {}, "LogisticRegression is no estimator for regression", "`task: classification`"),
        ("LinearRegression", {}, "make returned the class LinearRegression, and", "mend"),
        ("1 / 0", {}, "models/delay.py:9, in make: ZeroDivisionError: division by zero", "mend models/delay.py"),
        ("LinearRegression()", {"features": "distance carrier"}, "feature 'carrier' is text", "OneHotEncoder"),
        ("LinearRegression()", {"max_rows": 399}, r"more than 399 rows \(max_rows\)", "raise `max_rows`"),
        ("LinearRegression()", {"rows": flights(0)}, "no rows to train on", "look"),
        ("LinearRegression()", {"rows": flights(1)}, "of 1 rows [01] are held out", "train on more"),
    ],
)
def test_what_can_not_be_trained_is_refused_by_name(
    estimator: str, change: dict[str, Any], says: str, next_step: str
) -> None:
    with pytest.raises(ComputeError, match=f"^node trained: .*{says}") as raised:
        trained(estimator, **change)
    assert next_step in (raised.value.next_step or "")
    assert raised.value.safe == "nothing was written, and no version of the model was made"


def test_nulls_are_counted_and_refused_unless_the_estimator_takes_them() -> None:
    rows = flights()
    for index, name, says in (
        (3, "delay", "the target 'delay' is null"),
        (1, "distance", "feature 'distance' is null"),
    ):
        holes = pa.array([None if number % 4 == 0 else value for number, value in enumerate(rows[name].to_pylist())])
        with pytest.raises(ComputeError, match=f"{says} in 100 of 400 rows"):
            trained("LinearRegression()", rows.set_column(index, name, holes))
    with pytest.raises(ComputeError, match="LinearRegression raised ValueError: Input X contains NaN"):
        trained("LinearRegression()", rows.set_column(1, "distance", holes), nan_for_null=True)
    trained(
        "make_pipeline(SimpleImputer(), LinearRegression())", rows.set_column(1, "distance", holes), nan_for_null=True
    )


def test_a_graph_that_predicts_something_else_is_refused_with_a_row() -> None:
    """A forest of scikit-learn learns where NaN goes, and its converter does not carry that over."""
    rows = flights()
    holes = pa.array([None if number % 4 == 0 else value for number, value in enumerate(rows["distance"].to_pylist())])
    with pytest.raises(
        ComputeError, match=r"predicts something else than the RandomForest.* of 71 rows: .*nan"
    ) as raised:
        trained("RandomForestRegressor(3)", rows.set_column(1, "distance", holes), nan_for_null=True)
    assert "SimpleImputer" in (raised.value.next_step or "")


def test_a_number_that_a_float_does_not_hold_is_refused_with_its_row() -> None:
    large = pa.array([*range(399), 2**24 + 1])
    with pytest.raises(LakewardError, match="feature 'distance', row 400: value 16777217 "):
        trained("LinearRegression()", flights().set_column(1, "distance", large))


def test_what_is_not_installed_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(UsageError, match=r"packages that are not installed: .*skl2onnx") as raised:
        trained("LinearRegression()")
    assert raised.value.next_step == "pip install 'lakeward[models]'"
