"""The processes that a drill kills: each keeps a workspace open and writes what it is told, one JSON line at a time.

They are forked by one process that has everything imported and opens nothing, so that a killed one is replaced within
a fraction of a second. Whether one gets SIGKILL, SIGSTOP or an error at a step is up to the drill: the worker reports
that it is there, and waits.
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import socket
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import IO, Any

from lakeward.clock import Faults
from lakeward.testing.drill.model import Rooms
from lakeward.testing.drill.roles import Stopped, play
from lakeward.testing.drill.writes import Write
from lakeward.testing.drill.writing import write
from lakeward.testing.faults import AtStep

Opener = Callable[[Mapping[str, Any], Faults], AbstractContextManager[Rooms]]
"""Opens the workspace that is described, with these faults."""

MOST_BYTES = 65_536


class InjectedError(Exception):
    """The exception that a drill raises at a step; nothing of the product knows it."""


class Switch:
    """Faults whose step is chosen anew for every write."""

    def __init__(self) -> None:
        self.now = AtStep("", _nothing)

    def at(self, step: str) -> None:
        """Do what is set for the write under way."""
        self.now.at(step)


def _nothing() -> None:
    """What happens at a step where nothing should."""


class Worker:
    """Answers the drill's commands over one socket, until that is closed.

    `{"write": …, "park": [step, occurrence]}` is answered by `{"parked": step}` as soon as the step is reached, and
    goes on with `{"go": true}` (or raises there, with `{"go": false}`). At the end comes one of `acknowledged` (with
    the steps that were passed), `refused`, `unknown` and `failed`.

    `{"role": …}` is played until `{"stop": true}` comes (see `roles`); it may be parked at a step, too.
    """

    def __init__(
        self, rooms: Rooms, switch: Switch, lines: IO[str], spoken_to: Stopped = lambda _seconds: False
    ) -> None:
        self._rooms = rooms
        self._switch = switch
        self._lines = lines
        self._spoken_to = spoken_to

    def serve(self) -> None:
        """Answer until the drill is gone."""
        self._say({"ready": os.getpid()})
        while line := self._lines.readline():
            command = json.loads(line)
            step, occurrence = command.get("park") or ("", 1)
            self._switch.now = AtStep(step, self._park, occurrence)
            if "role" in command:
                self._say(play(self._rooms, command, self._spoken_to))
                continue
            if "stop" in command:
                continue  # it has stopped
            self._say(self._write(Write.from_json(command["write"])))

    def _write(self, asked: Write) -> dict[str, object]:
        try:
            told = write(self._rooms, asked)
        except InjectedError:
            return {"answer": "failed"}
        return {**told, "steps": self._switch.now.seen} if told["answer"] == "acknowledged" else told

    def _park(self) -> None:
        self._say({"parked": True})
        line = self._lines.readline()
        if not line:
            os._exit(0)
        if not json.loads(line)["go"]:
            raise InjectedError

    def _say(self, answer: Mapping[str, object]) -> None:
        self._lines.write(json.dumps(answer) + "\n")
        self._lines.flush()


def fork_workers(control: socket.socket, opener: Opener) -> None:
    """Fork a worker for each socket that comes over `control`, until that is closed.

    The first line names the workspace. Must be called before this process has any thread or connection.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries them
    first, _, _, _ = socket.recv_fds(control, MOST_BYTES, 0)
    place = json.loads(first)
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not message:
            return
        if os.fork() == 0:
            control.close()
            _run(socket.socket(fileno=descriptors[0]), place, opener)
        os.close(descriptors[0])


def _run(connection: socket.socket, place: Mapping[str, Any], opener: Opener) -> None:
    """Be a worker; never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the drill, which closes our socket
    logging.disable(logging.CRITICAL)  # what goes wrong here is meant to, and the drill is told
    switch = Switch()

    def spoken_to(seconds: float) -> bool:
        return bool(select.select([connection], [], [], seconds)[0])

    with _lines(connection) as lines:
        try:
            with opener(place, switch) as rooms:
                Worker(rooms, switch, lines, spoken_to).serve()
        except BrokenPipeError:
            pass  # the drill is gone
        except BaseException:
            lines.write(json.dumps({"answer": "broken", "error": traceback.format_exc()}) + "\n")
            lines.flush()
        finally:
            os._exit(0)


@contextmanager
def _lines(connection: socket.socket) -> Iterator[IO[str]]:
    with connection, connection.makefile("rw", encoding="utf-8") as lines:
        yield lines
