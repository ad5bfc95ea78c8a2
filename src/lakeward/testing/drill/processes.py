"""Starts the drill's processes, tells them what to write, and kills, stops and wakes them."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any

from lakeward.testing.drill.model import Log
from lakeward.testing.drill.worker import MOST_BYTES
from lakeward.testing.drill.writes import Write

PATIENCE_SECONDS = 60.0
"""A process that says nothing for so long is stuck, and that is a violation, too."""


class Stuck(Exception):
    """A process of the drill does not come to an end."""


class Gone(Exception):
    """The process has ended."""


class Writer:
    """One process that writes.

    Args:
        connection: our end of its socket.
        log: told of every answer.
    """

    def __init__(self, connection: socket.socket, log: Log) -> None:
        self._connection = connection
        self._log = log
        self._pending = b""
        self.label: str | None = None
        self.alive = True
        self.error = ""
        """What its last refusal said."""
        self.pid = int(self._take(self._hear(PATIENCE_SECONDS))["ready"])

    # Commands --------------------------------------------------------------------------------------------------------

    def start(self, write: Write, park: tuple[str, int] | None = None) -> None:
        """Let it begin a write, and wait for us at the `park`ed step and occurrence."""
        self.label = self._log.asked(write).label
        self.tell({"write": write.to_json(), "park": park})

    def go(self, *, on: bool = True) -> None:
        """Let a parked process go on, or raise where it is."""
        self.tell({"go": on})

    def kill(self) -> None:
        """End it by SIGKILL, whatever it does, and hear what it still said."""
        self.alive = False
        with suppress(ProcessLookupError):  # it has broken down, and nobody has heard it yet
            os.kill(self.pid, signal.SIGKILL)
        try:
            while True:
                self._take(self._hear(PATIENCE_SECONDS))
        except Gone:
            self.close()

    def stop(self) -> None:
        """Stop all its threads by SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)

    def wake(self) -> None:
        """Let a stopped process run."""
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """Close its socket, upon which it ends."""
        self._connection.close()

    # Answers ---------------------------------------------------------------------------------------------------------

    def answer(self, seconds: float = PATIENCE_SECONDS) -> dict[str, Any] | None:
        """Return what it says next (that it is parked, or how the write went), or None if it said nothing in time.

        Raises:
            Gone: it has ended.
            Stuck: it said nothing for the longest time that there is.
        """
        try:
            return self._take(self._hear(seconds))
        except TimeoutError:
            if seconds >= PATIENCE_SECONDS:
                raise Stuck(f"process {self.pid} says nothing for {seconds:.0f} s; it writes {self.label}") from None
            return None

    def _take(self, said: dict[str, Any]) -> dict[str, Any]:
        if said.get("answer") == "broken":
            self.alive = False
            raise Stuck(f"process {self.pid} broke down: {said['error']}")
        if "answer" in said and self.label is not None:
            self._log.answers[self.label] = said["answer"]
            self._log.nothing[self.label] = said.get("nothing", {})
            self.error = said.get("error", "")
            self.label = None
        return said

    def tell(self, command: Mapping[str, object]) -> None:
        """Send a command.

        Raises:
            Stuck: it has broken down.
            Gone: it has ended.
        """
        try:
            self._connection.sendall(json.dumps(command).encode() + b"\n")
        except BrokenPipeError:
            while True:
                self._take(self._hear(PATIENCE_SECONDS))  # until it says why

    def _hear(self, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while b"\n" not in self._pending:
            ready, _, _ = select.select([self._connection], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                raise TimeoutError
            try:
                received = self._connection.recv(MOST_BYTES)
            except ConnectionResetError:
                received = b""
            if not received:
                raise Gone
            self._pending += received
        line, _, self._pending = self._pending.partition(b"\n")
        said: dict[str, Any] = json.loads(line)
        return said


class Nursery:
    """The process that forks writers.

    Args:
        module: what it runs (`python -m`); it is given the descriptor of its socket.
        place: describes the workspace. Goes over the socket: it may hold secrets, and arguments are for all to see.
        environment: further variables for all processes.
        log: told of every write and answer.
    """

    def __init__(self, module: str, place: Mapping[str, object], environment: Mapping[str, str], log: Log) -> None:
        self._log = log
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, **environment},
            )
        self._control.sendall(json.dumps(place).encode())
        self._writers: list[Writer] = []

    def writer(self) -> Writer:
        """Fork one more process, and return when its workspace is open."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [b"f"], [theirs.fileno()])
        made = Writer(ours, self._log)
        self._writers.append(made)
        return made

    def replace(self, writer: Writer) -> Writer:
        """Fork a process in the place of one that was killed."""
        self._writers.remove(writer)
        return self.writer()

    @property
    def writers(self) -> list[Writer]:
        """Every process that should be alive."""
        return self._writers

    def __enter__(self) -> Nursery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for writer in self._writers:
            # By signal, since it may be stopped. Its number is still its own: nobody has killed it.
            if writer.alive:
                writer.kill()
        self._control.close()
        self._process.wait(PATIENCE_SECONDS)
