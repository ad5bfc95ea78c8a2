"""A node that fits a model: one build, one version, on either arm, which is there if the build is committed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lakeward
from lakeward.errors import ExpectationFailed, LakewardError, SpecError, UnknownObject
from lakeward.pipelines.project import load_project

ESTIMATOR = """\
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def make():
    return make_pipeline(StandardScaler(), LinearRegression())
"""
FIT = """\
pipeline: a_fits
nodes:
  history: {{source: main.raw.flights}}
  trained:
    fit: {{input: history, estimator: "models/delay.py:make", features: [distance], target: delay, model: delay}}
outputs:
  - dataset: main.m.metrics
    from: trained
    strategy: append_always
    arm: {arm}
    expectations:
      - row: {{check: "not (metric = 'mae' and part = 'holdout') or value < {limit}"}}
"""
USED = "  used: {model: {input: history, model: delay@latest, features: [distance], outputs: {prediction: float}}}"
SCORE = """\
pipeline: 0_scores
nodes:
  flights: {source: main.raw.flights}
  scored: {model: {input: flights, model: delay@latest, features: [distance], outputs: {prediction: float}}}
outputs:
  - {dataset: main.m.scored, from: scored, strategy: append_new, primary_key: [id]}
"""


def write_flights(dataset: lakeward.Dataset, start: int, slope: float, rows: int = 300) -> None:
    """Add rows whose delay grows with the distance."""
    distance = np.random.default_rng(start).uniform(100, 3000, rows)
    dataset.write(
        [{"id": start + n, "distance": float(d), "delay": float(d * slope + n % 3)} for n, d in enumerate(distance)]
    )


@pytest.fixture
def flights(workspace: lakeward.Workspace, arm: str) -> lakeward.Dataset:
    """The source, on one of the arms."""
    columns = {"id": "long", "distance": "double", "delay": "double"}
    made = workspace.create_dataset("main.raw.flights", columns, ["id"], arm=arm)
    write_flights(made, 0, 0.01)
    return made


@pytest.fixture
def applied(workspace: lakeward.Workspace, root: Path, flights: lakeward.Dataset, arm: str) -> Callable[..., Any]:
    """Writes the project, and plans and applies it: the metrics are on the other arm than the source."""

    def apply(limit: float = 20, estimator: str = ESTIMATOR) -> Any:
        (root / "models" / "delay.py").write_text(estimator)
        other = "iceberg" if arm == "postgres" else "postgres"
        (root / "pipelines" / "fits.yml").write_text(FIT.format(limit=limit, arm=other))
        (root / "pipelines" / "scores.yml").write_text(SCORE)
        return workspace.pipelines.apply(load_project(root))

    return apply


def test_a_model_is_fitted_judged_used_and_replaced(
    workspace: lakeward.Workspace, flights: lakeward.Dataset, applied: Callable[..., Any]
) -> None:
    # The plan knows what is yet to be fitted, and the order by the model between the two.
    plan = applied()
    assert [each.name for each in plan.pipelines] == ["a_fits", "0_scores"]
    assert workspace.pipelines.pending() and not workspace.models()
    fitted, scored = workspace.build()
    version = workspace.model("delay@latest")
    assert (version.reference, version.datasets, version.build_id) == ("delay@1", ("main.m.metrics",), fitted.build_id)
    assert (version.added_by, version.origin) == ("pipeline a_fits", "models/delay.py:make")

    metrics = workspace.dataset("main.m.metrics").to_arrow().to_pylist()
    assert {(row["model"], row["version"]) for row in metrics} == {("delay", 1)}
    assert {(row["metric"], row["part"]) for row in metrics} == {
        (metric, part) for metric in ("mae", "rmse", "r2") for part in ("train", "holdout")
    }
    assert sum(row["rows"] for row in metrics if row["metric"] == "mae") == 300
    rows = workspace.dataset("main.m.scored").to_arrow().to_pylist()
    assert max(abs(row["prediction"] - (row["distance"] * 0.01 + 1)) for row in rows) < 1.5

    # Nothing to do: no row and no model.
    assert [each.build_id for each in workspace.build()] == [None, None]
    # Asked for in full: the very same model is no new version, and its metrics are measured again.
    workspace.build("a_fits", full=True)
    assert [each.reference for each in workspace.models("delay")] == ["delay@1"]
    assert workspace.dataset("main.m.metrics").row_count == 12
    assert workspace.build("0_scores")[0].build_id is None

    # New rows: a new version, next to which the old predictions are stale. All of them are made anew.
    write_flights(flights, 1000, 0.02)
    workspace.build("a_fits")
    assert workspace.model("delay").reference == "delay@2"
    assert workspace.dataset("main.m.metrics").row_count == 18
    ((_, _, windows),) = workspace.pipelines.explain(["0_scores"])
    assert windows.reason == "the last build used delay@1, and delay@2 is there now"
    assert workspace.pipelines.pending() == [
        (
            workspace.pipelines.applied()["0_scores"].pipeline,
            "main.m.scored was built with delay@1, and delay@2 is there now",
        )
    ]
    (scored,) = workspace.build("0_scores")
    assert scored.transactions[0].rows_in == 600


@pytest.mark.parametrize("arm", ["iceberg"])
def test_a_model_that_is_not_as_expected_is_never_there(
    workspace: lakeward.Workspace, flights: lakeward.Dataset, applied: Callable[..., Any]
) -> None:
    applied(limit=0.001)
    with pytest.raises(ExpectationFailed):
        workspace.build("a_fits")
    assert workspace.models() == []
    with pytest.raises(UnknownObject):
        workspace.model("delay")
    with pytest.raises(SpecError, match="model 'delay' has no version yet"):
        workspace.build("0_scores")
    # What it left goes with maintenance, its file included.
    assert [(each.kind, each.what) for each in workspace.maintain(dry_run=True).removed if each.kind == "model"] == [
        ("model", "delay@1")
    ]
    workspace.maintain()
    with workspace.database.driver() as connection:
        assert connection.execute("SELECT count(*) FROM lakeward.model_files").fetchone() == (0,)
    # Or the next one tidies it, and is the first version that anybody sees.
    with pytest.raises(ExpectationFailed):
        workspace.build("a_fits")
    applied(limit=20)
    workspace.build()
    assert [each.reference for each in workspace.models()] == ["delay@1"]


@pytest.mark.parametrize("arm", ["postgres"])
def test_another_estimator_is_another_pipeline_and_a_comment_is_not(
    workspace: lakeward.Workspace, applied: Callable[..., Any]
) -> None:
    applied()
    workspace.build()
    assert not applied(estimator=f"# Why.\n{ESTIMATOR}").pending
    plan = applied(estimator=ESTIMATOR.replace("LinearRegression()", "LinearRegression(fit_intercept=False)"))
    assert [(each.name, each.change) for each in plan.pipelines] == [("a_fits", "changed"), ("0_scores", "indirect")]
    assert plan.pipelines[0].reason == "code models/delay.py changed"
    assert plan.pipelines[1].reason == "uses model delay, which pipeline a_fits fits differently"
    assert {output.reason for output in plan.pipelines[1].outputs} == {"model delay is fitted before"}
    # The metrics of the old one stay beside the new ones'.
    workspace.build()
    versions = workspace.dataset("main.m.metrics").to_arrow()["version"].to_pylist()
    assert sorted(versions) == [1] * 6 + [2] * 6


@pytest.mark.parametrize("arm", ["postgres"])
def test_what_is_written_wrong_is_told_by_plan(
    workspace: lakeward.Workspace, root: Path, applied: Callable[..., Any]
) -> None:
    wrong = {
        "features: [distance]": ("features: [distnce]", "'distnce' is no column of 'history'"),
        "model: delay}": ("model: delay, task: classification}", "the target 'delay' is double, and classification"),
        "models/delay.py:make": ("models/delay.py:mak", "has no function 'mak'"),
        "target: delay": ("target: distance", "'distance' is a feature and the target"),
        "model: delay": ("model: delay@3", "has an @"),
        "  trained:": (f"{USED}\n  trained:", "model 'delay' is fitted here and used as delay@latest"),
    }
    applied()
    good = (root / "pipelines" / "fits.yml").read_text()
    for text, (instead, says) in wrong.items():
        assert text in good
        (root / "pipelines" / "fits.yml").write_text(good.replace(text, instead))
        with pytest.raises(LakewardError) as raised:
            workspace.pipelines.plan(load_project(root))
        assert says in str(raised.value) and "fits.yml:" in str(raised.value), text
        assert raised.value.next_step
