"""Several files as one: their types by a full scan of all of them, and their rows one file after the other.

What a scan proposes is true of the files that were scanned. So the state of each is taken before it is read, and must
be the same afterwards, and when it is read again: a file that somebody writes meanwhile is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakeward.errors import LakewardError, SourceFileError, UsageError
from lakeward.sources.file_format import FileFormat, FileProfile
from lakeward.sources.file_formats import checked_options, format_for, format_named
from lakeward.sources.kept_rows import KeptRows
from lakeward.sources.rejects import Rejects
from lakeward.sources.source_file import FileState, SourceFile, source_file
from lakeward.types.logical import parse_type
from lakeward.types.table import arrow_type

Told = Callable[[SourceFile], None]
"""Is told which file comes next."""

Batches = Iterable[pa.RecordBatch]

RejectsOf = Callable[[SourceFile], Rejects]
"""Returns what is told the records of a file that can't be taken."""


class FileSet:
    """Files of one format, in the order that their rows shall have.

    Args:
        files: at least one; a path is a file of this machine.
        format: its name; None: by the ends of the files' names, which have to be of one.
        options: how the files are written down: the format's own options by name.
        text: columns that are text by choice, whatever their values are.

    Raises:
        UsageError: there is no file, or they are of several formats.
        UnknownObject: no format has that name, or reads such a file.
        SettingsError: an option is unknown, or can't be meant.
    """

    def __init__(
        self,
        files: Sequence[Path | SourceFile],
        format: str | None = None,
        options: Mapping[str, Any] | None = None,
        text: Collection[str] = (),
    ) -> None:
        self.files = [source_file(file) for file in files]
        self.format = common_format(self.files) if format is None else format_named(format)
        self._options = checked_options(self.format, options or {})
        self._text = text
        self.states: dict[SourceFile, FileState] = {}
        """Those of the files that were scanned, when they were."""
        self.required: Collection[str] = ()
        """Columns in which a record must have a value; see `FileFormat.required`."""
        self._kept: KeptRows | None = None

    def __str__(self) -> str:
        return str(self.files[0]) if len(self.files) == 1 else f"{len(self.files):,} files"

    def scan(
        self,
        told: Told | None = None,
        rejects: RejectsOf | None = None,
        keep_in: Path | None = None,
        declared: Collection[str] = (),
    ) -> FileProfile:
        """Read all files from end to end in bounded memory, and propose a type for each column.

        Args:
            told: is told which file comes next.
            rejects: returns what is told the records of a file that can't be read; None: the first ends the scan.
            keep_in: where rows may be kept for the next read, until `close`; None: nowhere.
            declared: columns whose types are known, so that none has to be found that holds their values.

        Raises:
            SourceFileError: a file is not what it claims to be, or was changed meanwhile.
            ColumnMismatch: a file has other columns than those before it.
        """
        if keep_in is not None and rejects is None:
            self._kept = KeptRows(keep_in)
        if len(self.files) == 1:
            return self._scan(self.files[0], None, told, rejects, declared)
        profile = FileProfile({}, 0)
        for file in self.files:
            profile = self._scan(file, profile, told, rejects, declared)
        if not profile.columns:
            raise SourceFileError(
                f"no column is known of any of {self}",
                next_step="declare the columns: --columns",
                files=len(self.files),
            )
        return profile

    def read(
        self, types: Mapping[str, str], told: Told | None = None, rejects: RejectsOf | None = None
    ) -> pa.RecordBatchReader:
        """Stream the rows of all files.

        Args:
            types: the logical type text of every column, in the order that the batches shall have.
            told: is told which file comes next.
            rejects: returns what is told the records of a file that can't be taken; None: the first ends the read.

        Raises:
            ColumnMismatch: a file has not exactly these columns.
            SchemaError: a type text is wrong, or the format can't hold the type.
            SourceFileError: a file is not what it claims to be, or was changed since it was scanned. While the batches
                are read, also: a value is not of its type, with file, line and column.
        """
        readers = self._readers(types, rejects)
        schema = pa.schema([pa.field(name, arrow_type(parse_type(text))) for name, text in types.items()])
        return pa.RecordBatchReader.from_batches(schema, _batches(readers, told))

    def opened(self, file: SourceFile) -> FileFormat:
        """Return one of the files in the format."""
        opened = self.format(file, self._options)
        opened.text = self._text
        opened.required = self.required
        return opened

    def check(self, types: Mapping[str, str], keep_in: Path) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all files as the given types, and keep them for the next read, until `close`.

        Args:
            types, and what is raised: see `read`.
            keep_in: where they may be kept.
        """
        self._kept = KeptRows(keep_in)
        for file, known, reader in self._readers(types, None):
            with steady(file, known) as self.states[file]:
                self._kept.begin(file)
                for batch in reader:
                    self._kept.add(batch)
                    yield batch

    def close(self) -> None:
        """Give up the rows that were kept; repeating it does nothing."""
        if self._kept is not None:
            self._kept.close()

    def _readers(
        self, types: Mapping[str, str], rejects: RejectsOf | None
    ) -> list[tuple[SourceFile, FileState, Batches]]:
        readers: list[tuple[SourceFile, FileState, Batches]] = []
        for file in self.files:
            with steady(file, self.states.get(file)) as state:
                readers.append((file, state, self._reader(file, types, rejects)))
        return readers

    def _reader(self, file: SourceFile, types: Mapping[str, str], rejects: RejectsOf | None) -> Batches:
        kept = self._kept.rows_of(file, types) if self._kept is not None and rejects is None else None
        return kept if kept is not None else self.opened(file).read(types, rejects(file) if rejects else None)

    def _scan(
        self,
        file: SourceFile,
        before: FileProfile | None,
        told: Told | None,
        rejects: RejectsOf | None,
        declared: Collection[str],
    ) -> FileProfile:
        if told is not None:
            told(file)
        with steady(file) as state:
            self.states[file] = state
            opened = self.opened(file)
            opened.text = {*self._text, *declared}
            if self._kept is not None:
                self._kept.begin(file)
                opened.kept = self._kept
            return opened.scan(before, rejects(file) if rejects else None)


def common_format(files: Sequence[SourceFile]) -> type[FileFormat]:
    """Return the one format of files, by the ends of their names.

    Raises:
        UsageError: there is no file, or they are of several formats.
        UnknownObject: no format reads such a file.
    """
    if not files:
        raise UsageError("there is no file", safe="nothing was changed")
    first = format_for(files[0])
    for file in files[1:]:
        other = format_for(file)
        if other is not first:
            raise UsageError(
                f"{file} is {other.name}, and {files[0]} is {first.name}",
                safe="nothing was changed",
                next_step="name files of one format, or the format: --format NAME",
                path=str(file),
            )
    return first


@contextmanager
def steady(file: SourceFile, known: FileState | None = None) -> Iterator[FileState]:
    """Hold that a file is not changed while it is read; yields its state.

    Args:
        file: which one.
        known: the state that it has to have; None: any.

    Raises:
        SourceFileError: it can't be read, or was changed.
    """
    state = state_of(file)
    if known is not None and state != known:
        raise changed(file, "has changed since it was scanned")
    try:
        yield state
    except LakewardError:
        # What is found in half of one file and half of another is not true of either.
        if state_of(file) != state:
            raise changed(file, "was changed while it was read") from None
        raise
    if state_of(file) != state:
        raise changed(file, "was changed while it was read")


def state_of(file: SourceFile) -> FileState:
    """Return a file's state.

    Raises:
        SourceFileError: it can't be read.
    """
    try:
        return file.state()
    except OSError as error:
        raise SourceFileError(f"{file}: can't be read: {error.strerror or error}", path=str(file)) from error


def changed(file: SourceFile, what: str) -> SourceFileError:
    """Return the error for a file that somebody else writes."""
    return SourceFileError(f"{file}: {what}", next_step="repeat when nobody writes it", path=str(file))


def _batches(readers: Sequence[tuple[SourceFile, FileState, Batches]], told: Told | None) -> Iterator[pa.RecordBatch]:
    for file, known, reader in readers:
        if told is not None:
            told(file)
        with steady(file, known):
            yield from reader
