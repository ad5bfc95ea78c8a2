"""Work that is told to end hears it while it writes, on each arm and its mirror; nothing of it is seen."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import lakeward
from lakeward.errors import Stopped
from lakeward.stopping import Stop
from support.crashes import unclean

ROWS = 70_000
SCHEMA = pa.schema([("id", pa.int64()), ("note", pa.string())])


def batches(first: int, asked: list[bool]) -> Iterator[pa.RecordBatch]:
    """Yield more than one chunk; after the first, the work is to end."""
    for number in range(first, first + 3):
        ids = pa.array(range(number * ROWS, (number + 1) * ROWS))
        yield pa.record_batch([ids, pa.nulls(ROWS, pa.string())], SCHEMA)
        asked.append(True)


@pytest.mark.parametrize("mode", ["pg", "iceberg_native", "dual"])
def test_a_write_that_is_told_to_end_leaves_nothing(workspace: lakeward.Workspace, mode: str) -> None:
    name = f"main.stopped.{mode}"
    arm = "iceberg" if mode == "iceberg_native" else "postgres"
    dataset = workspace.create_dataset(name, {"id": "long", "note": "string"}, arm=arm)
    dataset.write([{"id": -1, "note": "before"}])
    if mode == "dual":
        workspace.flip(name).run(until="mirror")
    before = dataset.record.head_version
    asked: list[bool] = []
    stop = Stop(lambda: bool(asked))
    with stop.heard(), pytest.raises(Stopped):
        dataset.write(pa.RecordBatchReader.from_batches(SCHEMA, batches(0, asked)))
    assert asked and dataset.record.head_version == before
    assert dataset.to_arrow()["id"].to_pylist() == [-1]
    dataset.write([{"id": -2, "note": "after"}])
    assert unclean(workspace, [name]) == []
    if mode == "dual":
        assert dataset.verify().equal
