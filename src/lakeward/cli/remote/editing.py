"""Edits rows of a server's dataset in an editor of this machine: exported there, edited here, taken there."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from lakeward import errors
from lakeward.cli.remote.client import Client
from lakeward.cli.text_editor import edit_file, named_editor
from lakeward.errors import LakewardError, ServerError
from lakeward.server.frames import OUT

WORDS = ("dataset", "edit")


def edit_here(client: Client, arguments: Sequence[str], values: Mapping[str, Any]) -> int:
    """Let a person edit, and return the exit code. The file goes only when all of it is in the dataset.

    Args:
        client: the way to the server.
        arguments: of the command, as they were typed.
        values: by parameter.

    Raises:
        UsageError: no editor is named, or it failed.
        LakewardError: the server refuses it.
    """
    editor = named_editor()
    folder = Path(tempfile.mkdtemp(prefix="lakeward-edit-"))
    path, kept = folder / "rows.csv", False
    try:
        version = _export(client, path, values)
        while True:
            edit_file(editor, path)
            kept = True
            taken = [*arguments, "--from", str(path), "--version", str(version)]
            code = client.run(WORDS, taken, {**values, "edited": path, "version": version})
            if code == 0:
                kept = False
                return 0
            if not sys.stdin.isatty() or not typer.confirm("Open the editor again?", default=True, err=True):
                typer.echo(f"What was edited is kept in {path}, of version {version}", err=True)
                return code
    finally:
        if not kept:
            shutil.rmtree(folder)


def _export(client: Client, path: Path, values: Mapping[str, Any]) -> int:
    limits = ["--max-rows", str(values["max_rows"]), "--max-mb", str(values["max_mb"])]
    asked = [*WORDS, values["dataset"], "--export", str(path), "--output", "json", *limits]
    written = bytearray()

    def keep(kind: bytes, content: bytes) -> None:
        if kind == OUT:
            written.extend(content)

    code = client.run(WORDS, asked, {"export": path}, write=keep)
    try:
        told = json.loads(written)
    except ValueError:
        raise ServerError("the server did not tell what it exported", safe="nothing was changed") from None
    if code == 0:
        return int(told["version"])
    kind = getattr(errors, told["error"], LakewardError)
    steps = told["next_steps"] or [None]
    raise kind(told["message"], safe=told["safe"], next_step=steps[0], **told["fields"])
