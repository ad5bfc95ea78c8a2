"""What a function returned is what it declared, batch by batch, or is told; no rows of another kind get through."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from lakeward.pipelines.python.results import WrongRows, batches_of, checked
from lakeward.types.logical import parse_type

COLUMNS = {"id": parse_type("long"), "name": parse_type("string")}
GOOD = pa.table({"name": ["a", None, "c"], "id": [1, 2, 3]})


def rows(result: object) -> list[dict[str, object]]:
    return [row for batch in checked(batches_of(result), COLUMNS) for row in batch.to_pylist()]


@pytest.mark.parametrize(
    "result",
    [
        lambda: GOOD,
        lambda: GOOD.to_reader(),
        lambda: GOOD.to_batches()[0],
        lambda: GOOD.to_batches(max_chunksize=1),
        lambda: iter([GOOD, GOOD.slice(0, 0)]),
        lambda: GOOD.set_column(0, "name", GOOD["name"].cast(pa.large_string())),
        lambda: GOOD.set_column(0, "name", GOOD["name"].dictionary_encode()),
    ],
)
def test_every_stream_of_batches_will_do(result: Callable[[], object]) -> None:
    assert rows(result()) == [{"id": 1, "name": "a"}, {"id": 2, "name": None}, {"id": 3, "name": "c"}]


def test_a_column_of_nulls_alone_has_every_type_and_a_large_batch_is_cut() -> None:
    assert rows(pa.table({"id": pa.nulls(1), "name": pa.nulls(1)})) == [{"id": None, "name": None}]
    large = pa.record_batch({"id": range(150_000), "name": pa.nulls(150_000)})
    assert [batch.num_rows for batch in checked(batches_of(large), COLUMNS)] == [65_536, 65_536, 18_928]


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (None, r"gave nothing \(None\), and a RecordBatchReader, a Table"),
        ({"id": [1]}, "gave a value of the type dict, and"),
        ("rows", "gave a value of the type str, and"),
        ([{"id": 1}], "gave a value of the type dict as item 1"),
        ([GOOD, GOOD.drop_columns(["name"])], "gave the columns id from row 4 on: 'name' missing"),
        ([GOOD, GOOD.append_column("x", GOOD["id"])], "from row 4 on: 'x' not declared"),
        (GOOD.append_column("id", GOOD["id"]), "'id' there twice"),
        (GOOD.rename_columns(["Name", "id"]), "'name' missing; 'Name' not declared"),
        ([GOOD, GOOD.set_column(1, "id", GOOD["id"].cast("int32"))], "column 'id' as int32 from row 4 on, and long"),
        (GOOD.set_column(0, "name", pa.chunked_array([[b"a"] * 3])), "column 'name' as binary, and string"),
    ],
)
def test_anything_else_is_told(result: object, says: str) -> None:
    with pytest.raises(WrongRows, match=says):
        rows(result)
