"""Streams that may be scanned once."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from lakeward.compute.single_use import SingleUse

TABLE = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})


def test_it_renames_and_streams() -> None:
    stream = SingleUse(TABLE.to_reader(2), ["c0", "c1"])
    assert pa.RecordBatchReader.from_stream(stream).read_all().to_pylist()[0] == {"c0": 1, "c1": "a"}


def test_a_second_scan_is_an_error_where_a_plain_stream_would_silently_have_no_rows() -> None:
    connection = duckdb.connect()
    stream = SingleUse(TABLE.to_reader(), ["id", "v"])
    connection.register("t", stream)
    with pytest.raises(Exception, match="scanned twice"):
        connection.sql("select count(*) from t a join t b using (id)").fetchall()
    assert isinstance(stream.failure, RuntimeError)


def test_what_the_source_raised_is_kept() -> None:
    raised = KeyError("gone")

    def batches() -> Iterator[pa.RecordBatch]:
        yield from TABLE.to_batches()
        raise raised

    connection = duckdb.connect()
    stream = SingleUse(pa.RecordBatchReader.from_batches(TABLE.schema, batches()), ["id", "v"])
    connection.register("t", stream)
    with pytest.raises(duckdb.Error):
        connection.sql("select sum(id) from t").fetchall()
    assert stream.failure is raised
