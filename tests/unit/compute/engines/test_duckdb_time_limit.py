"""A query that computes for too long is ended, wherever it is and from whichever thread; one that waits is not."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from lakeward.compute.engine import Input
from lakeward.compute.engines.duckdb import DuckDBEngine
from lakeward.errors import TimeLimitExceeded
from lakeward.types.schema import Schema

NUMBERS = Schema.declare({"n": "long"})
TABLE = pa.table({"n": pa.array([1, 2, 3], pa.int64())})
LIMIT = 0.3

ENDLESS = {
    "recursion": "with recursive t(n) as (select 1 union all select n + 1 from t) select max(n) as n from t",
    "cross join": "select count(*) as n from range(10000000) a, range(10000000) b where a.range * b.range % 7 = 3",
    "endless rows": "select count(*) as n from orders, range(1000000000000) where n * range % 7 = 3",
    "while rows come": "select range as n from range(1000000000000) where range < 100000 or range % 7 = 8",
}


@pytest.fixture
def engine(tmp_path: Path) -> DuckDBEngine:
    return DuckDBEngine(memory_limit="300MB", threads=2, temp_directory=tmp_path / "scratch", time_limit=LIMIT)


def given(columns: Sequence[str]) -> pa.RecordBatchReader:
    return TABLE.select(list(columns)).to_reader()


def exhaust(engine: DuckDBEngine, sql: str) -> None:
    for _ in engine.run(sql, {"orders": Input(NUMBERS, given)}, 100):
        pass


@pytest.mark.parametrize("sql", ENDLESS.values(), ids=list(ENDLESS))
def test_an_endless_query_ends_with_an_error_that_names_the_setting(engine: DuckDBEngine, sql: str) -> None:
    with pytest.raises(TimeLimitExceeded, match=r"longer than 0\.3 s, its limit by compute\.time_limit") as raised:
        exhaust(engine, sql)
    assert raised.value.fields == {"limit_seconds": LIMIT, "setting": "compute.time_limit_seconds"}
    assert not list((engine.temp_directory).glob("compute-*"))


def test_threads_other_than_the_main_one_are_ended_each_by_its_own_limit(engine: DuckDBEngine) -> None:
    with ThreadPoolExecutor(3) as pool:
        endless = [pool.submit(exhaust, engine, ENDLESS[name]) for name in ("recursion", "cross join")]
        short = pool.submit(exhaust, engine, "select n from orders")
        assert short.result() is None
        assert [type(each.exception()) for each in endless] == [TimeLimitExceeded] * 2


def test_waiting_for_a_source_or_for_the_reader_of_the_result_does_not_count(engine: DuckDBEngine) -> None:
    release = threading.Event()

    def slow(columns: Sequence[str]) -> pa.RecordBatchReader:
        def batches() -> Iterator[pa.RecordBatch]:
            yield from TABLE.to_batches()
            release.wait(LIMIT * 2)
            yield from TABLE.to_batches()

        return pa.RecordBatchReader.from_batches(TABLE.schema, batches())

    started = time.monotonic()
    result = engine.run("select n from orders", {"orders": Input(NUMBERS, slow)}, 2)
    first = result.read_next_batch()
    release.wait(LIMIT * 2)
    rows = first.num_rows + result.read_all().num_rows
    assert (rows, time.monotonic() - started > LIMIT * 3) == (6, True)


def test_a_share_divides_memory_and_threads_but_not_time(engine: DuckDBEngine) -> None:
    share = engine.share(3)
    settings = "select current_setting('memory_limit') as memory, current_setting('threads') as threads"
    connection = share._connect(None)
    assert connection.execute(settings).fetchone() == ("95.3 MiB", 1)
    connection.close()
    with pytest.raises(TimeLimitExceeded):
        exhaust(share, ENDLESS["cross join"])
