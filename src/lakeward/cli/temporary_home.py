"""A directory for a workspace that is thrown away: nothing of it is left, however the command ends."""

from __future__ import annotations

import importlib
import secrets
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from lakeward.errors import LakewardError

TRIES, AGAIN_SECONDS = 50, 0.1
"""So often is it tried to remove it: what is ending now may still write there."""


@contextmanager
def temporary_home(prefix: str) -> Iterator[Path]:
    """Make a directory for a workspace; when the block ends, end its server and remove it.

    Args:
        prefix: how its name begins.
    """
    # It has its name before it is there, so that no moment is left in which it is there and nobody knows it.
    home = Path(tempfile.gettempdir(), f"{prefix}{secrets.token_hex(6)}")
    try:
        home.mkdir(mode=0o700)
        yield home
    finally:
        with signals_held_back():
            _remove(home)


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait until the block has ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    held = (signal.SIGINT, signal.SIGTERM)
    before = {each: signal.signal(each, lambda number, _: came.append(number)) for each in held}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    if came:
        signal.raise_signal(came[0])


def _remove(home: Path) -> None:
    # Commands that need no such directory do without that room.
    embedded = importlib.import_module("lakeward.control.embedded")
    try:
        # Whoever was interrupted while it started may have left it running, or coming up.
        embedded.EmbeddedPostgres.end(home / "postgres")
    except LakewardError as error:
        typer.echo(f"warning: {error.message}", err=True)
    for _ in range(TRIES):
        shutil.rmtree(home, ignore_errors=True)
        if not home.exists():
            return
        time.sleep(AGAIN_SECONDS)
    typer.echo(f"warning: {home} could not be removed", err=True)
