"""Locks on files that the kernel drops when their holder dies, however it dies. Standard library only.

A flock belongs to the open file description. So two locks of one process on one file are independent, which lets one
process use a server twice; and a descriptor that a forked child inherits would keep the lock alive after the parent is
gone, which is why every descriptor is closed in a child right after the fork (programs that are executed never get it:
Python opens files close-on-exec). `fcntl.lockf` was refused: those locks belong to the process, and closing any
descriptor of the file drops them all.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_POLL_SECONDS = 0.01

# No links: root may be working in the directory of somebody else, who could aim one at a file of root's.
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)

_guard = threading.Lock()
_open: set[FileLock] = set()


class FileLock:
    """A file that can be locked shared or exclusively, for as long as it is open.

    Args:
        path: the file; it is created, readable for its owner only.

    Raises:
        OSError: the file can't be created or opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with _guard:  # no fork may come between opening and registering
            self._descriptor = os.open(path, _FLAGS, 0o600)
            _open.add(self)

    @property
    def closed(self) -> bool:
        """Whether this lock was closed, by `close` or because this process is a fork of the one that opened it."""
        return self._descriptor < 0

    def fileno(self) -> int:
        """Return the descriptor, to hand the lock to a child."""
        return self._descriptor

    def shared(self) -> None:
        """Wait for the shared lock."""
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def exclusive(self) -> None:
        """Wait for the exclusive lock, asleep in the kernel, for as long as it takes."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def try_exclusive(self) -> bool:
        """Take the exclusive lock if it is free. If it is not, a shared lock held until now is LOST."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return False
            raise
        return True

    def exclusive_within(self, seconds: float) -> bool:
        """Wait up to `seconds` for the exclusive lock, and return whether it was had."""
        deadline = time.monotonic() + seconds
        while not self.try_exclusive():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def unlock(self) -> None:
        """Drop the lock and stay open."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def in_place(self) -> bool:
        """Return whether the open file is still the one at its path, and not one that was deleted meanwhile."""
        try:
            there = self.path.stat()
        except FileNotFoundError:
            return False
        here = os.fstat(self._descriptor)
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    def close(self) -> None:
        """Close the file. The lock ends with the last process that has this descriptor. Idempotent."""
        with _guard:
            _open.discard(self)
            descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _close_in_child() -> None:
    """Close, and don't unlock, what the parent holds: an unlock would take the parent's lock away as well."""
    for lock in _open:
        os.close(lock._descriptor)
        lock._descriptor = -1
    _open.clear()
    _guard.release()


if sys.platform != "win32":
    os.register_at_fork(before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_close_in_child)
