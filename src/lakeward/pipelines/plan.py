"""What `apply` would change: which pipelines are added, changed, removed or unchanged, and why. It changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lakeward.compute.engine import Engine
from lakeward.compute.pitfalls import null_traps
from lakeward.control.tree import DatasetRecord
from lakeward.errors import UnknownObject
from lakeward.pipelines.compile import Compiler
from lakeward.pipelines.expectation_check import check_expectations
from lakeward.pipelines.expectation_spec import quarantine_name
from lakeward.pipelines.fingerprint import differences, fingerprint, parts
from lakeward.pipelines.graph import Graph, order_pipelines, read_graph
from lakeward.pipelines.models.registered import ModelCatalog
from lakeward.pipelines.outputs import check_existing, output_schema
from lakeward.pipelines.project import Project
from lakeward.pipelines.quarantine import quarantine_schema
from lakeward.pipelines.registry import Applied
from lakeward.pipelines.spec import Pipeline
from lakeward.types.schema import Schema, name_key

ADDED, CHANGED, REMOVED, UNCHANGED = "added", "changed", "removed", "unchanged"
_SIGNS = {ADDED: "+", CHANGED: "~", REMOVED: "-", UNCHANGED: " "}
_DEFAULT_ARM = "postgres"


class Catalog(Protocol):
    """Where a plan looks datasets up. The control plane's tree is one."""

    def dataset(self, name: str) -> DatasetRecord:
        """Return the dataset, or raise UnknownObject with the nearest names."""
        ...

    def find(self, name: str) -> DatasetRecord | None:
        """Return the dataset or None."""
        ...


@dataclass(frozen=True)
class OutputPlan:
    """What becomes of one output: `create` its dataset, `rebuild` it, `keep` it, or `leave` it without a pipeline."""

    dataset: str
    action: str
    reason: str
    strategy: str
    arm: str
    columns: Mapping[str, str]

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {**vars(self), "columns": dict(self.columns)}


@dataclass(frozen=True)
class PipelinePlan:
    """What becomes of one pipeline."""

    name: str
    change: str
    reason: str
    file: str | None
    outputs: tuple[OutputPlan, ...]
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {
            **vars(self),
            "outputs": [output.to_json() for output in self.outputs],
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True)
class Plan:
    """The plan of a project: its pipelines in the order in which they would be built, then the removed ones."""

    pipelines: tuple[PipelinePlan, ...]

    @property
    def pending(self) -> bool:
        """Whether `apply` would change anything."""
        return any(pipeline.change != UNCHANGED for pipeline in self.pipelines)

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {
            "pending": self.pending,
            "pipelines": [pipeline.to_json() for pipeline in self.pipelines],
            "next_steps": ["lakeward apply"] if self.pending else [],
        }

    def lines(self) -> Iterator[str]:
        """Yield the tree as text: `+` added, `~` changed, `-` removed."""
        for pipeline in self.pipelines:
            yield f"{_SIGNS[pipeline.change]} {pipeline.name}: {pipeline.change} ({pipeline.reason})"
            for output in pipeline.outputs:
                yield f"    {output.dataset}: {output.action}, {output.strategy} on {output.arm} ({output.reason})"
            for warning in pipeline.warnings:
                yield f"    warning: {warning}"


def make_plan(
    project: Project,
    applied: Mapping[str, Applied],
    catalog: Catalog,
    engine: Engine,
    models: ModelCatalog | None = None,
) -> Plan:
    """Compare a project with what is applied, after checking all of it. Without `models` there are none.

    Raises:
        SpecError, SqlError, SchemaError: with file and line: an unknown source, a wrong query, two writers of one
            dataset, a circle, an output whose dataset exists with other columns.
    """
    return Plan((*_Planner(applied, catalog, engine, models).plan(project.pipelines), *_removed(project, applied)))


