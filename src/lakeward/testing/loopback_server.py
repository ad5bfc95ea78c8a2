"""An HTTP server on 127.0.0.1 that a test starts and stops: what the REST catalog and the faulty proxy stand on."""

from __future__ import annotations

import json
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, cast


@dataclass(frozen=True)
class Request:
    """One request. `target` is the path with its query, as it came over the wire: percent signs not decoded."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """One answer.

    Args:
        status: the HTTP status.
        body: its bytes; not sent to HEAD.
        headers: besides `Content-Length`.
        cut: announce the whole body, send half of it and hang up.
    """

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False

    @classmethod
    def of_json(cls, status: int, value: object) -> Reply:
        """Return a JSON answer."""
        return cls(status, json.dumps(value).encode(), {"Content-Type": "application/json"})


class LoopbackServer(ABC):
    """Answers requests in threads, on a port that the system chooses; a context manager that leaves nothing running."""

    def __init__(self) -> None:
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self.stopping = threading.Event()
        """Set when it stops; whoever waits in `answer` waits on this."""

    @abstractmethod
    def answer(self, request: Request) -> Reply | None:
        """Answer one request; None hangs up without an answer. Called from several threads at once."""

    @property
    def url(self) -> str:
        """Where it listens: `http://127.0.0.1:<port>`."""
        assert self._server is not None, "it was not started"
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        """Begin to listen."""
        self.stopping.clear()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name=type(self).__name__)
        self._thread.start()

    def stop(self) -> None:
        """Hang up on every client and end every thread; repeating it does nothing."""
        if self._server is None or self._thread is None:
            return
        self.stopping.set()
        self._server.shutdown()
        self._server.hang_up()
        self._server.server_close()
        self._thread.join()
        self._server = self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # server_close joins them
    request_queue_size = 64

    def __init__(self, owner: LoopbackServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.owner = owner
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """End kept-alive connections, whose threads wait for a next request."""
        with self._lock:
            for each in self._open:
                try:
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # the client was faster


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one packet: two of them wait for the client's delayed acknowledgement, 40 ms each time.
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def _handle(self) -> None:
        if self.headers.get("Transfer-Encoding"):
            self._send(Reply(411))
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        owner = cast("_Server", self.server).owner
        try:
            reply = owner.answer(Request(self.command, self.path, dict(self.headers.items()), body))
        except Exception:
            self._send(Reply(500))
            raise
        if reply is None:
            self.close_connection = True
            return
        self._send(reply)

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.status != 204:
            self.send_header("Content-Length", str(0 if self.command == "HEAD" else len(reply.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body[: len(reply.body) // 2] if reply.cut else reply.body)
        self.close_connection = self.close_connection or reply.cut

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _handle

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            self.close_connection = True  # the client hung up first

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing; the proxy keeps what it saw."""
