"""`EmbeddedPostgres`: the server that this process uses, shared with whoever else uses the same directory."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from lakeward.control.embedded.account import USE_OWN_SERVER, server_account
from lakeward.control.embedded.binaries import runnable, unsupported
from lakeward.control.embedded.cluster import START_SECONDS, start_server
from lakeward.control.embedded.files import ServerFiles, read_pid_file
from lakeward.control.embedded.locks import FileLock
from lakeward.control.embedded.postmaster import live_postmaster, remove_orphans, stop
from lakeward.control.embedded.sockets import answering, connection_url
from lakeward.control.embedded.watcher import ensure_watcher
from lakeward.errors import ControlError, EmbeddedPostgresError, HomeNotWritable

How = Literal["cold", "warm", "attached"]

_LOCK_SECONDS = 2.0 * START_SECONDS
_POLL_SECONDS = 0.02


class EmbeddedPostgres:
    """One use of an embedded server. The server runs for as long as anybody uses it.

    Made by `acquire`, ended by `release`, by leaving the `with` block, or with the process. An instance that is
    forgotten keeps its server until the process ends: its URL may still be in use. A forked child does not use the
    server on its parent's behalf; it calls `acquire` itself.

    Attributes:
        url: the libpq URL of the database `lakeward`.
        how: "cold" if the data directory was created, "warm" if the server was started, "attached" if it ran.

    Example:
        >>> import tempfile, pathlib, psycopg
        >>> with tempfile.TemporaryDirectory() as home:
        ...     with EmbeddedPostgres.acquire(pathlib.Path(home)) as server:
        ...         with psycopg.connect(server.url) as connection:
        ...             connection.execute("SELECT 1").fetchone()
        (1,)
    """

    def __init__(self, files: ServerFiles, users: FileLock, url: str, how: How) -> None:
        self.url = url
        self.how = how
        self._files = files
        self._held = [users]

    @classmethod
    def acquire(cls, directory: Path, cache: Path | None = None, binaries: Path | None = None) -> Self:
        """Start the server in `directory`, or attach to it, and register this process as a user.

        Safe from several threads and processes at once. After a server died under its users, another `acquire` starts
        it again.

        Args:
            directory: where the server keeps everything; created if missing, and used by nothing else.
            cache: where a copy of the programs goes if one is needed; by default the user's cache directory.
            binaries: the bin directory of another Postgres (15 or later) to use instead of the packaged one.

        Raises:
            HomeNotWritable: the directory can't be created or written.
            UnsupportedPlatform: there are no programs for this machine.
            EmbeddedPostgresError: the server can't be started.
        """
        if sys.platform == "win32":
            raise unsupported("it needs Unix sockets and file locks")
        try:
            files = _prepare(directory)
            with _exclusively(files):
                users = FileLock(files.users)
                try:
                    users.shared()
                    ensure_watcher(files)
                    how, socket_dir = _bring_up(files, cache or default_cache(), binaries)
                except BaseException:
                    users.close()  # nothing may be left that keeps the watcher waiting
                    raise
        except OSError as error:
            raise _translated(error, directory) from error
        return cls(files, users, connection_url(socket_dir), how)

    def release(self) -> None:
        """End this use. The last user stops the server and waits until it is gone. Idempotent.

        Raises:
            EmbeddedPostgresError: the server does not stop.
        """
        try:
            users = self._held.pop()
        except IndexError:
            return
        if users.closed:
            return  # we are a fork of the user, which still uses the server
        try:
            if not users.in_place():
                return  # the directory was deleted; the server ends by itself when it finds its files gone
            with _exclusively(self._files):
                if _nobody_else(users):
                    stop(self._files)
        except OSError as error:
            raise _translated(error, self._files.directory) from error
        finally:
            users.close()

    @staticmethod
    def end(directory: Path) -> None:
        """End the server in a directory that is to be deleted, whoever uses it, and wait until it is gone.

        Raises:
            EmbeddedPostgresError: it does not stop.
        """
        if not directory.is_dir():
            return
        files = ServerFiles.of(directory)
        try:
            with _exclusively(files):
                stop(files)
        except OSError as error:
            raise _translated(error, directory) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def default_cache() -> Path:
    """Return the user's cache directory for Lakeward."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lakeward"


