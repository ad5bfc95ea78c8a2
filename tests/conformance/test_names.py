"""N01, N03, N05: a column of any name that may be declared can be written, read, filtered, copied and digested."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lakeward.errors import SchemaError
from lakeward.types.digest import digest_batches
from support.arms import ArmUnderTest
from support.covering import covering
from support.rows import ODD_NAMES

NAMES = (
    *ODD_NAMES,
    "x" * 255,
    "é" * 127,
    "_pos",
    "_file",
    "_partition",
    "_row",
    "pos",
    "file_path",
    "partition",
    "row_count",
    "_id",
    "data",
    "payload",
    "key",
    "version",
    "until",
    "origin",
    "row_id",
    "row_index",
    "created_at",
    "dataset_id",
    "filename",
    "file_row_number",
    "file",
    "position",
    "source",
    "t",
    "d",
    "seen",
    "rowid",
    "lakeward.version",
    "__ROW",
    "[*]?",
    "a;b",
    "#",
    "null",
    "true",
    "user",
)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@covering("name", "arm")
@pytest.mark.parametrize("name", dict.fromkeys(NAMES), ids=lambda name: repr(name[:20]))
def test_any_name_writes_reads_and_filters(arm: ArmUnderTest, name: str) -> None:
    dataset = arm.create({name: "long", "other": "string"}, [name])
    rows = [{name: number, "other": f"o{number}"} for number in range(4)]
    dataset.write(rows[:2])
    dataset.write(rows[2:])
    assert dataset.rows() == rows
    assert dataset.to_arrow(columns=[name], where=f"{quoted(name)} = 3 AND other = 'o3'").to_pylist() == [{name: 3}]
    assert dataset.to_arrow(columns=["other"], where=f"{quoted(name)} < 1").to_pylist() == [{"other": "o0"}]
    assert dataset.digest().count == 4


CLASHES: dict[str, dict[str, Any]] = {
    "sanitized twins": {"a.b": 1, "a_x2Eb": 2},
    "a dot beside a struct": {"a.c": 1, "a": {"b": 2}},
    "70 equal characters (N03)": {"n" * 70 + "1": 1, "n" * 70 + "2": 2},
    "255 bytes and equal but for the last": {"n" * 254 + "1": 1, "n" * 254 + "2": 2},
    "a number and its sanitized form": {"1st": 1, "_1st": 2},
    "all at once": {name: position for position, name in enumerate(dict.fromkeys(NAMES))},
}


@pytest.mark.parametrize("clash", CLASHES)
def test_names_that_some_encoding_makes_one_stay_two(arm: ArmUnderTest, clash: str) -> None:
    row = CLASHES[clash]
    dataset = arm.create(
        {name: "struct<b: long>" if isinstance(value, dict) else "long" for name, value in row.items()}
    )
    dataset.write([row])
    assert dataset.rows() == [row]
    for name, value in row.items():
        assert dataset.to_arrow(columns=[name]).to_pylist() == [{name: value}]
        if not isinstance(value, dict):
            assert dataset.to_arrow(columns=[name], where=f"{quoted(name)} = {value}").num_rows == 1
            assert dataset.to_arrow(columns=[name], where=f"{quoted(name)} = {value + 1000}").num_rows == 0
    table = dataset.to_arrow()
    assert dataset.digest() == digest_batches(dataset.schema, table.to_reader())


def test_what_only_one_arm_could_store_is_refused_at_declaration(arm: ArmUnderTest) -> None:
    refused: list[dict[str, Any]] = [
        {"a.b": "long", "a": "struct<b: long>"},
        {"a.element": "long", "a": "list<long>"},
        {"s": 'struct<"b.c": long, b: struct<c: long>>'},
        {"__ROW_ID": "long"},
        {"__version": "long"},
        {"x" * 256: "long"},
        {"id": "long", "ID": "long"},
        {"a\nb": "long"},
        {"": "long"},
    ]
    for columns in refused:
        with pytest.raises(SchemaError):
            arm.create(columns)


def test_struct_fields_of_odd_names(arm: ArmUnderTest) -> None:
    fields = {name: number for number, name in enumerate(dict.fromkeys(NAMES[:21]))}
    inner = ", ".join(f"{quoted(name)}: long" for name in fields)
    dataset = arm.create({"s": f"struct<{inner}>"})
    dataset.write([{"s": fields}, {"s": None}])
    assert dataset.rows() == [{"s": fields}, {"s": None}]
    for name, value in fields.items():
        found = dataset.to_arrow(where=f"s.{quoted(name)} = {value}")
        assert found.num_rows == 1, name
    assert isinstance(dataset.to_arrow(), pa.Table)
