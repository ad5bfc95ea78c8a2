"""What an arm says of itself before a dataset comes to it: how it would keep each column, and whether it can at all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakeward.control.catalog_abilities import KnownCatalog
from lakeward.control.identifiers import TableIdentifier
from lakeward.errors import UsageError
from lakeward.storage.existing import ExistingTable
from lakeward.storage.table import TableRef


@dataclass(frozen=True)
class Ability:
    """One thing that has to be as it should for a dataset to come to an arm.

    Args:
        name: what was looked at.
        ok: whether it is so.
        found: what was found.
        next_step: what leads out, if it is not.
    """

    name: str
    ok: bool
    found: str
    next_step: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return dict(vars(self))


class Receiver(ABC):
    """Looks ahead for one arm. Changes nothing."""

    @abstractmethod
    def column_types(self, table: TableRef) -> dict[str, str]:
        """Return the type that the arm would keep each column in.

        Raises:
            ColumnMismatch: the arm has the dataset's table already, and a column of it can't take the dataset's.
        """

    @abstractmethod
    def abilities(self, table: TableRef, size: int) -> list[Ability]:
        """Return what has to be as it should for the dataset to come.

        Args:
            table: the dataset.
            size: about how many bytes its copy will have.
        """

    def place(self) -> Ability | None:
        """Write a file where the arm keeps files, find it and delete it again; None: the arm keeps none."""
        return None

    def reach(self) -> None:
        """Ask the arm's catalog for anything; nothing where the arm has none.

        Raises:
            CatalogError: the catalog does not answer.
        """
        return

    def missing(self, table: TableRef, snapshots: Mapping[int, int]) -> dict[int, str]:
        """Return the versions of a dataset that the arm should have and has not, and why.

        Args:
            table: the dataset.
            snapshots: that the ledger knows, by version.
        """
        return {}

    def catalog(self, *, probe: bool = False) -> KnownCatalog | None:
        """Return what is known of the arm's catalog; None: the arm has none.

        Args:
            probe: look now, on a scratch table that is gone afterwards.

        Raises:
            CatalogError: the catalog does not answer, or failed in a way that may pass.
        """
        return None

    def second_names(self, tables: Sequence[TableRef]) -> dict[str, list[TableIdentifier]]:
        """Return the names that tables have in the arm's catalog besides the recorded ones, by the dataset's name.

        While a table is moved it may have two for a moment.

        Raises:
            CatalogError: the catalog does not answer.
        """
        return {}

    def has_table(self, identifier: TableIdentifier) -> bool:
        """Say whether the arm's catalog has a table of that name, whosever it is.

        Raises:
            CatalogError: the catalog does not answer.
        """
        return False

    def existing(self, identifier: TableIdentifier, roots: Sequence[str]) -> ExistingTable:
        """Return what there is of a table that is to come under a dataset as it is.

        Args:
            identifier: its name in the arm's catalog.
            roots: addresses below which its files may be, besides the warehouse.

        Raises:
            UnknownObject: there is none, with the nearest names.
            UsageError: its format is not ours, or its files are somewhere else.
            ColumnMismatch: a column has a type that a dataset can't have.
        """
        raise UsageError("the arm has no tables of others")

    def check_rows(self, table: TableRef, snapshot_id: int | None) -> int:
        """Read the rows that a dataset would have, and return how many there are.

        Args:
            table: the dataset as it would be, with its key.
            snapshot_id: where the table is; None: it has no rows.

        Raises:
            DataError: a key column is null in some, several have one key, or they can't be read.
        """
        raise UsageError("the arm has no tables of others")

    @abstractmethod
    def rehearse(self, table: TableRef, rows: pa.RecordBatch) -> None:
        """Make of rows what a write would make of them, by the same code, and let go of it.

        Args:
            table: the dataset.
            rows: business columns with the identity columns behind.

        Raises:
            LakewardError: the write would fail so.
        """
