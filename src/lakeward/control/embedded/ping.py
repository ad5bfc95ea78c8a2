"""Asking whether a server accepts connections, by connecting. Standard library only, because the watcher asks too."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

from lakeward.control.embedded.files import SOCKET_NAME

SUPERUSER = "postgres"
DATABASE = "lakeward"

_SECONDS = 5.0
_PROTOCOL_3 = 196608
_STARTING_OR_STOPPING = b"C57P03\0"  # the SQLSTATE field of `cannot_connect_now`


def accepting(socket_dir: Path) -> bool:
    """Return whether the server whose socket is in `socket_dir` takes connections.

    One that answers "too many connections" does, and one that is starting up, replaying its log or shutting down does
    not. The same question as libpq's `PQping`, which the watcher can't load.
    """
    parameters = f"user\0{SUPERUSER}\0database\0{DATABASE}\0\0".encode()
    startup = struct.pack("!II", 8 + len(parameters), _PROTOCOL_3) + parameters
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_SECONDS)
        try:
            connection.connect(str(socket_dir / SOCKET_NAME))
            connection.sendall(startup)
            # One message fits into one read: the server sends its first answer whole.
            answer = connection.recv(8192)
        except OSError:
            return False  # nobody listens, it hangs, or the path is too long for a socket
        if answer.startswith(b"R"):
            try:
                connection.sendall(struct.pack("!cI", b"X", 4))  # a farewell, or the log complains
            except OSError:
                pass  # it has gone since, and its answer stands
    return bool(answer) and not (answer.startswith(b"E") and _STARTING_OR_STOPPING in answer)
