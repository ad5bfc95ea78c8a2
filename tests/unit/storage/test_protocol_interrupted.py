"""A writer that is interrupted while or after it decides must not remove what it has just committed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lakeward
from lakeward.errors import LakewardError
from lakeward.testing import raise_at

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), LakewardError("anything")], ids=["ctrl-c", "error"])
@pytest.mark.parametrize(
    ("step", "rows", "statuses"),
    [
        ("decide:committed", 6, ["committed", "committed"]),
        ("decide", 3, ["aborted", "committed"]),
    ],
)
def test_interrupted_around_decide_the_dataset_is_old_or_new(
    arm: str, error: BaseException, step: str, rows: int, statuses: list[str], database_url: str, tmp_path: Path
) -> None:
    def opened(faults: object = None) -> lakeward.Workspace:
        return lakeward.open(tmp_path / "home", database_url=database_url, faults=faults)  # type: ignore[arg-type]

    with opened() as workspace:
        workspace.create_dataset("m.s.d", {"id": "long"}, arm=arm).write(ROWS, mode="append")
    with opened(raise_at(step, error)) as workspace, pytest.raises(type(error)):
        workspace.dataset("m.s.d").write(ROWS, mode="append")
    with opened() as workspace:
        dataset = workspace.dataset("m.s.d")
        assert dataset.to_arrow().num_rows == rows
        assert dataset.digest().count == rows
        assert [each.status for each in dataset.history()] == statuses
        workspace.recover()
        assert dataset.to_arrow().num_rows == rows
        assert dataset.write(ROWS, mode="append").row_count == rows + 3
