"""A workspace behind a catalog that fails on demand, and a look past proxy and workspace at what is really there."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table

import lakeward
from lakeward.errors import CatalogError
from lakeward.testing.faulty_proxy import FaultyProxy
from lakeward.testing.rest_catalog import RestCatalogServer

LEASE_SECONDS = 2.0
"""A write whose leftovers could not be removed keeps its slot for this long."""

_numbers = itertools.count(1)


def short_leases(directory: Path) -> Path:
    """Write a settings file for tests that wait for leases to run out."""
    path = directory / "lakeward.toml"
    path.write_text(f"[ledger]\nlease_seconds = {LEASE_SECONDS}\nlock_timeout_seconds = 20\n", encoding="utf-8")
    return path


@dataclass(frozen=True)
class Scene:
    """The parts: a workspace, the proxy that it reaches its catalog through, and the catalog."""

    workspace: lakeward.Workspace
    proxy: FaultyProxy
    server: RestCatalogServer

    def next_number(self) -> int:
        return next(_numbers)

    def subject(self, *, born: Sequence[int] = (), schema: str | None = None) -> Subject:
        """Make a dataset of a name of its own, with a first version if `born` names its rows."""
        name = f"main.{schema or 'trouble'}.d{self.next_number()}"
        dataset = self.workspace.create_dataset(name, {"id": "long", "note": "string"}, ["id"], arm="iceberg")
        subject = Subject(self, dataset)
        if born:
            subject.write(born, "append")
        return subject

    def settle(self) -> None:
        """Recover until the ledger has nothing unfinished, as a worker would."""
        deadline = time.monotonic() + 15
        while True:
            self.workspace.recover()
            if not self.workspace.recoverable() and not self.workspace.transactions(status="open"):
                return
            assert time.monotonic() < deadline, "recovery does not come to an end"
            time.sleep(0.05)


@dataclass(frozen=True)
class Subject:
    """A dataset, seen through the workspace and, past the proxy, through a client of its own."""

    scene: Scene
    dataset: lakeward.Dataset

    @property
    def slug(self) -> str:
        return self.dataset.name.rpartition(".")[2]

    @property
    def identifier(self) -> tuple[str, ...]:
        return tuple(self.dataset.name.split("."))

    def write(self, ids: Sequence[int], mode: str) -> lakeward.WriteResult:
        return self.dataset.write([{"id": number, "note": f"row {number}"} for number in ids], mode=mode)

    def try_write(self, ids: Sequence[int], mode: str) -> bool:
        """Write; False if that failed with the one error that it may fail with."""
        try:
            self.write(ids, mode)
        except CatalogError:
            return False
        return True

    def ids(self) -> list[int]:
        return sorted(self.dataset.to_arrow(columns=["id"])["id"].to_pylist())

    def table(self) -> Table | None:
        catalog = self._fresh_catalog()
        return catalog.load_table(self.identifier) if catalog.table_exists(self.identifier) else None

    def _fresh_catalog(self) -> Catalog:
        return load_catalog("fresh", type="rest", uri=self.scene.server.url)

    def main_ids(self) -> list[int]:
        """What another engine reads."""
        table = self.table()
        return [] if table is None else sorted(table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())

    def branches(self) -> list[str]:
        table = self.table()
        return [] if table is None else sorted(set(table.metadata.refs) - {"main"})

    def assert_whole(self) -> None:
        """Each version was committed once, every file that a snapshot names is there, and all can be read in full."""
        table = self.table()
        if table is None:
            return
        prepared = [snapshot.summary["lakeward.version"] for snapshot in table.metadata.snapshots if snapshot.summary]
        assert len(prepared) == len(set(prepared)), f"a version was committed twice: {prepared}"
        for snapshot in table.metadata.snapshots:
            named = [snapshot.manifest_list]
            for manifest in snapshot.manifests(table.io):
                named.append(manifest.manifest_path)
                entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
                named += [entry.data_file.file_path for entry in entries]
            gone = [path for path in named if not Path(path.removeprefix("file://")).exists()]
            assert not gone, f"snapshot {snapshot.snapshot_id} names files that were deleted: {gone}"
            table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
