"""What a file is read from: something with a name, whose bytes can be read from the start, as often as need be."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, ClassVar


@dataclass(frozen=True)
class FileState:
    """What changes when the content does.

    Args:
        size: in bytes.
        identity: a local file's time of change in nanoseconds, a store's ETag.
    """

    size: int
    identity: str


class SourceFile(ABC):
    """A file of a disk or of a store. Its text, `str(file)`, is its whole place, for errors; never a secret."""

    settled_seconds: ClassVar[float] = 2.0
    """Two changes so close together may have the same time: no file system's clock is as coarse as that."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The last part of its place, whose end tells the format."""

    @abstractmethod
    def __str__(self) -> str:
        """Return where the file is."""

    @abstractmethod
    def open(self) -> IO[bytes]:
        """Return the bytes as a stream that can seek, as a `pyarrow.NativeFile` can; the caller closes it.

        Raises:
            OSError: it is not there, or can't be read.
        """

    @abstractmethod
    def state(self) -> FileState:
        """Return what changes when the content does.

        Raises:
            OSError: it is not there, or can't be read.
        """

    def hash(self, state: FileState) -> str:
        """Return what changes only if the content does: by reading all of it, or of its state, if that tells.

        Args:
            state: what `state` returns now.

        Raises:
            OSError: it is not there, or can't be read.
        """
        with closing(self.open()) as opened:
            return f"sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()}"  # type: ignore[arg-type]


class LocalFile(SourceFile):
    """A file of this machine.

    Args:
        path: where it is.
        named: what it is called, if it is reached by a link; None: as its path.
    """

    def __init__(self, path: Path, named: Path | None = None) -> None:
        self.path = path
        self._named = named or path

    def __str__(self) -> str:
        return str(self._named)

    @property
    def name(self) -> str:
        """The last part of what it is called."""
        return self._named.name

    def open(self) -> IO[bytes]:
        """Open the file."""
        return self.path.open("rb")

    def state(self) -> FileState:
        """Return the file's size and its time of change."""
        return state_at(self.path)


def state_at(path: str | Path) -> FileState:
    """Return the size and the time of change of a file of this machine.

    It is the time that the system sets whenever content or name change, not the one that programs which copy files, or
    put another in place of one, can set to what it was. It changes with rights and links, too; then the hash tells.

    Raises:
        OSError: it is not there, or can't be read.
    """
    stat = os.stat(path)
    return FileState(stat.st_size, str(stat.st_ctime_ns))


def source_file(file: Path | SourceFile) -> SourceFile:
    """Return the file; a path is one of this machine."""
    return LocalFile(file) if isinstance(file, Path) else file
