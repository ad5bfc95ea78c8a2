"""How the columns of a data file are encoded: quick to read, by whoever reads the table."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import lakeward
from lakeward.storage.arms.iceberg.data_file import writer_options

LEAST, MOST = -(2**63), 2**63 - 1
ROWS = 1_000
COLUMNS = {
    "id": "long",
    "few": "int",
    "day": "date",
    "price": "decimal(15,2)",
    "wide": "decimal(30,2)",
    "note": "string",
}


def rows() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(
                [(LEAST, MOST, None)[number] if number < 3 else number for number in range(ROWS)], pa.int64()
            ),
            "few": pa.array([number % 3 for number in range(ROWS)], pa.int32()),
            "day": [date(1, 1, 1) + timedelta(number * 3_000) for number in range(ROWS)],
            "price": pa.array(
                [Decimal(number * 7_001 - 10**6).scaleb(-2) for number in range(ROWS)], pa.decimal128(15, 2)
            ),
            "wide": pa.array([Decimal(number) for number in range(ROWS)], pa.decimal128(30, 2)),
            "note": [f"note {number}" for number in range(ROWS)],
        }
    )


def written(warehouse: Path) -> dict[str, tuple[bool, str]]:
    """Return whether each column of the newest data file is in a dictionary, and its codec."""
    newest = max(warehouse.rglob("*.parquet"), key=lambda path: path.name)
    group = pq.ParquetFile(newest).metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    return {each.path_in_schema: (each.has_dictionary_page, each.compression) for each in columns}


def test_integers_lie_in_a_file_as_they_are_and_text_is_packed(database_url: str, tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    with lakeward.open(tmp_path / "home", database_url=database_url, warehouse=warehouse) as ws:
        dataset = ws.create_dataset("main.files.plain", COLUMNS, arm="iceberg")
        dataset.write(rows(), mode="replace")
        found = written(warehouse)
        assert [found[name] for name in ("id", "day", "price", "__row_id")] == [(False, "UNCOMPRESSED")] * 4
        assert (found["few"], found["wide"], found["note"]) == (
            (True, "UNCOMPRESSED"),
            (False, "SNAPPY"),
            (False, "ZSTD"),
        )
        assert dataset.to_arrow().equals(rows())
        assert dataset.to_arrow(where=f"id = {MOST}").num_rows == 1


def test_only_what_is_an_integer_in_a_file_has_no_codec() -> None:
    sample = pa.table({"x": [number / 7 for number in range(100)], "list": [[number] for number in range(100)]})
    assert writer_options(sample)["compression"] == {"x": "snappy", "list.list.element": "none"}
