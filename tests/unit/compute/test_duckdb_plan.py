"""Reading DuckDB's plan: which input is scanned how often, with which columns."""

from __future__ import annotations

import json

import duckdb
import pyarrow as pa
import pytest

from lakeward.compute.duckdb_plan import Plan, read_plan

COLUMNS = ["id", "amount", "note", "facts"]


def plan(sql: str) -> Plan:
    connection = duckdb.connect()
    for name, prefix in (("orders", "in0"), ("customers", "in1"), ("regions", "in2")):
        types = [pa.int64(), pa.float64(), pa.string(), pa.struct([("a", pa.int64()), ("b", pa.int64())])]
        empty = pa.schema([(f"{prefix}_c{index}", type_) for index, type_ in enumerate(types)]).empty_table()
        connection.register(prefix, empty.to_reader())
        columns = ", ".join(f"{prefix}_c{index} AS {column}" for index, column in enumerate(COLUMNS))
        connection.execute(f"create temp view {name} as select {columns} from {prefix}")
    rows = connection.execute(f"explain (format json) {sql}").fetchall()
    return read_plan(json.loads(rows[0][1]))


def scans(sql: str) -> list[tuple[str, list[str]]]:
    return sorted((scan.prefix, [COLUMNS[index] for index in sorted(scan.columns)]) for scan in plan(sql).scans)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select * from orders", [("in0", COLUMNS)]),
        ("select * exclude (note, facts) from orders", [("in0", ["id", "amount"])]),
        ("select id from (select * from orders) where amount > 1", [("in0", ["id", "amount"])]),
        ("select columns('^a') from orders", [("in0", ["amount"])]),
        ("select facts.a from orders", [("in0", ["facts"])]),
        ("select id from orders where false", []),
        ("with x as (from orders) select a.id, b.note from x a join x b using (id)", [("in0", ["id", "note"])]),
        ("select a.id from orders a join orders b using (id)", [("in0", ["id"]), ("in0", ["id"])]),
        ("select o.id from orders o join customers c using (id)", [("in0", ["id"]), ("in1", ["id"])]),
    ],
)
def test_scans_and_their_columns(sql: str, expected: list[tuple[str, list[str]]]) -> None:
    assert scans(sql) == expected


def test_counting_reads_some_one_column() -> None:
    assert [(prefix, len(columns)) for prefix, columns in scans("select count(*) as n from orders")] == [("in0", 1)]


@pytest.mark.parametrize(
    ("sql", "streams"),
    [
        ("select sum(amount) as s from orders", True),
        ("select o.id from orders o join customers c using (id)", True),
        ("select a.id from orders a join orders b using (id)", False),
        ("select id from orders o where amount > (select avg(amount) from orders p where p.note = o.note)", False),
        ("select o.id from orders o join customers c using (id) join regions r using (id)", False),
        (
            "with recursive r as (select 1::bigint as id union all select id + 1 from r join orders using (id)) from r",
            False,
        ),
        ("select 1 as one", True),
    ],
)
def test_what_may_stream(sql: str, streams: bool) -> None:
    assert plan(sql).streams is streams


def test_a_scan_whose_columns_cannot_be_told_is_an_error_and_no_guess() -> None:
    with pytest.raises(ValueError, match="unknown columns"):
        read_plan([{"name": "PYTHON_ARROW_SCAN", "extra_info": {"Projections": ""}, "children": []}])
