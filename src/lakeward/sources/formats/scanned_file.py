"""Whether a file is still the one that was scanned: what a scan proposed is true of that file alone."""

from __future__ import annotations

import os
from pathlib import Path

from lakeward.errors import SourceFileError


class ScannedFile:
    """Remembers the state of a file at its scan; until then there is nothing that could have changed.

    Args:
        path: the file.

    Raises:
        SourceFileError: by every method: the file can't be read, or has changed since it was scanned.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._scanned: tuple[tuple[int, int], int] | None = None

    def state(self) -> tuple[int, int]:
        """Return the file's size in bytes and its time of change in nanoseconds."""
        try:
            state = os.stat(self.path)
        except OSError as error:
            raise SourceFileError(f"{self.path}: can't be read: {error.strerror}", path=str(self.path)) from error
        return state.st_size, state.st_mtime_ns

    def remember(self, state: tuple[int, int], rows: int) -> None:
        """Take the scan of a file that had `state` before it, and `rows` rows."""
        self._scanned = (state, rows)

    def check_state(self) -> None:
        """Refuse a file that has changed since its scan."""
        if self._scanned is not None and self._scanned[0] != self.state():
            raise self._changed()

    def check_rows(self, rows: int) -> None:
        """Refuse a file that had another number of rows when it was scanned."""
        if self._scanned is not None and self._scanned[1] != rows:
            raise self._changed()

    def _changed(self) -> SourceFileError:
        return SourceFileError(
            f"{self.path}: has changed since it was scanned", next_step="scan it again", path=str(self.path)
        )
