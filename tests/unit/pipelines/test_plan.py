"""What a plan says, without Postgres."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable

import pytest

from lakeward.compute.engine import Engine
from lakeward.errors import LakewardError, SchemaError, SpecError, SqlError
from lakeward.pipelines.fingerprint import fingerprint
from lakeward.pipelines.plan import Plan
from lakeward.pipelines.planner import make_plan
from lakeward.pipelines.project import Project
from lakeward.pipelines.registry import Applied
from lakeward.pipelines.spec import Pipeline

BIG = """\
pipeline: big
nodes:
  orders: {source: main.raw.orders}
  big: {transform: "select id, amount from orders where amount > 2"}
outputs:
  - {dataset: main.m.big, from: big, strategy: replace, primary_key: [id], arm: iceberg}
"""
TOTALS = """\
-- pipeline: totals
-- sources: {big: main.m.big, customers: main.raw.customers}
-- output: main.m.totals
-- strategy: replace
select sum(amount) as total, count(*) as n from big
"""


@pytest.fixture
def plan(shelf: object, engine: Engine) -> Callable[..., Plan]:
    return lambda project, applied=None: make_plan(project, applied or {}, shelf, engine)


def stored(*pipelines: Pipeline) -> dict[str, Applied]:
    now = datetime.datetime.now(datetime.UTC)
    return {
        each.name: Applied(each.name, Pipeline.from_json(each.to_json(), "stored"), fingerprint(each), now, "me")
        for each in pipelines
    }


def test_new_pipelines_in_the_order_of_their_builds(project: Callable[..., Project], plan: Callable[..., Plan]) -> None:
    found = plan(project(z_yml=BIG, a_sql=TOTALS))
    assert list(found.lines()) == [
        "Added",
        "├── + big (new)",
        "│   └── main.m.big: create, replace on iceberg (the dataset does not exist)",
        "└── + totals (new)",
        "    ├── main.m.totals: create, replace on postgres (the dataset does not exist)",
        "    └── warning: node 'customers' is used by no output",
    ]
    assert found.pending
    assert found.pipelines[1].outputs[0].columns == {"total": "decimal(38,4)", "n": "long"}
    assert json.loads(json.dumps(found.to_json()))["next_steps"] == ["lakeward apply"]


def test_unchanged_changed_and_removed(
    project: Callable[..., Project], plan: Callable[..., Plan], shelf: object
) -> None:
    applied = stored(*project(a_yml=BIG, b_sql=TOTALS).pipelines)
    shelf.add("main.m.big", {"id": "long", "amount": "decimal(18,4)"}, ["id"])  # type: ignore[attr-defined]
    same = plan(project(a_yml="# other layout\n" + BIG, b_sql=TOTALS.replace("select", "SELECT\n  ")), applied)
    assert not same.pending
    assert [each.change for each in same.pipelines] == ["unchanged", "unchanged"]
    assert (same.pipelines[0].outputs[0].action, same.pipelines[0].outputs[0].arm) == ("keep", "postgres")
    other = plan(project(a_yml=BIG.replace("> 2", "> 3")), applied)
    assert [(each.name, each.change, each.reason) for each in other.pipelines] == [
        ("big", "changed", "node big changed"),
        ("totals", "removed", "no file of the project has it"),
    ]
    assert [each.outputs[0].action for each in other.pipelines] == ["rebuild", "leave"]
    assert other.pending
    assert other.to_json()["pending"] is True


def test_what_reads_a_changed_pipelines_dataset_changes_indirectly(
    project: Callable[..., Project], plan: Callable[..., Plan], shelf: object
) -> None:
    last = (
        TOTALS.replace("totals", "last")
        .replace("main.m.big", "main.m.totals")
        .replace("sum(amount) as total", "1 as x")
    )
    applied = stored(*project(a_yml=BIG, b_sql=TOTALS, c_sql=last).pipelines)
    changed = plan(project(a_yml=BIG.replace("> 2", "> 3"), b_sql=TOTALS, c_sql=last), applied)
    assert [(each.name, each.change, each.reason, each.pending) for each in changed.pipelines] == [
        ("big", "changed", "node big changed", True),
        ("totals", "indirect", "reads main.m.big, which pipeline big makes differently", False),
        ("last", "indirect", "reads main.m.totals, which pipeline totals makes differently", False),
    ]
    titles = [line for line in changed.lines() if not line.startswith(("├", "└", " ", "│"))]
    assert titles == ["Changed", "Indirectly changed"]
    # What an expectation or a tag says changes no row, so that nothing that reads them changes.
    for judged in (
        BIG.replace("arm: iceberg", "expectations: [primary_key]"),
        BIG.replace("pipeline: big", "pipeline: big\ntags: [daily]"),
    ):
        found = plan(project(a_yml=judged, b_sql=TOTALS, c_sql=last), applied)
        assert [each.change for each in found.pipelines] == ["changed", "unchanged", "unchanged"]
    shelf.add("main.m.big", {"id": "long", "amount": "decimal(18,4)"}, ["id"])  # type: ignore[attr-defined]
    removed = plan(project(b_sql=TOTALS, c_sql=last), applied)
    assert [(each.name, each.change) for each in removed.pipelines] == [
        ("totals", "indirect"),
        ("last", "indirect"),
        ("big", "removed"),
    ]
    assert removed.pipelines[0].reason == "reads main.m.big, which pipeline big does not write any more"
    assert [output.dataset for output in removed.destructive] == ["main.m.big"]


def test_an_output_that_moves_or_goes_is_told(project: Callable[..., Project], plan: Callable[..., Plan]) -> None:
    more = BIG + "  - {dataset: main.m.more, from: big, strategy: replace}\n"
    applied = stored(*project(a_yml=more).pipelines)
    gone = plan(project(a_yml=BIG), applied).pipelines[0].outputs
    assert [(each.dataset, each.action, each.destructive) for each in gone] == [
        ("main.m.big", "create", None),
        ("main.m.more", "leave", "no pipeline keeps it up to date any more"),
    ]
    other = BIG.replace("pipeline: big", "pipeline: other").replace("main.m.big", "main.m.more")
    moved = plan(project(a_yml=BIG, b_yml=other), applied).pipelines[0].outputs[1]
    assert (moved.action, moved.reason, moved.destructive) == ("leave", "pipeline other writes it now", None)


def test_nothing_to_do_in_an_empty_project(project: Callable[..., Project], plan: Callable[..., Plan]) -> None:
    assert not plan(project()).pending
    assert plan(project()).to_json() == {
        "pending": False,
        "destructive": [],
        "pipelines": [],
        "next_steps": [],
    }


def test_a_spec_that_another_version_stored_counts_as_changed(
    project: Callable[..., Project], plan: Callable[..., Plan]
) -> None:
    now = datetime.datetime.now(datetime.UTC)
    applied = {"big": Applied("big", None, "?", now, "me")}
    assert plan(project(a_yml=BIG), applied).pipelines[0].reason == "it was stored by another version of Lakeward"


def test_a_source_without_rows_is_a_warning(
    project: Callable[..., Project], plan: Callable[..., Plan], shelf: object
) -> None:
    shelf.add("main.raw.orders", {"id": "long", "amount": "decimal(18,4)"}, head_version=0)  # type: ignore[attr-defined]
    assert plan(project(a_yml=BIG)).pipelines[0].warnings == (
        "source main.raw.orders has no rows yet: `lakeward dataset import main.raw.orders FILE`",
    )


@pytest.mark.parametrize(
    ("old", "new", "error", "line", "says"),
    [
        ("main.raw.orders", "main.raw.ordres", SpecError, 3, "unknown dataset main.raw.ordres"),
        ("amount > 2", "amont > 2", SqlError, 4, 'Referenced column "amont" not found'),
        ("amount > 2", "", SqlError, 4, "syntax error"),
        ("from orders", "from main.raw.orders", SqlError, 4, "unknown name 'main.raw.orders'"),
        ("from orders", "from '/etc/passwd'", SqlError, 4, "is a file or address"),
        (
            "select id, amount",
            "select amount",
            SchemaError,
            6,
            "primary key column 'id' is not in the result; there are amount",
        ),
        ("select id, amount", "select id::double as id", SchemaError, 6, "primary key column 'id' is a double"),
        ("select id, amount", "select id, amount as __row_id", SchemaError, 6, "'__row_id' is reserved"),
        ("select id, amount", "select id, amount as x, id as X", SchemaError, 6, "differ only in case"),
    ],
)
def test_wrong_projects_are_told_with_file_and_line(
    project: Callable[..., Project],
    plan: Callable[..., Plan],
    old: str,
    new: str,
    error: type[LakewardError],
    line: int,
    says: str,
) -> None:
    assert old in BIG
    with pytest.raises(error) as raised:
        plan(project(a_yml=BIG.replace(old, new)))
    assert says in raised.value.message
    assert raised.value.exit_code == 2
    assert (raised.value.fields["file"], raised.value.fields["line"]) == ("pipelines/a.yml", line)


@pytest.mark.parametrize(
    ("columns", "key", "says"),
    [
        ({"id": "long"}, ["id"], "column 'amount' is new"),
        ({"id": "long", "amount": "decimal(18,4)", "more": "int"}, ["id"], "column 'more' is missing"),
        (
            {"id": "long", "amount": "double"},
            ["id"],
            "column 'amount' is double in the dataset and decimal(18,4) in the query",
        ),
        ({"id": "long", "amount": "decimal(18,4)"}, [], "has the primary key [], and the output declares [id]"),
    ],
)
def test_an_existing_dataset_of_other_columns_is_refused_with_every_difference(
    project: Callable[..., Project],
    plan: Callable[..., Plan],
    shelf: object,
    columns: dict[str, str],
    key: list[str],
    says: str,
) -> None:
    shelf.add("main.m.big", columns, key)  # type: ignore[attr-defined]
    with pytest.raises(SchemaError) as raised:
        plan(project(a_yml=BIG))
    assert says in raised.value.message
    assert raised.value.message.startswith("pipelines/a.yml:6: dataset main.m.big")
    assert raised.value.safe == "the dataset is unchanged"


def test_the_order_of_an_existing_datasets_columns_does_not_matter(
    project: Callable[..., Project], plan: Callable[..., Plan], shelf: object
) -> None:
    shelf.add("main.m.big", {"amount": "decimal(18,4)", "id": "long"}, ["id"])  # type: ignore[attr-defined]
    assert plan(project(a_yml=BIG)).pipelines[0].outputs[0].action == "rebuild"


def test_a_delta_that_can_never_be_is_refused_before_the_first_build(
    project: Callable[..., Project], plan: Callable[..., Plan]
) -> None:
    header = TOTALS.replace("replace", "append_always\n-- require_incremental: true").replace("big: main.m.big, ", "")
    rows = project(a_sql=header.replace("sum(amount) as total, count(*) as n from big", "name from customers"))
    assert plan(rows).pending
    sums = project(a_sql=header.replace("sum(amount) as total, count(*) as n from big", "count(*) as n from customers"))
    with pytest.raises(SpecError, match=r"a\.sql:5: output main\.m\.totals requires a delta, and can never have one"):
        plan(sums)
