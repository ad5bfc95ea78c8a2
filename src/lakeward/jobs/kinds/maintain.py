"""Maintenance: what `lakeward maintain` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from lakeward import stopping
from lakeward.access.principal import Place
from lakeward.jobs.kind import JobKind, JobOptions, Tell
from lakeward.storage.maintenance import DEFAULT_SECONDS
from lakeward.wiring.workspace import Workspace


class MaintainOptions(JobOptions):
    """Of which datasets."""

    datasets: tuple[str, ...] = Field((), description="full names; none: all, what was dropped, and scratch")
    older_than: float = Field(DEFAULT_SECONDS, gt=0, allow_inf_nan=False, description="seconds; what is younger stays")


class Maintain(JobKind[MaintainOptions]):
    """Rewrite worn files, expire old versions, remove what nothing needs."""

    name = "maintain"
    queue = "upkeep"
    action = "maintenance.run"
    options = MaintainOptions

    def lock(self, options: MaintainOptions) -> str | None:
        """Once at a time is enough."""
        return "maintain"

    def place(self, workspace: Workspace, options: MaintainOptions) -> Place:
        """Refuse a dataset that is not there."""
        for name in options.datasets:
            workspace.tree.dataset(name)
        return ()

    def run(self, workspace: Workspace, options: MaintainOptions, tell: Tell) -> Mapping[str, Any]:
        """Maintain them; repeating it does nothing more."""
        report = workspace.maintain(
            *options.datasets,
            older_than=options.older_than,
            progress=lambda what, done: tell.progress(what, done, unit="things"),
        )
        if report.failures:
            # Where it was told to end, that is what the datasets failed by.
            stopping.check()
        for failure in report.failures:
            tell.line(f"{failure.dataset}: not maintained to the end: {failure.error}")
        return report.to_json()
