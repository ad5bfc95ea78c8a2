"""The DuckDB engine: sealed, within its memory, exact in types, and never silently without rows."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from hostile_sql import HOSTILE
from lakeward.compute import engines
from lakeward.compute.engine import Engine, Input
from lakeward.compute.engines.duckdb import DuckDBEngine
from lakeward.discovery import discover
from lakeward.errors import ComputeError, LakewardError, SchemaError, SqlError
from lakeward.types.conform import to_reader
from lakeward.types.schema import Schema

UTC = datetime.UTC
SCHEMA = Schema.declare(
    {
        "id": "long",
        "amount": "decimal(18,4)",
        'odd "name", or two': "string",
        "token": "uuid",
        "facts": "json",
        "seen": "timestamptz",
        "items": "list<int>",
        "nested": "struct<a: int, b: json>",
    }
)
ROWS = [
    {
        "id": number,
        "amount": Decimal(number) / 4,
        'odd "name", or two': f"text {number}",
        "token": uuid.UUID(int=number),
        "facts": f'{{"a":{number}}}',
        "seen": datetime.datetime(2020, 1, 1, number, tzinfo=UTC),
        "items": [number, number + 1],
        "nested": {"a": number, "b": "[1]"},
    }
    for number in range(10)
]
TABLE = to_reader(ROWS, SCHEMA, dataset="main.raw.orders").read_all()


class Source:
    """An input that notes how it is opened."""

    def __init__(self, table: pa.Table = TABLE, schema: Schema = SCHEMA) -> None:
        self.table = table
        self.opened: list[list[str]] = []
        self.input = Input(schema, self.open)

    def open(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        self.opened.append(list(columns))
        return self.table.select(list(columns)).to_reader(3)


@pytest.fixture
def engine(tmp_path: Path) -> DuckDBEngine:
    return DuckDBEngine(memory_limit="300MB", threads=2, temp_directory=tmp_path / "scratch")


def rows(engine: Engine, sql: str, **inputs: Source) -> list[dict[str, object]]:
    opened = {name: source.input for name, source in (inputs or {"orders": Source()}).items()}
    return engine.run(sql, opened).read_all().to_pylist()


def test_it_is_found_by_discovery() -> None:
    assert discover(engines, Engine) == {"duckdb": DuckDBEngine}


# The seal


@pytest.mark.parametrize("sql", HOSTILE.values(), ids=list(HOSTILE))
def test_s03_hostile_sql_is_refused_by_the_engine_alone(engine: DuckDBEngine, sql: str) -> None:
    source = Source()
    with pytest.raises(SqlError):
        engine.run(sql, {"orders": source.input})
    with pytest.raises(SqlError):
        engine.describe(sql, {"orders": SCHEMA})
    with pytest.raises(SqlError):
        engine.describe("select 1 as one", {"orders": SCHEMA}, {"step": sql})
    assert source.opened == []


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("select * from read_csv('{file}')", "file system operations are disabled"),
        ("select * from '{file}'", "does not exist"),
        ("copy (select 1) to '{file}.csv'", "file system operations are disabled"),
        ("attach '{file}.db'", "file system operations are disabled"),
        ("install httpfs", "disabled"),
        ("load httpfs", "disabled"),
        ("set memory_limit = '100GB'", "locked"),
        ("set enable_external_access = true", "locked|Cannot"),
        ("select * from a_python_variable", "does not exist"),
    ],
)
def test_the_connection_itself_is_sealed(engine: DuckDBEngine, tmp_path: Path, statement: str, says: str) -> None:
    """Behind both parsers stands the connection: it can't reach out even for text that nobody checked."""
    a_python_variable = TABLE
    (tmp_path / "file").write_text("a\n1\n")
    connection = engine._connect(tmp_path / "scratch")
    with pytest.raises(Exception, match=says):
        connection.execute(statement.format(file=tmp_path / "file")).fetchall()
    assert a_python_variable is TABLE
    connection.close()


