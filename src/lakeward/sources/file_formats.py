"""Which format a file has. Apart from `file_format.py`, because the formats themselves import that one."""

from __future__ import annotations

from pathlib import Path

from lakeward.discovery import discover
from lakeward.errors import UnknownObject
from lakeward.sources import formats
from lakeward.sources.file_format import FileFormat


def file_formats() -> dict[str, type[FileFormat]]:
    """Return every format by its name."""
    return discover(formats, FileFormat)


def format_for(path: Path) -> type[FileFormat]:
    """Return the format whose suffix the file's name ends with, whatever its case.

    Raises:
        UnknownObject: there is none, with the suffixes that there are.
    """
    found = file_formats()
    for format_ in found.values():
        if path.name.lower().endswith(format_.suffixes):
            return format_
    known = ", ".join(suffix for format_ in found.values() for suffix in format_.suffixes)
    raise UnknownObject(
        f"no format reads {path.name!r}",
        next_step=f"name the format, or rename the file to end with one of {known}",
        path=str(path),
    )
