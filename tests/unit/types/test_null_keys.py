"""A null can't identify a row (U02): it is refused by name, on the way to either arm."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakeward.errors import ValueRefused
from lakeward.types.conform import conform, to_reader
from lakeward.types.schema import Schema

SCHEMA = Schema.declare({"k": "string", "k2": "long", "v": "long"}, ["k", "k2"])


def test_u02_a_null_in_a_key_column_is_refused_with_its_row() -> None:
    rows = [{"k": "a", "k2": 1, "v": None}, {"k": "b", "k2": None, "v": 8}]
    with pytest.raises(ValueRefused, match=r"row 2 .*column 'k2'.*primary key") as caught:
        to_reader(iter(rows), SCHEMA, dataset="main.sales.orders").read_all()
    assert (caught.value.fields["row"], caught.value.fields["column"]) == (2, "k2")
    assert caught.value.fields["key"] == {"k": "'b'", "k2": "None"}


def test_the_row_is_counted_through_the_whole_input_and_slices() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"k": ["x", None, "a", None], "k2": [1, 2, 3, 4], "v": [1, 2, 3, 4]},
        schema=pa.schema([("k", pa.string()), ("k2", pa.int64()), ("v", pa.int64())]),
    )
    with pytest.raises(ValueRefused) as caught:
        conform(batch.slice(2), SCHEMA, dataset="d", first_row=70_001)
    assert caught.value.fields["row"] == 70_002


def test_nulls_elsewhere_are_fine() -> None:
    reader = to_reader([{"k": "a", "k2": 1, "v": None}], SCHEMA, dataset="d")
    assert reader.read_all().num_rows == 1
