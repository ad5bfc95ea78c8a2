"""Pipelines: as they are applied, what would change, and builds."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from lakeward.server.documents.document import Document, Explained, Request, Waiting, example

FILES: dict[str, Any] = {
    "pipelines/orders_daily.sql": "-- pipeline: orders_daily\n-- sources: {orders: main.raw.orders}\n"
    "-- output: main.analytics.orders\n-- strategy: replace\nselect * from orders where amount > 0\n"
}
APPLIED: dict[str, Any] = {
    "name": "orders_daily",
    "fingerprint": "5f0c",
    "applied_at": "2026-12-01T06:00:00+00:00",
    "applied_by": "ana",
    "readable": True,
    "sources": ["main.raw.orders"],
    "outputs": ["main.analytics.orders"],
    "tags": [],
    "schedule": "0 6 * * *",
}
PLAN: dict[str, Any] = {
    "plan": "b64a…",
    "pending": True,
    "destructive": [],
    "pipelines": [
        {
            "name": "orders_daily",
            "change": "added",
            "reason": "new",
            "file": "pipelines/orders_daily.sql",
            "outputs": [],
            "warnings": [],
            "schedule": None,
        }
    ],
}
BUILD: dict[str, Any] = {"pipeline": "orders_daily", "up_to_date": False, "transactions": [], "warnings": []}


class PipelineSummary(Document):
    """A pipeline as it is applied."""

    model_config = example(**APPLIED)

    name: str
    fingerprint: str = Field(description="changes where its meaning does")
    applied_at: datetime
    applied_by: str
    readable: bool = Field(description="false: another version of Lakeward stored it, and it can't be built")
    sources: list[str] = Field(description="the datasets that it reads")
    outputs: list[str] = Field(description="the datasets that it writes")
    tags: list[str]
    schedule: str | None = Field(description="when it is to be built, as cron has it")


class PipelineList(Document):
    """Every applied pipeline, by name."""

    model_config = example(pipelines=[APPLIED])

    pipelines: list[PipelineSummary]


class GraphNode(Document):
    """A node of a pipeline, or a dataset that it writes."""

    model_config = example(name="clean", kind="transform", dataset=None, sql="select * from orders where amount > 0")

    name: str
    kind: str = Field(description="source, transform, join, split, model, …, or output")
    dataset: str | None = Field(None, description="of a source, and of an output")
    sql: str | None = Field(None, description="of a transform, and the predicate of a split")


class GraphEdge(Document):
    """What reads what."""

    model_config = example(**{"from": "orders", "to": "clean"})

    from_: str = Field(alias="from")
    to: str


class PipelineGraph(Document):
    """Nodes in an order in which each comes after what it reads; outputs last."""

    model_config = example(nodes=[], edges=[])

    nodes: list[GraphNode]
    edges: list[GraphEdge]


class PipelineShown(PipelineSummary):
    """A pipeline with all that it is made of. What can't be read has neither spec nor graph."""

    model_config = example(**APPLIED, spec={"pipeline": "orders_daily"}, text="pipeline: orders_daily\n", graph=None)

    spec: dict[str, Any] | None = Field(description="as it is stored; of code, the names of its files alone")
    text: str | None = Field(description="the same as YAML")
    graph: PipelineGraph | None


class ProjectFiles(Request):
    """A project, by its files."""

    model_config = example(files=FILES)

    files: dict[str, str] = Field(description="texts by their paths in the project's folder")


class ProjectToApply(ProjectFiles):
    """A project to apply. Pipelines that it has not are removed; their datasets stay."""

    model_config = example(files=FILES, expect_plan="b64a…")

    expect_plan: str | None = Field(None, description="`plan` of a plan: anything else is refused (409)")


class PipelinePlan(Document):
    """What `apply` would change, and what builds do then: as `lakeward plan` tells it."""

    model_config = example(**PLAN)

    plan: str = Field(description="stands for these changes: give it to `apply` as `expect_plan`")
    pending: bool = Field(description="whether anything would change")
    destructive: list[str] = Field(description="datasets of which something is lost")
    pipelines: list[dict[str, Any]]


class BuildWanted(Explained, Waiting):
    """Which pipelines are built, and how."""

    model_config = example(pipelines=["orders_daily"], wait=True)

    pipelines: list[str] = Field([], description="none: all, unless some are selected")
    select: list[str] = Field([], description="more of them: +name, name+, tag:x")
    full: bool = Field(False, description="also those that are up to date")
    jobs: int | None = Field(None, ge=1, le=16, description="how many at a time; null: the setting build.jobs")
    fail_fast: bool = Field(False, description="start no other one when one has failed")


class BuildExplained(Request):
    """Of which pipelines it is told what a build would read."""

    model_config = example(pipelines=["orders_daily"])

    pipelines: list[str] = Field([], description="none: all, unless some are selected")
    select: list[str] = Field([], description="more of them: +name, name+, tag:x")
    full: bool = Field(False, description="as if all were computed anew")


class Built(Document):
    """What was built, each after those that it reads."""

    model_config = example(builds=[BUILD])

    builds: list[dict[str, Any]]


class BuildWindows(Document):
    """Which versions of which source a build of each output would read, and why."""

    model_config = example(
        outputs=[{"pipeline": "orders_daily", "dataset": "main.analytics.orders", "strategy": "replace"}]
    )

    outputs: list[dict[str, Any]]


class RunWanted(Explained):
    """One query, run once into a dataset."""

    model_config = example(
        sql="select * from main.raw.orders where amount > 10", into="main.tmp.large", primary_key=["id"], dry_run=True
    )

    sql: str = Field(description="one SELECT over `sources`, and over datasets by their full names")
    into: str = Field(description="the dataset that gets its rows; made if it is missing")
    sources: dict[str, str] = Field({}, description="datasets by the names that the query reads them by")
    strategy: str | None = Field(None, description="as in a pipeline; needed where the dataset has rows")
    primary_key: list[str] = Field([], description="of a dataset that is made")
    arm: str | None = Field(None, description="where a dataset is made")
    allow_empty: bool = Field(False, description="let replace or mirror leave it without rows")
    where: str | None = Field(None, description="a split: only rows for which it is true go into `into`")
    rest: str | None = Field(None, description="the dataset that gets all others")


class Run(Document):
    """What a run wrote."""

    model_config = example(**{**BUILD, "pipeline": None})

    transactions: list[dict[str, Any]]
    warnings: list[str]
