"""As whom a job runs: by the name that was kept when it was queued, with what that name may do when it runs."""

from __future__ import annotations

from lakeward.access.principal import OWNER, Principal
from lakeward.wiring.workspace import Workspace


def principal_of(workspace: Workspace, name: str | None) -> Principal:
    """Return who acts in a job.

    Args:
        workspace: has their grants.
        name: of whoever queued it; None: the workspace's owner, as for what its schedules queue.
    """
    return OWNER if name is None else workspace.access.principal_of(name)
