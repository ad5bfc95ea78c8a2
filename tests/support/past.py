"""A dataset with a past: what each of its versions was, and a way to let that past grow old."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

import lakeward
from lakeward.errors import UnknownVersion
from lakeward.storage.maintenance import MaintenanceReport
from lakeward.storage.table import table_ref
from lakeward.types.digest import Digest
from support.arms import iceberg_table

KEPT = 3
"""So many versions the tests' workspace keeps."""

GRACE = 2.0
"""The shortest grace that its leases allow, and some."""


@dataclass(frozen=True)
class Past:
    """A dataset with a history, and what each version was when it was written."""

    workspace: lakeward.Workspace
    dataset: lakeward.Dataset
    digests: dict[int, Digest]

    @property
    def name(self) -> str:
        return self.dataset.name

    def write(self, first: int, rows: int = 4, mode: str = "append") -> int:
        new = [{"id": number, "note": f"row {number}"} for number in range(first, first + rows)]
        version = self.dataset.write(new, mode=mode).version
        self.digests[version] = self.dataset.digest()
        return version

    def grow(self, *modes: str) -> None:
        for mode in modes:
            self.write(10 * len(self.digests), mode=mode)

    @property
    def root(self) -> Path:
        """The directory of its Iceberg table."""
        record = self.dataset.record
        location = self.workspace.storage.routing.arm("iceberg")._tables.location(table_ref(record))
        return Path(location.removeprefix("file://"))

    def table(self) -> Any:
        return iceberg_table(self.workspace, table_ref(self.dataset.record))

    def files(self) -> set[Path]:
        return {path for path in self.root.rglob("*") if path.is_file()}

    def grow_old(self, seconds: float = 86_400.0) -> None:
        """Let everything that was written or has expired be a day older."""
        then = time.time() - seconds
        for path in self.files():
            os.utime(path, (then, then))
        with psycopg.connect(self.workspace.database.libpq_url) as connection:
            connection.execute(
                "UPDATE lakeward.arm_versions SET expired_at = expired_at - %s * interval '1 second' "
                "WHERE dataset_id = %s",
                (seconds, self.dataset.record.id),
            )

    def maintain(self, *, grace: float = GRACE, dry_run: bool = False) -> MaintenanceReport:
        return self.workspace.maintain(self.name, older_than=grace, dry_run=dry_run)

    def readable(self) -> dict[int, Digest]:
        """Return the digest of every version that can be read, computed from its rows."""
        found = {}
        for version in self.digests:
            try:
                found[version] = self.dataset.digest(version=version)
            except UnknownVersion as error:
                assert "expired" in error.message
        return found

    def assert_readable(self, versions: list[int]) -> None:
        assert self.readable() == {version: self.digests[version] for version in versions}
