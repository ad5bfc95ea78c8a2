"""What the tests of moves share."""

from __future__ import annotations

from pathlib import Path

import lakeward

COLUMNS = {"id": "long", "note": "string"}


def warehouse_files(dataset: lakeward.Dataset) -> dict[Path, bytes]:
    """Return the files below a dataset's location and what is in each."""
    location = Path(dataset.locate()["iceberg"]["location"].removeprefix("file://"))
    return {path: path.read_bytes() for path in location.rglob("*") if path.is_file()}
