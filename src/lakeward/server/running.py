"""Commands that run here for somebody elsewhere: what they write is passed on, and they end with the request."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from anyio import CancelScope
from anyio.to_thread import run_sync

from lakeward.errors import Busy, UnknownObject
from lakeward.server.frames import ASKS, BEGUN, DATA, ENDED, ERR, FILE, LARGEST, OUT, STILL, frame
from lakeward.server.nursery import Nursery
from lakeward.server.orders import FILES

CHUNK = 1 << 16
WAITING = 64
"""So many frames wait at most for whoever reads them; then the command does."""

STILL_SECONDS = 5.0
"""After so long without a word, one is said: whoever has gone is noticed by it."""

PATIENCE_SECONDS = (10.0, 5.0)
"""So long has a command after SIGINT, and then after SIGTERM; then it is killed."""

LAST_SECONDS = 2.0
"""So long is waited for what processes of a command that has ended may still write."""


class Running:
    """One command.

    Args:
        nursery: forks its process.
        folder: with its order.
        owner: the name of who ordered it: nobody else may answer for them.
    """

    def __init__(self, nursery: Nursery, folder: Path, owner: str) -> None:
        self.id = secrets.token_hex(8)
        self.owner = owner
        self._nursery = nursery
        self._folder = folder
        self._frames: asyncio.Queue[bytes] = asyncio.Queue(WAITING)
        self._process: int | None = None
        self._control: asyncio.StreamWriter | None = None
        self._ended: dict[str, Any] | None = None

    async def answer(self, line: str) -> None:
        """Pass on a line that was typed."""
        if self._control is not None:
            self._control.write(f"{json.dumps({'line': line})}\n".encode())
            await self._control.drain()

    async def frames(self) -> AsyncGenerator[bytes]:
        """Start it, and yield what it writes, until it has ended. Whoever stops before that ends it."""
        tasks: list[asyncio.Task[None]] = []
        try:
            readers = await self._started()
            yield frame(BEGUN, json.dumps({"id": self.id}).encode())
            tasks = [asyncio.create_task(each) for each in readers]
            everything = asyncio.create_task(self._all(*tasks))
            tasks.append(everything)
            while not (everything.done() and self._frames.empty()):
                yield await self._next(everything)
            for given, here in (self._ended or {}).get("files", []):
                async for part in self._file(given, here):
                    yield part
            # One that was killed had no last word.
            yield frame(ENDED, json.dumps({"code": (self._ended or {}).get("code", 137)}).encode())
        finally:
            with CancelScope(shield=True):
                await self._end()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                if self._control is not None:
                    self._control.close()

    async def _started(self) -> list[Any]:
        loop = asyncio.get_running_loop()
        (out, its_out), (err, its_err) = os.pipe(), os.pipe()
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = await run_sync(self._nursery.fork, self._folder, its_out, its_err, theirs.fileno())
        except BaseException:
            for descriptor in (out, err):
                os.close(descriptor)
            ours.close()
            raise
        finally:
            for descriptor in (its_out, its_err):
                os.close(descriptor)
        streams = [asyncio.StreamReader(limit=CHUNK) for _ in (out, err)]
        for stream, descriptor in zip(streams, (out, err), strict=True):
            await loop.connect_read_pipe(partial(asyncio.StreamReaderProtocol, stream), os.fdopen(descriptor, "rb"))
        control, self._control = await asyncio.open_unix_connection(sock=ours)
        return [self._pass_on(streams[0], OUT), self._pass_on(streams[1], ERR), self._listen(control)]

    async def _all(self, out: asyncio.Task[None], err: asyncio.Task[None], control: asyncio.Task[None]) -> None:
        await control
        self._process = None
        # A process that the command has left behind may hold its pipes open.
        await asyncio.wait([out, err], timeout=LAST_SECONDS)

    async def _next(self, everything: asyncio.Task[None]) -> bytes:
        coming = asyncio.create_task(self._frames.get())
        try:
            await asyncio.wait([coming, everything], timeout=STILL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            return coming.result() if coming.done() else frame(STILL)
        finally:
            coming.cancel()

    async def _pass_on(self, stream: asyncio.StreamReader, kind: bytes) -> None:
        while chunk := await stream.read(CHUNK):
            await self._frames.put(frame(kind, chunk))

    async def _listen(self, control: asyncio.StreamReader) -> None:
        while line := await control.readline():
            told = json.loads(line)
            if "asks" in told:
                await self._frames.put(frame(ASKS))
            else:
                self._ended = told

    async def _file(self, given: str, here: str) -> AsyncIterator[bytes]:
        path = self._folder / FILES / here
        # What the command has made is a file of its own, and no way out of its folder.
        if not path.is_file() or not path.resolve().is_relative_to((self._folder / FILES).resolve()):
            return
        yield frame(FILE, json.dumps({"path": given, "bytes": path.stat().st_size}).encode())
        with path.open("rb") as file:
            while chunk := await run_sync(file.read, LARGEST):
                yield frame(DATA, chunk)

    async def _end(self) -> None:
        """End the process, if it runs: as Ctrl-C would, and if that does not help, for good."""
        for number, seconds in zip((signal.SIGINT, signal.SIGTERM), PATIENCE_SECONDS, strict=True):
            if self._process is None or not _signal(self._process, number):
                return
            await self._gone(seconds)
        if self._process is not None:
            _signal(self._process, signal.SIGKILL)

    async def _gone(self, seconds: float) -> None:
        # Its frames are read by nobody any more, and must not hold it up.
        until = asyncio.get_running_loop().time() + seconds
        while self._process is not None and asyncio.get_running_loop().time() < until:
            with suppress(asyncio.QueueEmpty):
                while True:
                    self._frames.get_nowait()
            await asyncio.sleep(0.02)


def _signal(process: int, number: int) -> bool:
    """Send a signal to a process and those that it started; False: it is gone."""
    try:
        os.killpg(process, number)
    except ProcessLookupError:
        # It may not have a group of its own yet.
        try:
            os.kill(process, number)
        except ProcessLookupError:
            return False
    return True


class Commands:
    """The commands that run now.

    Args:
        nursery: forks their processes.
        most: so many run at a time; of one user, where users have names, half as many.
    """

    def __init__(self, nursery: Nursery, most: int) -> None:
        self.nursery = nursery
        self._most = most
        self._running: dict[str, Running] = {}
        self._places: Counter[str] = Counter()

    @contextmanager
    def place(self, owner: str) -> Iterator[None]:
        """Hold one of the places for commands: each is a process, with connections and memory of its own.

        Raises:
            Busy: there is none for this user now.
        """
        held, whose = self._places.total(), ""
        if owner and self._places[owner] >= (self._most + 1) // 2:
            held, whose = self._places[owner], f" of {owner}"
        if whose or held >= self._most:
            raise Busy(
                f"{held} commands{whose} run on the server, as many as may at a time",
                safe="nothing was done",
                next_step="try again in a moment; the setting server.commands of the server says how many there may be",
                commands=held,
            )
        self._places[owner] += 1
        try:
            yield
        finally:
            self._places[owner] -= 1
            self._places += Counter()

    async def run(self, folder: Path, owner: str) -> AsyncGenerator[bytes]:
        """Run the order in a folder, and yield its frames; see `Running`."""
        command = Running(self.nursery, folder, owner)
        self._running[command.id] = command
        frames = command.frames()
        try:
            async for part in frames:
                yield part
        finally:
            del self._running[command.id]
            with CancelScope(shield=True):
                await frames.aclose()

    def get(self, id: str, owner: str) -> Running:
        """Return a command that runs.

        Raises:
            UnknownObject: none has that id, or somebody else has ordered it.
        """
        found = self._running.get(id)
        if found is None or found.owner != owner:
            raise UnknownObject(f"no command {id} runs", safe="nothing was changed", command=id)
        return found
