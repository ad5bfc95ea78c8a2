"""Whether the snapshots that the ledger knows of a table are there, with their files: asked after a restore."""

from __future__ import annotations

from collections.abc import Mapping

from lakeward.errors import CatalogError
from lakeward.storage.arms.iceberg.tables import Tables
from lakeward.storage.table import TableRef


def missing(tables: Tables, table: TableRef, snapshots: Mapping[int, int]) -> dict[int, str]:
    """Return the versions that can't be read, and why.

    Of every version the list of its manifests is looked for; of the newest one, which is read most, every data file.

    Args:
        tables: where the tables are.
        table: the dataset.
        snapshots: that the ledger knows, by version.
    """
    what = f"dataset {table.name}"
    try:
        loaded = tables.find(table)
    except CatalogError as error:
        return dict.fromkeys(snapshots, error.message)
    if loaded is None:
        return dict.fromkeys(snapshots, f"{what} has no table {table.identifier} in the catalog")
    store = tables.store(loaded.location(), what)
    found: dict[int, str] = {}
    for version, snapshot_id in sorted(snapshots.items(), reverse=True):
        snapshot = loaded.metadata.snapshot_by_id(snapshot_id)
        if snapshot is None:
            found[version] = f"its table has no snapshot {snapshot_id} any more"
        elif store.size(snapshot.manifest_list) is None:
            found[version] = f"the file {snapshot.manifest_list} is gone"
        elif version == max(snapshots):
            for manifest in snapshot.manifests(loaded.io):
                if store.size(manifest.manifest_path) is None:
                    found[version] = f"the file {manifest.manifest_path} is gone"
                    break
                entries = manifest.fetch_manifest_entry(loaded.io, discard_deleted=True)
                gone = next((each for each in entries if store.size(each.data_file.file_path) is None), None)
                if gone is not None:
                    found[version] = f"the file {gone.data_file.file_path} is gone"
                    break
    return found
