"""The storage layer's DuckDB: streams keep their types and their sources' errors, and its failures have our names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import repeat
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeward.errors import Busy, SqlError, StorageError, StorageFull, TimeLimitExceeded, ValueRefused
from lakeward.storage.duck import Duck, named
from lakeward.storage.filters import Filter
from lakeward.storage.settings import StorageSettings

SCHEMA = pa.schema([pa.field("n", pa.int64())])


@pytest.fixture
def duck(tmp_path: Path) -> Iterator[Duck]:
    opened = Duck(StorageSettings(warehouse=tmp_path / "warehouse", scratch=tmp_path / "scratch", memory_limit="100MB"))
    yield opened
    opened.close()


def failing(error: Exception, good: int = 3) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(good):
            yield pa.RecordBatch.from_pydict({"n": range(100_000)}, schema=SCHEMA)
        raise error

    return pa.RecordBatchReader.from_batches(SCHEMA, batches())


@pytest.mark.parametrize("good", [0, 1, 5])
def test_what_a_source_raises_comes_out_unchanged(duck: Duck, good: int) -> None:
    error = ValueRefused("row 7 is wrong", dataset="d", row=7)
    stream = duck.stream("SELECT n FROM source", SCHEMA, {"source": failing(error, good)})
    with pytest.raises(ValueRefused) as caught:
        stream.read_all()
    assert caught.value is error


def test_types_are_those_that_were_asked_for(duck: Duck) -> None:
    schema = pa.schema([pa.field("a", pa.list_(pa.field("element", pa.int32()))), pa.field("b", pa.string())])
    table = duck.stream("SELECT [1, 2]::INTEGER[] AS x, 'b' AS y", schema).read_all()
    assert table.schema == schema
    assert table.to_pylist() == [{"a": [1, 2], "b": "b"}]


def test_python_variables_are_not_tables(duck: Duck) -> None:
    secret = pa.table({"n": [1]})
    with pytest.raises(StorageError, match="secret"):
        duck.stream("SELECT n FROM secret", SCHEMA).read_all()
    assert secret.num_rows == 1


def test_a_failing_filter_is_a_sql_error_and_anything_else_is_not(duck: Duck) -> None:
    where = Filter("n / 0 > nope(1)", ("n",), ())
    query = f"SELECT n FROM source WHERE {where.sql}"
    with pytest.raises(SqlError, match=r"can't be evaluated.*nope"):
        duck.stream(query, SCHEMA, {"source": pa.table({"n": [1]})}, where).read_all()
    with pytest.raises(StorageError, match="nowhere"):
        duck.stream("SELECT n FROM read_parquet('nowhere.parquet')", SCHEMA, where=where).read_all()


def test_too_little_memory_is_told(duck: Duck) -> None:
    with pytest.raises(StorageFull, match="out of memory") as caught:
        duck.stream("SELECT len(list(r)) AS n FROM range(100_000_000) AS t(r)", SCHEMA).read_all()
    assert "storage.memory_limit" in str(caught.value.next_step)


def test_too_little_memory_for_many_at_a_time_passes(duck: Duck, monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT len(list(r)) AS n FROM range(100_000_000) AS t(r)"
    with pytest.raises(StorageFull):
        duck.stream(query, SCHEMA, files=True).read_all()
    monkeypatch.setattr("lakeward.storage.duck._CORES", 0)
    with pytest.raises(Busy, match="memory is short"):
        duck.stream(query, SCHEMA, files=True).read_all()


def test_many_who_read_files_at_a_time_hold_little_and_get_the_same(
    duck: Duck, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"n": range(400_000)}, SCHEMA)
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=50_000)
    query = f"SELECT n FROM read_parquet('{tmp_path / 'rows.parquet'}')"
    monkeypatch.setattr("lakeward.storage.duck._CORES", 2)
    streams = [duck.stream(query, SCHEMA, files=True) for _ in range(5)]
    first = [next(stream) for stream in streams]
    with duck.connect() as connection:
        [(buffer,)] = connection.execute("SELECT current_setting('streaming_buffer_size')").fetchall()
        assert connection.execute("SELECT current_setting('read_ahead_depth')").fetchall() == [(1,)]
    assert buffer == "10.0 MiB"
    for begun, stream in zip(first, streams, strict=True):
        assert pa.Table.from_batches([begun, *stream]) == rows
    assert duck.stream(query, SCHEMA, files=True).read_all() == rows


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (duckdb.IOException("IO Error: could not write: No space left on device"), StorageFull),
        (OSError("Invalid Input Error: IO Error: Disk quota exceeded"), StorageFull),
        (duckdb.OutOfMemoryException("Out of Memory Error: failed to pin"), StorageFull),
        (duckdb.IOException("IO Error: no such file"), StorageError),
        (OSError("Conversion Error: x"), StorageError),
    ],
)
def test_names_of_failures(error: Exception, expected: type[Exception]) -> None:
    assert type(named(error)) is expected


def test_streams_of_one_process_do_not_meet(duck: Duck) -> None:
    streams = [
        duck.stream("SELECT n FROM source", SCHEMA, {"source": pa.table({"n": [number] * 3})}) for number in range(5)
    ]
    assert [stream.read_all()["n"].to_pylist() for stream in streams] == [[number] * 3 for number in range(5)]


def test_a_filter_that_computes_for_too_long_is_ended_by_name(tmp_path: Path) -> None:
    settings = StorageSettings(tmp_path / "warehouse", tmp_path / "scratch", memory_limit="100MB", filter_seconds=0.2)
    batch = pa.RecordBatch.from_pydict({"n": range(100_000)}, schema=SCHEMA)
    with closing(Duck(settings)) as limited:
        for where in (Filter("len(range(n)) < 0", ("n",), ()), None):
            endless = pa.RecordBatchReader.from_batches(SCHEMA, repeat(batch))
            query = "SELECT n FROM source" + (f" WHERE {where.sql}" if where else "")
            stream = limited.stream(query, SCHEMA, {"source": endless}, where)
            if where is None:
                assert stream.read_next_batch().num_rows > 0
            else:
                with pytest.raises(TimeLimitExceeded, match=r"filter 'len\(range\(n\)\) < 0' computed for longer"):
                    stream.read_next_batch()
