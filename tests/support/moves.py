"""What the tests of moves share."""

from __future__ import annotations

from pathlib import Path

import lakeward
from lakeward.control.identifiers import home
from lakeward.control.moves import Relocation

COLUMNS = {"id": "long", "note": "string"}


def warehouse_files(dataset: lakeward.Dataset) -> dict[Path, bytes]:
    """Return the files below a dataset's location and what is in each."""
    location = Path(dataset.locate()["iceberg"]["location"].removeprefix("file://"))
    return {path: path.read_bytes() for path in location.rglob("*") if path.is_file()}


def to_its_home(dataset: lakeward.Dataset) -> Relocation:
    """Return the move that brings a dataset's table under its own names."""
    record = dataset.record
    return Relocation(record.identifier, home(record.slugs))
