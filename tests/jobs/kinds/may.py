"""A kind of job for tests: tells which role it has where it works, and in the whole workspace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from lakeward.access.guard import principal
from lakeward.access.principal import Place
from lakeward.jobs.kind import JobKind, JobOptions, Tell
from lakeward.wiring.workspace import Workspace


class MayOptions(JobOptions):
    """Where it works."""

    dataset: str = Field(description="the dataset")


class May(JobKind[MayOptions]):
    """Tell what it may do."""

    name = "may"
    queue = "upkeep"
    action = "job.run"
    options = MayOptions

    def place(self, workspace: Workspace, options: MayOptions) -> Place:
        """At its dataset."""
        return workspace.tree.dataset(options.dataset).slugs

    def run(self, workspace: Workspace, options: MayOptions, tell: Tell) -> Mapping[str, Any]:
        """Tell it."""
        there, everywhere = (principal().role_in(place) for place in (self.place(workspace, options), ()))
        return {"there": str(there), "all": str(everywhere) if everywhere is not None else None}
