"""How the storage layer's DuckDB reads files of object stores: by ranges, through the table's own way to them.

DuckDB comes with no client for such stores, and what can open a file of a table is known to the arm that has the table
only: keys, endpoint, region. So the arm offers that here under a key of the table's, and DuckDB is given addresses like
`lakeward://<key>/<location>`, which it opens through this file system. Files of tables are never changed once they are
there, so one that was opened stays open for the queries after.

The seal of user SQL does not know this file system: it belongs to the storage layer's own DuckDB, whose SQL is ours.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
from fsspec import AbstractFileSystem

from lakeward.errors import LakewardError, StorageError

SCHEME = "lakeward"
OPEN_FILES = 1_024
"""So many files stay open, of all tables together. An open one holds its size, and neither a connection nor data."""

FAILURES = 256
"""So many failures are remembered until DuckDB has told of them."""

_FAILURE = re.compile(r"\[failure (\d+) of a store\]")
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Source:
    """A way to the files of one table.

    Args:
        store: what tells two ways apart; a file that was opened in one is not used in another.
        open: opens the file at a location.
        named: turns the failures of a block into errors that name the store and the dataset.
    """

    store: object
    open: Callable[[str], pa.NativeFile]
    named: Callable[[], AbstractContextManager[None]]


class RemoteFiles(AbstractFileSystem):  # type: ignore[misc]  # fsspec is not typed
    """A read-only file system of the files of all tables that were offered. Safe to share between threads."""

    protocol = SCHEME
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self._guard = threading.Lock()
        self._sources: dict[str, Source] = {}
        self._opened: OrderedDict[str, tuple[object, pa.NativeFile]] = OrderedDict()
        self._numbers = itertools.count()
        self._failures: OrderedDict[int, LakewardError] = OrderedDict()

    def offer(self, key: str, source: Source, *, renames: bool = True) -> None:
        """Let the files of a table be read this way from now on, which may be by fresher keys than before.

        Args:
            key: the table's.
            source: the way.
            renames: whether errors name what this source names, or go on to name what the one before named.
        """
        with self._guard:
            known = self._sources.get(key)
            self._sources[key] = source if renames or known is None else replace(source, named=known.named)

    def failure(self, text: str) -> LakewardError | None:
        """Return the failure that a text of DuckDB's tells of, None if it is of none of ours."""
        found = _FAILURE.search(text)
        with self._guard:
            return self._failures.get(int(found[1])) if found else None

    def open(self, path: str, mode: str = "rb", *_: Any, **__: Any) -> RemoteFile:
        """Open a file for reading."""
        key, _slash, location = path.removeprefix(f"{SCHEME}://").partition("/")
        with self._guard:
            source = self._sources.get(key)
            store, file = self._opened.get(path, (None, None))
        if source is None or mode != "rb":
            raise StorageError(f"no table of this process has the file {path}")
        if file is None or store is not source.store:
            file = self.told(source, lambda: source.open(unquote(location)))
            with self._guard:
                self._opened[path] = (source.store, file)
                self._opened.move_to_end(path)
                while len(self._opened) > OPEN_FILES:
                    self._opened.popitem(last=False)
        return RemoteFile(self, source, file)

    def told(self, source: Source, work: Callable[[], Any]) -> Any:
        """Do a piece of work; what fails is remembered under a number that DuckDB's text of it will have."""
        try:
            with source.named():
                return work()
        except LakewardError as error:
            with self._guard:
                number = next(self._numbers)
                self._failures[number] = error
                if len(self._failures) > FAILURES:
                    self._failures.popitem(last=False)
            raise OSError(f"[failure {number} of a store] {error.message}") from None

    # What DuckDB asks besides ---------------------------------------------------------------------------------------

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path

    def glob(self, path: str, **_: Any) -> list[str]:
        """Return the path: none of ours is a pattern."""
        return [path]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return the size of a file."""
        return {"name": path, "size": self.open(path).size, "type": "file"}

    def modified(self, path: str) -> datetime:
        """Return one time for all, since none of them is ever changed."""
        return _NEVER


class RemoteFile:
    """An open file with a position for each thread: DuckDB's threads share it, and seek before each read."""

    closed = False

    def __init__(self, files: RemoteFiles, source: Source, file: pa.NativeFile) -> None:
        self._files = files
        self._source = source
        self._file = file
        self._positions: dict[int, int] = {}
        self.size: int = file.size()

    def seek(self, position: int, whence: int = 0) -> int:
        """Go to a position from the start, the position (1) or the end (2)."""
        start = (0, self.tell(), self.size)[whence]
        self._positions[threading.get_ident()] = start + position
        return start + position

    def tell(self) -> int:
        """Return where this thread is."""
        return self._positions.get(threading.get_ident(), 0)

    def read(self, count: int = -1) -> bytes:
        """Return the next bytes, fewer at the end of the file."""
        start = self.tell()
        wanted = self.size - start if count < 0 else count
        read: bytes = self._files.told(self._source, lambda: self._file.read_at(wanted, start))
        self._positions[threading.get_ident()] = start + len(read)
        return read

    def seekable(self) -> bool:
        """Say that it can seek."""
        return True

    def close(self) -> None:
        """Do nothing: others read the same file."""


REMOTE_FILES = RemoteFiles()
"""One for the process: a table's key is unique in the world."""


def remote_path(key: str, location: str) -> str:
    """Return the address under which DuckDB opens a file; no character of it makes a pattern."""
    return f"{SCHEME}://{key}/{quote(location, safe='/:')}"