def test_s03_n01_odd_names_of_inputs_and_columns_work(engine: DuckDBEngine) -> None:
    schema = Schema.declare(
        dict.fromkeys(('x"; drop table t; --', 'a\\"b', "a'b", "select", "a.b", "a/b", "🦆"), "long")
    )
    table = pa.table({name: [number] for number, name in enumerate(schema.names)})
    for name in ('x"; drop table t; --', "a'b", "two words", "in0", "select", "🦆"):
        quoted = '"' + name.replace('"', '""') + '"'
        source = Source(table, schema)
        assert engine.run(f"select * from {quoted}", {name: source.input}).read_all().to_pylist() == table.to_pylist()
        assert engine.describe(f"select * from {quoted}", {name: schema}) == {
            column.name: column.type for column in schema.columns
        }


# What is read

RECURSIVE = """
with recursive r as (
    select id from orders where id = 0 union all select o.id from r join orders o on o.id = r.id + 1
)
select count(*) as n from r
"""


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("select id from orders where amount > 1", ["id", "amount"]),
        ("select * exclude (token) from (select id, token, amount from orders)", ["id", "amount"]),
        ("select a.id from orders a join orders b using (id)", ["id"]),
        ("with o as (from orders) select a.amount, b.id from o a join o b using (id)", ["id", "amount"]),
    ],
)
def test_an_input_is_opened_once_with_the_needed_columns_only(
    engine: DuckDBEngine, sql: str, columns: list[str]
) -> None:
    source = Source()
    engine.run(sql, {"orders": source.input, "unused": Source().input}).read_all()
    assert source.opened == [columns]


def test_an_input_that_no_row_can_come_from_is_not_opened(engine: DuckDBEngine) -> None:
    source, unused = Source(), Source()
    assert rows(engine, "select id from orders where false", orders=source, unused=unused) == []
    assert (source.opened, unused.opened) == ([], [])


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select count(*) as n from orders a join orders b using (id)", 10),
        ("select count(*) as n from (from orders union all from orders)", 20),
        ("select count(*) as n from orders o where amount >= (select avg(amount) from orders p)", 5),
        ("select count(*) as n from orders o where exists (from orders p where p.id = o.id + 1)", 9),
        ("with o as (from orders) select count(*) as n from o a, o b", 100),
        ("with o as materialized (from orders) select count(*) as n from o a, o b", 100),
        ("with o as not materialized (from orders) select count(*) as n from o a, o b", 100),
        ("select max(c) as n from (select count(*) over (partition by id % 2) as c from orders)", 5),
        (RECURSIVE, 10),
        ("select count(*) as n from orders a join customers b using (id) join orders c using (id)", 10),
    ],
)
def test_a_source_that_is_scanned_twice_has_all_its_rows_each_time(
    engine: DuckDBEngine, sql: str, expected: int
) -> None:
    orders, customers = Source(), Source()
    assert rows(engine, sql, orders=orders, customers=customers) == [{"n": expected}]
    assert len(orders.opened) == 1


def test_the_order_of_an_ordered_query_is_kept_through_casts_and_steps(engine: DuckDBEngine) -> None:
    sql = "with o as (select id, token from orders order by amount desc) select * from o"
    assert [row["id"] for row in rows(engine, sql)] == list(range(9, -1, -1))


def test_an_input_that_gives_other_columns_is_refused(engine: DuckDBEngine) -> None:
    wrong = Input(SCHEMA, lambda columns: pa.table({"other": [1]}).to_reader())
    with pytest.raises(ValueError, match="gave columns"):
        engine.run("select id from orders", {"orders": wrong})


# Types


