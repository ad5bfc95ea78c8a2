"""The way to the program that forks a process for each command that somebody elsewhere has ordered."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import threading
from pathlib import Path

from lakeward.errors import StorageError
from lakeward.wiring.settings import LoadedSettings

PROGRAM = "lakeward.cli.nursery"
"""Started by its name: the room of the commands is above this one."""


class Nursery:
    """Starts the program with the first order, and again if it is gone.

    Args:
        settings: of the server, by which commands open its workspace.
    """

    def __init__(self, settings: LoadedSettings) -> None:
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._way: socket.socket | None = None
        self._one_at_a_time = threading.Lock()

    def fork(self, folder: Path, out: int, err: int, control: int) -> int:
        """Have a process forked that runs the order in a folder, and return its number.

        Args:
            folder: with the order.
            out, err, control: descriptors that become the process's; the caller closes its own.

        Raises:
            StorageError: the program can't be started.
        """
        with self._one_at_a_time:
            for last in (False, True):
                way = self._started()
                try:
                    socket.send_fds(way, [os.fsencode(folder)], [out, err, control])
                    answer = way.recv(8, socket.MSG_WAITALL)
                    if len(answer) == 8:
                        return int.from_bytes(answer, "big")
                except OSError:
                    pass
                self._stop()
                if last:
                    break
        raise StorageError("no process could be started for the command", safe="nothing was done")

    def close(self) -> None:
        """End the program, and with it the commands that still run."""
        with self._one_at_a_time:
            self._stop()

    def _started(self) -> socket.socket:
        if self._way is not None and self._process is not None and self._process.poll() is None:
            return self._way
        self._stop()
        ours, theirs = socket.socketpair()
        with theirs:
            # The settings are handed over: neither files nor variables of whoever gives orders count, and no secret
            # is in the environment of what they run.
            self._process = subprocess.Popen(
                [sys.executable, "-m", PROGRAM, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={name: value for name, value in os.environ.items() if not name.startswith("LAKEWARD_")},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        content = pickle.dumps(self._settings)
        ours.sendall(len(content).to_bytes(8, "big") + content)
        if ours.recv(1) != b"+":
            ours.close()
            raise StorageError("the program that runs commands could not be started", safe="nothing was done")
        self._way = ours
        return ours

    def _stop(self) -> None:
        if self._way is not None:
            self._way.close()
            self._way = None
        if self._process is not None:
            self._process.wait()
            self._process = None
