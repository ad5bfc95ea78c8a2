"""What a query reads of its sources: the rows of a window each, in place where storage can say how, else streamed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial

import pyarrow as pa

from lakeward.compute.engine import Input
from lakeward.control.records import Window
from lakeward.control.tree import DatasetRecord
from lakeward.in_place import InPlace
from lakeward.storage.facade import Storage
from lakeward.storage.requests import ReadRequest

READER = "pipelines.source"


def source_inputs(
    storage: Storage, read: Mapping[str, tuple[DatasetRecord, Window]], reader: str = READER
) -> dict[str, Input]:
    """Return the inputs of queries that read the versions of windows, by the names of their nodes.

    Storage is asked about all of them at once, when it is asked about the first one.

    Args:
        storage: the door to the rows.
        read: the sources, and the versions of each that are read: after `low`, up to `high`.
        reader: as which the rows are read.
    """

    def opened(dataset: DatasetRecord, window: Window, columns: Sequence[str]) -> pa.RecordBatchReader:
        return storage.read(dataset, _request(columns, window), reader=reader)

    @cache
    def places() -> dict[str, InPlace | None]:
        reads = [(dataset, _request(dataset.schema.names, window)) for dataset, window in read.values()]
        return dict(zip(read, storage.in_place(reads, reader=reader), strict=True))

    return {
        name: Input(dataset.schema, partial(opened, dataset, window), lambda name=name: places()[name])  # type: ignore[misc]
        for name, (dataset, window) in read.items()
    }


def _request(columns: Sequence[str], window: Window) -> ReadRequest:
    return ReadRequest(columns=tuple(columns), version=window.high, since=window.low or None)
