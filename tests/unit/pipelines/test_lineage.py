"""Which columns a column is made from: through every kind of node, across pipelines, and where that can't be told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lakeward
from lakeward.pipelines.lineage import NOT_TOLD, ColumnLineage, Lineage
from lakeward.pipelines.project import Project

BIG = """\
pipeline: big
nodes:
  orders: {source: main.raw.orders}
  "the people": {source: main.raw.people}
  joined: {join: {left: orders, right: "the people", on: [id], how: left, suffixes: ["", " of person"]}}
  clean:
    transform: |
      select *, amount * 2 as twice, amount + "amount of person" as both, count(*) over () as n from joined
  parts: {split: {input: clean, where: "amount > 1", true: large, false: small}}
outputs:
  - {dataset: main.m.large, from: large, strategy: replace}
  - {dataset: main.m.small, from: small, strategy: replace}
"""
SUMS = """\
-- pipeline: sums
-- sources: {l: main.m.large}
-- output: main.m.sums
-- strategy: replace
with t as (select Name as who, sum(Twice) filter (where "BOTH" > 0) as s from l group by all)
select who, s, s + 1 as more, 'x' as constant, (select max(n) from l) as most from t
"""


@pytest.fixture
def loaded(workspace: lakeward.Workspace) -> lakeward.Workspace:
    workspace.create_dataset("main.raw.orders", {"id": "long", "amount": "long"})
    workspace.create_dataset("main.raw.people", {"id": "long", "Name": "string", "amount": "long"})
    return workspace


@pytest.fixture
def lineage(loaded: lakeward.Workspace, project: Callable[..., Project]) -> Lineage:
    """Of what is applied and was never built."""
    loaded.pipelines.apply(project(a_yml=BIG, b_sql=SUMS))
    return loaded.pipelines.lineage()


def shown(tree: ColumnLineage) -> object:
    """The leaves of a tree."""
    if not tree.links:
        return {f"{tree.dataset.removeprefix('main.')}.{tree.column}"} if tree.note is None else {tree.note}
    return set[object]().union(*(shown(each) for each in tree.links))  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("column", "origins"),
    [
        ("id", {"raw.orders.id"}),
        ("Name", {"raw.people.Name"}),
        ("amount", {"raw.orders.amount"}),
        ("amount of person", {"raw.people.amount"}),
        ("twice", {"raw.orders.amount"}),
        ("both", {"raw.orders.amount", "raw.people.amount"}),
        ("n", {"from no column"}),
    ],
)
def test_through_joins_transforms_and_splits(lineage: Lineage, column: str, origins: set[str]) -> None:
    for dataset in ("main.m.large", "main.m.small"):
        tree = lineage.up(dataset, column)
        assert (tree.pipeline, shown(tree)) == ("big", origins)


@pytest.mark.parametrize(
    ("column", "direct", "origins"),
    [
        ("who", {"Name"}, {"raw.people.Name"}),
        ("s", {"twice", "both"}, {"raw.orders.amount", "raw.people.amount"}),
        ("more", {"twice", "both"}, {"raw.orders.amount", "raw.people.amount"}),
        ("constant", set(), {"from no column"}),
        ("most", {"n"}, {"from no column"}),
    ],
)
def test_across_pipelines(lineage: Lineage, column: str, direct: set[str], origins: set[str]) -> None:
    tree = lineage.up("main.m.sums", column)
    assert {each.column for each in tree.links} == direct
    assert {each.pipeline for each in tree.links} <= {"big"}
    assert shown(tree) == origins


def test_downstream(lineage: Lineage) -> None:
    tree = lineage.down("main.raw.people", "Name")
    assert {(each.dataset, each.column, each.pipeline) for each in tree.links} == {
        ("main.m.large", "Name", "big"),
        ("main.m.small", "Name", "big"),
    }
    assert shown(tree) == {"m.sums.who", "m.small.Name"}
    assert shown(lineage.down("main.raw.orders", "amount")) == {
        "m.small.amount",
        "m.small.both",
        "m.small.twice",
        "m.large.amount",
        "m.sums.s",
        "m.sums.more",
    }
    assert lineage.down("main.m.sums", "s").links == ()


@pytest.mark.parametrize(
    ("query", "column", "origins"),
    [
        ("select columns('a.*') from o", "amount", None),
        ("select o from (select id as o from o) as o", "o", ["id"]),
        ("select id, amount from o union by name select id as amount, 1::bigint as id from o", "id", None),
        ("select * from o pivot (count(*) for amount in (1, 2))", "1", None),
        ("select id, tag from o, unnest([amount, id]) as t(tag)", "id", ["id"]),
        ("select id, tag from o, unnest([amount, id]) as t(tag)", "tag", ["amount", "id"]),
        ("select id, r.range as r from o, range(3) as r", "r", []),
        ("select unnest([id, amount]) as x from o", "x", ["amount", "id"]),
        ("select struct_pack(k := amount).k as x from o", "x", ["amount"]),
        ("select list_sum(list_transform([id], lambda v: v + amount)) as x from o", "x", ["amount", "id"]),
        ("select a.id from o as a join o as b using (id)", "id", ["id"]),
        ("select (select max(b.amount) from o as b where b.id = a.id) as x from o as a", "x", ["amount"]),
        ("select case when id > 1 then amount end as x from o", "x", ["amount", "id"]),
        ("select * exclude (id) replace (id as amount) from o", "amount", ["id"]),
        ("with recursive t as (select id as i from o union all select i + 1 from t where i < 3) from t", "i", ["id"]),
        ("from (values (1, 2)) as v(a, b) select a", "a", []),
        ("select ID as x from O", "x", ["id"]),
        ("select row_number() over (order by amount) as x from o", "x", ["amount"]),
    ],
)
def test_what_is_told_is_right_and_what_is_not_understood_is_said(
    loaded: lakeward.Workspace, project: Callable[..., Project], query: str, column: str, origins: list[str] | None
) -> None:
    header = "-- pipeline: p\n-- sources: {o: main.raw.orders}\n-- output: main.m.p\n-- strategy: replace\n"
    loaded.pipelines.apply(project(a_sql=f"{header}{query}\n"))
    lineage = loaded.pipelines.lineage()
    tree = lineage.up("main.m.p", column)
    if origins is None:
        assert tree.links == () and tree.note is not None and tree.note.startswith(NOT_TOLD)
        below = lineage.down("main.raw.orders", "id")
        assert below.note is not None and NOT_TOLD in below.note
    else:
        assert [each.column for each in tree.links] == origins


def test_a_models_outputs_are_made_from_its_features(
    loaded: lakeward.Workspace, project: Callable[..., Project], tmp_path: Path
) -> None:
    spec = """\