def _prepare(directory: Path) -> ServerFiles:
    """Create the directory. Root leaves it passable, for the user that runs the server; its contents are closed."""
    directory.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)
    return ServerFiles.of(directory)


@contextmanager
def _exclusively(files: ServerFiles) -> Iterator[None]:
    """Hold the directory's lock."""
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        lock = FileLock(files.lock)
        try:
            if not lock.exclusive_within(deadline - time.monotonic()):
                raise EmbeddedPostgresError(
                    f"another process has been starting or stopping the embedded Postgres in {files.directory} "
                    f"for {_LOCK_SECONDS:.0f} seconds",
                    safe="nothing was changed",
                    next_step=f"find it with `fuser {files.lock}`",
                    path=files.directory,
                )
            if lock.in_place():
                yield
                return
        finally:
            lock.close()


def _bring_up(files: ServerFiles, cache: Path, binaries: Path | None) -> tuple[How, Path]:
    """Return how the server came to answer, and its socket directory. The caller holds `lock`."""
    account = server_account(files.data)
    place = answering(files) or _await_live(files)
    if place is not None:
        return "attached", place
    remove_orphans(files)
    how = start_server(binaries or runnable(account, cache), files.directory)
    place = answering(files)
    if place is None:
        raise EmbeddedPostgresError(
            f"the embedded Postgres in {files.directory} was started and does not answer",
            next_step=f"read {files.log}, or {USE_OWN_SERVER}",
            path=files.directory,
        )
    return how, place


def _await_live(files: ServerFiles) -> Path | None:
    """Return the socket directory of a server that is alive and busy (it replays its log), or None if there is none.

    Raises:
        EmbeddedPostgresError: it lives and does not come to answer.
    """
    deadline = time.monotonic() + START_SECONDS
    while (pid := live_postmaster(files)) is not None:
        place = answering(files)
        if place is not None:
            return place
        recorded = read_pid_file(files.pid_file)
        lost = recorded is not None and recorded.ready and not (recorded.socket_directory or files.data).exists()
        if lost or time.monotonic() > deadline:
            # Its users may be at work: to stop it here would abort what they do.
            raise EmbeddedPostgresError(
                f"the embedded Postgres in {files.directory} runs as process {pid} and does not answer"
                + (f": its socket directory {recorded.socket_directory} was removed" if lost and recorded else ""),
                safe="nothing was changed",
                next_step=f"end its users, or process {pid} (`kill -INT {pid}`), and try again",
                path=files.directory,
                pid=pid,
            )
        time.sleep(_POLL_SECONDS)
    return None


def _nobody_else(users: FileLock) -> bool:
    """Return whether ours is the only use left. The caller holds `lock`.

    The first try gives up our own shared lock, and that lets the watcher in if nobody else is there. It leaves `users`
    at once and waits for `lock`, which is ours: so after waiting for it (that is what `shared` does), the second try
    fails only for a real user.
    """
    if users.try_exclusive():
        return True
    users.shared()
    return users.try_exclusive()


def _translated(error: OSError, directory: Path) -> ControlError:
    path = error.filename or directory
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EEXIST):
        return HomeNotWritable(
            f"{directory} can't be used for the embedded Postgres: {error.strerror} ({os.fsdecode(path)})",
            safe="nothing was changed",
            next_step=f"choose a home that this user can write, or {USE_OWN_SERVER}",
            path=directory,
        )
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return EmbeddedPostgresError(
        f"the embedded Postgres in {directory} can't be started: "
        + ("no space left on the disk" if full else f"{error.strerror} ({os.fsdecode(path)})"),
        safe="committed data is on disk",
        next_step="free some space and try again" if full else f"choose a home on a local disk, or {USE_OWN_SERVER}",
        path=directory,
    )
