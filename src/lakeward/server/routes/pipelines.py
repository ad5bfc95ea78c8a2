"""Pipelines: planned and applied from files that a request brings, shown, built; and queries run into datasets."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import Body, Path, Response
from fastapi.responses import JSONResponse

from lakeward.errors import ConflictError
from lakeward.pipelines.one_off import RunRequest
from lakeward.pipelines.plan import Plan
from lakeward.pipelines.project import Project
from lakeward.server.documents.document import DryRun
from lakeward.server.documents.pipelines import (
    BuildExplained,
    BuildWanted,
    BuildWindows,
    Built,
    PipelineList,
    PipelinePlan,
    PipelineShown,
    ProjectFiles,
    ProjectToApply,
    Run,
    RunWanted,
)
from lakeward.server.pipeline_documents import plan_print, shown, summary
from lakeward.server.projects import unpacked
from lakeward.server.queueing import ACCEPTED, queued, waited
from lakeward.server.rooms import Here, Rooms
from lakeward.server.routing import noun
from lakeward.server.rules import needs
from lakeward.wiring.actor import actor

router = noun("pipelines")

READ, APPLY = needs("pipeline.read"), needs("pipeline.apply")

PipelineName = Annotated[str, Path(description="of the pipeline", examples=["orders_daily"])]


@router.get("/pipelines", summary="List pipelines", dependencies=[READ])
def list_pipelines(rooms: Here) -> PipelineList:
    """Every applied pipeline, by name."""
    return PipelineList(pipelines=[summary(each) for each in rooms.workspace.pipelines.applied().values()])


@router.post("/pipelines/plan", summary="Plan a project", dependencies=[APPLY])
def plan_pipelines(rooms: Here, wanted: ProjectFiles) -> PipelinePlan:
    """Say what `apply` would change, and what builds do then. Changes nothing."""
    with unpacked(rooms, wanted.files) as root:
        project = rooms.workspace.pipelines.load(root)
        return _plan(rooms, project, rooms.workspace.pipelines.plan(project))


@router.post("/pipelines/apply", summary="Apply a project", dependencies=[APPLY])
def apply_pipelines(rooms: Here, wanted: ProjectToApply) -> PipelinePlan:
    """Store the project's pipelines, and remove those that it no longer has. Nothing is built, and datasets stay."""
    pipelines = rooms.workspace.pipelines
    with unpacked(rooms, wanted.files) as root:
        project = pipelines.load(root)

        def expected(plan: Plan) -> None:
            if wanted.expect_plan not in (None, plan_print(project, plan)):
                raise ConflictError(
                    "what would be applied is not what was planned: the project, or what is applied, has changed",
                    safe="nothing was changed",
                    next_step="plan it again",
                )

        return _plan(rooms, project, pipelines.apply(project, actor(), expected))


@router.post(
    "/pipelines/build",
    summary="Build pipelines",
    dependencies=[needs("pipeline.build")],
    response_model=Built | DryRun,
    responses=ACCEPTED,
)
def build_pipelines(
    rooms: Here, wanted: Annotated[BuildWanted, Body(default_factory=BuildWanted)]
) -> Built | DryRun | JSONResponse:
    """Run applied pipelines that have something to do, each after those that write what it reads."""
    pipelines, names = rooms.workspace.pipelines, wanted.pipelines or None
    if wanted.dry_run:
        pending = pipelines.pending(names, select=wanted.select, full=wanted.full)
        return DryRun(
            actions=[
                f"{output.strategy} {output.dataset} from {', '.join(pipeline.sources.values())} "
                f"(pipeline {pipeline.name}): {reason}"
                for pipeline, reason in pending
                for output in pipeline.spec.outputs
            ]
        )
    how = {"select": wanted.select, "full": wanted.full, "jobs": wanted.jobs, "fail_fast": wanted.fail_fast}
    if not wanted.wait:
        return queued(rooms, "build", {"pipelines": wanted.pipelines, **how})
    with waited(rooms):
        builds = pipelines.build_all(
            names, select=wanted.select, full=wanted.full, jobs=wanted.jobs, fail_fast=wanted.fail_fast
        )
    return Built.plain(builds=[each.to_json() for each in builds.checked()])


@router.post("/pipelines/explain", summary="Explain builds", dependencies=[READ])
def explain_builds(
    rooms: Here, wanted: Annotated[BuildExplained, Body(default_factory=BuildExplained)]
) -> BuildWindows:
    """Say which versions of which source a build of each output would read, and why. Changes nothing."""
    found = rooms.workspace.pipelines.explain(wanted.pipelines or None, select=wanted.select, full=wanted.full)
    return BuildWindows.plain(
        outputs=[
            {"pipeline": pipeline.name, "dataset": output.dataset, "strategy": output.strategy, **windows.to_json()}
            for pipeline, output, windows in found
        ]
    )


@router.post(
    "/pipelines/run", summary="Run a query into a dataset", dependencies=[needs("dataset.write", anywhere=True)]
)
def run_query(rooms: Here, wanted: RunWanted) -> Run | DryRun:
    """Run one query once into a dataset, checked and written as in a pipeline. Nothing of it is applied."""
    request = RunRequest(**wanted.model_dump(exclude={"dry_run"}))
    if wanted.dry_run:
        planned = rooms.workspace.pipelines.plan_run(request)
        return DryRun(actions=list(planned.actions), warnings=list(planned.warnings))
    with waited(rooms):
        return Run.of(rooms.workspace.pipelines.run(request))


@router.get("/pipelines/{pipeline:path}", summary="Show a pipeline", dependencies=[READ])
def show_pipeline(rooms: Here, pipeline: PipelineName) -> PipelineShown:
    """Its spec, its text, and its graph: nodes and what reads what."""
    return shown(rooms.workspace.pipelines.found(pipeline))


@router.delete(
    "/pipelines/{pipeline:path}",
    summary="Remove a pipeline",
    dependencies=[needs("pipeline.remove")],
    status_code=HTTPStatus.NO_CONTENT,
    response_class=Response,
)
def remove_pipeline(rooms: Here, pipeline: PipelineName) -> None:
    """Take an applied pipeline away. Its datasets stay."""
    rooms.workspace.pipelines.remove(pipeline, actor())


def _plan(rooms: Rooms, project: Project, plan: Plan) -> PipelinePlan:
    return PipelinePlan.of(plan.with_arms(rooms.workspace.tree.arm_of), plan=plan_print(project, plan))
