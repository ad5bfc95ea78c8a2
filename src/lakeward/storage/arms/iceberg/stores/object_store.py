"""Files in an object store, through PyArrow's file system: the table's own way to them, with keys that may be vended.

A store has no directories: what lies below a location is what has its name and a slash for a beginning. PyArrow asks
for just that. It leaves objects of no bytes under the names of folders, which no listing here returns.
"""

from __future__ import annotations

import uuid
from functools import partial

import pyarrow as pa
from pyarrow import fs
from pyiceberg import io as names
from pyiceberg.io.pyarrow import PyArrowFileIO

from lakeward.errors import LakewardError
from lakeward.storage.arms.iceberg.stores.store import Store, StoredFile
from lakeward.storage.arms.iceberg.trouble import catalog_errors
from lakeward.storage.receiving import Ability
from lakeward.storage.remote_files import REMOTE_FILES, Source, remote_path

_NOBODYS_TABLE = "lakeward/probe"
"""Where a warehouse is tried: buckets that are made for tables take files of tables only, by where they lie."""

_KEYS = (names.S3_ACCESS_KEY_ID, names.AWS_ACCESS_KEY_ID, names.S3_ROLE_ARN, names.AWS_ROLE_ARN, names.S3_ANONYMOUS)
"""Properties that say who asks."""


class ObjectStore(Store):
    """One bucket, by one table's keys.

    Args:
        io: the table's own.
        location: the table's, or that of the warehouse.
        what: names the dataset in errors.
        key: the table's, by which DuckDB finds the way to its files; None: DuckDB reads none of them.
        renames: whether `what` replaces the name under which DuckDB's errors know the table.
    """

    def __init__(self, io: PyArrowFileIO, location: str, what: str, key: str | None, renames: bool) -> None:
        self._io = io
        self._what = what
        self._key = key
        scheme, bucket, _ = io.parse_location(location)
        self._scheme = scheme
        self._files: fs.FileSystem = io.fs_by_scheme(scheme, bucket)
        if key is not None:
            REMOTE_FILES.offer(key, Source(self._files, self.opened, partial(catalog_errors, what)), renames=renames)

    def _path(self, location: str) -> str:
        return self._io.parse_location(location)[2]

    def duckdb_path(self, location: str) -> str:
        """See `Store`."""
        assert self._key is not None, "it is the store of a table"
        return remote_path(self._key, location)

    def in_place(self, location: str) -> None:
        """See `Store`: a sealed engine has no way to a store."""

    def opened(self, location: str) -> pa.NativeFile:
        """See `Store`."""
        return self._files.open_input_file(self._path(location))

    def is_folder(self, location: str) -> bool:
        """See `Store`."""
        return True

    def files(self, location: str) -> list[StoredFile]:
        """See `Store`."""
        below = self._path(location).rstrip("/")
        selector = fs.FileSelector(below, recursive=True, allow_not_found=True)
        return [
            StoredFile(f"{self._scheme}://{info.path}", info.size, info.mtime.timestamp())
            for info in self._files.get_file_info(selector)
            if info.is_file and info.path.startswith(f"{below}/")
        ]

    def modified(self, location: str) -> float | None:
        """See `Store`."""
        info = self._files.get_file_info(self._path(location))
        return info.mtime.timestamp() if info.is_file else None

    def now(self, location: str) -> float:
        """See `Store`: that of a file which is written for it."""
        probe = self._probe(location)
        try:
            stamped = self.modified(probe)
        finally:
            self.remove(probe)
        assert stamped is not None, "it was just written"
        return stamped

    def remove(self, location: str) -> bool:
        """See `Store`."""
        try:
            self._files.delete_file(self._path(location))
        except FileNotFoundError:
            return False
        return True

    def resolved(self, location: str) -> str:
        """See `Store`: there are no links, and of two kinds of address for one object this is one."""
        return f"s3://{self._path(location).rstrip('/')}"

    def is_below(self, location: str, root: str) -> bool:
        """See `Store`. Names are taken as they are; one with a part that would go up was made by nobody of us."""
        path, above = self._path(location).rstrip("/"), self._path(root).rstrip("/")
        return path.startswith(f"{above}/") and not {"", ".", ".."} & set(path.split("/"))

    def size(self, location: str) -> int | None:
        """See `Store`."""
        info = self._files.get_file_info(self._path(location))
        return int(info.size) if info.is_file else None

    def clear(self, location: str) -> int:
        """See `Store`: there are no folders."""
        return len(self.files(location))

    def writable(self, location: str) -> Ability:
        """See `Store`."""
        if self._io.properties.get("type") == "rest" and self._io.properties.keys().isdisjoint(_KEYS):
            return Ability("warehouse", True, f"not tried: the catalog gives keys for {location} with each table only")
        try:
            with catalog_errors(self._what):
                probe = self._probe(f"{location.rstrip('/')}/{_NOBODYS_TABLE}")
                found = [each.location for each in self.files(probe.rpartition("/")[0])]
                self.remove(probe)
        except LakewardError as error:
            return Ability("warehouse", False, error.message, error.next_step)
        if probe not in found:
            step = "look whether a cache or another store is between"
            return Ability("warehouse", False, f"{location} does not list a file that was just written", step)
        return Ability("warehouse", True, f"{location} can be written, listed and deleted from")

    def free_bytes(self, location: str) -> None:
        """See `Store`."""

    def _probe(self, location: str) -> str:
        """Write a small file below a location, named so that it would go as a leftover, and return where it is."""
        probe = f"{location.rstrip('/')}/data/lakeward-probe-{uuid.uuid4().hex}.parquet"
        with self._files.open_output_stream(self._path(probe)) as stream:
            stream.write(b"lakeward")
        return probe
