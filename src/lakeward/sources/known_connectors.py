"""Which connector is which type of source. Apart from `connector.py`, because the connectors import that one.

Ours are found in `lakeward/sources/connectors`, those of other packages by their entry points.
"""

from __future__ import annotations

import inspect
from importlib.metadata import EntryPoint, entry_points

from lakeward.discovery import discover
from lakeward.errors import SettingsError, UnknownObject
from lakeward.sources import connectors
from lakeward.sources.connector import Connector

GROUP = "lakeward.connectors"
"""Entry points of packages that bring connectors: `sqlite = "lakeward_sqlite:SqliteSource"`."""


def known_connectors() -> dict[str, type[Connector]]:
    """Return every connector of this package by its name."""
    return discover(connectors, Connector)


def connector_named(name: str) -> type[Connector]:
    """Return the connector of that name, of this package or of another one that is installed.

    Raises:
        UnknownObject: there is none, with those that there are.
        SettingsError: another package names one and does not have it.
    """
    found = known_connectors()
    if name in found:
        return found[name]
    others = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in others:
        raise UnknownObject.among("type of source", name, sorted({*found, *others}), type=name)
    return _loaded(others[name])


def _loaded(entry: EntryPoint) -> type[Connector]:
    try:
        made = entry.load()
    except (ImportError, AttributeError) as error:
        raise _broken(entry, f"can't be loaded: {error}") from error
    if not inspect.isclass(made) or not issubclass(made, Connector) or made.name != entry.name:
        raise _broken(entry, f"is no Connector of that name: {made!r}")
    return made


def _broken(entry: EntryPoint, why: str) -> SettingsError:
    package = entry.dist.name if entry.dist is not None else "an unknown package"
    return SettingsError(
        f"source type {entry.name!r}, which {package} brings as {entry.value}, {why}",
        safe="nothing was done",
        next_step=f"install {package} anew, or remove it",
        type=entry.name,
    )
