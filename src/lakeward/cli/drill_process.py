"""The program that forks the processes that `lakeward ledger drill` kills; it is started with its socket's number."""

from __future__ import annotations

import importlib
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lakeward.clock import Faults
from lakeward.discovery import discover
from lakeward.storage import arms
from lakeward.storage.arm import StorageArm
from lakeward.testing.drill.model import Rooms
from lakeward.testing.drill.worker import fork_workers
from lakeward.wiring.opening import open_workspace
from lakeward.wiring.workspace import Workspace


def rooms_of(workspace: Workspace) -> Rooms:
    """Return the parts of a workspace that the drill uses."""
    return Rooms(
        workspace.database, workspace.tree, workspace.ledger, workspace.storage, workspace.recovery, workspace.flip
    )


@contextmanager
def open_place(place: Mapping[str, Any], faults: Faults) -> Iterator[Rooms]:
    """Open the workspace that `lakeward ledger drill` describes."""
    with open_workspace(**place, faults=faults, recover=False) as workspace:
        yield rooms_of(workspace)


if __name__ == "__main__":
    # What opening a workspace and its first write would load in every process anew: the arms, and (through our own REST
    # catalog, which stands on it) PyIceberg's SQL catalog.
    discover(arms, StorageArm)
    importlib.import_module("lakeward.testing.rest_catalog")
    with socket.socket(fileno=int(sys.argv[1])) as control:
        fork_workers(control, open_place)
