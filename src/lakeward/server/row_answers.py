"""Answers that are rows of a dataset: of which version they are, and all of them as a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

from lakeward.server.lots import gathered
from lakeward.server.representations import Representation
from lakeward.server.row_stream import RowStream
from lakeward.wiring.dataset import Dataset

Found = TypeVar("Found")


def of_version(dataset: Dataset, version: int | None, read: Callable[[int | None], Found]) -> tuple[int, Found]:
    """Return what is read of a version, the newest if none is wanted, with the version that it is of.

    Args:
        dataset: whose.
        version: which one; None: the newest.
        read: reads it; None: whatever there is, where there was no version before.
    """
    if version is not None:
        return version, read(version)
    while True:
        newest = dataset.version
        found = read(newest or None)
        # Where there was none, what was read may be of a first version that came in between.
        if newest or not dataset.version:
            return newest, found


def streamed(
    dataset: Dataset,
    reader: pa.RecordBatchReader,
    representation: Representation,
    version: int,
) -> RowStream:
    """Return all rows of a reader as an answer.

    Args:
        dataset: whose.
        reader: of the rows.
        representation: how they are sent.
        version: which they are of.
    """
    types = {column.name: column.type for column in dataset.schema.columns}
    headers = {"Lakeward-Version": str(version), "Cache-Control": "no-store"}
    parts = gathered(representation.encode(reader, types))
    return RowStream(parts, representation.media_type, headers)
