"""As whom a job runs: by the name that was kept when it was queued, with what that name may do when it runs."""

from __future__ import annotations

from dataclasses import replace

from lakeward.access.principal import OWNER, Principal


def principal_of(name: str | None) -> Principal:
    """Return who acts in a job.

    Args:
        name: of whoever queued it; None: the workspace's owner, as for what its schedules queue.
    """
    return OWNER if name is None else replace(OWNER, name=name)
