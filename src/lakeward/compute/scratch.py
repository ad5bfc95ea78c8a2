"""Private directories for what a query spills, removed with it, and by the next start if a process was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

from lakeward.errors import HomeNotWritable

_PREFIX = "compute-"
_LOCK = "in-use"


class Scratch:
    """One directory (0700) of one query. A lock that the kernel drops with the process says whether it is still in use.

    Args:
        parent: made if it is missing.

    Raises:
        HomeNotWritable: `parent` can't be made or written.
    """

    def __init__(self, parent: Path) -> None:
        try:
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # It gets its name when the lock is held, so that nobody finds it without one and takes it for abandoned.
            made = Path(tempfile.mkdtemp(prefix=".", dir=parent))
            self._lock: int | None = os.open(made / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            self.path = made.rename(parent / f"{_PREFIX}{made.name[1:]}")
        except OSError as error:
            raise HomeNotWritable(
                f"the directory for temporary files, {parent}, can't be used: {error.strerror or error}",
                next_step="make it writable, or free space on its disk",
                path=str(parent),
            ) from error

    @property
    def is_empty(self) -> bool:
        """Whether nothing was put there, or it is removed."""
        return self._lock is None or all(entry.name == _LOCK for entry in os.scandir(self.path))

    def close(self) -> None:
        """Remove the directory and what is in it. May be called again."""
        if self._lock is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = None


def remove_abandoned(parent: Path) -> list[Path]:
    """Remove the directories whose process is gone, and return them. One that is in use is never touched."""
    removed = []
    for path in sorted(parent.glob(f"{_PREFIX}*")) if parent.is_dir() else []:
        try:
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            # Without our lock file it is not one of ours.
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
            removed.append(path)
        except BlockingIOError:
            # In use.
            pass
        finally:
            os.close(lock)
    return removed
