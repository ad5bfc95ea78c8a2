"""Files on this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from urllib.parse import urlparse

from lakeward.errors import SettingsError
from lakeward.storage.arms.iceberg.stores.store import Store, StoredFile
from lakeward.storage.receiving import Ability

PATTERN = "[*?"
"""Characters of a path by which DuckDB takes it for a pattern."""


def is_local(location: str) -> bool:
    """Say whether a location is on this machine."""
    return urlparse(location).scheme in ("", "file")


def local_path(location: str) -> str:
    """Return the path of a file on this machine.

    Raises:
        SettingsError: it is somewhere else, and what lies beside it is not.
    """
    if not is_local(location):
        raise SettingsError(
            f"the file {location} is in another store than the table that it belongs to, which is a local directory",
            safe="nothing was touched",
            next_step="rewrite the table in one place with the engine that made it",
        )
    return location.removeprefix("file://")


class LocalStore(Store):
    """A file system of this machine. DuckDB opens its files by their paths."""

    def duckdb_path(self, location: str) -> str:
        """See `Store`: the path's own brackets, stars and question marks are put into brackets."""
        path = local_path(location)
        return "".join(f"[{character}]" if character in PATTERN else character for character in path)

    def in_place(self, location: str) -> str | None:
        """See `Store`: no engine takes a path that looks like a pattern."""
        path = local_path(location)
        return None if any(character in path for character in PATTERN) else path

    def opened(self, location: str) -> str:
        """See `Store`."""
        return local_path(location)

    def is_folder(self, location: str) -> bool:
        """See `Store`."""
        root = Path(local_path(location))
        return root.is_dir() and not root.is_symlink()

    def files(self, location: str) -> list[StoredFile]:
        """See `Store`. Links don't count."""
        found = []
        for directory, _, names in os.walk(local_path(location)):
            for name in names:
                path = Path(directory, name)
                if path.is_symlink():
                    continue
                try:
                    status = path.stat()
                except FileNotFoundError:
                    continue
                found.append(StoredFile(str(path), status.st_size, status.st_mtime))
        return found

    def modified(self, location: str) -> float | None:
        """See `Store`."""
        try:
            return Path(local_path(location)).stat().st_mtime
        except FileNotFoundError:
            return None

    def now(self, location: str) -> float:
        """See `Store`."""
        with tempfile.TemporaryFile(dir=local_path(location)) as probe:
            return os.fstat(probe.fileno()).st_mtime

    def remove(self, location: str) -> bool:
        """See `Store`."""
        try:
            Path(local_path(location)).unlink()
        except FileNotFoundError:
            return False
        return True

    def resolved(self, location: str) -> str:
        """See `Store`. What is in another store is left as it is."""
        return os.path.realpath(local_path(location)) if is_local(location) else location

    def is_below(self, location: str, root: str) -> bool:
        """See `Store`."""
        return Path(self.resolved(root)) in Path(self.resolved(location)).parents

    def size(self, location: str) -> int | None:
        """See `Store`."""
        path = Path(self.resolved(location))
        return path.stat().st_size if path.is_file() else None

    def clear(self, location: str) -> int:
        """See `Store`."""
        left = 0
        for directory, _, names in os.walk(local_path(location), topdown=False):
            left += sum(os.path.lexists(os.path.join(directory, name)) for name in names)
            # Another process may be at it, too.
            with contextlib.suppress(FileNotFoundError):
                if not os.listdir(directory):
                    os.rmdir(directory)
        return left

    def writable(self, location: str) -> Ability:
        """See `Store`."""
        folder = Path(local_path(location))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return Ability("warehouse", True, f"{folder} is writable")
        except OSError as error:
            found = f"{folder} can't be written: {error.strerror or error}"
            return Ability("warehouse", False, found, "choose a directory that you may write to: LAKEWARD_WAREHOUSE")

    def free_bytes(self, location: str) -> int:
        """See `Store`."""
        path = Path(local_path(location))
        return shutil.disk_usage(next(folder for folder in (path, *path.parents) if folder.exists())).free
