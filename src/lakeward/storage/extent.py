"""How large a version is on an arm, as far as the arm can say it without reading rows of the version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from lakeward.control.records import ArmVersion
from lakeward.storage.table import TableRef


@dataclass(frozen=True)
class Extent:
    """What an arm has of a dataset. None: the arm has no such thing, or can't say.

    Args:
        bytes: the size of the version's files on disk.
        data_files, delete_files: how many it has.
        replaced_rows: rows that a later version has replaced, which stay until no readable version needs them.
    """

    bytes: int | None = None
    data_files: int | None = None
    delete_files: int | None = None
    replaced_rows: int | None = None


@runtime_checkable
class Measures(Protocol):
    """An arm that can say how large a version is."""

    def extent(self, table: TableRef, version: ArmVersion) -> Extent:
        """Return it.

        Args:
            table: the dataset.
            version: a version that the arm holds.
        """
        ...
