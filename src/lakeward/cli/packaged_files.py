"""The small projects that are packaged with the commands, and writing them out."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from lakeward.errors import UsageError


def packaged_files(folder: str) -> dict[str, bytes]:
    """Return the files of a folder that is packaged with the commands, by relative path."""
    return dict(sorted(_walk(files("lakeward.cli") / folder, "")))


def write_files(wanted: dict[Path, bytes]) -> None:
    """Write files, and the folders that they need.

    Raises:
        UsageError: the place can't be written.
    """
    try:
        for path, content in wanted.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    except OSError as error:
        raise UsageError(
            f"{error.filename} can't be written: {error.strerror}", next_step="choose another folder"
        ) from None


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found = []
    for entry in folder.iterdir():
        if entry.name.startswith("__pycache__"):
            continue
        # A packaged name can't begin with a dot everywhere: `gitignore` stands for `.gitignore`.
        name = f"{prefix}{'.gitignore' if entry.name == 'gitignore' else entry.name}"
        found += _walk(entry, f"{name}/") if entry.is_dir() else [(name, entry.read_bytes())]
    return found
