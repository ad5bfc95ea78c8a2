"""Counts the rows of a stream on its way, and keeps the error that ended it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from lakeward.errors import LakewardError

Progress = Callable[[str, int, int | None], None]
"""Is told what is being done, the rows so far, and how many there will be (None: not known)."""


class CountedBatches:
    """Passes batches on.

    Args:
        reader: the stream, or what yields its batches.
        what: is being done with it, for `progress`.
        total: how many rows there will be; None: not known.
        progress: is told the rows so far.
    """

    def __init__(
        self, reader: Iterable[pa.RecordBatch], what: str, total: int | None, progress: Progress | None
    ) -> None:
        self.rows = 0
        self.raised: LakewardError | None = None
        self._reader = reader
        self._what = what
        self._total = total
        self._progress = progress

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._reader:
                self.rows += batch.num_rows
                yield batch
                if self._progress is not None:
                    self._progress(self._what, self.rows, self._total)
        except LakewardError as error:
            self.raised = error
            raise
