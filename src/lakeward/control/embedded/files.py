"""What lies where in the directory of an embedded server. Standard library only, because the watcher loads it too."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

SOCKET_NAME = ".s.PGSQL.5432"


@dataclass(frozen=True)
class ServerFiles:
    """The paths of one embedded server, and the name by which its processes are recognised.

    Args:
        directory: the server's directory, absolute; it must exist.
        tag: the server's `cluster_name`. The postmaster carries it in its arguments and every backend in its title,
            so that a process can be recognised by its command line alone. Reading `/proc/<pid>/cwd` instead was
            refused: in a container without `CAP_SYS_PTRACE` even root can't read that of another user.
    """

    directory: Path
    tag: str

    @classmethod
    def of(cls, directory: Path) -> ServerFiles:
        """Return the files of the server in `directory`, which must exist."""
        place = directory.resolve(strict=True)
        status = place.stat()
        # By inode, not by path: a home that is renamed while its server runs is still found.
        digest = hashlib.sha256(f"{status.st_dev}:{status.st_ino}".encode()).hexdigest()[:16]
        return cls(place, f"lakeward-{digest}")

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.directory / "data"

    @property
    def pid_file(self) -> Path:
        """The postmaster's own lock file."""
        return self.data / "postmaster.pid"

    @property
    def log(self) -> Path:
        """What the server and `pg_ctl` print."""
        return self.directory / "server.log"

    @property
    def lock(self) -> Path:
        """Held exclusively through every start and stop."""
        return self.directory / "lock"

    @property
    def users(self) -> Path:
        """Held shared by every user of the server."""
        return self.directory / "users"

    @property
    def running(self) -> Path:
        """Held exclusively by the processes of the server, which inherit it."""
        return self.directory / "running"

    @property
    def watcher(self) -> Path:
        """Held exclusively by the one watcher."""
        return self.directory / "watcher"


@dataclass(frozen=True)
class PidFile:
    """What a Postgres lock file says: the process, and the directory of its first socket."""

    pid: int
    socket_directory: Path | None
    ready: bool


def read_pid_file(path: Path) -> PidFile | None:
    """Return what the lock file at `path` says, or None if there is none or it is not written out yet."""
    try:
        lines = os.fsdecode(path.read_bytes()).split("\n")
        pid = abs(int(lines[0]))  # a single-user backend writes its pid negated
    except (FileNotFoundError, ValueError):
        return None
    socket = Path(lines[4]) if len(lines) > 4 and lines[4] else None
    return PidFile(pid, socket, len(lines) > 7 and lines[7].strip() == "ready")
