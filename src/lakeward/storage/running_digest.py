"""The digest of rows while they stream by on their way to an arm."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pyarrow as pa

from lakeward.storage.duck import Duck
from lakeward.storage.pump import prefetched
from lakeward.types.digest import EMPTY, Digest, digest_batches
from lakeward.types.schema import Schema


class RunningDigest:
    """Hashes the batches of a stream as they are read.

    Args:
        duck: hashes them.
        schema: the business columns; the batches may have others besides.
    """

    def __init__(self, duck: Duck, schema: Schema) -> None:
        self._duck = duck
        self._schema = schema
        self.digest: Digest = EMPTY

    def over(self, batches: pa.RecordBatchReader, *, ahead: bool = False) -> pa.RecordBatchReader:
        """Return the same stream; when it is read to the end, `digest` is that of all its rows.

        Args:
            batches: the stream.
            ahead: a thread reads the next batches while one is hashed: worth its while where they are many.
        """

        def hashed() -> Iterator[pa.RecordBatch]:
            reading = prefetched(batches) if ahead else nullcontext(iter(batches))
            with self._duck.session() as connection, reading as ready:
                for batch in ready:
                    one = pa.RecordBatchReader.from_batches(batch.schema, [batch])
                    self.digest += digest_batches(self._schema, one, connection=connection)
                    yield batch

        return pa.RecordBatchReader.from_batches(batches.schema, hashed())
