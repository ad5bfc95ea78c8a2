"""Runs one command for somebody elsewhere, in a process of its own that ends with it."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import typer

from lakeward import redaction
from lakeward.access.guard import act_alone
from lakeward.access.principal import Grant, Principal
from lakeward.access.roles import Role
from lakeward.cli import served
from lakeward.cli.app import app, main
from lakeward.cli.remote.parsing import words_of
from lakeward.wiring.settings import LoadedSettings

FILES = "files"
"""The directory, beside the order, that is the command's own: what was sent is in it, and it writes there."""

ORDER = "order.json"


class Stream(io.TextIOWrapper):
    """Standard output or error, which is a terminal where that of whoever asks is one."""

    def __init__(self, raw: BinaryIO, terminal: bool) -> None:
        super().__init__(raw, encoding="utf-8", errors="backslashreplace", line_buffering=terminal)
        self._terminal = terminal

    def isatty(self) -> bool:
        """Say whether it is."""
        return self._terminal


class Typed(io.StringIO):
    """Standard input: what was sent with the command, or lines that are asked for one by one.

    Args:
        sent: what was sent.
        control: the way to whoever types; None: nobody does.
    """

    def __init__(self, sent: str, control: socket.socket | None) -> None:
        super().__init__(sent)
        self._control = control
        self._lines = control.makefile("r", encoding="utf-8") if control is not None else None

    def isatty(self) -> bool:
        """Say whether somebody is there to type."""
        return self._control is not None

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]
        """Return the next line, asked for."""
        if self._control is None or self._lines is None:
            return super().readline(-1 if size is None else size)
        sys.stdout.flush()
        sys.stderr.flush()
        tell(self._control, asks=True)
        line = self._lines.readline()
        return f"{json.loads(line)['line']}\n" if line else ""


def tell(control: socket.socket, **facts: object) -> None:
    """Send a line to the server."""
    control.sendall(f"{json.dumps(facts)}\n".encode())


def run(folder: Path, out: int, err: int, control: socket.socket, settings: LoadedSettings) -> None:
    """Run the command that is ordered in a folder; never returns.

    Args:
        folder: with the order, and the files that came with it.
        out, err: where it writes.
        control: is told whether it waits, and the exit code.
        settings: of the server.
    """
    code = 1
    try:
        # A group of its own, which Ctrl-C reaches as a terminal would let it.
        os.setsid()
        order: dict[str, Any] = json.loads((folder / ORDER).read_text(encoding="utf-8"))
        _prepare(folder, order, out, err, control)
        served.now = served.Served(words_of(typer.main.get_command(app), order["arguments"]), settings, order["mounts"])
        code = _code_of(order["arguments"])
        _flush(sys.stdout, sys.stderr)
        files = [[given, here] for given, here in served.now.written if Path(here).is_file()]
        tell(control, code=code, files=files)
    except OSError:
        pass  # the server is gone, and nobody is left to be told
    finally:
        if (error := sys.exception()) is not None:
            os.write(2, "".join(traceback.format_exception(error)).encode())
        os._exit(code)


def _prepare(folder: Path, order: dict[str, Any], out: int, err: int, control: socket.socket) -> None:
    for number, descriptor in ((0, os.open(os.devnull, os.O_RDONLY)), (1, out), (2, err)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    terminal: dict[str, Any] = order["terminal"]
    sys.stdout = Stream(os.fdopen(1, "wb", closefd=False), bool(terminal["out"]))
    sys.stderr = Stream(os.fdopen(2, "wb", closefd=False), bool(terminal["err"]))
    sys.stdin = Typed(order["input"], control if terminal["in"] else None)
    os.environ["COLUMNS"], os.environ["LINES"] = str(terminal["columns"]), str(terminal["lines"])
    os.chdir(folder / FILES)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # What is printed has the paths of whoever asks: whole ones first, since the others are parts of them.
    files = str((folder / FILES).resolve())
    names = sorted(order["names"].items(), key=lambda each: -len(each[0]))
    redaction.CALLED.clear()
    redaction.CALLED.update({f"{files}/{here}": given for here, given in names} | dict(names))
    redaction.CALLED[files] = order["directory"]
    act_alone(principal_of(order["principal"]))


def _code_of(arguments: list[str]) -> int:
    try:
        return main(arguments)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 1
    except KeyboardInterrupt:
        return 130


def _flush(*streams: TextIO) -> None:
    for stream in streams:
        stream.flush()


def principal_of(told: dict[str, Any]) -> Principal:
    """Return who acts, as the server has told it."""
    grants = tuple(Grant(Role(role), tuple(place)) for role, place in told["grants"])
    return Principal(told["name"], grants, Role(told["ceiling"]), tuple(told["within"]), told["token"])
