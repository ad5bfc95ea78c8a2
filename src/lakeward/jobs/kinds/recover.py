"""Recovery: finishes or removes what dead processes left, as `lakeward ledger recover` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakeward.jobs.kind import JobKind, JobOptions, Tell
from lakeward.wiring.workspace import Workspace


class RecoverOptions(JobOptions):
    """It has none."""


class Recover(JobKind[RecoverOptions]):
    """Finish or remove what processes that died left behind."""

    name = "recover"
    queue = "upkeep"
    action = "ledger.recover"
    options = RecoverOptions

    def lock(self, options: RecoverOptions) -> str | None:
        """Once at a time is enough."""
        return "recover"

    def run(self, workspace: Workspace, options: RecoverOptions, tell: Tell) -> Mapping[str, Any]:
        """Recover; repeating it does nothing more."""
        done = workspace.recover()
        for each in done:
            tell.line(f"{each.dataset} version {each.version}: {each.outcome}")
        return {"recovered": [dict(vars(each)) for each in done]}
