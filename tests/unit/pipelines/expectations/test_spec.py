"""What a file may expect: read strictly, checked against the columns, with file and line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakeward.compute.engines.duckdb import DuckDBEngine
from lakeward.errors import LakewardError, SpecError, SqlError
from lakeward.pipelines.expectation_spec import expectation_classes
from lakeward.pipelines.fingerprint import fingerprint, parts, same_rows
from lakeward.pipelines.graph import order_pipelines
from lakeward.pipelines.plan import Plan
from lakeward.pipelines.planner import make_plan
from lakeward.pipelines.project import Project
from lakeward.pipelines.spec import Pipeline

YAML = """\
pipeline: p
nodes:
  orders: {{source: main.raw.orders}}
  all: {{transform: "select *, amount::double as d, date '2024-01-01' as day from orders"}}
outputs:
  - dataset: main.m.out
    from: all
    strategy: replace
    primary_key: [id]
    expectations:
      - row_count: {{min: 1}}
      - {expectation}
"""

Planned = Callable[..., Plan]


@pytest.fixture
def plan(project: Callable[..., Project], shelf: object, engine: DuckDBEngine) -> Planned:
    def made(expectation: str, **change: str) -> Plan:
        text = YAML.format(expectation=expectation)
        for old, new in change.items():
            text = text.replace(f"{old}: ", new)
        return make_plan(project(p_yml=text), {}, shelf, engine)  # type: ignore[arg-type]

    return made


@pytest.mark.parametrize(
    "expectation",
    [
        "primary_key",
        "primary_key: {on_fail: warn}",
        "row_count: {min: 0, max: 5, on_fail: warn}",
        "not_null: [id, amount]",
        "not_null: {columns: [id], at_least: 0.95, on_fail: quarantine}",
        'row: {check: "amount < 1e7", on_fail: quarantine}',
        'row: "amount < 1e7 -- a comment"',
        'value: {sql: "sum(amount)", within_of_previous: 0.2}',
        'value: {sql: "avg(d) filter (where d > 0)", equals: 0.1, tolerance: 0}',
        'value: {sql: "count(*) / nullif(count(distinct id), 0)", max: 1}',
        "accepted_values: {column: day, values: [2024-01-01, '2024-01-02']}",
        "accepted_values: {column: amount, values: [1, 2.5]}",
        "relationship: {columns: [customer_id], dataset: main.raw.customers, key: [customer_id]}",
        "relationship: {columns: [id], dataset: main.m.out, key: [customer_id]}",
    ],
)
def test_what_the_design_pins_is_read_and_stored_as_it_is_written(
    plan: Planned, project: Callable[..., Project], expectation: str
) -> None:
    assert plan(expectation).pipelines[0].warnings == ()
    [pipeline] = project(p_yml=YAML.format(expectation=expectation)).pipelines
    assert Pipeline.from_json(pipeline.to_json(), "stored").spec == pipeline.spec


@pytest.mark.parametrize(
    ("expectation", "words"),
    [
        ("row_counts: {min: 1}", "unknown expectation 'row_counts'.*did you mean row_count?"),
        ("row_count", "'row_count' needs keys: min, max, on_fail"),
        ("row_count: 5", "'row_count' is 5, and should be a mapping"),
        ("row_count: {}", "needs 'min' or 'max'"),
        ("row_count: {min: 2, max: 1}", "'min' 2 is more than 'max' 1"),
        ("row_count: {min: many}", "'min' is 'many', and should be"),
        ("row_count: {min: 1, on_fail: quarantine}", "it judges no single row"),
        ("row_count: {minimum: 1}", "unknown key 'minimum'"),
        ("primary_key: {on_fail: quarantine}", "nothing says which of two rows with one key stays"),
        ("primary_key: {on_fail: stop}", "'on_fail' is 'stop', and should be fail, warn or quarantine"),
        ("not_null: []", "'columns' is empty"),
        ("not_null: [id, amonut]", "unknown column 'amonut'; there are id"),
        ("not_null: {columns: [id], at_least: 95}", "should be a share between 0 and 1"),
        ("{row: {check: 'id > 0'}, not_null: [id]}", "should be one of accepted_values, not_null"),
        ('row: {check: ""}', "'check' is empty"),
        ('row: {check: "amonut > 0"}', "amonut"),
        ('row: {check: "id + 1"}', "is int|is long, and should be true or false"),
        ('row: {check: "id in (select 1)"}', "not one predicate over the columns of a row"),
        ('row: {check: "sum(id) > 0"}', "not one predicate over the columns of a row"),
        ('row: {check: "1) or (1=1"}', "syntax error"),
        ('row: {check: "true); drop table rows; --"}', "second statement|syntax error"),
        ("row: {check: \"exists (select * from read_csv('x'))\"}", "read_csv"),
        ('value: {sql: "sum(amount)"}', "'value' needs 'min', 'max', 'equals' or 'within_of_previous'"),
        ('value: {sql: "amount", min: 1}', "must appear in the GROUP BY"),
        ('value: {sql: "max(day)", min: 1}', "is date, and should be a number"),
        ('value: {sql: "max(d)", equals: 1}', "which `equals` needs a `tolerance` for"),
        ('value: {sql: "sum(amount) from rows_ where 1=1 --", min: 1}', "not one aggregate|syntax error"),
        ('value: {sql: "sum(amount), 1", min: 1}', "not one aggregate"),
        ('value: {sql: "(select 1)", min: 1}', "not one aggregate"),
        ('value: {sql: "sum(id)", min: 1, tolerance: 1}', "'tolerance' goes with 'equals'"),
        ('value: {sql: "sum(id)", within_of_previous: -1}', "should be 0 or more"),
        ('value: {sql: "sum(id)", min: 1, on_no_data: maybe}', "should be fail or pass"),
        ("accepted_values: {column: id, values: []}", "'values' is empty"),
        ("accepted_values: {column: id, values: [1, one]}", "'one' is no long"),
        ("accepted_values: {column: id, values: [null]}", "`nulls` says whether a null passes"),
        ("accepted_values: {column: idd, values: [1]}", "unknown column 'idd'"),
        ("relationship: {columns: [id], dataset: main.raw.custoners, key: [id]}", "did you mean main.raw.customers"),
        ("relationship: {columns: [id], dataset: main.raw.customers, key: [id]}", "unknown column 'id'"),
        ("relationship: {columns: [id], dataset: main.raw.customers, key: [name]}", "they are never compared"),
        ("relationship: {columns: [id], dataset: main.raw.customers, key: []}", "they are compared one by one"),
        ("relationship: {columns: [id], dataset: main.m.out, key: [id], on_fail: quarantine}", "same build writes it"),
    ],
)  # fmt: skip
def test_s03_what_is_wrong_is_told_with_file_and_line(plan: Planned, expectation: str, words: str) -> None:
    with pytest.raises((SpecError, SqlError), match=f"(?s){words}") as caught:
        plan(expectation)
    assert str(caught.value).startswith("pipelines/p.yml:12:")
    assert (caught.value.fields["file"], caught.value.fields["line"]) == ("pipelines/p.yml", 12)


def test_a_key_must_be_declared_to_be_expected(plan: Planned) -> None:
    with pytest.raises(LakewardError, match="the output has no 'primary_key' to expect"):
        plan("primary_key", primary_key="primary_key: [] #")


def test_x03_not_in_with_a_null_is_warned_of(plan: Planned) -> None:
    [warning] = plan('row: {check: "id NOT IN (1, NULL)"}').pipelines[0].warnings
    assert warning.startswith("pipelines/p.yml:12: NOT id IN (1, NULL) is never true, because its list has a null")
    query = 'transform: "select * from orders where id not in (select customer_id from orders)"} #'
    [warning] = plan("primary_key", transform=query).pipelines[0].warnings
    assert "node 'all'" in warning and "write NOT EXISTS, or an anti join" in warning


def test_what_is_expected_is_part_of_the_meaning_and_only_a_quarantine_of_the_rows(
    project: Callable[..., Project],
) -> None:
    def read(expectation: str) -> Pipeline:
        return project(p_yml=YAML.format(expectation=expectation)).pipelines[0]

    one = read('row: {check: "id > 0"}')
    assert fingerprint(one) == fingerprint(read('row: "id>0 -- the same"'))
    other = read('row: {check: "id > 1"}')
    assert fingerprint(one) != fingerprint(other)
    assert same_rows(fingerprint(one), fingerprint(other))
    taken = read('row: {check: "id > 1", on_fail: quarantine}')
    assert not same_rows(fingerprint(one), fingerprint(taken))
    assert [part for part in parts(taken) if "main.m.out" in part] == [
        "output main.m.out",
        "expectations of main.m.out",
        "quarantine of main.m.out",
    ]


def test_a_sql_file_says_it_in_its_header(project: Callable[..., Project], shelf: object, engine: DuckDBEngine) -> None:
    text = (
        "-- pipeline: p\n-- sources: {orders: main.raw.orders}\n-- output: main.m.out\n-- strategy: replace\n"
        "-- expectations: [{row_count: {min: 1}}, {not_null: [no_column]}]\nselect * from orders\n"
    )
    with pytest.raises(SpecError, match=r"pipelines/p\.sql:5: unknown column 'no_column'"):
        make_plan(project(p_sql=text), {}, shelf, engine)  # type: ignore[arg-type]


def test_pipelines_run_after_those_whose_rows_they_are_expected_to_know(project: Callable[..., Project]) -> None:
    known = YAML.format(expectation="primary_key").replace(": p\n", ": z\n").replace("main.m.out", "main.m.z")
    text = YAML.format(expectation="relationship: {columns: [id], dataset: main.m.z, key: [id]}")
    loaded = project(p_yml=text, z_yml=known)
    assert [each.name for each in order_pipelines(loaded.pipelines)] == ["z", "p"]


def test_a_quarantine_is_read_and_written_like_any_dataset(
    project: Callable[..., Project], shelf: object, engine: DuckDBEngine
) -> None:
    text = YAML.format(expectation='row: {check: "id > 0", on_fail: quarantine}')
    reader = (
        "-- pipeline: a\n-- sources: {bad: main.m.out__quarantine}\n-- output: main.m.bad\n-- strategy: replace\n"
        "select id, reason, build from bad\n"
    )
    plan = make_plan(project(p_yml=text, a_sql=reader), {}, shelf, engine)  # type: ignore[arg-type]
    assert [each.name for each in plan.pipelines] == ["p", "a"]
    assert plan.pipelines[1].outputs[0].columns == {"id": "long", "reason": "string", "build": "uuid"}
    writer = reader.replace("main.m.bad", "main.m.out__quarantine").replace("{bad: main.m.out__quarantine}", "{}")
    writer = writer.replace("select id, reason, build from bad", "select 1 as id")
    with pytest.raises(SpecError, match=r"where bad rows of main\.m\.out go, is also written by pipeline 'a'"):
        make_plan(project(p_yml=text, a_sql=writer), {}, shelf, engine)  # type: ignore[arg-type]


def test_every_kind_is_found_by_discovery_and_says_what_it_is() -> None:
    assert list(expectation_classes()) == [
        "accepted_values",
        "not_null",
        "primary_key",
        "relationship",
        "row",
        "row_count",
        "value",
    ]
