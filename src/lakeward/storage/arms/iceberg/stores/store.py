"""The port of a store: what the arm needs of the place where files lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import pyarrow as pa

from lakeward.storage.receiving import Ability


@dataclass(frozen=True)
class StoredFile:
    """A file as a listing tells of it.

    Args:
        location: where it is, as the store's other methods take it.
        bytes: its size.
        modified: when it was written, in seconds since 1970 by the store's clock.
    """

    location: str
    bytes: int
    modified: float

    @property
    def name(self) -> str:
        """The last part of its location."""
        return self.location.rpartition("/")[2]


class Store(ABC):
    """A place where files lie. Locations are those that stand in Iceberg's metadata, or that a listing returned."""

    @abstractmethod
    def duckdb_path(self, location: str) -> str:
        """Return what DuckDB opens the file by; no character of it makes a pattern."""

    @abstractmethod
    def in_place(self, location: str) -> str | None:
        """Return the path by which a sealed engine may open the file itself; None: it must be handed a stream."""

    @abstractmethod
    def opened(self, location: str) -> str | pa.NativeFile:
        """Return what PyArrow reads the file by."""

    @abstractmethod
    def is_folder(self, location: str) -> bool:
        """Say whether a location may hold files; a link to another place does not count."""

    @abstractmethod
    def files(self, location: str) -> list[StoredFile]:
        """Return all files below a location, and none beside it: below `ord` there is nothing of `orders`."""

    @abstractmethod
    def modified(self, location: str) -> float | None:
        """Return when a file was written, by the store's clock; None: there is none."""

    @abstractmethod
    def now(self, location: str) -> float:
        """Return the time by the clock that stamps the files below a location, which may be another machine's."""

    @abstractmethod
    def remove(self, location: str) -> bool:
        """Delete a file; False if there is none."""

    @abstractmethod
    def resolved(self, location: str) -> str:
        """Return a location with all links resolved, so that two are one place if and only if they are equal."""

    @abstractmethod
    def is_below(self, location: str, root: str) -> bool:
        """Say whether a location lies below a root, links resolved: not at it, nor beside it under a longer name."""

    @abstractmethod
    def size(self, location: str) -> int | None:
        """Return the bytes of a file; None: there is none."""

    @abstractmethod
    def clear(self, location: str) -> int:
        """Remove the empty folders below a location, and itself if it is one; return how many files are left there."""

    @abstractmethod
    def writable(self, location: str) -> Ability:
        """Write a file below a location, find it, and delete it again."""

    @abstractmethod
    def free_bytes(self, location: str) -> int | None:
        """Return how much can still be written; None: the store does not say."""