class _Planner:
    """Plans pipelines in their order, so that one may read what an earlier one is yet to create."""

    def __init__(
        self, applied: Mapping[str, Applied], catalog: Catalog, engine: Engine, models: ModelCatalog | None
    ) -> None:
        self.applied = applied
        self.catalog = catalog
        self.engine = engine
        self.models = models
        self.to_be_written: dict[str, Schema] = {}

    def plan(self, pipelines: Sequence[Pipeline]) -> Iterator[PipelinePlan]:
        for pipeline in order_pipelines(pipelines):
            graph = read_graph(pipeline)
            change, reason = self.change(pipeline)
            schemas, warnings = self.sources(graph)
            compiler = Compiler(graph, self.engine, schemas, self.models)
            outputs = [self.output(graph, index, compiler, change) for index in range(len(pipeline.spec.outputs))]
            warnings += [f"node {name!r} is used by no output" for name in graph.unused]
            warnings += self.warnings(graph)
            yield PipelinePlan(pipeline.name, change, reason, pipeline.origin.file, tuple(outputs), tuple(warnings))

    def warnings(self, graph: Graph) -> list[str]:
        """Return what is likely to be meant otherwise, after checking what is expected of the outputs."""
        found = [f"node {name!r}: {trap}" for name, query in graph.queries.items() for trap in null_traps(query.text)]
        schemas = [self.to_be_written[name_key(output.dataset)] for output in graph.pipeline.spec.outputs]
        for expected in check_expectations(graph, schemas, self.engine, self.schema):
            found += expected.warnings
            if expected.parted:
                name = quarantine_name(expected.dataset)
                self.to_be_written[name_key(name)] = quarantine_schema(expected.scope.schema, name)
        return found

    def schema(self, name: str) -> Schema:
        """Return the columns that a dataset has, or is to have."""
        written = self.to_be_written.get(name_key(name))
        return written if written is not None else self.catalog.dataset(name).schema

    def change(self, pipeline: Pipeline) -> tuple[str, str]:
        stored = self.applied.get(pipeline.name)
        if stored is None:
            return ADDED, "new"
        if stored.fingerprint == fingerprint(pipeline):
            return UNCHANGED, "the same since it was applied"
        if stored.pipeline is None:
            return CHANGED, "it was stored by another version of Lakeward"
        words = differences(parts(stored.pipeline), parts(pipeline))
        return CHANGED, ", ".join(words) or "its SQL reads differently in this version of Lakeward"

    def sources(self, graph: Graph) -> tuple[dict[str, Schema], list[str]]:
        """Return the schemas of the datasets that a pipeline reads, and warnings about them."""
        schemas, warnings = {}, []
        for node, name in graph.pipeline.sources.items():
            path = ("nodes", node, "source")
            written = self.to_be_written.get(name_key(name))
            record = self.catalog.find(name) if written else self.found(graph, name, path)
            if record is not None:
                schemas[name] = record.schema
                if not record.head_version and written is None:
                    warnings.append(f"source {name} has no rows yet: `lakeward dataset import {name} FILE`")
            elif written is not None:
                schemas[name] = written
        return schemas, warnings

    def found(self, graph: Graph, name: str, path: tuple[str, ...]) -> DatasetRecord:
        try:
            return self.catalog.dataset(name)
        except UnknownObject as error:
            raise graph.pipeline.origin.error(error.message, path, next_step=error.next_step) from None

    def output(self, graph: Graph, index: int, compiler: Compiler, change: str) -> OutputPlan:
        output = graph.pipeline.spec.outputs[index]
        needed = output_schema(graph, index, compiler)
        self.to_be_written[name_key(output.dataset)] = needed
        record = self.catalog.find(output.dataset)
        if record is None:
            action, reason, arm = "create", "the dataset does not exist", output.arm or _DEFAULT_ARM
        else:
            check_existing(graph, index, needed, record.schema)
            arm = record.arm
            action, reason = ("keep", "unchanged") if change == UNCHANGED else ("rebuild", f"the pipeline is {change}")
        columns = {column.name: str(column.type) for column in needed.columns}
        return OutputPlan(output.dataset, action, reason, output.strategy, arm, columns)


def _removed(project: Project, applied: Mapping[str, Applied]) -> Iterator[PipelinePlan]:
    for name, stored in applied.items():
        if project.pipeline(name) is None:
            outputs = stored.pipeline.spec.outputs if stored.pipeline else []
            yield PipelinePlan(
                name,
                REMOVED,
                "no file of the project has it",
                None,
                tuple(
                    OutputPlan(
                        output.dataset, "leave", "the dataset stays as it is", output.strategy, output.arm or "", {}
                    )
                    for output in outputs
                ),
            )
