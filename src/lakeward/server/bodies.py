"""Rows that a request brings: the body is kept in a file until all of it is here, and is then read like any file.

So a slow or broken connection never holds a dataset's slot, and what is refused is refused with line and column as by
`lakeward dataset import`.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Annotated

from fastapi import Header, Query, Request
from starlette.concurrency import run_in_threadpool

from lakeward.errors import StorageFull, UsageError

FORMATS = {
    "application/vnd.apache.arrow.stream": "arrow",
    "application/vnd.apache.arrow.file": "arrow",
    "application/vnd.apache.parquet": "parquet",
    "application/json": "json",
    "application/x-ndjson": "json",
    "application/ndjson": "json",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
}
"""The format of a body, by its media type."""

ContentType = Annotated[str, Header(include_in_schema=False)]

IdempotencyKey = Annotated[
    str | None,
    Header(min_length=1, max_length=200, description="names the request: repeated with it, it changes nothing"),
]

AllowEmpty = Annotated[bool, Query(description="let replace and mirror take zero rows")]

_ONCE = ("content-type", "content-encoding", "idempotency-key")
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def checked_headers(request: Request) -> None:
    """Refuse headers that leave open what a body means.

    Raises:
        UsageError: one comes twice, or the body is packed.
    """
    for name in _ONCE:
        if len(request.headers.getlist(name)) > 1:
            raise UsageError(f"the header {name} comes more than once", safe="nothing was changed", header=name)
    packed = request.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("", "identity"):
        raise UsageError(
            f"a body with the Content-Encoding {packed!r} is not unpacked",
            safe="nothing was changed",
            next_step="send it as it is; Parquet and Arrow have packing of their own",
            content_encoding=packed,
        )


def format_of(content_type: str) -> str:
    """Return the name of the format of a body.

    Raises:
        UsageError: nothing reads it.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type not in FORMATS:
        raise UsageError(
            f"rows can't be read from {media_type or 'a body without Content-Type'}",
            safe="nothing was changed",
            next_step=f"send one of {', '.join(FORMATS)}",
            content_type=media_type,
        )
    return FORMATS[media_type]


@asynccontextmanager
async def received(request: Request, scratch: Path) -> AsyncIterator[Path]:
    """Hold the body of a request as a file; the file goes with the block.

    Raises:
        StorageFull: there is no room for it.
        ClientDisconnect: it broke off.
    """
    # Without a buffer: what is left in one could not be written at the end either, when the file is closed.
    with tempfile.NamedTemporaryFile(dir=scratch, prefix="body-", buffering=0) as file:
        try:
            async for chunk in request.stream():
                await run_in_threadpool(_write, file, chunk)
        except OSError as error:
            if error.errno not in _NO_SPACE:
                raise
            raise StorageFull(
                f"there is no room for the request's body: {error.strerror}",
                safe="nothing was changed",
                next_step="free space where the server keeps temporary files, or send fewer rows at once",
            ) from error
        yield Path(file.name)


def _write(file: IO[bytes], chunk: bytes) -> None:
    left = memoryview(chunk)
    while left:
        left = left[file.write(left) :]
