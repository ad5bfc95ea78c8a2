"""Which files a pattern stands for: a file, a folder, or a pattern of names, on this machine or in an object store.

`*` and `?` stand for parts of one name, `[…]` for one of some characters, `**` for any number of folders. What is there
under the pattern's own name is that, so that a file called `a[1].csv` can be named. Names that begin with a dot are
left out, unless the pattern has the dot; links to folders are not followed by `**`, which may lead in circles.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from lakeward.errors import UsageError
from lakeward.sources.allowed import Allowed
from lakeward.sources.object_store import ObjectStore, is_location, split_location
from lakeward.sources.source_file import FileState, LocalFile, SourceFile, state_at

_MAGIC = re.compile(r"[*?\[]")
_ANY_FOLDERS = "**"
LEFT_OUT = (".", "_")
"""How names begin that a folder's own files do not have: what other tools keep beside them, as `_SUCCESS`."""


@dataclass(frozen=True)
class FoundFile:
    """A file that a pattern stands for; there may be very many, of which few are opened.

    Args:
        name: where it is, as the pattern leads to it.
        place: where it is, whole, with all links resolved: the same for two names of one file.
        listed: its state, if its folder's listing had it.
        store: the way to it; None: it is one of this machine.
    """

    name: str
    place: str
    listed: FileState | None = None
    store: ObjectStore | None = None

    @cached_property
    def file(self) -> SourceFile:
        """What it is read from."""
        if self.store is not None:
            return self.store.file(*split_location(self.place))
        return LocalFile(Path(self.place), named=Path(self.name))

    def state(self) -> FileState:
        """Return its size and when it was changed, as the listing had it or the disk has it now.

        Raises:
            OSError: it is not there.
        """
        return self.listed or state_at(self.place)


def find_files(patterns: Sequence[str], store: ObjectStore, allowed: Allowed) -> list[FoundFile]:
    """Return the files that patterns stand for, in the order of their names, each once.

    Args:
        patterns: paths, `s3://bucket/key`, and patterns of them.
        store: the way to objects.
        allowed: what may be read; what a link leads to counts, and is what will be opened.

    Raises:
        NotAllowed: what a pattern stands for may not be read, or its folder not be looked into.
        UsageError: what is named is not there, or is no file; a name is not UTF-8.
        SourceError: the store can't be asked.
    """
    found: dict[str, FoundFile] = {}
    for given in patterns:
        pattern = os.path.expanduser(given) if given.startswith("~/") else given
        allowed.location(folder_of(pattern) or "." if has_magic(pattern) else pattern)
        for each in _objects(pattern, store) if is_location(pattern) else _local_files(pattern):
            allowed.location(each.place)
            known = found.setdefault(each.place, each)
            if each.name < known.name:
                found[each.place] = each
    return sorted(found.values(), key=lambda each: each.name)


def has_magic(pattern: str) -> bool:
    """Say whether a text is a pattern of names, if nothing is there under its own."""
    return _MAGIC.search(pattern) is not None


def folder_of(pattern: str) -> str:
    """Return the folder that is sure to be above everything that a pattern stands for; `""`: where one is."""
    parts = pattern.split("/")
    fixed = next((position for position, part in enumerate(parts) if _MAGIC.search(part)), len(parts) - 1)
    return "/".join(parts[:fixed]) or ("/" if pattern.startswith("/") else "")


def matches(names: Sequence[str], parts: Sequence[str]) -> bool:
    """Say whether the names on the way to a file fit the parts of a pattern, one by one."""
    if not parts:
        return not names
    if parts[0] == _ANY_FOLDERS:
        hidden = bool(names) and names[0].startswith(".")
        return matches(names, parts[1:]) or (bool(names) and not hidden and matches(names[1:], parts))
    return bool(names) and _fits(names[0], parts[0]) and matches(names[1:], parts[1:])


def _fits(name: str, part: str) -> bool:
    return fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))


