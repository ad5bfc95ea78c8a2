"""Workspaces in an object store, and upkeep of what lies there: nobody can make an object look older than it is."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import lakeward


@dataclass(frozen=True)
class Lake:
    """A workspace in the store."""

    workspace: lakeward.Workspace
    database_url: str
    warehouse: str
    catalog: dict[str, str]


Tidier = Callable[[Lake, str, str], list[str]]
"""Takes a lake, a dataset's name, and the path of an object that is to go; returns what was removed."""

SHORT = 0.1


@contextmanager
def hasty(lake: Lake, more: str = "") -> Iterator[lakeward.Workspace]:
    """Open a lake's workspace once more, with leases so short that maintenance needs hardly any grace.

    Args:
        lake: which one.
        more: further settings, as a file has them.
    """
    with tempfile.TemporaryDirectory() as home:
        settings = Path(home, "short.toml")
        settings.write_text(f"[ledger]\nlease_seconds = {SHORT}\n{more}", encoding="utf-8")
        place = {"database_url": lake.database_url, "warehouse": lake.warehouse, "catalog": lake.catalog}
        with lakeward.open(home, **place, settings_file=settings) as workspace:
            yield workspace


def tidied(lake: Lake, name: str, path: str) -> list[str]:
    """Maintain a dataset with hardly any grace, until an object is old enough for that: its times are whole seconds."""
    deadline = time.monotonic() + 30
    removed: list[str] = []
    with hasty(lake) as workspace:
        while not any(path in each for each in removed):
            assert time.monotonic() < deadline, f"{path} stays; gone: {removed}"
            removed += [each.what for each in workspace.maintain(name, older_than=SHORT).removed]
    return removed
