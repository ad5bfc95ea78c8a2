"""Runs a command on a server: sends it with its files, shows what it writes as it comes, and writes what it made."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

import httpx

from lakeward import errors
from lakeward.cli.remote.commands import COMMANDS, Remote
from lakeward.cli.remote.luggage import Luggage
from lakeward.cli.remote.target import Target
from lakeward.errors import LakewardError, ServerError
from lakeward.server.frames import ASKS, BEGUN, DATA, ENDED, ERR, FILE, OUT, frames

ARCHIVE = "application/x-tar"

_PATIENCE = httpx.Timeout(30.0, read=60.0)
"""A server that says nothing for so long is gone: it says something every few seconds."""

Write = Callable[[bytes, bytes], None]
"""Takes what a command writes: the kind of frame, and its content."""


class Client:
    """The way to a server.

    Args:
        target: which, and as whom.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        headers = {"Authorization": f"Bearer {target.token}"} if target.token else {}
        self._http = httpx.Client(base_url=f"{target.url}/api/v1", headers=headers, timeout=_PATIENCE)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def run(
        self,
        words: tuple[str, ...],
        arguments: Sequence[str],
        values: Mapping[str, Any],
        *,
        input: str = "",
        write: Write | None = None,
    ) -> int:
        """Run a command, and return its exit code.

        Args:
            words: of the command.
            arguments: all of them.
            values: by parameter.
            input: what standard input holds, for a command that reads it.
            write: takes what it writes; None: standard output and error.

        Raises:
            ServerError: the server can't be reached, or went away.
            LakewardError: it refuses the command.
        """
        command = COMMANDS[words]
        assert isinstance(command, Remote)
        luggage = Luggage()
        for parameter, kind in command.paths.items():
            luggage.take(values.get(parameter), kind)
        order = {
            "arguments": list(arguments),
            "directory": str(Path.cwd()),
            "input": input,
            "terminal": _terminal(alone=write is not None),
        }
        with tempfile.TemporaryFile() as archive, self._watched():
            luggage.pack(order, archive)
            size = archive.tell()
            archive.seek(0)
            sent = {"Content-Type": ARCHIVE, "Content-Length": str(size)}
            with self._http.stream("POST", "/commands", content=_chunks(archive), headers=sent) as answer:
                if answer.status_code != httpx.codes.OK:
                    answer.read()
                    raise refusal(answer)
                return self._follow(answer.iter_raw(), luggage.outputs, write or _show)

    def _follow(self, parts: Iterator[bytes], outputs: set[str], write: Write) -> int:
        id = ""
        received = Received(outputs)
        with received:
            for kind, content in frames(parts):
                if kind in (OUT, ERR):
                    write(kind, content)
                elif kind == BEGUN:
                    id = json.loads(content)["id"]
                elif kind == ASKS:
                    self._answer(id)
                elif kind == FILE:
                    received.begin(json.loads(content)["path"])
                elif kind == DATA:
                    received.add(content)
                elif kind == ENDED:
                    received.end()
                    return int(json.loads(content)["code"])
        raise ValueError("it ended without an exit code")

    def _answer(self, id: str) -> None:
        line = sys.stdin.readline()
        answer = self._http.post(f"/commands/{id}/answer", json={"line": line.rstrip("\r\n")})
        if answer.status_code >= httpx.codes.BAD_REQUEST:
            raise refusal(answer)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Say of what happens on the way what it means."""
        try:
            yield
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise ServerError(
                f"the server {self._target.url} can't be reached: {error}",
                safe="nothing was done",
                next_step="ask whether it runs, and whether --server or LAKEWARD_SERVER is right",
                server=self._target.url,
            ) from None
        except (httpx.HTTPError, ValueError) as error:
            raise ServerError(
                f"the server {self._target.url} went away before the command had ended: {error}",
                safe="what was not committed by then is not visible; the history of the dataset tells",
                next_step="repeat the command: what is done already is not done again, but for imports without a key",
                server=self._target.url,
            ) from None


class Received:
    """Files that a command has made, each of which appears when it is whole, and where it was asked for.

    Args:
        outputs: the paths that may be written.
    """

    def __init__(self, outputs: set[str]) -> None:
        self._outputs = outputs
        self._path: Path | None = None
        self._beside = Path()
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Received:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._beside.unlink(missing_ok=True)

    def begin(self, path: str) -> None:
        """Begin a file.

        Raises:
            ServerError: nobody asked for it.
        """
        self.end()
        if path not in self._outputs:
            raise ServerError(f"the server sent a file that was not asked for: {path}", safe="it was not written")
        self._path = Path(path)
        try:
            folder = self._path.absolute().parent
            made, name = tempfile.mkstemp(dir=folder, prefix=f".{self._path.name}.")
            self._file = os.fdopen(made, "wb")
            self._beside = Path(name)
        except OSError as error:
            raise _unwritable(path, error) from None

    def add(self, content: bytes) -> None:
        """Take the next part of it."""
        if self._file is None:
            return
        try:
            self._file.write(content)
        except OSError as error:
            raise _unwritable(str(self._path), error) from None

    def end(self) -> None:
        """End the file that was begun, if any: now it is where it was asked for."""
        if self._file is None or self._path is None:
            return
        try:
            self._file.close()
            mask = os.umask(0)
            os.umask(mask)
            self._beside.chmod(0o666 & ~mask)
            self._beside.replace(self._path)
        except OSError as error:
            raise _unwritable(str(self._path), error) from None
        self._file = self._path = None


def refusal(answer: httpx.Response) -> LakewardError:
    """Return the error that a server's answer tells, of the same kind as it was there."""
    try:
        told = answer.json()
        kind = getattr(errors, str(told["title"]), None)
        made = kind if isinstance(kind, type) and issubclass(kind, LakewardError) else ServerError
        steps = told.get("next_steps") or [None]
        return made(told["detail"], safe=told.get("safe"), next_step=steps[0], **told.get("fields", {}))
    except (ValueError, KeyError, TypeError):
        return ServerError(
            f"the server answered {answer.status_code} {answer.reason_phrase}, and nothing that Lakeward says",
            safe="nothing was done",
            next_step="ask whether --server names a Lakeward server",
        )


def _unwritable(path: str, error: OSError) -> errors.UsageError:
    return errors.UsageError(f"{path} can't be written: {error.strerror or error}", path=path)


def _show(kind: bytes, content: bytes) -> None:
    stream: BinaryIO = (sys.stdout if kind == OUT else sys.stderr).buffer
    stream.write(content)
    stream.flush()


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(1 << 16):
        yield chunk


def _terminal(*, alone: bool) -> dict[str, object]:
    size = shutil.get_terminal_size()
    streams = {"in": sys.stdin, "out": sys.stdout, "err": sys.stderr}
    terminals = {name: not alone and stream.isatty() for name, stream in streams.items()}
    return {**terminals, "columns": size.columns, "lines": size.lines}
