"""Where the server's socket is, how to connect to it, and whether anybody answers there."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from urllib.parse import quote

from lakeward.control.embedded.account import USE_OWN_SERVER, Account
from lakeward.control.embedded.files import SOCKET_NAME, ServerFiles, read_pid_file
from lakeward.control.embedded.ping import DATABASE, SUPERUSER, accepting
from lakeward.errors import EmbeddedPostgresError

_MAX_BYTES = 100  # the kernel's limit is 104 on macOS and 108 on Linux, with a closing NUL

#: libpq takes a comma in `host` for the end of one host, and there is no way to escape it.
_USABLE = re.compile(r"/[\w/.+@=~ -]*", re.ASCII)


def socket_directory(files: ServerFiles, account: Account) -> Path:
    """Return the private directory for the socket, created if need be.

    It lies in the server's directory. When that is too deep for a socket, holds a character that libpq can't take, or
    is closed to the user that runs the server, a short one is made in the directory for temporary files instead, named
    after the server. Whoever could create that beforehand could pose as the server, so its owner and mode are checked.

    Raises:
        EmbeddedPostgresError: no private directory could be had.
    """
    inside = files.directory / "socket"
    if _fits(inside) and account.can_reach(files.directory):
        account.make_private(inside)
        return inside
    refused: Exception | None = None
    # Not $XDG_RUNTIME_DIR: it goes away with the login session, and the server may outlive that.
    for base in dict.fromkeys((Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"))):
        short = base / files.tag
        if not _fits(short) or not account.can_reach(base):
            continue
        try:
            account.make_private(short)
        except (OSError, EmbeddedPostgresError) as error:
            refused = error
            continue
        return short
    raise EmbeddedPostgresError(
        f"there is no place for the socket of the embedded Postgres: {inside} can't hold one, and no directory "
        f"for temporary files can either" + (f" ({str(refused).splitlines()[0]})" if refused else ""),
        next_step=f"choose a shorter home, set TMPDIR to a short directory, or {USE_OWN_SERVER}",
        path=inside,
    ) from refused


def connection_url(socket_dir: Path) -> str:
    """Return the libpq URL of the database. The port is named, or else `PGPORT` would choose another socket."""
    return f"postgresql://{SUPERUSER}@/{DATABASE}?host={quote(os.fsencode(socket_dir), safe='')}&port=5432"


def answering(files: ServerFiles) -> Path | None:
    """Return the socket directory at which THIS server accepts connections, or None.

    That something answers is not enough. After a home was deleted and created again, the old server lives on at the
    same short socket path for up to a minute; so the process behind the socket must be the one of the data directory.
    """
    postmaster = read_pid_file(files.pid_file)
    if postmaster is None:
        return None
    # Where it says it listens; and where it listens if the home was renamed meanwhile.
    for place in dict.fromkeys((postmaster.socket_directory, files.directory / "socket")):
        if place is None:
            continue
        behind = read_pid_file(place / f"{SOCKET_NAME}.lock")
        if behind is not None and behind.pid == postmaster.pid and accepting(place):
            return place
    return None


def _fits(place: Path) -> bool:
    return len(os.fsencode(place / SOCKET_NAME)) <= _MAX_BYTES and _USABLE.fullmatch(str(place)) is not None
