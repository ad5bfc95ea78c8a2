"""Rows as JSON: every type reads back equal, and no value breaks a line."""

from __future__ import annotations

import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from hypothesis import assume, given, settings

from lakeward.sources.formats.json import JsonFile
from lakeward.sources.formats.json_export import json_objects
from lakeward.types.logical import parse_type
from lakeward.types.schema import Schema
from support.rows import tables


def lines_of(table: pa.Table, schema: Schema) -> list[str]:
    types = {column.name: column.type for column in schema.columns}
    return [text for batch in table.to_batches() for text in json_objects(batch, types).to_pylist()]


def special(value: Any) -> bool:
    """Tell whether a value has a part that JSON has no form for: NaN, infinity, and a `null` that is no null."""
    if isinstance(value, dict):
        return any(map(special, value.values()))
    if isinstance(value, list):
        return any(map(special, value))
    return (isinstance(value, float) and not math.isfinite(value)) or value == "null"


@settings(deadline=None, max_examples=200)
@given(drawn=tables())
def test_every_type_comes_back_equal(drawn: tuple[Schema, pa.Table]) -> None:
    schema, table = drawn
    assume(table.num_rows and not any(map(special, table.to_pylist())))
    lines = lines_of(table, schema)
    assert all(len(line.splitlines()) == 1 for line in lines)
    with TemporaryDirectory() as folder:
        path = Path(folder, "rows.ndjson")
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        read = JsonFile(path).read({column.name: str(column.type) for column in schema.columns}).read_all()
    assert read.equals(table) or read.to_pylist() == table.to_pylist()


def test_what_json_has_no_form_for_is_a_text() -> None:
    batch = pa.record_batch(
        {"d": pa.array([math.nan, math.inf, -math.inf, -0.0, None]), "j": ["null", "1", "{}", None, '""']}
    )
    types = {"d": parse_type("double"), "j": parse_type("json")}
    assert json_objects(batch, types).to_pylist() == [
        '{"d":"nan","j":null}',
        '{"d":"inf","j":1}',
        '{"d":"-inf","j":{}}',
        '{"d":-0.0,"j":null}',
        '{"d":null,"j":""}',
    ]


def test_a_slice_has_its_own_rows() -> None:
    values = pa.array([[1, 2], None, [], [3]], pa.list_(pa.int64()))
    batch = pa.record_batch({"l": values}).slice(1)
    assert json_objects(batch, {}).to_pylist() == ['{"l":null}', '{"l":[]}', '{"l":[3]}']
