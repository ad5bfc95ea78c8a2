"""Moves: Iceberg tables to the names of their datasets, one after the other, as `lakeward move apply` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from lakeward import stopping
from lakeward.access.principal import Place
from lakeward.errors import MoveRefused
from lakeward.jobs.kind import JobKind, JobOptions, Tell
from lakeward.migration.moves.sweep import FAILED
from lakeward.wiring.workspace import Workspace


class MoveOptions(JobOptions):
    """Which tables."""

    names: tuple[str, ...] = Field((), description="`catalog.schema.dataset` or `catalog.schema`; none: all")
    limit: int | None = Field(None, ge=1, description="take up so many at most; unset: all")
    undo: bool = Field(False, description="take moves back instead")


class Move(JobKind[MoveOptions]):
    """Move Iceberg tables to the names of their datasets, or back."""

    name = "move"
    queue = "flip"
    action = "move.run"
    options = MoveOptions

    def lock(self, options: MoveOptions) -> str | None:
        """One sweep at a time."""
        return "move"

    def place(self, workspace: Workspace, options: MoveOptions) -> Place:
        """Return the dataset's, where it is one by itself."""
        records = workspace.moves.choose(*options.names)
        return records[0].slugs if len(options.names) == 1 and len(records) == 1 else ()

    def run(self, workspace: Workspace, options: MoveOptions, tell: Tell) -> Mapping[str, Any]:
        """Move them; repeating it does what is left, and first finishes a move that was cut short."""
        moving = (
            workspace.moves.undo(*options.names)
            if options.undo
            else workspace.moves.apply(*options.names, limit=options.limit)
        )
        outcomes = []
        for number, each in enumerate(moving, start=1):
            outcomes.append(each.to_json())
            tell.progress("tables", number, unit="tables")
            stopping.check()
            if each.relocation is not None:
                tell.line(f"{each.dataset}: {each.outcome}{f': {each.reason}' if each.reason else ''}")
        failed = [each for each in outcomes if each["outcome"] == FAILED]
        if failed:
            raise MoveRefused(
                f"{len(failed)} of {len(outcomes)} tables could not be moved; the others are where they belong",
                safe="each table is where it was or where it belongs, and readable",
                next_step="lakeward move plan",
                outcomes=outcomes,
            )
        return {"outcomes": outcomes}
