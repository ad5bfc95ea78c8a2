"""Which connector is which type of source. Apart from `connector.py`, because the connectors import that one."""

from __future__ import annotations

from lakeward.discovery import discover
from lakeward.errors import UnknownObject
from lakeward.sources import connectors
from lakeward.sources.connector import Connector


def known_connectors() -> dict[str, type[Connector]]:
    """Return every connector by its name."""
    return discover(connectors, Connector)


def connector_named(name: str) -> type[Connector]:
    """Return the connector of that name.

    Raises:
        UnknownObject: there is none, with those that there are.
    """
    found = known_connectors()
    if name not in found:
        raise UnknownObject(f"unknown type of source {name!r}; there are {', '.join(found)}", type=name)
    return found[name]
