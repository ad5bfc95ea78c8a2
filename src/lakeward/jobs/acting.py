"""As whom a job runs: by the name and the token that were kept when it was queued, with what they may do when it runs.

A token that was narrowed, to a role or to a place, narrows what it has queued, too. Once it is revoked or over, nothing
begins of that any more.
"""

from __future__ import annotations

from lakeward.access.principal import OWNER, Principal
from lakeward.wiring.workspace import Workspace


def principal_of(workspace: Workspace, name: str | None, token: str | None) -> Principal:
    """Return who acts in a job.

    Args:
        workspace: has their grants.
        name: of whoever queued it; None: the workspace's owner, as for what its schedules queue.
        token: the name of the one that they came with, if any.

    Raises:
        Forbidden: the token counts no more.
    """
    return OWNER if name is None else workspace.access.principal_of(name, token)
