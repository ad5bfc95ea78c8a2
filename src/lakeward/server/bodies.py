"""Rows that a request brings: the body is kept in a file until all of it is here, and is then read like any file.

So a slow or broken connection never holds a dataset's slot, and what is refused is refused with line and column as by
`lakeward dataset import`.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from lakeward.errors import UsageError

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
    """Hold the body of a request as a file; the file goes with the block."""
    with tempfile.NamedTemporaryFile(dir=scratch, prefix="body-") as file:
        async for chunk in request.stream():
            await run_in_threadpool(file.write, chunk)
        await run_in_threadpool(file.flush)
        yield Path(file.name)
