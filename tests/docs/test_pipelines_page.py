"""docs/pipelines.md: its examples run as they are written, and its tables are those of the code."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

import lakeward
from lakeward.compute.policy import refused_function
from lakeward.errors import EmptyReplace, ExpectationFailed, SpecError
from lakeward.pipelines.expectation_spec import expectation_classes
from lakeward.pipelines.nodes import NODES
from lakeward.pipelines.project import load_project
from lakeward.pipelines.spec import OutputSpec, strategy_classes
from lakeward.pipelines.sql_file import KEYS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "pipelines.md").read_text(encoding="utf-8")


def example(language: str) -> str:
    """The first example in a language. That of what is expected is the last one in YAML."""
    return str(re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0])


def first_cells(heading: str) -> list[str]:
    """The names in the first column of the first table after a heading or another text."""
    table = re.search(r"\|---.*\n((?:\|.*\n)+)", PAGE[PAGE.index(heading) :])
    assert table is not None
    return re.findall(r"^\| `(\w+)` ", table[1], re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project of the page's first examples."""
    (tmp_path / "shop" / "pipelines").mkdir(parents=True)
    (tmp_path / "shop" / "lakeward.toml").touch()
    (tmp_path / "shop" / "pipelines" / "revenue.sql").write_text(example("sql"))
    (tmp_path / "shop" / "pipelines" / "customers.yml").write_text(example("yaml"))
    (tmp_path / "shop" / "pipelines" / "scores.py").write_text(example("python"))
    return tmp_path / "shop"


@pytest.fixture
def loaded(workspace: lakeward.Workspace) -> lakeward.Workspace:
    orders = workspace.create_dataset(
        "shop.raw.orders",
        {"order_id": "long", "customer_id": "long", "amount": "decimal(18,4)"},
        primary_key=["order_id"],
    )
    people = workspace.create_dataset(
        "shop.raw.customers", {"customer_id": "long", "name": "string", "country": "string"}
    )
    orders.write([{"order_id": n, "customer_id": n % 2, "amount": Decimal(n)} for n in range(1, 5)])
    people.write([{"customer_id": n, "name": f"c{n}", "country": c} for n, c in enumerate(("DE", "FR"))])
    return workspace


def rows(workspace: lakeward.Workspace, name: str) -> list[dict[str, object]]:
    found = workspace.dataset(f"shop.analytics.{name}").to_arrow().to_pylist()
    return sorted(found, key=lambda row: str(row["country"]))


def test_the_examples_are_planned_applied_and_built(loaded: lakeward.Workspace, folder: Path) -> None:
    plan = loaded.plan(folder)
    assert plan.pending and not [warning for pipeline in plan.pipelines for warning in pipeline.warnings]
    loaded.apply(folder)
    assert not loaded.plan(folder).pending
    assert [len(built.transactions) for built in loaded.build()] == [2, 1, 1]
    assert loaded.dataset("shop.analytics.scores").row_count == 4
    assert rows(loaded, "revenue_by_country") == [
        {"country": "DE", "orders": 2, "revenue": Decimal("6.0000")},
        {"country": "FR", "orders": 2, "revenue": Decimal("4.0000")},
    ]
    assert [(row["customers"], row["largest"]) for row in rows(loaded, "countries")] == [(1, 6), (1, 4)]
    assert [(row["name"], row["spent"]) for row in rows(loaded, "customer_totals")] == [("c0", 6), ("c1", 4)]
    assert set(loaded.dataset("shop.analytics.customer_totals").locate()) == {"iceberg"}
    assert all(built.up_to_date for built in loaded.build())
    (again,) = loaded.build("customers", full=True)
    assert not again.up_to_date


def test_the_expectations_are_judged_as_they_are_written(loaded: lakeward.Workspace, folder: Path) -> None:
    orders = loaded.create_dataset(
        "shop.raw.states", {"order_id": "long", "customer_id": "long", "amount": "double", "status": "string"}
    )
    orders.write([{"order_id": n, "customer_id": 1, "amount": 10.0**n, "status": "new"} for n in (6, 7)])
    block = re.search(r"^outputs:\n  - dataset: shop\.analytics\.orders\n(?:.+\n)+?(?=```)", PAGE, re.MULTILINE)
    assert block is not None
    for file in (folder / "pipelines").iterdir():
        file.unlink()
    text = f"pipeline: p\nnodes: {{orders: {{source: shop.raw.states}}}}\n{block[0]}"
    (folder / "pipelines" / "p.yml").write_text(text)
    loaded.apply(folder)
    (built,) = loaded.build()
    assert [(each.dataset, each.rows_in) for each in built.transactions] == [
        ("shop.analytics.orders", 1),
        ("shop.analytics.orders__quarantine", 1),
    ]
    orders.write([{"order_id": 5, "customer_id": 1, "amount": 1e6, "status": "new"}])
    with pytest.raises(ExpectationFailed, match=r"2000000\.0, and was 1000000\.0"):
        loaded.build()


