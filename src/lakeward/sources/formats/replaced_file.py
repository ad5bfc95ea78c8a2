"""Writes a file beside its final place and renames it there when it is complete and on disk."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from lakeward.errors import StorageFull, UsageError

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replaced_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file that takes the place of `path` if the block ends well, and vanishes if not.

    Raises:
        StorageFull: no space left; what was at `path` is unchanged.
        UsageError: the directory is missing, not writable, or `path` is a directory.
    """
    # Not tempfile: its files are private to the user whatever the umask says. Short, since `path` may have 255 bytes.
    part = path.with_name(f".lakeward-{uuid.uuid4().hex}.part")
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _sync_directory(path.parent)
    except OSError as error:
        if error.errno is None:
            # Arrow's, from whoever produces the rows: not about this file.
            raise
        reason = error.strerror or str(error)
        kind = StorageFull if error.errno in _NO_SPACE else UsageError
        raise kind(
            f"can't write {path}: {reason}", safe="what was there before is unchanged", path=str(path)
        ) from error
    finally:
        # After the rename there is nothing under this name.
        part.unlink(missing_ok=True)


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
