"""One query, run once: what it writes, what the ledger says of it, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy

import lakeward
from lakeward.errors import (
    ComputeError,
    DuplicateKey,
    EmptyReplace,
    ExpectationFailed,
    LakewardError,
    SchemaError,
    SpecError,
    SqlError,
    UnknownObject,
    UnknownVersion,
    UsageError,
)
from lakeward.pipelines.one_off import RunRequest
from lakeward.pipelines.project import Project

ROWS = [{"id": number, "amount": Decimal(number)} for number in range(6)]
NAMES = [{"id": number, "name": f"n{number}"} for number in range(0, 6, 2)]
ORDERS = """\
pipeline: sums
nodes:
  orders: {source: main.raw.orders}
outputs:
  - dataset: main.m.kept
    from: orders
    strategy: snapshot_replace
    primary_key: [id]
    expectations: [{row: {check: "amount < 100"}}]
"""


@pytest.fixture
def loaded(workspace: lakeward.Workspace) -> lakeward.Workspace:
    """A workspace with a source on each arm."""
    columns = {"id": "long", "amount": "decimal(18,4)"}
    workspace.create_dataset("main.raw.orders", columns, ["id"]).write(ROWS)
    workspace.create_dataset("main.raw.names", {"id": "long", "name": "string"}, arm="iceberg").write(NAMES)
    return workspace


def rows(workspace: lakeward.Workspace, name: str) -> list[dict[str, Any]]:
    return sorted(workspace.dataset(name).to_arrow().to_pylist(), key=lambda row: int(row["id"]))


def ledger(workspace: lakeward.Workspace, name: str) -> list[dict[str, Any]]:
    query = sqlalchemy.text(
        "select version, verb, pipeline, writer, fingerprint, windows from lakeward.dataset_transactions "
        "where dataset_id = :id and status = 'committed' order by version"
    )
    return [dict(row) for row in workspace.database.fetch(query, {"id": workspace.tree.dataset(name).id})]


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_a_join_of_both_arms_into_a_new_dataset(loaded: lakeward.Workspace, arm: str) -> None:
    result = loaded.run(
        'select orders.id, name, amount from main.raw.orders join "main.raw.names" using (id) where amount > 1',
        into="main.tmp.joined",
        primary_key=["id"],
        arm=arm,
    )
    assert (result.pipeline, result.transactions[0].verb, result.transactions[0].row_count) == (None, "replace", 2)
    assert rows(loaded, "main.tmp.joined") == [
        {"id": 2, "name": "n2", "amount": Decimal("2.0000")},
        {"id": 4, "name": "n4", "amount": Decimal("4.0000")},
    ]
    made = loaded.dataset("main.tmp.joined")
    assert (made.arm, made.schema.primary_key) == (arm, ("id",))
    sources = {loaded.tree.dataset(f"main.raw.{name}").id for name in ("orders", "names")}
    (row,) = ledger(loaded, "main.tmp.joined")
    assert (row["pipeline"], row["writer"], row["fingerprint"]) == (None, "run.output", None)
    assert {(each["source"], each["low"], each["high"]) for each in row["windows"]} == {(id_, 0, 1) for id_ in sources}


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
@pytest.mark.parametrize(
    ("strategy", "verb", "counts"),
    [
        ("append_always", "append", (6, 0, 0, 12)),
        ("append_new", "append_new", (2, 0, 0, 8)),
        ("snapshot_replace", "upsert", (2, 3, 0, 8)),
        ("mirror", "mirror", (2, 3, 2, 6)),
        ("replace", "replace", (6, 0, 6, 6)),
    ],
)
def test_every_strategy_into_a_dataset_with_rows(
    loaded: lakeward.Workspace, arm: str, strategy: str, verb: str, counts: tuple[int, ...]
) -> None:
    loaded.run("select * from main.raw.orders", into="main.tmp.kept", primary_key=["id"], arm=arm)
    result = loaded.run(
        "select (id + 2)::bigint as id, (id * 2)::decimal(18, 4) as amount from o",
        into="main.tmp.kept",
        sources={"o": "main.raw.orders"},
        strategy=strategy,
    )
    (done,) = result.transactions
    assert done.verb == verb
    assert (done.rows_added, done.rows_updated, done.rows_deleted, done.row_count) == counts


def test_a_split_puts_every_row_into_one_of_two_datasets(loaded: lakeward.Workspace) -> None:
    result = loaded.run(
        "select * from main.raw.orders", into="main.tmp.big", where="amount > 3", rest="main.tmp.small", arm="iceberg"
    )
    assert len({each.build_id for each in result.transactions}) == 1
    assert [row["id"] for row in rows(loaded, "main.tmp.big")] == [4, 5]
    assert [row["id"] for row in rows(loaded, "main.tmp.small")] == [0, 1, 2, 3]


def test_a_query_without_sources(loaded: lakeward.Workspace) -> None:
    loaded.run("select 7::bigint as id", into="main.tmp.seven")
    assert rows(loaded, "main.tmp.seven") == [{"id": 7}]


def test_a_dataset_with_rows_needs_to_be_told_what_becomes_of_them(loaded: lakeward.Workspace) -> None:
    with pytest.raises(UsageError, match=r"dataset main\.raw\.names has rows, and nothing says") as raised:
        loaded.run("select 1::bigint as id, 'x' as name", into="main.raw.names")
    assert "append_new" in str(raised.value.next_step)
    assert rows(loaded, "main.raw.names") == NAMES


@pytest.mark.parametrize(
    ("sql", "line", "column", "says"),
    [
        ("select amount\nfrom main.raw.orders, main.raw.names\nwhere nope > 1", 3, 7, '"nope" not found'),
        ("select id\nfrom main.raw.orders as o where\n  1 = = 2", 3, 7, "syntax error"),
        ("select id from main.raw.orders; drop table x", 1, 33, "second statement"),
        ("select id from orders", 1, 16, "unknown name 'orders'"),
        ("select id from raw.orders", 1, 16, "unknown name 'raw.orders'"),
        ("select id from '/etc/passwd'", 1, 16, "is a file or address"),
        ("select id, getenv('HOME') as h\nfrom main.raw.orders", 1, 12, r"getenv() is not allowed"),
        ("select id from main.raw.orders order by count(nope)", 1, 47, '"nope" not found'),
    ],
)
def test_errors_have_their_place_in_the_query(
    loaded: lakeward.Workspace, sql: str, line: int, column: int, says: str
) -> None:
    with pytest.raises(SqlError) as raised:
        loaded.run(sql, into="main.tmp.x")
    assert says in raised.value.message
    assert (raised.value.fields["line"], raised.value.fields["column"]) == (line, column)
    assert sql.split("\n")[line - 1] in raised.value.message
    assert loaded.tree.find("main.tmp.x") is None


def test_an_undeclared_name_is_told_how_to_declare_it(loaded: lakeward.Workspace) -> None:
    with pytest.raises(SqlError) as raised:
        loaded.run("select id from orders", into="main.tmp.x")
    assert (
        raised.value.next_step == "write its full name, as in FROM main.raw.orders, or name it: --source NAME=DATASET"
    )
    with pytest.raises(SqlError) as raised:
        loaded.run("select id from ordrs", into="main.tmp.x", sources={"orders": "main.raw.orders"})
    assert raised.value.next_step == "did you mean orders?"


def test_an_error_in_the_predicate_of_a_split_has_its_place_there(loaded: lakeward.Workspace) -> None:
    with pytest.raises(SqlError) as raised:
        loaded.run("select * from main.raw.orders", into="main.tmp.x", where="amount > nope", rest="main.tmp.y")
    assert raised.value.message.startswith("--where: ")
    assert raised.value.fields["column"] == 10


@pytest.mark.parametrize(
    ("how", "error", "says"),
    [
        ({"strategy": "append_nwe"}, SpecError, "'append_nwe'"),
        ({"strategy": "mirror"}, SpecError, "needs a 'primary_key'"),
        ({"primary_key": ["nope"]}, SchemaError, "'nope' is not in the result"),
        ({"arm": "icebreg"}, SpecError, "'icebreg'"),
        ({"into": "main.raw.orders", "strategy": "mirror"}, SpecError, "is an output and also the source"),
        ({"into": "main.raw.names", "strategy": "append_always"}, SchemaError, "column 'amount' is new"),
        ({"into": "x"}, LakewardError, "full name"),
        ({"sources": {"o": "main.raw.nope"}, "sql": "select * from o"}, UnknownObject, "main.raw.nope"),
        ({"sql": "select * from main.raw.ordres"}, UnknownObject, "main.raw.ordres"),
        ({"where": "amount > 1"}, UsageError, "needs both"),
        ({"where": "amount > 1", "rest": "main.tmp.x"}, UsageError, "into one dataset"),
        ({"sql": "select * from main.raw.orders where id > 100"}, EmptyReplace, "zero rows"),
        ({"sql": "select ('x' || id)::bigint as id from main.raw.orders"}, ComputeError, "the run, output main.tmp.x"),
    ],
)
def test_what_it_refuses_leaves_everything_as_it_was(
    loaded: lakeward.Workspace, how: dict[str, Any], error: type[LakewardError], says: str
) -> None:
    with pytest.raises(error) as raised:
        loaded.run(**{"sql": "select * from main.raw.orders", "into": "main.tmp.x", **how})
    assert says in str(raised.value)
    assert (rows(loaded, "main.raw.orders"), rows(loaded, "main.raw.names")) == (ROWS, NAMES)
    made = loaded.tree.find("main.tmp.x")
    assert made is None or made.head_version == 0


def test_duplicate_keys_and_unwritten_sources_are_refused(loaded: lakeward.Workspace) -> None:
    loaded.create_dataset("main.raw.void", {"id": "long"})
    with pytest.raises(UnknownVersion, match=r"^the run reads dataset main\.raw\.void"):
        loaded.run("select * from main.raw.void", into="main.tmp.x")
    with pytest.raises(DuplicateKey):
        loaded.run(
            "select 1::bigint as id from main.raw.orders", into="main.tmp.x", strategy="append_new", primary_key=["id"]
        )


def test_a_run_into_a_pipelines_dataset_is_judged_and_told(
    loaded: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    loaded.pipelines.apply(project(a_yml=ORDERS))
    loaded.build()
    with pytest.raises(ExpectationFailed, match=r"^the run wrote nothing: 1 of its expectations failed"):
        loaded.run("select 50::bigint as id, 100::decimal(18,4) as amount", into="main.m.kept", strategy="append_new")
    assert loaded.dataset("main.m.kept").version == 1
    result = loaded.run(
        "select 50::bigint as id, 99::decimal(18,4) as amount", into="main.m.kept", strategy="append_new"
    )
    assert result.warnings == ("main.m.kept is written by pipeline 'sums', whose next build does not know of this run",)
    assert loaded.dataset("main.m.kept").row_count == 7


def test_a_run_is_no_build_that_a_delta_goes_on_from(
    loaded: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    """It has read up to a version that the pipeline has not: its next delta starts where its own last build ended."""
    loaded.pipelines.apply(project(a_yml=ORDERS))
    loaded.build()
    loaded.dataset("main.raw.orders").write([{"id": 6, "amount": 6}, {"id": 7, "amount": 7}])
    loaded.run("select * from main.raw.orders where id = 6", into="main.m.kept", strategy="append_new")
    (explained,) = loaded.pipelines.explain()
    assert explained[2].delta and explained[2].sources["orders"].window.low == 1
    (built,) = loaded.build()
    assert built.transactions[0].rows_added == 1
    assert [row["id"] for row in rows(loaded, "main.m.kept")] == list(range(8))


def test_a_dry_run_says_what_would_happen_and_changes_nothing(loaded: lakeward.Workspace) -> None:
    request = RunRequest("select id, amount from main.raw.orders", "main.tmp.x", primary_key=["id"], arm="iceberg")
    assert loaded.pipelines.plan_run(request).actions == (
        "create dataset main.tmp.x (id long, amount decimal(18,4)) on the iceberg arm",
        "replace main.tmp.x from main.raw.orders at version 1",
    )
    assert loaded.tree.find("main.tmp.x") is None
    with pytest.raises(SchemaError, match="exists with other columns"):
        loaded.pipelines.plan_run(RunRequest("select id from main.raw.orders", "main.raw.names", strategy="replace"))
    with pytest.raises(SqlError):
        loaded.pipelines.plan_run(RunRequest("select nope from main.raw.orders", "main.tmp.x"))
