"""The digest of a stream is that of its rows, however far behind it is, and what went wrong with it is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from lakeward.errors import LakewardError
from lakeward.storage.duck import Duck
from lakeward.storage.running_digest import RunningDigest
from lakeward.storage.settings import StorageSettings
from lakeward.types.digest import digest_batches
from lakeward.types.schema import Schema

SCHEMA = Schema.declare({"id": "long"})
BATCHES = [pa.record_batch({"id": pa.array(range(start, start + 100))}) for start in range(0, 1_000, 100)]


@pytest.fixture
def duck(tmp_path: Path) -> Iterator[Duck]:
    with closing(Duck(StorageSettings(tmp_path / "warehouse", tmp_path / "scratch", memory_limit="100MB"))) as opened:
        yield opened


def stream() -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(BATCHES[0].schema, BATCHES)


@pytest.mark.parametrize("ahead", [False, True])
def test_it_is_that_of_all_streams_that_were_read(duck: Duck, ahead: bool) -> None:
    running = RunningDigest(duck, SCHEMA)
    assert running.over(stream(), ahead=ahead).read_all() == stream().read_all()
    first = running.digest
    assert first == digest_batches(SCHEMA, BATCHES)
    running.over(stream(), ahead=ahead).read_all()
    assert running.digest == first + first


def test_rows_that_can_not_be_hashed_are_no_digest(duck: Duck) -> None:
    running = RunningDigest(duck, Schema.declare({"missing": "long"}))
    one = pa.RecordBatchReader.from_batches(BATCHES[0].schema, BATCHES[:1])
    assert running.over(one).read_all().num_rows == 100
    with pytest.raises(LakewardError, match="missing"):
        running.digest  # noqa: B018
