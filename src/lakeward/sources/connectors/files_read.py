"""Which files of a table are read, and their rows. What was read of each is told afterwards, to be recorded with them.

A file is known by its place, size, time of change and a hash of its content:

    not known            it is new, and read
    size and time same   it was read; nothing of it is looked at
    time alone differs   its hash tells whether it was written or only touched
    changed              read again where rows are known by a key; refused by name where they would come twice
    gone                 its rows stay, until all files are read

A time of change that was just past when it was looked at says nothing, since another change may have the same: it is
not recorded, and the hash tells the next time.

One that is still written when its turn comes is left for the next read: its size and time of change must be the same
before and after its hash is taken. If it changes later, while its rows are read, nothing is written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from lakeward.control.records import FileRead
from lakeward.errors import DataError, SourceFileError
from lakeward.sources.connector import FULL, ReadWindow
from lakeward.sources.file_patterns import FoundFile
from lakeward.sources.file_set import FileSet, steady
from lakeward.sources.source_file import FileState
from lakeward.types.logical import parse_type
from lakeward.types.table import arrow_type


class FilesRead:
    """One read of a table.

    Args:
        found: its files, in order.
        opens: opens some of them in their format.
        window: what is read.
        scanned: the states of those that the types were found in; what is read has to be the same.

    Raises:
        SourceFileError: a file was changed after it was read, and its rows can't be told from new ones.
    """

    def __init__(
        self,
        found: Sequence[FoundFile],
        opens: Callable[[Sequence[FoundFile]], FileSet],
        window: ReadWindow,
        scanned: Mapping[FoundFile, FileState],
    ) -> None:
        self._opens = opens
        self._window = window
        self._scanned = scanned
        self._whole = window.what == FULL
        self._read: list[FileRead] = []
        self.touched: list[FileRead] = []
        """Files that are as they were, and whose time of change is another one."""
        self._left: list[str] = []
        known = {} if self._whole else window.seen()
        self._chosen = [each for each in found if self._is_wanted(each, known.get(each.place))]

    def stream(self) -> pa.RecordBatchReader:
        """Return the rows, one file after the other."""
        types = self._window.types
        schema = pa.schema([pa.field(name, arrow_type(parse_type(text))) for name, text in types.items()])
        return pa.RecordBatchReader.from_batches(schema, self._batches())

    def files(self) -> list[FileRead]:
        """Return the files that were read so far."""
        return self._read

    def left(self) -> list[str]:
        """Return what was left for the next read, in words."""
        return self._left

    def _is_wanted(self, each: FoundFile, known: FileRead | None) -> bool:
        if known is None:
            return True
        try:
            state = each.state()
            if (state.size, state.identity) == (known.size, known.state):
                return False
            touched = state.size == known.size and each.file.hash(each.file.state()) == known.hash
        except FileNotFoundError:
            return False
        if touched:
            self.touched.append(FileRead(each.place, state.size, _settled(each, state), known.hash))
            return False
        if not self._window.matched:
            raise SourceFileError(
                f"{each.file}: was changed after its rows were read, and without a key they would come twice",
                safe="nothing was written",
                next_step="put what is new into a file of its own; or sync with --mode full, which replaces all rows",
                path=str(each.file),
            )
        return True

    def _batches(self) -> Iterator[pa.RecordBatch]:
        files = self._opens(self._chosen) if self._chosen else None
        if files is not None:
            files.required = self._window.required
        for each in self._chosen:
            assert files is not None, "there is one"
            begun = self._begun(each)
            if begun is None:
                continue
            state, read = begun
            try:
                with steady(each.file, self._scanned.get(each, state)):
                    rejects = self._window.rejects(each.file) if self._window.rejects is not None else None
                    yield from files.opened(each.file).read(self._window.types, rejects)
            except DataError as error:
                error.safe = error.safe or "nothing was written"
                raise
            self._read.append(read)

    def _begun(self, each: FoundFile) -> tuple[FileState, FileRead] | None:
        """Return the state that a file must keep, and what is recorded of it; None: it is left for the next read."""
        try:
            listed, state = each.state(), each.file.state()
            hash_ = each.file.hash(state)
            if each.file.state() == state:
                return state, FileRead(each.place, state.size, _settled(each, listed), hash_)
            why = "is being written"
        except FileNotFoundError:
            why = "was removed"
        except OSError as error:
            raise SourceFileError(
                f"{each.file}: can't be read: {error.strerror or error}",
                safe="nothing was written",
                path=str(each.file),
            ) from None
        if self._whole:
            raise SourceFileError(
                f"{each.file}: {why}", safe="nothing was written", next_step="repeat the sync", path=str(each.file)
            )
        self._left.append(f"{each.file} {why}")
        return None


def _settled(each: FoundFile, state: FileState) -> str:
    """Return what is recorded of a file's time of change: nothing, if the next change could have the same."""
    past = time.time() - int(state.identity) / 1e9
    return state.identity if past > each.file.settled_seconds else ""
