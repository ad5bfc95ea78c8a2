"""The DuckDB engine's memory and disk: it spills, says what ran out, streams, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from lakeward.compute.engine import Input
from lakeward.compute.engines.duckdb import DuckDBEngine
from lakeward.errors import ComputeError, StorageFull
from lakeward.types.schema import Schema

WIDE = Schema.declare({"id": "long", "text": "string"})


def wide(count: int) -> Input:
    def open_(columns: Sequence[str]) -> pa.RecordBatchReader:
        def batches() -> Iterator[pa.RecordBatch]:
            for start in range(0, count, 50_000):
                ids = range(start, start + 50_000)
                data = {"id": pa.array(ids), "text": pa.array([f"{number * 7919 % 1_000_003:040d}" for number in ids])}
                yield pa.record_batch({column: data[column] for column in columns})

        types = {"id": pa.int64(), "text": pa.string()}
        return pa.RecordBatchReader.from_batches(pa.schema([(column, types[column]) for column in columns]), batches())

    return Input(WIDE, open_)


def test_a_query_larger_than_its_memory_spills_although_files_are_closed_to_it(tmp_path: Path) -> None:
    engine = DuckDBEngine(memory_limit="40MB", threads=2, temp_directory=tmp_path)
    result = engine.run("select a.id, b.text from t a join t b using (id) order by b.text", {"t": wide(500_000)})
    last, count, spilled = "", 0, 0
    for batch in result:
        texts = batch.column("text").to_pylist()
        assert last <= texts[0]
        last, count = texts[-1], count + batch.num_rows
        spilled = max(spilled, sum(file.stat().st_size for file in tmp_path.rglob("*.tmp")))
    assert count == 500_000
    assert spilled > 1_000_000
    del result
    assert list(tmp_path.iterdir()) == []


def test_running_out_of_memory_says_so(tmp_path: Path) -> None:
    engine = DuckDBEngine(memory_limit="20MB", threads=1, temp_directory=tmp_path)
    with pytest.raises(ComputeError, match="more memory than its limit of 20MB") as raised:
        engine.run("select list(text) as x from t", {"t": wide(500_000)}).read_all()
    assert raised.value.next_step is not None
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_says_so(tmp_path: Path) -> None:
    engine = DuckDBEngine(memory_limit="30MB", threads=1, temp_directory=tmp_path, temp_limit="5MB")
    with pytest.raises(StorageFull, match="no space left for the temporary files"):
        engine.run("select * from t order by text", {"t": wide(500_000)}).read_all()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "use",
    [
        lambda result: None,
        lambda result: result.read_next_batch(),
        lambda result: result.read_all(),
        lambda result: result.close(),
    ],
    ids=["unread", "half read", "read", "closed"],
)
def test_a_released_stream_leaves_nothing(tmp_path: Path, use: Callable[[pa.RecordBatchReader], object]) -> None:
    engine = DuckDBEngine(temp_directory=tmp_path)
    result = engine.run("select * from t", {"t": wide(50_000)}, batch_rows=20_000)
    assert len(list(tmp_path.iterdir())) == 1
    use(result)
    del result
    assert list(tmp_path.iterdir()) == []


def test_the_result_is_a_stream_and_not_computed_ahead(tmp_path: Path) -> None:
    """The first batch is there when only a part of a long input was read."""
    engine = DuckDBEngine(memory_limit="300MB", threads=1, temp_directory=tmp_path)
    read = 0

    def open_(columns: Sequence[str]) -> pa.RecordBatchReader:
        def batches() -> Iterator[pa.RecordBatch]:
            nonlocal read
            for batch in wide(1_000_000).open(columns):
                read += batch.num_rows
                yield batch

        return pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), batches())

    result = engine.run("select id from t", {"t": Input(WIDE, open_)}, batch_rows=10_000)
    result.read_next_batch()
    assert read < 1_000_000
    del result