def test_only_an_output_that_allows_it_may_be_empty(loaded: lakeward.Workspace, folder: Path) -> None:
    yml = folder / "pipelines" / "customers.yml"
    yml.write_text(example("yaml").replace("from totals\n", "from totals where spent > 100\n"))
    loaded.apply(folder)
    loaded.build("customers")
    assert rows(loaded, "countries") == []
    yml.write_text(yml.read_text().replace("allow_empty: true", "allow_empty: false"))
    loaded.apply(folder)
    with pytest.raises(EmptyReplace):
        loaded.build("customers")


def test_a_repeated_key_is_written_as_the_page_warns(loaded: lakeward.Workspace, folder: Path) -> None:
    sql = re.sub(r"^select.*", "select 'DE' as country from orders\n", example("sql"), flags=re.MULTILINE | re.DOTALL)
    (folder / "pipelines" / "revenue.sql").write_text(sql)
    loaded.apply(folder)
    loaded.build("revenue_by_country")
    assert rows(loaded, "revenue_by_country") == [{"country": "DE"}] * 4


def test_a_misspelt_key_is_told(folder: Path) -> None:
    (folder / "pipelines" / "revenue.sql").write_text(example("sql").replace("-- primary_key", "-- primarykey"))
    with pytest.raises(SpecError, match=r"revenue\.sql:5.*primarykey") as caught:
        load_project(folder)
    assert caught.value.next_step == "did you mean primary_key?"


def test_the_tables_are_those_of_the_code(folder: Path) -> None:
    assert first_cells("## One query") == list(KEYS)
    assert first_cells("A node has one kind") == [kind.kind for kind in NODES]
    assert sorted(first_cells("## Strategies")) == sorted(strategy_classes())
    assert sorted(first_cells("## Expectations")) == sorted(expectation_classes())
    for kind in expectation_classes().values():
        # A further table on the page says what each of them reads.
        table = PAGE[PAGE.index("## Expectations") :]
        line = next(line for line in table.splitlines() if line.startswith(f"| `{kind.name}` |"))
        keys = set(re.findall(r"`(\w+)`", line.split("|")[2]))
        assert {key for key in kind.model_fields if key not in ("on_fail", "at_least")} == keys
    keys = {field.alias or name for name, field in OutputSpec.model_fields.items()}
    assert keys == set(re.findall(r"`(\w+)`", PAGE[PAGE.index("An output needs") : PAGE.index("are as above")]))
    assert {output.arm for pipeline in load_project(folder).pipelines for output in pipeline.spec.outputs} == {
        "postgres",
        "iceberg",
        None,
    }
    assert all(refused_function(name) for name in ("read_csv", "current_setting", "getenv"))


@pytest.mark.parametrize(
    ("result", "column"),
    [
        ("sum(order_id)", "decimal(38,0)"),
        ("sum(amount)", "decimal(38,4)"),
        ("cast(sum(amount) as decimal(18, 2))", "decimal(18,2)"),
        ("cast(1 as ubigint)", "decimal(20,0)"),
        ("cast(1 as uinteger)", "long"),
        ("cast(1 as utinyint)", "int"),
        ("count(*)", "long"),
    ],
)
def test_results_have_the_types_of_the_table(
    loaded: lakeward.Workspace, folder: Path, result: str, column: str
) -> None:
    for other in ("customers.yml", "scores.py"):
        (folder / "pipelines" / other).unlink()
    header = "\n".join(re.findall(r"^-- (?!primary_key).*", example("sql"), re.MULTILINE))
    (folder / "pipelines" / "revenue.sql").write_text(f"{header}\nselect {result} as x from orders\n")
    (pipeline,) = loaded.plan(folder).pipelines
    assert pipeline.outputs[0].columns == {"x": column}


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", PAGE))
def test_the_links_lead_somewhere(link: str) -> None:
    assert (DOCS / link).exists()
