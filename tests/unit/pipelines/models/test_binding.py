"""A node fits its model by names and types, or is refused with file and line before anything is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lakeward
from lakeward.errors import SpecError
from lakeward.pipelines.models.registered import ModelVersion
from lakeward.pipelines.project import Project
from support.onnx_models import linear

YAML = """\
pipeline: p
nodes:
  rows: {source: main.raw.rows}
  scored: {model: {input: rows, model: churn@1, features: [amount, age], outputs: {risk: float}}}
outputs:
  - {dataset: main.m.out, from: scored, strategy: replace, primary_key: [id]}
"""


@pytest.fixture
def churn(workspace: lakeward.Workspace, tmp_path: Path) -> lakeward.Workspace:
    """A workspace with the model `churn@1` and its source."""
    (tmp_path / "churn.onnx").write_bytes(linear([1.0, 2.0], name="x", output="y"))
    workspace.add_model(tmp_path / "churn.onnx", "churn", ["amount", "age"], ["risk=y"])
    columns = {"id": "long", "amount": "decimal(18,4)", "age": "int", "years": "long", "note": "string"}
    workspace.create_dataset("main.raw.rows", columns, ["id"])
    return workspace


@pytest.mark.parametrize(
    "change",
    [
        ("x", "x"),
        ("[amount, age]", "[age, amount]"),
        ("[amount, age]", "{amount: amount, age: years}"),
        ("risk: float", "risk: double"),
    ],
)
def test_names_and_types_that_fit_are_taken(
    churn: lakeward.Workspace, project: Callable[[str], Project], change: tuple[str, str]
) -> None:
    plan = churn.pipelines.plan(project(YAML.replace(*change)))
    columns = plan.pipelines[0].outputs[0].columns
    assert columns["risk"] in ("float", "double")
    assert list(columns) == ["id", "amount", "age", "years", "note", "risk"]


@pytest.mark.parametrize(
    ("old", "new", "says", "hint"),
    [
        ("churn@1", "churn", "model 'churn' names no version", "write `model: churn@1`"),
        ("churn@1", "churn@2", "model 'churn' has no version 2", "its newest is churn@1"),
        ("churn@1", "chrn@1", "unknown model 'chrn@1'; there are churn", "did you mean churn?"),
        ("churn@1", "churn@0", "unknown model 'churn@0'", "did you mean churn?"),
        ("[amount, age]", "[amount]", "needs 'age', too; it takes amount, age", "name every feature"),
        ("[amount, age]", "[amount, age, note]", "has no feature 'note'; it takes amount, age", None),
        ("[amount, age]", "[amount, agee]", "has no feature 'agee'", "did you mean age?"),
        ("[amount, age]", "{amount: amont, age: age}", "column 'amont', which 'rows' does not have", "mean amount?"),
        ("[amount, age]", "{amount: amount, age: note}", "is float, and column 'note' is string", "cast"),
        ("risk: float", "risk: int", "output 'risk' of model churn@1 is float, and int is declared", "risk: float"),
        ("risk: float", "rsk: float", "has no output 'rsk'; it gives risk", "did you mean risk?"),
        ("risk: float", "risk: flot", "can't read type 'flot'", None),
        ("risk: float", "note: string", "has no output 'note'", None),
        ("input: rows", "input: row", "unknown node 'row'; there are rows, scored", "did you mean rows?"),
        ("input: rows", "input: scored", "nodes read each other in a circle: scored → scored", None),
        ("{input", "{inpt: rows, input", "unknown key 'inpt'", "did you mean input?"),
        ("input: rows, ", "", "'input' is missing", None),
        ("[amount, age]", "[amount, amount]", "a list of different names", None),
        ("[amount, age]", "[]", "a model needs features", None),
        ("{risk: float}", "{}", "a model node needs outputs", None),
        ("{risk: float}", "{risk: float}, batch_rows: 0", "'batch_rows' is 0", None),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line(
    churn: lakeward.Workspace, project: Callable[[str], Project], old: str, new: str, says: str, hint: str | None
) -> None:
    with pytest.raises(SpecError) as raised:
        churn.pipelines.plan(project(YAML.replace(old, new)))
    error = raised.value
    assert says in error.message
    assert error.message.startswith("pipelines/p.yml:4: ")
    assert error.fields["line"] == 4
    if hint is not None:
        assert hint in (error.next_step or "")


def test_an_output_never_hides_a_column(
    churn: lakeward.Workspace, project: Callable[[str], Project], tmp_path: Path
) -> None:
    churn.add_model(tmp_path / "churn.onnx", "churn", ["amount", "age"], ["Note=y"])
    with pytest.raises(SpecError, match="output 'Note' would hide the column 'note' of 'rows'"):
        churn.pipelines.plan(project(YAML.replace("churn@1", "churn@2").replace("risk: float", "Note: float")))


def test_the_version_and_how_many_rows_at_a_time_count(
    churn: lakeward.Workspace, project: Callable[[str], Project], tmp_path: Path
) -> None:
    churn.pipelines.apply(project(YAML))
    assert churn.pipelines.plan(project(YAML.replace("}}}", "}, batch_rows: 7}}"))).pending
    assert not churn.pipelines.plan(project(YAML.replace("[amount, age]", "{age: age, amount: amount}"))).pending
    (tmp_path / "churn.onnx").write_bytes(linear([1.0, 3.0], name="x", output="y"))
    assert churn.add_model(tmp_path / "churn.onnx", "churn", ["amount", "age"], ["risk=y"]).version.version == 2
    assert not churn.pipelines.plan(project(YAML)).pending
    plan = churn.pipelines.plan(project(YAML.replace("churn@1", "churn@2")))
    assert [each.reason for each in plan.pipelines] == ["node scored changed"]


def test_a_source_that_changed_since_is_refused_before_predicting(
    churn: lakeward.Workspace, project: Callable[[str], Project]
) -> None:
    churn.pipelines.apply(project(YAML))
    churn.dataset("main.raw.rows").write([{"id": 1, "amount": 1, "age": 2, "years": 3, "note": "x"}])
    with churn.database.driver() as connection:
        connection.execute("UPDATE lakeward.datasets SET columns = replace(columns::text, '\"age\"', '\"old\"')::jsonb")
        connection.commit()
    with pytest.raises(SpecError, match="column 'age', which 'rows' does not have"):
        churn.build("p")
    assert churn.tree.find("main.m.out") is None


def test_an_applied_pipeline_gives_its_columns_in_the_order_that_was_planned(
    workspace: lakeward.Workspace, add: Callable[..., ModelVersion], project: Callable[[str], Project]
) -> None:
    add("def f(batch): ...", "long_name:double,b:double")
    workspace.create_dataset("main.raw.rows", {"id": "long", "v": "double"}, ["id"])
    text = YAML.replace("churn@1", "m@1").replace("[amount, age]", "[id, v]")
    loaded = project(text.replace("{risk: float}", "{long_name: double, b: double}"))
    plan = workspace.pipelines.apply(loaded)
    assert list(plan.pipelines[0].outputs[0].columns) == ["id", "v", "long_name", "b"]
    applied = workspace.pipelines.applied()["p"].pipeline
    assert applied is not None
    assert list(applied.spec.nodes["scored"].model.outputs) == ["long_name", "b"]  # type: ignore[union-attr]
    other = text.replace("{risk: float}", "{b: double, long_name: double}")
    assert not workspace.pipelines.plan(project(other)).pending
