"""Which format a file has, and how it is written down. Apart from `file_format.py`, because the formats import that."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lakeward.discovery import discover
from lakeward.errors import SettingsError, UnknownObject
from lakeward.sources import formats
from lakeward.sources.file_format import FileFormat, FormatOptions
from lakeward.sources.source_file import SourceFile


def file_formats() -> dict[str, type[FileFormat]]:
    """Return every format by its name."""
    return discover(formats, FileFormat)


def format_for(file: Path | SourceFile) -> type[FileFormat]:
    """Return the format whose suffix the file's name ends with, whatever its case.

    Raises:
        UnknownObject: there is none, with the suffixes that there are.
    """
    found = file_formats()
    for format_ in found.values():
        if file.name.lower().endswith(format_.suffixes):
            return format_
    known = ", ".join(suffix for format_ in found.values() for suffix in format_.suffixes)
    raise UnknownObject(
        f"no format reads {file.name!r}",
        safe="nothing was changed",
        next_step=f"name the format, or rename the file to end with one of {known}",
        path=str(file),
    )


def format_named(name: str) -> type[FileFormat]:
    """Return the format of that name.

    Raises:
        UnknownObject: there is none, with those that there are.
    """
    known = file_formats()
    if name not in known:
        raise UnknownObject.among("file format", name, known, format=name)
    return known[name]


def open_file(
    file: Path | SourceFile, format: str | None = None, options: Mapping[str, Any] | None = None
) -> FileFormat:
    """Return a file in its format. Nothing of it is read yet.

    Args:
        file: a path is a file of this machine.
        format: its name; None: by the end of the file's name.
        options: how the file is written down: the format's own options by name.

    Raises:
        UnknownObject: no format has that name, or reads such a file.
        SettingsError: an option is unknown, or can't be meant.
    """
    format_ = format_for(file) if format is None else format_named(format)
    return format_(file, checked_options(format_, options or {}))


def checked_options(format_: type[FileFormat], given: Mapping[str, Any]) -> FormatOptions:
    """Return the options of a format that a mapping gives.

    Raises:
        SettingsError: one of them is unknown, with those that there are, or can't be meant.
    """
    known = format_.options.model_fields
    for option in given:
        if option not in known:
            others = [name for name, other in file_formats().items() if option in other.options.model_fields]
            what = f"{option} can be given for {' and '.join(others)} only" if others else f"unknown option {option!r}"
            raise SettingsError(
                f"{what}; files of format {format_.name} have {', '.join(known) or 'no options'}",
                safe="nothing was changed",
                next_step="leave it out, or name the file's format",
                option=option,
            )
    try:
        return format_.options.model_validate(dict(given))
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        option = ".".join(map(str, wrong["loc"]))
        raise SettingsError(
            f"option {option!r} of format {format_.name}: {wrong['msg']}, not {wrong['input']!r}",
            safe="nothing was changed",
            option=option,
        ) from None
