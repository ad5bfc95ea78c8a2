"""Builds with Python in them: rows out of one arm, through a function, into the other one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lakeward
from lakeward.errors import ComputeError, ExpectationFailed

OTHER = {"postgres": "iceberg", "iceberg": "postgres"}

YAML = """\
pipeline: p
nodes:
  orders: {{source: main.raw.orders}}
  few: {{transform: "select * from orders where amount > 0"}}
  customers: {{source: main.raw.customers, window: full}}
  scored: {{python: {{call: "lib/score.py:score", inputs: {{rows: few, people: customers}}, columns: {columns}{more}}}}}
  shown: {{transform: "select id, name, score from scored where score < 1000"}}
outputs:
  - {{dataset: main.m.out, from: {from_}, strategy: {strategy}, primary_key: [id], arm: {arm}{checks}}}
"""

SCORE = """\
import pyarrow as pa
from lib.rates import rate

def score(rows, people):
    names = dict(zip(*people.read_all().select(["customer", "name"]).to_pydict().values()))
    for batch in rows:
        ids, amounts = batch["id"].to_pylist(), batch["amount"].to_pylist()
        found = [rate(each) for each in amounts]
        who = [names.get(each) for each in batch["customer"].to_pylist()]
        yield pa.record_batch({"score": pa.array(found, pa.float64()), "name": who, "id": ids})
"""

RATES = "def rate(amount):\n    return 10.0 * amount\n"

Row = dict[str, Any]


@pytest.fixture(params=["postgres", "iceberg"])
def arm(request: pytest.FixtureRequest) -> str:
    """The arm of the sources; the output is on the other one."""
    return str(request.param)


@pytest.fixture
def orders(workspace: lakeward.Workspace, arm: str) -> lakeward.Dataset:
    """One source with rows 1 to 3 of amounts -1, 2 and 3, and beside it the customers 1 and 2."""
    customers = workspace.create_dataset("main.raw.customers", {"customer": "long", "name": "string"}, arm=arm)
    customers.write([{"customer": 1, "name": "Ada"}, {"customer": 2, "name": "Bo"}])
    made = workspace.create_dataset(
        "main.raw.orders", {"id": "long", "customer": "long", "amount": "long"}, ["id"], arm=arm
    )
    made.write([order(1, -1), order(2, 2), order(3, 3)])
    return made


def order(id_: int, amount: int) -> Row:
    return {"id": id_, "customer": id_ % 3, "amount": amount}


@pytest.fixture
def apply(workspace: lakeward.Workspace, write: Callable[[dict[str, str]], Path], arm: str) -> Callable[..., Path]:
    """Applies the pipeline with changes."""

    def applied(score: str = SCORE, rates: str = RATES, **change: str) -> Path:
        facts = {
            "columns": "{name: string, id: long, score: double}",
            "more": "",
            "from_": "shown",
            "strategy": "append_new",
            "arm": OTHER[arm],
            "checks": "",
            **change,
        }
        root = write({"pipelines/p.yml": YAML.format(**facts), "lib/score.py": score, "lib/rates.py": rates})
        workspace.apply(root)
        return root

    return applied


def rows(workspace: lakeward.Workspace, name: str = "main.m.out") -> dict[int, tuple[Any, Any]]:
    return {row["id"]: (row["name"], row["score"]) for row in workspace.dataset(name).to_arrow().to_pylist()}


def test_a_function_of_several_inputs_between_two_queries(
    workspace: lakeward.Workspace, orders: lakeward.Dataset, apply: Callable[..., Path]
) -> None:
    root = apply()
    # What was applied is what runs.
    (root / "lib" / "rates.py").write_text("raise RuntimeError('not the folder')\n")
    workspace.build("p")
    assert rows(workspace) == {2: ("Bo", 20.0), 3: (None, 30.0)}
    column = workspace.pipelines.lineage().up("main.m.out", "score")
    assert column.note == "made by Python: of any of these"
    assert {(each.dataset, each.column) for each in column.links} == {
        *(("main.raw.orders", name) for name in ("id", "customer", "amount")),
        *(("main.raw.customers", name) for name in ("customer", "name")),
    }
    orders.write([order(4, 200), order(5, 4)], mode="append")
    [(_, _, windows)] = workspace.pipelines.explain(["p"])
    assert not windows.delta
    assert windows.reason.startswith("node scored is Python, and any of its rows may depend on all that it reads")
    [built] = workspace.build("p")
    assert (built.transactions[0].rows_in, built.transactions[0].rows_added) == (3, 1)
    assert rows(workspace)[5] == ("Bo", 40.0)


def test_row_wise_reads_only_new_rows(
    workspace: lakeward.Workspace, orders: lakeward.Dataset, apply: Callable[..., Path]
) -> None:
    apply(more=", row_wise: true", from_="scored")
    workspace.build("p")
    orders.write([order(4, 4)], mode="append")
    [(_, _, windows)] = workspace.pipelines.explain(["p"])
    assert windows.delta, windows.reason
    [built] = workspace.build("p")
    assert (built.transactions[0].rows_in, built.transactions[0].rows_added) == (1, 1)
    assert rows(workspace) == {2: ("Bo", 20.0), 3: (None, 30.0), 4: ("Ada", 40.0)}


def test_a_changed_helper_is_a_changed_pipeline(
    workspace: lakeward.Workspace, orders: lakeward.Dataset, apply: Callable[..., Path]
) -> None:
    root = apply(more=", row_wise: true", from_="scored")
    workspace.build("p")
    (root / "lib" / "rates.py").write_text("# faster\n" + RATES)
    assert not workspace.plan(root).pending
    (root / "lib" / "rates.py").write_text(RATES.replace("10.0", "20.0"))
    [planned] = workspace.plan(root).pipelines
    assert (planned.change, planned.reason) == ("changed", "code lib/rates.py changed")
    assert [each.action for each in planned.outputs] == ["rebuild"]
    workspace.apply(root)
    workspace.build("p", full=True)
    orders.write([order(4, 4)], mode="append")
    workspace.build("p")
    assert rows(workspace)[4] == ("Ada", 80.0)


LATE = """\
import pyarrow as pa

