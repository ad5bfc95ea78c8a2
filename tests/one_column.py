"""One column through the write edge: write values of a type and read them back, or catch the refusal."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lakeward.errors import ValueRefused
from lakeward.types.conform import to_reader
from lakeward.types.schema import Schema
from lakeward.types.table import arrow_schema

ORDERS = Schema.declare({"id": "long", "note": "string", "amount": "decimal(5,2)"}, ["id"])


def write(rows: object, schema: Schema = ORDERS, batch_rows: int = 65_536) -> pa.Table:
    return to_reader(rows, schema, dataset="main.sales.orders", batch_rows=batch_rows).read_all()


def one(values: Any, type_: str) -> list[Any]:
    """Write one column `v`, from an Arrow array or a list of Python values, and read it back."""
    schema = Schema.declare({"v": type_})
    rows = pa.table({"v": values}) if isinstance(values, pa.Array) else [{"v": value} for value in values]
    table = write(rows, schema)
    assert table.schema.equals(arrow_schema(schema), check_metadata=True)
    table.validate(full=True)
    return list(table["v"].to_pylist())


def refusal(values: Any, type_: str) -> ValueRefused:
    with pytest.raises(ValueRefused) as caught:
        one(values, type_)
    return caught.value


def ints(*values: int | None, type_: pa.DataType) -> pa.Array:
    """An Arrow array of a type by its physical integers, also those that Python can't hold."""
    return pa.array(values, pa.int32() if type_ == pa.date32() else pa.int64()).view(type_)
