"""How rows are sent: the media types that an answer can have, and the bytes of each, streamed batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakeward.errors import UsageError
from lakeward.server.lots import Part
from lakeward.sources.formats.csv_export import csv_lines
from lakeward.sources.formats.json_export import json_objects
from lakeward.types.logical import LogicalType

SLICE_ROWS = 16_384

Types = Mapping[str, LogicalType]
"""Of columns, by name."""


@dataclass(frozen=True)
class Representation:
    """One way to send rows.

    Args:
        name: what the parameter `format` calls it.
        media_type: what the header `Accept` calls it.
        encode: turns a stream of rows, with the types of its columns, into bytes, batch by batch; reading ends when it
            is closed.
    """

    name: str
    media_type: str
    encode: Callable[[pa.RecordBatchReader, Types], Iterator[Sequence[Part]]]


class _Taken:
    """A file that keeps what is written, and copies none of it."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[Part] = []

    def write(self, part: bytes | pa.Buffer) -> None:
        self._parts.append(memoryview(part))

    def flush(self) -> None:
        """There is nowhere to write it to."""

    def taken(self) -> list[Part]:
        parts, self._parts = self._parts, []
        return parts


def _arrow(reader: pa.RecordBatchReader, _: Types) -> Iterator[Sequence[Part]]:
    kept = _Taken()
    writer = pa.ipc.new_stream(pa.PythonFile(kept, mode="w"), reader.schema)
    for batch in reader:
        writer.write_batch(batch)
        yield kept.taken()
    # Some readers take what lacks its end for whole, so that HTTP has to tell, and does, of what is missing.
    writer.close()
    yield kept.taken()


def _lines(reader: pa.RecordBatchReader, types: Types) -> Iterator[Sequence[Part]]:
    for batch in reader:
        for start in range(0, batch.num_rows, SLICE_ROWS):
            lines = json_objects(batch.slice(start, SLICE_ROWS), types).to_pylist()
            yield ["".join(f"{line}\n" for line in lines).encode()]


def _csv(reader: pa.RecordBatchReader, _: Types) -> Iterator[Sequence[Part]]:
    return ([lines] for lines, _ in csv_lines(reader, Path("rows.csv")))


REPRESENTATIONS = {
    each.name: each
    for each in (
        Representation("arrow", "application/vnd.apache.arrow.stream", _arrow),
        Representation("ndjson", "application/x-ndjson", _lines),
        Representation("csv", "text/csv; charset=utf-8", _csv),
    )
}
"""Streams of all rows, by name."""

STREAMS: dict[str, Any] = {
    each.media_type.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}}
    for each in REPRESENTATIONS.values()
}
"""What OpenAPI tells of them."""

PAGE = "json"
"""The name of the other way: a page of rows, as JSON."""


def chosen(format: str | None, accept: str) -> Representation | None:
    """Return how an answer is sent; None: as a page.

    Args:
        format: what the parameter says.
        accept: what the header says, which counts where there is no parameter: of what is wanted most, the first.

    Raises:
        UsageError: there is no such format.
    """
    if format is not None:
        if format != PAGE and format not in REPRESENTATIONS:
            raise UsageError(
                f"unknown format {format!r}; there are {', '.join([PAGE, *REPRESENTATIONS])}", format=format
            )
        return REPRESENTATIONS.get(format)
    by_type = {each.media_type.partition(";")[0]: each for each in REPRESENTATIONS.values()}
    wanted = [(_weight(each), each.partition(";")[0].strip().lower()) for each in accept.split(",")]
    # Sorting keeps the order of what is wanted as much.
    for weight, media_type in sorted(wanted, key=lambda each: -each[0]):
        if weight > 0 and media_type in by_type:
            return by_type[media_type]
        if weight > 0 and media_type == "application/json":
            return None
    return None


def _weight(wanted: str) -> float:
    """Return how much a media type is wanted, from 0 to 1 (RFC 9110, section 12.4.2)."""
    for parameter in wanted.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0
