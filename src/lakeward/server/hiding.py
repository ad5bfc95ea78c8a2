"""Keeps to the server where it keeps what a request brought."""

from __future__ import annotations

from pathlib import Path

from lakeward.errors import LakewardError


def hide(error: LakewardError, folder: Path) -> None:
    """Leave out of an error where files that a request brought lie here."""
    root = str(folder)
    for each in (error, *error.parts):
        each.message = each.message.replace(root, ".")
        each.args = (each.message,)
        each.next_step = each.next_step.replace(root, ".") if each.next_step is not None else None
        each.fields = {name: _hidden(value, root) for name, value in each.fields.items()}


def _hidden(value: object, root: str) -> object:
    if isinstance(value, str):
        return value.replace(root, ".")
    if isinstance(value, list):
        return [_hidden(each, root) for each in value]
    return {name: _hidden(each, root) for name, each in value.items()} if isinstance(value, dict) else value
