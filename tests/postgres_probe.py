"""What tests of the embedded server ask it, and users of it in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import parse_qs, urlsplit

import psycopg

from lakeward.control.embedded import EmbeddedPostgres
from lakeward.control.embedded.files import ServerFiles, read_pid_file

Processes = Callable[[], dict[int, str]]

USER = """
import json, os, sys
from pathlib import Path
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.errors import LakewardError
{before}
try:
    server = EmbeddedPostgres.acquire(Path(sys.argv[1]))
except LakewardError as error:
    print(json.dumps(error.to_json()), flush=True)
    sys.exit(error.exit_code)
{after}
print(json.dumps({{"how": server.how, "url": server.url}}), flush=True)
sys.stdin.read()
server.release()
print(json.dumps("released"), flush=True)
"""


class User:
    """A process that uses the server until `leave` or `kill`."""

    def __init__(self, home: Path, before: str = "", after: str = "") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER.format(before=before, after=after), str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )

    def answer(self) -> Any:
        """Wait for the next line that the process says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the user process ended with {self.process.wait()}"
        return json.loads(line)

    def go(self) -> None:
        """Let a process that waits for a line go on."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def leave(self) -> None:
        """Let it release the server, and wait until it has."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.answer() == "released"
        assert self.process.wait() == 0

    def kill(self) -> None:
        """`kill -9`."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def value(server: EmbeddedPostgres | str, query: LiteralString) -> Any:
    url = server if isinstance(server, str) else server.url
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    return row[0] if row else None


def postmaster(home: Path) -> int:
    recorded = read_pid_file(ServerFiles.of(home).pid_file)
    assert recorded is not None
    return recorded.pid


def socket_directory(server: EmbeddedPostgres) -> Path:
    return Path(parse_qs(urlsplit(server.url).query)["host"][0])
