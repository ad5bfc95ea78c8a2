"""The program that forks a process for each command from elsewhere; started by the server with its socket's number.

It has everything imported that a command needs, so that one begins within milliseconds instead of seconds. It opens
nothing and has no thread, which a fork would lose. When the server goes, it ends what runs, and itself.
"""

from __future__ import annotations

import importlib
import os
import pickle
import select
import signal
import socket
import sys
import time
from pathlib import Path

from lakeward.cli.child import run
from lakeward.discovery import discover
from lakeward.storage import arms
from lakeward.storage.arm import StorageArm
from lakeward.wiring.settings import LoadedSettings

PRELOADED = (
    "lakeward.wiring.opening",
    "lakeward.wiring.doctor",
    "lakeward.wiring.editing",
    "lakeward.migration.moves.move_list",
    "lakeward.sources.file_formats",
)
"""What commands load by name, and the server's settings do not need."""

MOST_BYTES = 8192
"""Of the path of a folder with an order."""

GRACE_SECONDS = 10
"""So long may commands take to end, when the server is gone."""

_TICK_SECONDS = 1.0


def fork_children(control: socket.socket, settings: LoadedSettings) -> None:
    """Fork a process for each order that comes, until the server is gone.

    An order is the path of a folder, and three descriptors: standard output, standard error, and the way to the server.
    It is answered by the number of the process.
    """
    living: set[int] = set()
    while True:
        _bury(living)
        if not select.select([control], [], [], _TICK_SECONDS)[0]:
            continue
        message, descriptors, _, _ = socket.recv_fds(control, MOST_BYTES, 3)
        if not message:
            break
        process = os.fork()
        if process == 0:
            control.close()
            out, err, way = descriptors
            run(Path(os.fsdecode(message)), out, err, socket.socket(fileno=way), settings)
        for descriptor in descriptors:
            os.close(descriptor)
        living.add(process)
        control.sendall(process.to_bytes(8, "big"))
    _end(living)


def _bury(living: set[int]) -> None:
    for process in list(living):
        if os.waitpid(process, os.WNOHANG)[0]:
            living.discard(process)


def _end(living: set[int]) -> None:
    """Interrupt what runs, as Ctrl-C would; kill what does not end by that."""
    for number, seconds in ((signal.SIGINT, GRACE_SECONDS), (signal.SIGKILL, _TICK_SECONDS)):
        for process in living:
            _signal(process, number)
        until = time.monotonic() + seconds
        while living and time.monotonic() < until:
            _bury(living)
            select.select([], [], [], 0.05)


def _signal(process: int, number: int) -> None:
    try:
        os.killpg(process, number)
    except ProcessLookupError:
        # It has no group of its own yet, or is gone.
        os.kill(process, number)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, whose end is ours
    with socket.socket(fileno=int(sys.argv[1])) as way_to_server:
        with way_to_server.makefile("rb", buffering=0) as first:
            size = int.from_bytes(first.read(8), "big")
            content = b""
            while len(content) < size:
                content += first.read(size - len(content))
        loaded: LoadedSettings = pickle.loads(content)
        discover(arms, StorageArm)
        for module in PRELOADED:
            importlib.import_module(module)
        way_to_server.sendall(b"+")
        fork_children(way_to_server, loaded)