pipeline: scores
nodes:
  o: {source: main.raw.orders}
  more: {transform: "select id, amount * 2.0::double as Twice, id + 1.0::double as next, amount as kept from o"}
  scored: {model: {input: more, model: risk@1, features: {a: Twice, b: next}, outputs: {risk: double}}}
  last: {transform: "select id, kept, risk + 1 as risk from scored"}
outputs: [{dataset: main.m.scores, from: last, strategy: replace}]
"""
    (tmp_path / "project" / "models").mkdir(parents=True)
    (tmp_path / "project" / "models" / "scoring.py").write_text("def predict(a, b):\n    return {'risk': a}\n")
    (tmp_path / "project" / "lakeward.toml").touch()
    folder = tmp_path / "project"
    features = {"a": "double", "b": "double"}
    loaded.add_model("scoring:predict", "risk", features=features, outputs=["risk:double"], project=folder)
    loaded.pipelines.apply(project(a_yml=spec))
    lineage = loaded.pipelines.lineage()
    found = {name: [each.column for each in lineage.up("main.m.scores", name).links] for name in ("id", "kept", "risk")}
    assert found == {"id": ["id"], "kept": ["amount"], "risk": ["amount", "id"]}


def test_a_source_that_is_gone_and_columns_that_are_not_made(
    loaded: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    loaded.pipelines.apply(project(a_yml=BIG))
    loaded.create_dataset("main.m.small", {"more": "long"})
    lineage = loaded.pipelines.lineage()
    assert lineage.up("main.m.small", "more").note == "the applied pipeline does not make it"
    assert lineage.up("main.raw.orders", "id") == ColumnLineage("main.raw.orders", "id")
    assert lineage.columns("main.m.large")[:2] == ["id", "amount"]
