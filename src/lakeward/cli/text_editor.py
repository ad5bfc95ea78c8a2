"""Opens a file in the editor that a person has named: `VISUAL`, else `EDITOR`."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from lakeward.errors import UsageError


def named_editor() -> list[str]:
    """Return the editor's command.

    Raises:
        UsageError: none is named.
    """
    text = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        command = shlex.split(text)
    except ValueError as error:
        raise _unusable(f"VISUAL or EDITOR is {text!r}, which is no command: {error}") from None
    if not command:
        raise _unusable("no editor is named: VISUAL and EDITOR are not set")
    return command


def edit_file(command: list[str], path: Path) -> None:
    """Open a file in an editor, and return when that has ended.

    Raises:
        UsageError: it can't be started, or ended with a failure.
    """
    try:
        code = subprocess.run([*command, str(path)], check=False).returncode
    except OSError as error:
        raise _unusable(f"the editor {command[0]} can't be started: {error.strerror}") from error
    if code != 0:
        raise UsageError(f"the editor {command[0]} ended with exit code {code}", safe="nothing was changed", code=code)


def _unusable(what: str) -> UsageError:
    return UsageError(
        what,
        safe="nothing was changed",
        next_step="set EDITOR, or use --export FILE and then --from FILE",
    )
