"""Builds: applied pipelines, as `lakeward build` runs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from lakeward.access.principal import Place
from lakeward.errors import UnknownObject
from lakeward.jobs.kind import JobKind, JobOptions, Tell
from lakeward.pipelines.progress import BuildProgress
from lakeward.wiring.workspace import Workspace


class BuildOptions(JobOptions):
    """Which pipelines, and how."""

    pipelines: tuple[str, ...] = Field(
        (), description="names of applied pipelines; none: all, unless some are selected"
    )
    select: tuple[str, ...] = Field((), description="more of them: `+name`, `name+`, `tag:x`")
    full: bool = Field(False, description="run also those that are up to date")
    jobs: int | None = Field(None, ge=1, le=16, description="how many at a time; unset: the setting build.jobs")
    fail_fast: bool = Field(False, description="start no other one when one has failed")


class Build(JobKind[BuildOptions]):
    """Build applied pipelines that are not up to date."""

    name = "build"
    queue = "build"
    action = "pipeline.build"
    options = BuildOptions

    def lock(self, options: BuildOptions) -> str | None:
        """One build of the same pipelines runs at a time; others that share a dataset wait for it in the ledger."""
        return "build " + " ".join(sorted((*options.pipelines, *options.select)))

    def place(self, workspace: Workspace, options: BuildOptions) -> Place:
        """Refuse a pipeline that is not applied, before anything is queued."""
        if options.pipelines:
            applied = workspace.pipelines.applied()
            for name in options.pipelines:
                if name not in applied:
                    raise UnknownObject.among("pipeline", name, applied, pipeline=name)
        return ()

    def run(self, workspace: Workspace, options: BuildOptions, tell: Tell) -> Mapping[str, Any]:
        """Build them; what was built before the job was cut short is left alone."""

        def told(progress: BuildProgress) -> None:
            if not progress.ended:
                tell.progress(f"{progress.pipeline}: {progress.dataset}", progress.rows)

        builds = workspace.pipelines.build_all(
            options.pipelines or None,
            select=options.select,
            full=options.full,
            jobs=options.jobs,
            fail_fast=options.fail_fast,
            progress=told,
            tries=tell.tries,
        )
        for name, built in builds.results.items():
            tell.line(f"pipeline {name}: {'up to date' if built.up_to_date else _said(built.to_json())}")
            for warning in built.warnings:
                tell.line(f"pipeline {name}: warning: {warning}")
        return {"builds": [each.to_json() for each in builds.checked()]}


def _said(document: Mapping[str, Any]) -> str:
    return ", ".join(f"{each['dataset']} version {each['version']}" for each in document["transactions"]) or "built"
