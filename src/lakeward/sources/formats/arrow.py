"""Arrow IPC files and streams: types come from their schema, batches are streamed, and no value changes on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from lakeward.errors import SourceFileError
from lakeward.sources.formats.typed_file import DAMAGE, Contents, TypedFile

_FILE_MAGIC = b"ARROW1"
_FEATHER_1_MAGIC = b"FEA1"
# How a stream ends (Arrow columnar format, "IPC Streaming Format"). A reader takes the file's end for the end of the
# stream, so that one which was cut off between two batches looks complete.
_STREAM_END = b"\xff\xff\xff\xff\0\0\0\0"


class ArrowFile(TypedFile):
    """Arrow IPC, as a file (also called Feather 2) or a stream; which one is told by its first bytes.

    Memory is bounded by the file's largest batch.
    """

    name = "arrow"
    suffixes = (".arrow", ".arrows", ".feather", ".ipc")

    @contextmanager
    def _opened(self) -> Iterator[Contents]:
        with self._bytes() as source:
            try:
                contents = self._contents(source)
            except DAMAGE as error:
                what = "is neither an Arrow file nor an Arrow stream, or a truncated one"
                raise self._damaged(what, error) from error
            yield contents

    def _contents(self, source: pa.NativeFile) -> Contents:
        magic = source.read(len(_FILE_MAGIC))
        if magic[: len(_FEATHER_1_MAGIC)] == _FEATHER_1_MAGIC:
            raise SourceFileError(
                f"{self.file}: is Feather version 1, which is not read",
                next_step="write it as Feather version 2, which is Arrow IPC",
                path=str(self.file),
            )
        if magic == _FILE_MAGIC:
            file = pa.ipc.open_file(source)
            batches = (file.get_batch(index) for index in range(file.num_record_batches))
            return Contents(file.schema, batches, None)
        source.seek(0)
        stream = pa.ipc.open_stream(source)
        return Contents(stream.schema, self._to_the_end(stream, source), None)

    def _to_the_end(self, stream: pa.RecordBatchReader, source: pa.NativeFile) -> Iterator[pa.RecordBatch]:
        taken = source.tell()
        for batch in stream:
            taken = source.tell()
            yield batch
        end = source.size() - len(_STREAM_END)
        source.seek(max(0, end))
        # The last batch's own bytes may look like an end.
        if taken > end or source.read() != _STREAM_END:
            raise SourceFileError(
                f"{self.file}: is an Arrow stream that does not end where the file ends, so rows may be missing",
                next_step="write it again, and close its writer",
                path=str(self.file),
            )
