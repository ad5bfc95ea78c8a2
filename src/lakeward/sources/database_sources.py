"""Which connector is which type of database. Apart from `database.py`, because the connectors import that one."""

from __future__ import annotations

from lakeward.discovery import discover
from lakeward.errors import UnknownObject
from lakeward.sources import databases
from lakeward.sources.database import DatabaseConnector


def database_connectors() -> dict[str, type[DatabaseConnector]]:
    """Return every connector by its name."""
    return discover(databases, DatabaseConnector)


def database_connector(name: str) -> type[DatabaseConnector]:
    """Return the connector of that name.

    Raises:
        UnknownObject: there is none, with those that there are.
    """
    found = database_connectors()
    if name not in found:
        raise UnknownObject(f"unknown type of source {name!r}; there are {', '.join(found)}", type=name)
    return found[name]
