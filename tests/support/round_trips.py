"""Counts round trips to Postgres: a Unix socket that passes everything on and sees who speaks when.

One round trip is one time that a client says something after the server has spoken, or at first: several messages that
are sent together without waiting (a pipeline) are one. So BEGIN, COMMIT, a pool's ping and a connection's handshake
count, whichever client they come from.
"""

from __future__ import annotations

import selectors
import socket
import threading
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from sqlalchemy.engine import make_url


class CountingProxy:
    """Stands before a Postgres on a Unix socket.

    Args:
        url: of the database behind it, with its socket directory in `host`.
        directory: an empty one with a short path, for the proxy's own socket.
    """

    def __init__(self, url: str, directory: Path) -> None:
        parsed = make_url(url)
        behind, port = str(parsed.query["host"]), parsed.port or 5432
        self._behind = f"{behind}/.s.PGSQL.{port}"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(f"{directory}/.s.PGSQL.{port}")
        self._listener.listen(64)
        self.url = url.replace(quote(behind, safe="/"), str(directory)).replace(quote(behind, safe=""), str(directory))
        assert str(directory) in self.url
        self._lock = threading.Lock()
        self._said: list[bytes] = []

    def __enter__(self) -> CountingProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()

    def take(self) -> list[str]:
        """Return what clients have said since the last time, one text for each round trip, and forget it."""
        with self._lock:
            said, self._said = self._said, []
        return [_readable(each) for each in said]

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            server.connect(self._behind)
            threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        waiting = False
        with client, server, selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ, server)
            selector.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in selector.select():
                    source = key.fileobj
                    assert isinstance(source, socket.socket)
                    data = source.recv(1 << 16)
                    # A last word (Terminate) is answered by nobody.
                    if not data or (source is client and data[:1] == b"X"):
                        key.data.sendall(data)
                        return
                    if source is client:
                        with self._lock:
                            if waiting and self._said:
                                self._said[-1] += data
                            else:
                                self._said.append(data)
                        waiting = True
                    else:
                        waiting = False
                    key.data.sendall(data)


def _readable(data: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else " " for byte in data)[:400]
