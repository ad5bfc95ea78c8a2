"""What a command line test needs besides fixtures: what a command did, and commands as processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document of standard output."""
        return json.loads(self.out)


Run = Callable[..., Ran]


def process(*arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
    """Start `lakeward …` as a process of its own, that hears Ctrl-C: what a shell starts in the background does not."""
    return subprocess.Popen(
        [sys.executable, "-m", "lakeward.cli.app", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        **options,
    )


def environment() -> dict[str, str]:
    """Return this process's environment, with the source tree that it tests on the path."""
    # Unbuffered, Python takes a write that a closed pipe cut short for a whole one, and nobody learns of the pipe.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return kept | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