def test_every_type_goes_through_unchanged(engine: DuckDBEngine) -> None:
    assert engine.describe("select * from orders", {"orders": SCHEMA}) == {
        column.name: column.type for column in SCHEMA.columns
    }
    result = engine.run("select * from orders", {"orders": Source().input})
    assert to_reader(result, SCHEMA, dataset="main.a.b").read_all().equals(TABLE)


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("sum(id)", "decimal(38,0)"),
        ("sum(amount)", "decimal(38,4)"),
        ("count(*)", "long"),
        ("avg(id)", "double"),
        ("any_value(id)::hugeint", "decimal(38,0)"),
        ("any_value(id)::ubigint", "decimal(20,0)"),
        ("any_value(id)::utinyint", "int"),
        ("any_value(id)::uinteger", "long"),
        ("'a'::enum('a', 'b')", "string"),
        ("any_value(items)", "list<int>"),
        ("[1, 2]::int[2]", "list<int>"),
        ("{'a': 1, 'b': [true]}", "struct<a: int, b: list<boolean>>"),
        ("max(seen)", "timestamptz"),
        ("max(seen)::timestamp_s", "timestamp"),
        ("max(seen)::date", "date"),
        ("max(token)", "uuid"),
        ("[max(token)]", "list<uuid>"),
        ("bool_or(id > 1)", "boolean"),
        ("any_value(facts)", "json"),
        ("any_value(facts)->>'a'", "string"),
        ("any_value(nested)", "struct<a: int, b: json>"),
        ("1.50", "decimal(3,2)"),
        ("'x'::blob", "binary"),
        ("time '10:00'", "time"),
    ],
)
def test_result_types_and_that_the_rows_have_them(engine: DuckDBEngine, expression: str, type_: str) -> None:
    sql = f"select {expression} as x from orders"
    described = engine.describe(sql, {"orders": SCHEMA})
    assert {name: str(logical) for name, logical in described.items()} == {"x": type_}
    result = engine.run(sql, {"orders": Source().input})
    assert to_reader(result, Schema.declare({"x": type_}), dataset="main.a.b").read_all().num_rows >= 1


@pytest.mark.parametrize(
    ("expression", "way_out"),
    [
        ("interval 1 day", "epoch(x)"),
        ("map {'a': 1}", "map_entries(x)"),
        ("union_value(a := 1)", "CAST(x AS VARCHAR)"),
        ("'101'::bit", "CAST(x AS VARCHAR)"),
        ("1::bignum", "CAST(CAST(x AS VARCHAR) AS DECIMAL(38,0))"),
        ("'2020-01-01'::timestamp_ns", "CAST(x AS TIMESTAMP)"),
        ("'10:00:00+01'::timetz", "CAST(x AS TIME)"),
        ("1::variant", "CAST(x AS JSON)"),
        ("null", "CAST(x AS VARCHAR)"),
        ("row(1, 2)", None),
        ("[interval 1 day]", None),
    ],
)
def test_other_types_are_refused_with_a_cast_that_works(
    engine: DuckDBEngine, expression: str, way_out: str | None
) -> None:
    with pytest.raises(SchemaError, match="result column 'x' is of type") as raised:
        engine.describe(f"select {expression} as x", {})
    assert raised.value.next_step
    if way_out is not None:
        assert way_out.replace("x", '"x"', 1) in raised.value.next_step.replace("CAST(x", 'CAST("x"')
        fixed = engine.run(f"select {way_out} as y from (select {expression} as x)", {})
        assert fixed.read_all().num_rows == 1


@pytest.mark.parametrize(
    "sql",
    [
        "select id, amount as id from orders",
        "select * from orders a join orders b on a.id = b.id",
    ],
)
def test_two_columns_of_one_name_are_refused_and_never_renamed(engine: DuckDBEngine, sql: str) -> None:
    with pytest.raises(SchemaError, match="two columns named 'id'") as raised:
        engine.describe(sql, {"orders": SCHEMA})
    assert raised.value.fields["step"] is None
    with pytest.raises(SchemaError, match="two columns named 'id'") as raised:
        engine.describe("select * from step", {"orders": SCHEMA}, {"step": sql})
    assert raised.value.fields["step"] == "step"


def test_steps_may_have_any_type_and_read_earlier_ones(engine: DuckDBEngine) -> None:
    steps = {"one": "select id, interval 1 day as day from orders;"}
    with pytest.raises(SchemaError, match="INTERVAL"):
        engine.describe("select day from one", {"orders": SCHEMA}, steps)
    steps["two"] = "select id, timestamp '2020-01-01' + day as following from one"
    described = engine.describe("select * from two", {"orders": SCHEMA}, steps)
    assert {name: str(type_) for name, type_ in described.items()} == {"id": "long", "following": "timestamp"}