def batch(start, **more):
    ids = list(range(start, start + 100_000))
    return pa.record_batch({{"id": ids, "name": [None] * 100_000, "score": [1.0] * 100_000, **more}})

def score(rows, people):
    for start in range(0, 400_000, 100_000):
        yield batch(start)
    {end}
"""


@pytest.mark.parametrize(
    ("end", "says", "line"),
    [
        ("raise KeyError('no rate')", r"node scored: lib/score\.py:10, in score: KeyError: 'no rate'", 10),
        ("yield batch(0, score=[1] * 100_000)", r"column 'score' as int64 from row 400001 on, and double", None),
    ],
)
def test_an_error_late_in_the_stream_leaves_all_as_it_was(
    workspace: lakeward.Workspace,
    orders: lakeward.Dataset,
    apply: Callable[..., Path],
    end: str,
    says: str,
    line: int | None,
) -> None:
    # Once straight to the output, and once through a query that reads it.
    apply(score=LATE.format(end=end), from_="shown" if line else "scored", strategy="append_always")
    with pytest.raises(ComputeError, match=says) as raised:
        workspace.build("p")
    assert (raised.value.fields["node"], raised.value.fields["line"]) == ("scored", line)
    assert raised.value.safe == "dataset main.m.out is unchanged"
    assert workspace.dataset("main.m.out").version == 0
    assert [each.status for each in workspace.transactions() if each.dataset == "main.m.out"] in ([], ["aborted"])


DEAF = """\
def score(rows, people):
    try:
        rows.read_all()
    except Exception:
        pass
    yield from ()
"""


def test_an_error_of_an_input_is_told_although_the_function_goes_on(
    workspace: lakeward.Workspace, orders: lakeward.Dataset, apply: Callable[..., Path]
) -> None:
    root = apply(score=DEAF)
    yml = root / "pipelines" / "p.yml"
    yml.write_text(yml.read_text().replace("select *", "select * replace (cast(error('bad') as bigint) as amount)"))
    workspace.apply(root)
    with pytest.raises(ComputeError, match="bad"):
        workspace.build("p")


def test_expectations_and_quarantine_see_what_a_function_gave(
    workspace: lakeward.Workspace, orders: lakeward.Dataset, apply: Callable[..., Path]
) -> None:
    apply(from_="scored", checks=", expectations: [{not_null: [name]}]")
    with pytest.raises(ExpectationFailed, match="not_null"):
        workspace.build("p")
    apply(from_="scored", checks=", expectations: [{row: {check: 'name is not null', on_fail: quarantine}}]")
    workspace.build("p")
    assert rows(workspace) == {2: ("Bo", 20.0)}
    assert rows(workspace, "main.m.out__quarantine") == {3: (None, 30.0)}


DECORATED = """\
import lakeward
import pyarrow as pa

@lakeward.transform(
    dataset="main.m.sums",
    sources={{"orders": "main.raw.orders"}},
    columns={{"customer": "int", "total": "decimal(10,2)", "tags": "list<string>"}},
    strategy="mirror",
    primary_key=["customer"],
    arm="{arm}",
)
def sums(orders):
    table = orders.read_all().group_by("customer").aggregate([("amount", "sum")])
    total = table["amount_sum"].cast(pa.decimal128(38, 2)).cast(pa.decimal128(10, 2))
    tags = pa.array([["a", None]] * len(table), pa.large_list(pa.large_string()))
    return pa.table({{"tags": tags, "total": total, "customer": table["customer"].cast("int32")}})
"""


def test_a_decorated_function_is_planned_applied_and_built(
    workspace: lakeward.Workspace, orders: lakeward.Dataset, write: Callable[[dict[str, str]], Path], arm: str
) -> None:
    root = write({"pipelines/sums.py": DECORATED.format(arm=OTHER[arm])})
    [planned] = workspace.plan(root).pipelines
    assert (planned.name, planned.change, planned.outputs[0].action) == ("sums", "added", "create")
    workspace.apply(root)
    workspace.build("sums")
    out = workspace.dataset("main.m.sums")
    assert out.schema.names == ("customer", "total", "tags")
    totals = {row["customer"]: str(row["total"]) for row in out.to_arrow().to_pylist()}
    assert totals == {1: "-1.00", 2: "2.00", 0: "3.00"}
    orders.write([order(1, 7)], mode="upsert")
    workspace.build("sums")
    assert out.to_arrow(where="customer = 1").to_pylist()[0]["tags"] == ["a", None]
    assert workspace.build("sums")[0].up_to_date
