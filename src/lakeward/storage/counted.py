"""Streams that tell how many rows were read of them so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa


def counted(reader: pa.RecordBatchReader, progress: Callable[[int], None]) -> pa.RecordBatchReader:
    """Return the same stream, which tells `progress` the rows so far once each batch was used."""

    def batches() -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch in reader:
            rows += batch.num_rows
            yield batch
            progress(rows)

    return pa.RecordBatchReader.from_batches(reader.schema, batches())
