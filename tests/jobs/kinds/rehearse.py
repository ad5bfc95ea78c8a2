"""A kind of job for tests: waits for a file, writes rows, and fails as it is told to."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from lakeward import errors, stopping
from lakeward.access.guard import principal
from lakeward.jobs.kind import JobKind, JobOptions, Tell
from lakeward.wiring.workspace import Workspace


class RehearseOptions(JobOptions):
    """What is to happen."""

    name: str = Field("", description="distinguishes jobs")
    alone: str | None = Field(None, description="its lock")
    gate: str | None = Field(None, description="waits until this file is there")
    error: str | None = Field(None, description="the name of the error that it ends with")
    fails: int = Field(1, description="how many tries end so")


class Rehearse(JobKind[RehearseOptions]):
    """Do what a test says."""

    name = "rehearse"
    queue = "upkeep"
    action = "job.run"
    options = RehearseOptions

    def lock(self, options: RehearseOptions) -> str | None:
        """As it is told."""
        return options.alone

    def run(self, workspace: Workspace, options: RehearseOptions, tell: Tell) -> Mapping[str, Any]:
        """Do it."""
        number = len(tell.tries("it"))
        tell.progress("rehearsing", number, 10, "tries")
        while options.gate is not None and not Path(options.gate).exists():
            stopping.check()
            threading.Event().wait(0.01)
        if options.error is not None and number <= options.fails:
            raise vars(errors).get(options.error, ValueError)(f"{options.error} at try {number}")
        return {"tries": number, "as": principal().name}
