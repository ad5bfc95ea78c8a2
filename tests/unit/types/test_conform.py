"""`conform`: whatever is handed to a write becomes the dataset's exact batches, or is refused by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from lakeward.errors import ColumnMismatch, UsageError, ValueRefused
from lakeward.types.conform import conform, to_reader
from lakeward.types.schema import Schema
from lakeward.types.table import arrow_schema
from one_column import ORDERS, refusal, write


def test_t01_a_decimal_that_does_not_fit_is_named_at_row_300_001() -> None:
    def rows() -> Iterator[dict[str, object]]:
        for number in range(300_000):
            yield {"id": number, "note": "x", "amount": Decimal("1.25")}
        yield {"id": 17, "note": "x", "amount": Decimal("12.345")}

    reader = to_reader(rows(), ORDERS, dataset="main.sales.orders")
    with pytest.raises(ValueRefused) as caught:
        reader.read_all()
    error = caught.value
    assert error.message == (
        "dataset main.sales.orders: row 300001 (id=17), column 'amount': value 12.345 does not fit decimal(5,2)"
    )
    assert error.safe == "nothing was written"
    assert error.fields == {
        "dataset": "main.sales.orders",
        "column": "amount",
        "row": 300_001,
        "key": {"id": "17"},
        "value": "12.345",
        "reason": "does not fit decimal(5,2)",
    }


@pytest.mark.parametrize("batch_rows", [7, 1000, 65_536])
def test_the_row_is_right_in_a_stream_of_arrow_batches(batch_rows: int) -> None:
    amounts = pa.array([Decimal("1.000")] * 2_999 + [Decimal("12.345")], pa.decimal128(9, 3))
    table = pa.table({"id": range(3_000), "note": ["x"] * 3_000, "amount": amounts})
    table = pa.concat_tables([table.slice(0, 1_200), table.slice(1_200, 1), table.slice(1_201)])
    with pytest.raises(ValueRefused, match=r"row 3000 \(id=2999\), column 'amount': value 12.345"):
        write(table, batch_rows=batch_rows)


def test_the_path_leads_into_lists_and_structs() -> None:
    type_ = "struct<a: list<long>, b: list<struct<c: string>>>"
    good = {"a": [1], "b": []}
    error = refusal([good, None, {"a": [1, None, "x"], "b": []}], type_)
    assert (error.fields["column"], error.fields["row"], error.fields["value"]) == ("v.a[2]", 3, "'x'")
    array = pa.array([good, None, {"a": [], "b": [{"c": "x"}, None, {"c": "\0"}]}])
    error = refusal(array, type_)
    assert (error.fields["column"], error.fields["row"]) == ("v.b[2].c", 3)


def test_a_long_value_is_cut_and_a_strange_one_is_still_shown() -> None:
    assert len(str(refusal(["x" * 1000], "long").fields["value"])) == 100
    assert refusal([10**5000], "long").fields["value"] == "<int>"
    assert refusal([["\ud800"]], "list<string>").fields["value"] == r"'\ud800'"
    circle: list[object] = []
    circle.append(circle)
    assert "nested deeper" in refusal([circle], "json").message


def test_u06_columns_match_by_name_in_any_order() -> None:
    rows = pa.table({"note": ["a"], "amount": pa.array([1]), "id": [7]})
    assert write(rows).to_pylist() == [{"id": 7, "note": "a", "amount": Decimal("1.00")}]
    assert write([{"note": "a", "amount": 1, "id": 7}]).to_pylist() == write(rows).to_pylist()


def test_u06_missing_and_unexpected_columns_are_named_with_the_nearest_right_name() -> None:
    with pytest.raises(ColumnMismatch) as caught:
        to_reader(pa.table({"ID": [1], "note": ["a"], "amout": [1]}), ORDERS, dataset="main.sales.orders")
    assert caught.value.fields["missing"] == ["id", "amount"]
    assert caught.value.fields["unexpected"] == ["ID", "amout"]
    assert caught.value.fields["nearest"] == {"ID": "id", "amout": "amount"}
    assert "'amout' (did you mean 'amount'?)" in caught.value.message
    with pytest.raises(ColumnMismatch, match="more than once 'id'"):
        write(pa.Table.from_arrays([pa.array([1])] * 4, names=["id", "id", "note", "amount"]))


@pytest.mark.parametrize(
    "bad", [{"id": 1, "note": "a"}, {"id": 1, "note": "a", "amout": 1}, {}, {"id": 1, "note": "", "amount": 1, "x": 1}]
)
def test_u06_a_row_with_other_columns_is_named(bad: dict[str, object]) -> None:
    good = {"id": 1, "note": "a", "amount": 1}
    with pytest.raises(ColumnMismatch, match="row 3 "):
        write([good, good, bad])
    with pytest.raises(ColumnMismatch, match="row 3 "):
        write([good, good, defaultdict(int, bad)], batch_rows=1)


def test_n05_names_of_other_tools_are_ordinary_names() -> None:
    names = ["_pos", "_file", "_partition", "pos", "file_path", "row_count", "_id", "_row", "data", "payload", "None"]
    schema = Schema.declare(dict.fromkeys(names, "long"))
    row = {name: number for number, name in enumerate(names)}
    assert write([row], schema).to_pylist() == [row]
    with pytest.raises(ColumnMismatch, match="unexpected '__row_id'"):
        write([{**row, "__row_id": 1}], schema)


def test_every_kind_of_input_gives_the_same_rows() -> None:
    rows = [{"id": 1, "note": "a", "amount": Decimal("1.50")}, {"id": 2, "note": None, "amount": None}]
    table = pa.Table.from_pylist(rows, arrow_schema(ORDERS))
    with duckdb.connect() as connection:
        connection.register("t", table)
        relation = connection.sql("select amount, id, note from t order by id")
        inputs = [table, table.to_batches()[0], table.to_reader(), relation, rows, tuple(rows), iter(rows)]
        for given_rows in inputs:
            assert write(given_rows).to_pylist() == rows
    assert write(row for row in rows).to_pylist() == rows
    untyped = pa.table({"id": pa.nulls(0), "note": [], "amount": []})
    nothing: tuple[object, ...] = ([], iter(()), table.slice(0, 0), untyped)
    for empty in nothing:
        assert write(empty).num_rows == 0


@pytest.mark.parametrize("rows", [None, 5, "text", b"x", {"id": [1]}, object(), pa.array([1]), pa.chunked_array([[1]])])
def test_what_is_not_rows_is_refused(rows: object) -> None:
    with pytest.raises(UsageError, match="can't be written"):
        write(rows)


def test_a_row_that_is_not_a_mapping_is_named() -> None:
    with pytest.raises(ValueRefused, match=r"row 2: value .* is a tuple, not a mapping"):
        write([{"id": 1, "note": "", "amount": 1}, (1, "", 1)])


def test_the_stream_is_lazy_and_never_a_batch_ahead() -> None:
    read = 0

    def rows() -> Iterator[dict[str, object]]:
        nonlocal read
        for number in range(100):
            read += 1
            yield {"id": number, "note": "", "amount": 1}

    reader = to_reader(rows(), ORDERS, dataset="d", batch_rows=10)
    assert read == 0
    assert reader.read_next_batch().num_rows == 10
    assert read == 10


def test_the_callers_exception_passes_unchanged() -> None:
    class Mine(Exception):
        pass

    mine = Mine("broken source")

    def rows() -> Iterator[dict[str, object]]:
        yield {"id": 1, "note": "", "amount": 1}
        raise mine

    with pytest.raises(Mine) as caught:
        write(rows())
    assert caught.value is mine


def test_a_reader_whose_batches_have_another_schema() -> None:
    good = pa.record_batch({"id": [1], "note": ["a"], "amount": [1]})
    other = pa.record_batch({"amount": pa.array([2], pa.int8()), "note": ["b"], "id": [2]})
    bad = pa.record_batch({"id": ["3"], "note": ["c"], "amount": [1]})
    assert write(pa.RecordBatchReader.from_batches(good.schema, [good, other]))["id"].to_pylist() == [1, 2]
    with pytest.raises(ColumnMismatch, match="column 'id' is long, but the input from row 3 on has string"):
        write(pa.RecordBatchReader.from_batches(good.schema, iter([good, other, bad])))


def test_batches_are_cut_to_the_limit_by_rows() -> None:
    reader = to_reader(pa.table({"v": range(25)}), Schema.declare({"v": "long"}), dataset="d", batch_rows=10)
    assert [batch.num_rows for batch in reader] == [10, 10, 5]
    with pytest.raises(UsageError):
        to_reader([], ORDERS, dataset="d", batch_rows=0)


def test_batches_are_cut_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakeward.types.conform.MAX_BATCH_BYTES", 1_000)
    table = pa.table({"v": ["x" * 96] * 20})
    reader = to_reader(table, Schema.declare({"v": "string"}), dataset="d")
    assert [batch.num_rows for batch in reader] == [10, 10]


def test_an_exact_batch_comes_back_as_the_same_object() -> None:
    batch = pa.RecordBatch.from_pylist([{"id": 1, "note": "a", "amount": Decimal(1)}], arrow_schema(ORDERS))
    assert conform(batch, ORDERS, dataset="d", first_row=1) is batch