def _local_files(pattern: str) -> Iterator[FoundFile]:
    if os.path.isdir(pattern):
        paths = [os.path.join(pattern, name) for name in sorted(os.listdir(pattern)) if not name.startswith(LEFT_OUT)]
        found: Iterator[str] = (path for path in paths if os.path.isfile(path))
    elif os.path.lexists(pattern):
        if not os.path.isfile(pattern):
            raise _nothing(pattern, "is a link to nothing" if os.path.islink(pattern) else "is no file")
        found = iter([pattern])
    elif has_magic(pattern):
        start = "/" if pattern.startswith("/") else ""
        found = _expanded(start, [part for part in pattern.split("/") if part])
    else:
        raise _nothing(pattern, "does not exist")
    folders: dict[str, str] = {}
    for path in found:
        try:
            path.encode()
        except UnicodeEncodeError:
            raise UsageError(
                f"the name of the file {path.encode(errors='backslashreplace').decode()} is not UTF-8",
                safe="nothing was changed",
                next_step="rename it",
            ) from None
        place = _resolved(path, folders)
        yield FoundFile(path, place)


def _resolved(path: str, folders: dict[str, str]) -> str:
    """Return a path without links; what its folder resolves to is remembered, since there may be many files in one."""
    if os.path.islink(path):
        return os.path.realpath(path)
    folder, name = os.path.split(path)
    if folder not in folders:
        folders[folder] = os.path.realpath(folder)
    return os.path.join(folders[folder], name)


def _expanded(folder: str, parts: Sequence[str]) -> Iterator[str]:
    """Yield the paths of the files below a folder that the parts of a pattern stand for; `""` is where one is."""
    part, rest = parts[0], parts[1:]
    if part == _ANY_FOLDERS:
        if rest:
            yield from _expanded(folder, rest)
        for entry in _entries(folder):
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                yield from _expanded(os.path.join(folder, entry.name), parts)
            elif not rest and entry.is_file() and not entry.name.startswith("."):
                yield os.path.join(folder, entry.name)
    elif not _MAGIC.search(part):
        path = os.path.join(folder, part)
        if rest and os.path.isdir(path):
            yield from _expanded(path, rest)
        elif not rest and os.path.isfile(path):
            yield path
    else:
        for entry in _entries(folder):
            if _fits(entry.name, part):
                path = os.path.join(folder, entry.name)
                if rest and entry.is_dir():
                    yield from _expanded(path, rest)
                elif not rest and entry.is_file():
                    yield path


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder or ".") as entries:
            yield from entries
    except OSError as error:
        raise UsageError(
            f"the folder {folder or '.'} can't be listed: {error.strerror}", safe="nothing was changed", path=folder
        ) from None


def _objects(location: str, store: ObjectStore) -> Iterator[FoundFile]:
    bucket, key = split_location(location)
    one = store.find(bucket, key) if key else None
    folder = folder_of(key) if has_magic(key) else key.rstrip("/")
    if one is not None:
        found = [one]
    elif has_magic(key):
        parts = key.removeprefix(folder).lstrip("/").split("/")
        start = len(folder) + 1 if folder else 0
        below = store.listed(bucket, folder, deep=len(parts) > 1)
        found = [each for each in below if matches(each.key[start:].split("/"), parts)]
    else:
        below = store.listed(bucket, folder, deep=False)
        if not below:
            raise _nothing(location, "does not exist")
        found = [each for each in below if not each.key.rpartition("/")[2].startswith(LEFT_OUT)]
    for each in found:
        place = f"s3://{bucket}/{each.key}"
        yield FoundFile(place, place, each.state, store)


def _nothing(pattern: str, why: str) -> UsageError:
    step = "correct the path; a pattern of names stands in quotes: 'data/*.csv'"
    return UsageError(f"{pattern} {why}", safe="nothing was changed", next_step=step, path=pattern)
