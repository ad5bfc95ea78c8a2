"""The digest of rows while they stream by on their way to an arm."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext

import pyarrow as pa

from lakeward.storage.duck import Duck
from lakeward.storage.pump import prefetched
from lakeward.types.digest import EMPTY, Digest, digest_batches
from lakeward.types.schema import Schema

BEHIND = 2
"""So many batches may wait to be hashed while later ones are read and written."""


class RunningDigest:
    """Hashes the batches of streams while they are read, in a thread beside whoever reads them.

    Args:
        duck: hashes them.
        schema: the business columns; the batches may have others besides.
    """

    def __init__(self, duck: Duck, schema: Schema) -> None:
        self._duck = duck
        self._schema = schema
        self._hashed = EMPTY
        self._waiting: deque[Future[Digest]] = deque()

    @property
    def digest(self) -> Digest:
        """That of all rows that were read; waits for the last of them to be hashed."""
        self._settle(0)
        return self._hashed

    def over(self, batches: pa.RecordBatchReader, *, ahead: bool = False) -> pa.RecordBatchReader:
        """Return the same stream, whose rows count once they are read.

        Args:
            batches: the stream.
            ahead: another thread reads the next batches meanwhile: worth its while where they are many.
        """

        def hashed() -> Iterator[pa.RecordBatch]:
            hasher = ThreadPoolExecutor(1, thread_name_prefix="lakeward-digest")
            reading = prefetched(batches) if ahead else nullcontext(iter(batches))
            try:
                with reading as ready:
                    for batch in ready:
                        self._settle(BEHIND - 1)
                        self._waiting.append(hasher.submit(self._hash, batch))
                        yield batch
            finally:
                # What waits is hashed nevertheless.
                hasher.shutdown(wait=False)

        return pa.RecordBatchReader.from_batches(batches.schema, hashed())

    def _hash(self, batch: pa.RecordBatch) -> Digest:
        rows = pa.RecordBatchReader.from_batches(batch.schema, [batch])
        with self._duck.session() as connection:
            return digest_batches(self._schema, rows, connection=connection)

    def _settle(self, most: int) -> None:
        """Count what was hashed, until no more than so many batches wait."""
        while len(self._waiting) > most:
            self._hashed += self._waiting.popleft().result()
