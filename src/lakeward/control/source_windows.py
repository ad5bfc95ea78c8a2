"""What a delta build asks of the ledger: how far its outputs have read, and what happened to the sources since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakeward.control.db import Database, Queries
from lakeward.control.records import Window

QUERIES = Queries.beside(__file__)


@dataclass(frozen=True)
class LastBuild:
    """The newest version of a dataset that a pipeline wrote.

    Args:
        version: which one.
        fingerprint: of the pipeline that wrote it.
        watermarks: up to which version it had read each source, by dataset id.
    """

    version: int
    fingerprint: str
    watermarks: Mapping[int, int]


@dataclass(frozen=True)
class Happened:
    """What the versions of a window did to the rows of a dataset.

    Args:
        versions: how many of them wrote anything.
        updated, deleted: rows; those that a replace took away are not among the deleted ones.
        replaced: whether one put all rows in place anew.
        adopted: whether one is another engine's, whose rows may not say which version wrote them.
    """

    versions: int
    updated: int
    deleted: int
    replaced: bool
    adopted: bool


class SourceWindows:
    """Reads them from the ledger of one workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def last_builds(self, dataset_ids: Sequence[int]) -> dict[int, LastBuild]:
        """Return the last build of each dataset that a pipeline ever wrote."""
        return {
            row["dataset_id"]: LastBuild(
                row["version"],
                row["fingerprint"],
                {int(source): version for source, version in row["watermarks"].items()},
            )
            for row in self._database.fetch(QUERIES["last_builds"], {"ids": list(dataset_ids)})
        }

    def happened(self, windows: Mapping[int, Window]) -> dict[int, Happened]:
        """Return what happened to each dataset in its window."""
        parameters = {
            "ids": list(windows),
            "lows": [window.low for window in windows.values()],
            "highs": [window.high for window in windows.values()],
        }
        return {
            row["dataset_id"]: Happened(
                row["versions"], row["updated"], row["deleted"], row["replaced"], row["adopted"]
            )
            for row in self._database.fetch(QUERIES["happened"], parameters)
        }
