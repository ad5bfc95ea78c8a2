"""Which files are looked at: sources below a folder, without what git ignores, what was installed, and links."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from pathspec import GitIgnoreSpec

from lakeward.errors import UsageError
from lakeward.migration.seam.other_code import SUFFIXES

COVERED = SUFFIXES | {"py", "pyi", "sql"}
"""The endings of file names, in lower case, that are looked at."""

_NOT_OURS = frozenset((".git", ".hg", ".svn", ".venv", "venv", "node_modules", "site-packages", "__pycache__"))

Unread = Callable[[Path, str], None]
"""Told a folder or file that can't be read, and why."""


def suffix_of(path: Path | PurePosixPath) -> str:
    """Return a file name's ending in lower case, without the dot."""
    return path.suffix[1:].lower()


def sources(top: Path, unread: Unread) -> Iterator[Path]:
    """Yield the source files at or below `top`, in the order of their names. Symbolic links are not followed."""
    if top.is_file():
        yield top
        return
    ignored = _Ignored(top, unread)
    for folder, folders, files in os.walk(top, onerror=lambda error: unread(Path(error.filename), _reason(error))):
        here = Path(folder)
        ignored.learn(here)
        folders[:] = sorted(name for name in folders if _is_own(here / name) and not ignored.holds(here / name, True))
        for name in sorted(files):
            path = here / name
            if suffix_of(path) in COVERED and not _is_special(path) and not ignored.holds(path):
                yield path


def globs(patterns: Sequence[str]) -> GitIgnoreSpec:
    """Return what patterns in the syntax of `.gitignore` match.

    Raises:
        UsageError: a pattern is none.
    """
    try:
        return GitIgnoreSpec.from_lines(patterns)
    except ValueError as error:
        raise UsageError(
            f"--allow {error}", next_step="write it like a line of .gitignore: --allow 'src/storage/**'"
        ) from error


def _is_own(folder: Path) -> bool:
    """Return whether a folder holds sources of the project: it is no link, and nothing was installed into it."""
    installed = folder.name in _NOT_OURS or os.path.exists(folder / "pyvenv.cfg")
    return not installed and not os.path.islink(folder)


def _is_special(file: Path) -> bool:
    """Return whether it is a link, a pipe or the like. What may not be looked at counts as a file, and is warned of."""
    return os.path.islink(file) or (os.path.exists(file) and not os.path.isfile(file))


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


class _Ignored:
    """What the `.gitignore` of each folder says, and of those above, up to the root of the repository."""

    def __init__(self, top: Path, unread: Unread) -> None:
        self._specs: dict[Path, GitIgnoreSpec] = {}
        self._unread = unread
        above = [top, *top.parents]
        root = next((index for index, folder in enumerate(above) if os.path.exists(folder / ".git")), 0)
        for folder in above[1 : root + 1]:
            self.learn(folder)
        if self.holds(top, True):
            # Whoever names an ignored folder wants it looked at.
            self._specs.clear()

    def learn(self, folder: Path) -> None:
        """Read the folder's own file, if there is one."""
        file = folder / ".gitignore"
        try:
            self._specs[folder] = GitIgnoreSpec.from_lines(file.read_text(encoding="utf-8").splitlines())
        except FileNotFoundError:
            return
        except OSError as error:
            self._unread(file, _reason(error))
        except ValueError:
            self._unread(file, "is no .gitignore that can be understood: nothing is ignored by it")

    def holds(self, path: Path, is_folder: bool = False) -> bool:
        """Return what the nearest file says that says anything."""
        for folder in path.parents:
            spec = self._specs.get(folder)
            if spec is None:
                continue
            name = path.relative_to(folder).as_posix() + ("/" if is_folder else "")
            said = spec.check_file(name).include
            if said is not None:
                return said
        return False
