"""Which log of changes is that of which type of source. Apart from `change_log.py`, because the logs import that."""

from __future__ import annotations

from lakeward.discovery import discover
from lakeward.errors import UnknownObject
from lakeward.sources import change_logs
from lakeward.sources.change_log import ChangeLog


def known_change_logs() -> dict[str, type[ChangeLog]]:
    """Return every log by the name of its connector."""
    return discover(change_logs, ChangeLog)


def change_log_of(name: str) -> type[ChangeLog]:
    """Return the log of a type of source.

    Raises:
        UnknownObject: sources of this type have none, with those that do.
    """
    found = known_change_logs()
    if name not in found:
        raise UnknownObject(
            f"a source of type {name!r} does not tell its changes; these do: {', '.join(found)}", type=name
        )
    return found[name]