def test_descriptions_in_many_threads_do_not_see_each_other(engine: DuckDBEngine) -> None:
    def describe(number: int) -> list[str]:
        schema = Schema.declare({f"c{number}": "long", "at_noon": "timestamptz"})
        columns = engine.describe("select *, at_noon::varchar as text from step", {"t": schema}, {"step": "from t"})
        return list(columns)

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(describe, range(40)))
    assert found == [[f"c{number}", "at_noon", "text"] for number in range(40)]
    with pytest.raises(SqlError, match="unknown name"):
        engine.describe("select * from t", {})


# Errors


def test_a_wrong_column_is_shown_with_a_caret_in_characters_and_the_nearest_name(engine: DuckDBEngine) -> None:
    with pytest.raises(SqlError) as raised:
        engine.describe("select 'é🦆' as e,\n  amont\nfrom orders", {"orders": SCHEMA})
    assert '(line 2, column 3)\n  2 |   amont\n    |   ^\nNext: did you mean "amount"' in str(raised.value)


def test_an_error_in_a_step_names_it(engine: DuckDBEngine) -> None:
    with pytest.raises(SqlError, match="amont") as raised:
        engine.describe("select * from step", {"orders": SCHEMA}, {"step": "select amont from orders"})
    assert (raised.value.fields["step"], raised.value.fields["position"]) == ("step", 7)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("select (id || 'x')::int as n from orders", "Could not convert string '.x' to INT32"),
        ("select id * 9223372036854775807 as n from orders", "Overflow"),
        ("select id as n from orders where id < 2 or error('told so') is null", "told so"),
        ("select a.id * 9223372036854775807 as n from orders a join orders b using (id)", "Overflow"),
    ],
)
def test_a_failure_while_running_is_a_compute_error(engine: DuckDBEngine, sql: str, says: str) -> None:
    with pytest.raises(ComputeError, match=says) as raised:
        engine.run(sql, {"orders": Source().input}).read_all()
    assert raised.value.safe == "nothing was written"


@pytest.mark.parametrize("sql", ["select id from orders", "select a.id from orders a join orders b using (id)"])
def test_what_an_input_raises_comes_through_unchanged(engine: DuckDBEngine, sql: str) -> None:
    raised = LakewardError("the arm is gone", dataset="main.raw.orders")

    def open_(columns: Sequence[str]) -> pa.RecordBatchReader:
        def batches() -> Iterator[pa.RecordBatch]:
            yield from TABLE.select(list(columns)).to_batches(3)[:1]
            raise raised

        return pa.RecordBatchReader.from_batches(TABLE.select(list(columns)).schema, batches())

    with pytest.raises(LakewardError) as caught:
        engine.run(sql, {"orders": Input(SCHEMA, open_)}).read_all()
    assert caught.value is raised


def test_a_database_that_was_opened_ahead_is_sealed_and_used_once(engine: DuckDBEngine, tmp_path: Path) -> None:
    engine.get_ready()
    engine.get_ready()
    first = engine._connect(tmp_path / "scratch")
    with pytest.raises(duckdb.Error, match="locked"):
        first.execute("set threads = 1")
    first.execute("create table left_behind as select 1 as x")
    second = engine._connect(tmp_path / "scratch")
    with pytest.raises(duckdb.Error, match="does not exist"):
        second.execute("from left_behind")


def test_a_database_is_freed_by_a_thread_and_the_next_one_opened_after_it(engine: DuckDBEngine) -> None:
    reader = engine.run("select 7 as x", {})
    assert reader.read_all().to_pylist() == [{"x": 7}]
    ahead = engine._ahead
    assert ahead is not None and list(engine.temp_directory.iterdir()) == []
    assert engine.run("select 8 as x", {}).read_all().to_pylist() == [{"x": 8}]
    # It was the one that was used, and is closed by the time that the next one is there.
    assert engine._ahead is not None and engine._ahead is not ahead
    engine._ahead.result()
    with pytest.raises(duckdb.Error, match="closed"):
        ahead.result().execute("select 1")


def test_what_was_told_of_a_query_holds_for_these_types_only(engine: DuckDBEngine) -> None:
    told = engine.describe("select x from t", {"t": Schema.declare({"x": "long"})})
    told.clear()
    again = [engine.describe("select x from t", {"t": Schema.declare({"x": type_})}) for type_ in ("long", "string")]
    assert [str(each["x"]) for each in again] == ["long", "string"]
