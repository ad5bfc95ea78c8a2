"""Syncs: tables or files of a source into datasets, as `lakeward source sync` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from lakeward.access.principal import Place
from lakeward.jobs.kind import JobKind, JobOptions, Tell
from lakeward.wiring.sync_plan import SyncRequest
from lakeward.wiring.workspace import Workspace


class SyncOptions(JobOptions):
    """What to sync, and how."""

    source: str = Field(description="the source's name")
    tables: tuple[str, ...] = Field((), description="of the source; none: those that it was added with, or all")
    mode: str = Field("full", description="a sync mode: full, incremental …")
    into: str | None = Field(None, description="`catalog.schema` of the datasets; unset: main.SOURCE")
    key: tuple[str, ...] = Field((), description="the primary key of a dataset that is made; none: the table's")
    text: tuple[str, ...] = Field((), description="columns of a dataset that is made, read as the source prints them")
    arm: str | None = Field(None, description="the arm of datasets that are made; unset: as the flag says")
    allow_empty: bool = Field(False, description="let a table without rows empty its dataset")
    cursor: str | None = Field(None, description="a column whose values grow, by which new rows are found")
    lag: str | None = Field(None, description="how far a row's value may lie behind when it becomes visible")
    overwrite: bool = Field(False, description="let `full` take away what other writers have changed")
    run: str | None = Field(
        None, description="a name: each table for itself, and those that it has done are left alone"
    )


class Sync(JobKind[SyncOptions]):
    """Read a source's tables or files into datasets."""

    name = "sync"
    queue = "sync"
    action = "source.sync"
    options = SyncOptions

    def lock(self, options: SyncOptions) -> str | None:
        """One sync of a source runs at a time."""
        return f"source {options.source}"

    def place(self, workspace: Workspace, options: SyncOptions) -> Place:
        """Refuse a source that is not there, before anything is queued."""
        workspace.sources.find(options.source)
        return ()

    def run(self, workspace: Workspace, options: SyncOptions, tell: Tell) -> Mapping[str, Any]:
        """Sync them. Positions in the source are decided with the rows, so that a repeated job goes on from there."""
        synced = workspace.sources.sync(SyncRequest(**options.model_dump()), tell.progress)
        for each in synced:
            tell.line(
                f"{each.table} into {each.written.dataset}: version {each.written.version}, {each.rows_read} rows read"
            )
        return {"tables": [each.to_json() for each in synced]}
