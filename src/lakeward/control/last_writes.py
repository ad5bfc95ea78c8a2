"""What the newest rows of datasets were made of: asked of the ledger, never of the rows."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakeward.control.db import Database, Queries

QUERIES = Queries.beside(__file__)


@dataclass(frozen=True)
class LastWrite:
    """The newest committed write of a dataset, adopted rows of another engine included.

    Copies between its arms and compactions, which change no row, are not counted.

    Args:
        version: the version that it made. Every later one has the same rows.
        fingerprint: of the pipeline that wrote it; None: no pipeline did.
        watermarks: up to which version of each source it has read, by dataset id.
        unpublished: a committed version of the dataset is yet to be published.
    """

    version: int
    fingerprint: str | None
    watermarks: Mapping[int, int]
    unpublished: bool


class LastWrites:
    """Reads them from the ledger of one workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def decided(self, build_ids: Sequence[uuid.UUID]) -> uuid.UUID | None:
        """Return which of these builds was committed; None: none was."""
        if not build_ids:
            return None
        rows = self._database.fetch(QUERIES["decided"], {"ids": list(build_ids)})
        return uuid.UUID(str(rows[0]["build_id"])) if rows else None

    def of(self, dataset_ids: Sequence[int]) -> dict[int, LastWrite]:
        """Return the last write of each dataset that was ever written, all as they are at one instant."""
        return {
            row["dataset_id"]: LastWrite(
                row["version"],
                row["fingerprint"],
                {int(source): version for source, version in row["watermarks"].items()},
                row["unpublished"],
            )
            for row in self._database.fetch(QUERIES["last_writes"], {"ids": list(dataset_ids)})
        }
