"""Which operating system user the server runs as, and how programs are run as that user.

Postgres refuses to run as root. Root therefore drops to an unprivileged user that exists already; no user is created,
and no mode or owner of a directory that we did not make is changed to let that user in.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lakeward.errors import EmbeddedPostgresError

if sys.platform != "win32":
    import pwd

_CANDIDATES = ("postgres", "nobody")
_KEPT_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH")

USE_OWN_SERVER = "set LAKEWARD_DATABASE_URL to a PostgreSQL server (15 or later)"


@dataclass(frozen=True)
class Account:
    """The user whom the server belongs to.

    Args:
        name: its login name.
        uid: its number.
        gid: its primary group.
        dropped: whether we are root and change to this user.
    """

    name: str
    uid: int
    gid: int
    dropped: bool

    def run(
        self,
        arguments: Sequence[str | Path],
        *,
        data: Path | None = None,
        text_in: str = "",
        output: IO[bytes] | None = None,
        inherit: tuple[int, ...] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as this user and return what came of it; a failure is in `returncode`.

        The environment is nearly empty: `PG*` variables would change what is started, an unknown `LANG` breaks initdb,
        and a daemon must not carry the user's secrets around.

        Args:
            arguments: the program and its arguments.
            data: the data directory, handed over in the environment: `pg_ctl` pastes its `-D` unescaped into a shell.
            text_in: its standard input.
            inherit: further descriptors for the program.
            output: a file for what it prints; a daemon that is left behind would keep a pipe open for ever.

        Raises:
            OSError: the program can't be executed.
        """
        environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        environment["LC_ALL"] = "C"
        with self._way_into(data) as (pgdata, descriptors):
            return subprocess.run(
                [str(argument) for argument in arguments],
                cwd="/",
                env=environment | ({"PGDATA": pgdata} if pgdata else {}),
                pass_fds=(*descriptors, *inherit),
                input=text_in,
                stdout=output or subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                check=False,
                start_new_session=True,  # Ctrl-C in a terminal goes to us, not to the server
                umask=0o077,
                user=self.uid if self.dropped else None,
                group=self.gid if self.dropped else None,
                extra_groups=[] if self.dropped else None,
            )

    @contextmanager
    def _way_into(self, data: Path | None) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Give a path by which this user can enter the data directory, and the descriptors that it needs.

        A home below a directory that is closed to this user (`/root`, or what `mktemp -d` makes) can't be entered by
        its path. But on Linux an inherited descriptor has a name that needs no way through the parents, and the server
        and all its children inherit it. Opening the parents, or moving the data elsewhere, was refused: neither is
        ours to decide.
        """
        if data is None or self.can_reach(data) or not Path("/proc/self/fd").exists():
            yield str(data or ""), ()
            return
        descriptor = os.open(data, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield f"/proc/self/fd/{descriptor}", (descriptor,)
        finally:
            os.close(descriptor)

    def can_reach(self, directory: Path) -> bool:
        """Return whether this user can enter `directory` by its path: tried, because modes are not the whole truth."""
        if not self.dropped:
            return os.access(directory, os.X_OK)
        return self.run(["/bin/sh", "-c", 'cd -- "$1"', "sh", directory]).returncode == 0

    def make_private(self, directory: Path) -> None:
        """Create `directory` for this user alone, unless it exists.

        Raises:
            EmbeddedPostgresError: it exists and belongs to somebody else, is a link, or others can use it.
            OSError: it can't be created.
        """
        try:
            directory.mkdir(mode=0o700)
            if self.dropped:
                os.chown(directory, self.uid, self.gid)
        except FileExistsError:
            pass
        status = directory.lstat()
        if (status.st_mode & 0o170077, status.st_uid) != (0o040000, self.uid):
            raise EmbeddedPostgresError(
                f"{directory} must be a directory of user {self.name} that nobody else can use, and it is not: "
                f"somebody else may have created it",
                next_step=f"remove {directory}, or {USE_OWN_SERVER}",
                path=directory,
                owner=status.st_uid,
            )


def server_account(data: Path) -> Account:
    """Return the user that the server of the data directory `data` runs as.

    The owner of an existing data directory stays: root starts the server of an ordinary user as that user.

    Raises:
        EmbeddedPostgresError: no such user exists, or the data directory belongs to somebody else.
    """
    try:
        owner: int | None = data.stat().st_uid
    except FileNotFoundError:
        owner = None
    own = os.geteuid()
    if own:
        if owner not in (None, own):
            raise EmbeddedPostgresError(
                f"{data} belongs to user {_name(owner)}, and this is user {_name(own)}",
                safe="nothing was changed",
                next_step=f"run as that user, choose another home, or {USE_OWN_SERVER}",
                path=data,
            )
        return Account(_required_name(own), own, os.getegid(), dropped=False)
    if owner:
        entry = pwd.getpwnam(_required_name(owner))
        return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, dropped=True)
    for name in _CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid, dropped=True)
    raise EmbeddedPostgresError(
        f"Postgres does not run as root, and this machine has no user named {' or '.join(_CANDIDATES)} to run it",
        next_step=f"add such a user, run as an ordinary user, or {USE_OWN_SERVER}",
    )


def _name(uid: int | None) -> str:
    try:
        return pwd.getpwuid(uid or 0).pw_name
    except KeyError:
        return str(uid)


def _required_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        raise EmbeddedPostgresError(
            f"user {uid} has no name on this machine, and Postgres does not run without one",
            next_step=f"add the user to /etc/passwd, or {USE_OWN_SERVER}",
            uid=uid,
        ) from None
