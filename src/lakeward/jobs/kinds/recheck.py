"""Rechecks of parity: the full comparison of mirrored datasets, as `lakeward flip recheck` makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from lakeward import stopping
from lakeward.access.principal import Place
from lakeward.errors import ParityMismatch, StorageError
from lakeward.jobs.kind import JobKind, JobOptions, Tell
from lakeward.wiring.workspace import Workspace


class RecheckOptions(JobOptions):
    """Of which datasets."""

    datasets: tuple[str, ...] = Field((), description="full names; none: all that are mirrored")
    older_than: float = Field(
        7 * 86400.0, ge=0, allow_inf_nan=False, description="seconds; those compared more recently are left out"
    )


class Recheck(JobKind[RecheckOptions]):
    """Compare all rows of both arms of the mirrored datasets anew."""

    name = "recheck"
    queue = "upkeep"
    action = "flip.run"
    options = RecheckOptions

    def lock(self, options: RecheckOptions) -> str | None:
        """Once at a time is enough."""
        return "recheck"

    def place(self, workspace: Workspace, options: RecheckOptions) -> Place:
        """Return the dataset's, where it is one."""
        records = [workspace.tree.dataset(name) for name in options.datasets]
        return records[0].slugs if len(records) == 1 else ()

    def run(self, workspace: Workspace, options: RecheckOptions, tell: Tell) -> Mapping[str, Any]:
        """Compare them; what is found is kept, and a difference in one keeps no other from being looked at."""

        def told(name: str) -> None:
            stopping.check()
            tell.progress(name, 0)

        found = workspace.comparisons.recheck(*options.datasets, older_than=options.older_than, tell=told)
        stopping.check()
        for each in found:
            tell.line(f"{each.dataset}: {each.outcome}{f': {each.error}' if each.error else ''}")
        documents = [each.to_json() for each in found]
        wrong = [each for each in found if each.error is not None]
        if wrong:
            differs = [each.dataset for each in wrong if each.outcome == "differs"]
            kind = ParityMismatch if differs else StorageError
            raise kind(
                f"{len(wrong)} of {len(found)} datasets are not known to be equal on both arms: "
                + ", ".join(each.dataset for each in wrong),
                safe="nothing was changed; a difference blocks the switch",
                next_step=f"lakeward verify {wrong[0].dataset}",
                datasets=documents,
            )
        return {"datasets": documents}
