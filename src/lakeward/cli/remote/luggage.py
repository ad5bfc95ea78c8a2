"""What goes to the server with a command: the files that its arguments name, and what they are called there."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

from lakeward.errors import UsageError
from lakeward.sources.allowed import Allowed
from lakeward.sources.file_patterns import find_files, folder_of, has_magic
from lakeward.sources.object_store import ObjectStore, is_location

PROJECT_FILE = "lakeward.toml"
CODE = (".sql", ".yml", ".yaml", ".py", ".toml", ".json", ".onnx", ".pkl", ".pickle", ".joblib")
"""Ends of the names of a project's files."""

ORDER, FILES = "order.json", "files"


@dataclass
class Luggage:
    """Files, by the path that each has there, and the paths that were typed and are others there."""

    files: dict[str, Path | None] = field(default_factory=dict)
    mounts: dict[str, str] = field(default_factory=dict)
    outputs: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)
    """What paths there are called in what is printed."""

    def take(self, value: Any, kind: str) -> None:
        """Take what an argument names.

        Args:
            value: of the argument: a path, several, or None.
            kind: as in `COMMANDS`.

        Raises:
            UsageError: it can't be read.
        """
        if value is None:
            return
        if isinstance(value, list | tuple):
            for each in value:
                self.take(each, kind)
            return
        given = str(value)
        if kind == "project":
            self._project(given)
        elif kind == "files":
            self._files(given)
        elif kind == "out":
            self._out(given)
        elif kind == "file" or Path(given).suffix or ":" not in given:
            self._file(given)

    def _file(self, given: str) -> None:
        path = Path(given)
        # What is not there is refused there, in the same words.
        if path.is_file():
            self.files[self._there(given, path.name)] = path
        elif path.is_dir():
            self.files[self._there(given, path.name)] = None

    def _out(self, given: str) -> None:
        path = Path(given)
        there = self._there(given, path.name)
        self.outputs.add(given)
        if path.exists():
            # So that it is refused there if it may not be replaced; its content is not looked at.
            self.files[there] = None if path.is_dir() else Path(os.devnull)
        elif not path.absolute().parent.is_dir():
            raise UsageError(
                f"{given} can't be written: there is no folder {path.absolute().parent}",
                safe="nothing was done",
                path=given,
            )
        else:
            parent = str(PurePosixPath(there).parent)
            if parent != ".":
                self.files[parent] = None

    def _files(self, given: str) -> None:
        if is_location(given):
            return
        pattern = os.path.expanduser(given)
        magic = has_magic(pattern)
        base = folder_of(pattern) if magic else pattern
        there = self._there(given, PurePosixPath(pattern).name)
        root = str(PurePosixPath(there).parent) if magic and there != given else there
        if magic and there == given:
            root = base
        elif magic:
            rest = os.path.relpath(pattern, base or ".")
            root = self.mounts[given].rpartition("/")[0]
            self.mounts[given] = f"{root}/{rest}"
            self.names[root] = base
        for found in find_files([pattern], ObjectStore(), Allowed()):
            inside = os.path.relpath(found.name, base or ".")
            self.files[root if inside == "." else f"{root}/{inside}" if root else inside] = Path(found.place)
        if not magic and Path(pattern).is_dir():
            self.files.setdefault(root, None)

    def _project(self, given: str) -> None:
        start = Path(given).resolve()
        root = next((each for each in (start, *start.parents) if (each / PROJECT_FILE).is_file()), None)
        if root is None:
            self.files[self._there(given, "project")] = None
            return
        inside = os.path.relpath(start, root)
        here = Path.cwd().resolve()
        prefix = "" if root == here else f"up/{len(self.mounts)}"
        there = os.path.normpath(os.path.join(prefix, inside))
        if there != os.path.normpath(given):
            self.mounts[given] = there
        if there != ".":
            self.files[there] = None
        for path in _project_files(root):
            self.files[os.path.normpath(os.path.join(prefix, os.path.relpath(path, root)))] = path

    def _there(self, given: str, name: str) -> str:
        """Return what a path is called there: the same, if it is one below the directory where we are."""
        path = PurePosixPath(given)
        if path.is_absolute() or ".." in path.parts or given.startswith("~"):
            self.mounts[given] = f"up/{len(self.mounts):06}/{name}"
        return self.mounts.get(given, os.path.normpath(given))

    def pack(self, order: Mapping[str, Any], into: IO[bytes]) -> None:
        """Write the archive that is sent.

        Args:
            order: the command.
            into: a file.
        """
        names = {there: given for given, there in self.mounts.items()} | self.names
        content = json.dumps({**order, "mounts": self.mounts, "names": names}).encode()
        with tarfile.open(fileobj=into, mode="w") as archive:
            archive.addfile(_entry(ORDER, len(content)), io.BytesIO(content))
            for there, path in self.files.items():
                if path is None:
                    folder = _entry(f"{FILES}/{there}", 0)
                    folder.type = tarfile.DIRTYPE
                    archive.addfile(folder)
                else:
                    _add(archive, f"{FILES}/{there}", path)


def _add(archive: tarfile.TarFile, name: str, path: Path) -> None:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size if path != Path(os.devnull) else 0
        try:
            archive.addfile(_entry(name, size), file)
        except OSError as error:
            raise UsageError(f"{path} changed while it was read: {error}", safe="nothing was sent") from None


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = size
    return entry


def _project_files(root: Path) -> Iterable[Path]:
    for folder, inner, names in os.walk(root):
        # A workspace may lie in a project; what it holds is no part of that.
        inner[:] = sorted(
            each for each in inner if not each.startswith((".", "__")) and not Path(folder, each, "postgres").is_dir()
        )
        for name in sorted(names):
            if name.lower().endswith(CODE) and not name.startswith("."):
                yield Path(folder, name)
