"""Asking a server whether it accepts connections."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import psycopg
import pytest

from lakeward.control.embedded import EmbeddedPostgres
from lakeward.control.embedded.files import SOCKET_NAME, ServerFiles, read_pid_file
from lakeward.control.embedded.ping import accepting


def test_a_server_accepts_while_it_runs(made_home: Path) -> None:
    with EmbeddedPostgres.acquire(made_home) as server:
        recorded = read_pid_file(ServerFiles.of(made_home).pid_file)
        assert recorded is not None and recorded.socket_directory is not None
        log = ServerFiles.of(made_home).log
        before = log.read_text()
        assert accepting(recorded.socket_directory)
        with psycopg.connect(server.url):  # so that the server has dealt with our farewell, or is about to
            assert log.read_text() == before, "asking leaves no complaint in the log"
    assert not accepting(recorded.socket_directory)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"R\0\0\0\x08\0\0\0\0", True),
        (b"E\0\0\0\x30SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0", False),
        (b"E\0\0\0\x30SFATAL\0VFATAL\0C53300\0Msorry, too many clients already\0\0", True),
        (b"", False),
    ],
    ids=["welcome", "starting", "full", "closes"],
)
def test_answers(short_tmp: Path, answer: bytes, expected: bool) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(short_tmp / SOCKET_NAME))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            connection.recv(1024)
            connection.sendall(answer)
            connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        assert accepting(short_tmp) is expected
        thread.join()


def test_nobody_listens_and_no_socket_fits(short_tmp: Path) -> None:
    assert not accepting(short_tmp)
    assert not accepting(short_tmp / ("d" * 120))
