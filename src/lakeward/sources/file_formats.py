"""Which connector reads a file. Apart from `connector.py`, because the connectors themselves import that one."""

from __future__ import annotations

from pathlib import Path

from lakeward.discovery import discover
from lakeward.errors import UnknownObject
from lakeward.sources import connectors
from lakeward.sources.connector import FileConnector


def file_connectors() -> dict[str, type[FileConnector]]:
    """Return every connector by its name."""
    return discover(connectors, FileConnector)


def connector_for(path: Path) -> type[FileConnector]:
    """Return the connector whose suffix the file's name ends with, whatever its case.

    Raises:
        UnknownObject: there is none, with the suffixes that there are.
    """
    found = file_connectors()
    for connector in found.values():
        if path.name.lower().endswith(connector.suffixes):
            return connector
    known = ", ".join(suffix for connector in found.values() for suffix in connector.suffixes)
    raise UnknownObject(
        f"no connector reads {path.name!r}",
        next_step=f"name the format, or rename the file to end with one of {known}",
        path=str(path),
    )
