"""A stream that an engine may scan once: a second scan would silently see nothing, and is an error here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import pyarrow as pa


class SingleUse:
    """An Arrow stream for the PyCapsule protocol that can be exported once, and keeps what its source raised.

    An exception that crosses the Arrow C stream becomes text; `failure` has the original.

    Args:
        reader: the stream.
        names: new column names, in the order of the reader's own.
        waiting: entered while the stream is waited for.
    """

    def __init__(
        self,
        reader: pa.RecordBatchReader,
        names: list[str],
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._reader = reader
        self._waiting = waiting
        self._names = names
        self._schema = pa.schema([field.with_name(name) for field, name in zip(reader.schema, names, strict=True)])
        self._scanned = False
        self.failure: BaseException | None = None

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        if self._scanned:
            self.failure = self.failure or RuntimeError("an input stream was scanned twice")
            raise self.failure
        self._scanned = True
        return pa.RecordBatchReader.from_batches(self._schema, self._batches()).__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            while (batch := self._next()) is not None:
                yield batch.rename_columns(self._names)
        except GeneratorExit:
            # Released before its end: the query needed no more, or failed elsewhere.
            raise
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self.close()

    def _next(self) -> pa.RecordBatch | None:
        with self._waiting():
            return next(self._reader, None)

    def close(self) -> None:
        """Release the source. May be called again."""
        self._reader.close()
