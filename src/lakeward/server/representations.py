"""How rows are sent: the media types that an answer can have, and the bytes of each, streamed batch by batch."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from lakeward.errors import UsageError
from lakeward.sources.formats.csv_export import csv_lines
from lakeward.sources.formats.json_export import json_objects
from lakeward.types.logical import LogicalType

CHUNK_BYTES = 1 << 20
SLICE_ROWS = 16_384

Types = Mapping[str, LogicalType]
"""Of columns, by name."""


@dataclass(frozen=True)
class Representation:
    """One way to send rows.

    Args:
        name: what the parameter `format` calls it.
        media_type: what the header `Accept` calls it.
        encode: turns a stream of rows, with the types of its columns, into bytes; reading ends when it is closed.
    """

    name: str
    media_type: str
    encode: Callable[[pa.RecordBatchReader, Types], Iterator[bytes]]


def _arrow(reader: pa.RecordBatchReader, _: Types) -> Iterator[bytes]:
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    # The end of the stream: who does not get it knows that rows are missing.
    yield buffer.getvalue()


def _lines(reader: pa.RecordBatchReader, types: Types) -> Iterator[bytes]:
    for batch in reader:
        for start in range(0, batch.num_rows, SLICE_ROWS):
            lines = json_objects(batch.slice(start, SLICE_ROWS), types).to_pylist()
            yield "".join(f"{line}\n" for line in lines).encode()


def _csv(reader: pa.RecordBatchReader, _: Types) -> Iterator[bytes]:
    return (lines for lines, _ in csv_lines(reader, Path("rows.csv")))


REPRESENTATIONS = {
    each.name: each
    for each in (
        Representation("arrow", "application/vnd.apache.arrow.stream", _arrow),
        Representation("ndjson", "application/x-ndjson", _lines),
        Representation("csv", "text/csv; charset=utf-8", _csv),
    )
}
"""Streams of all rows, by name."""

PAGE = "json"
"""The name of the other way: a page of rows, as JSON."""


def chosen(format: str | None, accept: str) -> Representation | None:
    """Return how an answer is sent; None: as a page.

    Args:
        format: what the parameter says.
        accept: what the header says, which counts where there is no parameter; the first that fits.

    Raises:
        UsageError: there is no such format.
    """
    if format is not None:
        if format != PAGE and format not in REPRESENTATIONS:
            raise UsageError(
                f"unknown format {format!r}; there are {', '.join([PAGE, *REPRESENTATIONS])}", format=format
            )
        return REPRESENTATIONS.get(format)
    wanted = [each.partition(";")[0].strip().lower() for each in accept.split(",")]
    by_type = {each.media_type.partition(";")[0]: each for each in REPRESENTATIONS.values()}
    return next((by_type[each] for each in wanted if each in by_type), None)


def coalesced(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Join small parts: each one that is sent costs a turn of the event loop."""
    waiting: list[bytes] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += len(part)
        if size >= CHUNK_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
