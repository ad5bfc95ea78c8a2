"""Whether a file is still the one that was scanned: what a scan proposed is true of that file alone."""

from __future__ import annotations

from lakeward.errors import SourceFileError
from lakeward.sources.source_file import FileState, SourceFile


class ScannedFile:
    """Remembers the state of a file at its scan; until then there is nothing that could have changed.

    Args:
        file: the file.

    Raises:
        SourceFileError: by every method: the file can't be read, or has changed since it was scanned.
    """

    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self._scanned: tuple[FileState, int] | None = None

    def state(self) -> FileState:
        """Return the file's state now."""
        try:
            return self.file.state()
        except OSError as error:
            raise SourceFileError(f"{self.file}: can't be read: {error.strerror}", path=str(self.file)) from error

    def remember(self, state: FileState, rows: int) -> None:
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
            f"{self.file}: has changed since it was scanned", next_step="scan it again", path=str(self.file)
        )
