"""The files that a table names: what its metadata, and the manifests of every snapshot that it still has, lead to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table

METADATA_FILE, MANIFEST, DATA_FILE = "metadata file", "manifest", "data file"


@dataclass(frozen=True)
class NamedFile:
    """A file as a table names it; `kind` is one of those above, and delete files count as data files."""

    path: str
    kind: str


def named_files(loaded: Table) -> Iterator[NamedFile]:
    """Yield every file that a table names, each once: those that name others come before these."""
    metadata, io = loaded.metadata, loaded.io
    seen: set[str] = set()

    def new(path: str, kind: str) -> Iterator[NamedFile]:
        if path not in seen:
            seen.add(path)
            yield NamedFile(path, kind)

    for path in (loaded.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)):
        yield from new(path, METADATA_FILE)
    for each in (*metadata.statistics, *metadata.partition_statistics):
        yield from new(each.statistics_path, DATA_FILE)
    manifests: dict[str, ManifestFile] = {}
    for snapshot in metadata.snapshots:
        yield from new(snapshot.manifest_list, MANIFEST)
        manifests.update({manifest.manifest_path: manifest for manifest in snapshot.manifests(io)})
    for manifest in manifests.values():
        yield from new(manifest.manifest_path, MANIFEST)
        for entry in manifest.fetch_manifest_entry(io, discard_deleted=True):
            yield from new(entry.data_file.file_path, DATA_FILE)
