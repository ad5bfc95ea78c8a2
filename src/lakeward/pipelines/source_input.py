"""What a query reads of a source: the rows of one window, in place where storage can say how, else streamed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from lakeward.compute.engine import Input
from lakeward.control.records import Window
from lakeward.control.tree import DatasetRecord
from lakeward.storage.facade import Storage
from lakeward.storage.requests import ReadRequest

READER = "pipelines.source"


def source_input(storage: Storage, dataset: DatasetRecord, window: Window) -> Input:
    """Return the input of a query that reads the versions of a window.

    Args:
        storage: the door to the rows.
        dataset: the source.
        window: its versions: after `low`, up to `high`.
    """

    def request(columns: Sequence[str]) -> ReadRequest:
        return ReadRequest(columns=tuple(columns), version=window.high, since=window.low or None)

    def opened(columns: Sequence[str]) -> pa.RecordBatchReader:
        return storage.read(dataset, request(columns), reader=READER)

    in_place = partial(storage.in_place, dataset, request(dataset.schema.names), reader=READER)
    return Input(dataset.schema, opened, in_place)
