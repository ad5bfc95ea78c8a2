"""Whether a workspace can be worked with now: its database, the tables in it, the warehouse and the catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lakeward.control.schema import HEAD
from lakeward.control.standing import clock_and_revision
from lakeward.errors import CatalogError, ControlError
from lakeward.wiring.workspace import Workspace

Check = Callable[[], None]
"""Returns if all is well, and raises what is not."""


def readiness(workspace: Workspace) -> Mapping[str, Check]:
    """Return what has to be well, by name; each is quick, and may hang where what it asks does."""
    return {
        "database": lambda: _database(workspace),
        "warehouse": lambda: _warehouse(workspace),
        "catalog": workspace.storage.routing.arm("iceberg").receiver().reach,
    }


def _database(workspace: Workspace) -> None:
    _, revision = clock_and_revision(workspace.database)
    if revision != HEAD:
        raise ControlError(
            f"the tables of the workspace are at {revision}, and this server knows {HEAD}",
            next_step="run the same version of lakeward everywhere, and start this server again",
        )


def _warehouse(workspace: Workspace) -> None:
    place = workspace.storage.routing.arm("iceberg").receiver().place()
    if place is not None and not place.ok:
        raise CatalogError(place.found, next_step=place.next_step)
