"""Files that a write gave up are deleted, and a store that is down is asked once."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

from lakeward.storage.arms.iceberg.discarding import discard


def test_what_is_there_goes_and_what_is_not_is_passed_over(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "gone", tmp_path / "b"]
    for path in (paths[0], paths[2]):
        path.touch()
    discard(PyArrowFileIO(), "dataset d", [f"file://{path}" for path in paths])
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_down_is_asked_once(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[str] = []

    class Down(PyArrowFileIO):
        def delete(self, location: str) -> None:  # type: ignore[override]
            asked.append(location)
            raise OSError(
                "When deleting in bucket 'lake': AWS Error NETWORK_CONNECTION during DeleteObject: curlCode: 7, x"
            )

    discard(Down(), "dataset d", ["s3://lake/1", "s3://lake/2", "s3://lake/3"])
    assert asked == ["s3://lake/1"]
    (record,) = caplog.records
    assert "s3://lake/1 and 2 more was not deleted" in record.getMessage() and "can't be reached" in record.getMessage()
