"""Makes the plan of a project: compares it with what is applied, after checking all of it. It changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from lakeward.compute.engine import Engine
from lakeward.compute.pitfalls import null_traps
from lakeward.control.tree import DatasetRecord
from lakeward.errors import SpecError, UnknownObject
from lakeward.pipelines.compile import Compiler
from lakeward.pipelines.expectation_check import check_expectations
from lakeward.pipelines.expectation_spec import quarantine_name, quarantine_of
from lakeward.pipelines.fingerprint import differences, fingerprint, parts, same_rows
from lakeward.pipelines.forecast import FULL, NOTHING, Forecast, OutputForecast
from lakeward.pipelines.foreseen import ForeseenModels, fitted_signatures
from lakeward.pipelines.graph import Graph, order_pipelines, pipeline_edges, read_graph
from lakeward.pipelines.latest import fitted_models, latest_models, model_key
from lakeward.pipelines.linear import check_required
from lakeward.pipelines.models.registered import ModelCatalog, NoModels
from lakeward.pipelines.outputs import check_existing, output_schema
from lakeward.pipelines.plan import ADDED, CHANGED, INDIRECT, REMOVED, UNCHANGED, OutputPlan, PipelinePlan, Plan
from lakeward.pipelines.problems import Problems
from lakeward.pipelines.project import Project, check_queries
from lakeward.pipelines.quarantine import quarantine_schema
from lakeward.pipelines.registry import Applied
from lakeward.pipelines.spec import OutputSpec, Pipeline, PipelineSpec
from lakeward.types.schema import Schema, name_key


class Catalog(Protocol):
    """Where a plan looks datasets up. The control plane's tree is one."""

    def dataset(self, name: str) -> DatasetRecord:
        """Return the dataset, or raise UnknownObject with the nearest names."""
        ...

    def find(self, name: str) -> DatasetRecord | None:
        """Return the dataset or None."""
        ...

    def check_unused(self, name: str) -> None:
        """Raise UnknownObject if a dataset had that name, and was renamed or dropped."""
        ...


def make_plan(
    project: Project,
    applied: Mapping[str, Applied],
    catalog: Catalog,
    engine: Engine,
    models: ModelCatalog | None = None,
    forecast: Forecast | None = None,
    arm_of_new: str = "postgres",
) -> Plan:
    """Compare a project with what is applied, after checking all of it.

    Args:
        project: what is to be applied.
        applied: what is.
        catalog: where datasets are looked up.
        engine: describes queries.
        models: where models are looked up; None: there are none.
        forecast: foresees the next build; None: whatever is not unchanged is taken to be rebuilt.
        arm_of_new: the arm that serves a dataset that is made, if its output names none.

    Raises:
        SpecError, SqlError, SchemaError: with file and line: an unknown source, a wrong query, two writers of one
            dataset, a circle, an output whose dataset exists with other columns.
    """
    planner = _Planner(applied, catalog, engine, models, forecast, arm_of_new)
    planned = planner.plan(project.pipelines)
    return Plan((*planned, *_removed(project, applied, planner.writers)))


class _Planner:
    """Plans pipelines in their order, so that one may read what an earlier one is yet to create."""

    def __init__(
        self,
        applied: Mapping[str, Applied],
        catalog: Catalog,
        engine: Engine,
        models: ModelCatalog | None,
        forecast: Forecast | None,
        arm_of_new: str,
    ) -> None:
        self.applied = applied
        self.catalog = catalog
        self.engine = engine
        self.models = ForeseenModels(models or NoModels())
        self.forecast = forecast
        self.arm_of_new = arm_of_new
        self.to_be_written: dict[str, Schema] = {}
        self.foreseen: dict[str, OutputForecast] = {}
        self.writers: dict[str, str] = {}
        self.other_rows: set[str] = set()

    def plan(self, pipelines: Sequence[Pipeline]) -> list[PipelinePlan]:
        """Return the plan of each pipeline, or raise what is wrong with any of them.

        Whatever reads a dataset of a pipeline that is wrong can't be told the columns of; only its SQL is read then.
        """
        problems = Problems()
        planned: list[PipelinePlan] = []
        with problems.collect():
            edges = pipeline_edges(pipelines)
            ordered = order_pipelines(pipelines)
            self.writers = {key: each.name for each in ordered for key in _written(each)}
            wrong: set[str] = set()
            for pipeline in ordered:
                before = len(problems.found)
                with problems.collect():
                    graph = read_graph(pipeline)
                    if wrong.isdisjoint(edges[pipeline.name]):
                        planned.append(self.planned(graph))
                if len(problems.found) > before or not wrong.isdisjoint(edges[pipeline.name]):
                    wrong.add(pipeline.name)
        if problems.found:
            check_queries(pipelines, problems)
        problems.raise_all()
        return planned

    def planned(self, graph: Graph) -> PipelinePlan:
        """Return the plan of one pipeline, whose sources' columns are known."""
        pipeline = graph.pipeline
        change, reason = self.change(pipeline)
        check_required(graph)
        schemas, warnings = self.sources(graph)
        compiler = Compiler(graph, self.engine, schemas, self.models)
        outputs = self.outputs(graph, compiler, change)
        self.models.foresee(fitted_signatures(graph, compiler))
        if self.forecast is not None:
            outputs = self.foresee(graph, outputs, self.forecast)
        outputs += self.dropped(pipeline)
        warnings += [f"node {name!r} is used by no output" for name in graph.unused]
        warnings += self.warnings(graph)
        file, schedule = pipeline.origin.file, pipeline.spec.schedule
        return PipelinePlan(pipeline.name, change, reason, file, tuple(outputs), tuple(warnings), schedule)

    def outputs(self, graph: Graph, compiler: Compiler, change: str) -> list[OutputPlan]:
        """Return what becomes of each output, or raise what is wrong with any of them."""
        problems = Problems()
        outputs: list[OutputPlan] = []
        for index in range(len(graph.pipeline.spec.outputs)):
            with problems.collect():
                outputs.append(self.output(graph, index, compiler, change))
        problems.raise_all()
        return outputs

    def foresee(self, graph: Graph, outputs: Sequence[OutputPlan], forecast: Forecast) -> list[OutputPlan]:
        """Return the outputs with what the next build does to each."""
        foreseen = forecast.outputs(graph, fingerprint(graph.pipeline), self.foreseen)
        self.foreseen |= {name_key(plan.dataset): each for plan, each in zip(outputs, foreseen, strict=True)}
        self.foreseen |= {model_key(name): foreseen[0] for name in fitted_models(graph.pipeline).values()}
        return [
            plan
            if plan.action == "create"
            else replace(plan, action=each.what, reason=each.reason, destructive=each.destructive)
            for plan, each in zip(outputs, foreseen, strict=True)
        ]

    def dropped(self, pipeline: Pipeline) -> Iterator[OutputPlan]:
        """Yield what becomes of datasets that the applied pipeline writes and this one does not."""
        stored = self.applied.get(pipeline.name)
        before = stored.pipeline.spec.outputs if stored is not None and stored.pipeline is not None else []
        now = {name_key(output.dataset) for output in pipeline.spec.outputs}
        return _left([output for output in before if name_key(output.dataset) not in now], self.writers)

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
        """Return whether and why a pipeline changes, and take note if its rows may be others from now on."""
        change, reason, rows = self.own_change(pipeline)
        if change == UNCHANGED:
            change, reason = self.indirect_change(pipeline)
            rows = change == INDIRECT
        if rows:
            self.other_rows |= _written(pipeline)
        return change, reason

    def own_change(self, pipeline: Pipeline) -> tuple[str, str, bool]:
        """Return whether and why a pipeline is not as it was applied, and whether that changes what its rows are."""
        stored, now = self.applied.get(pipeline.name), fingerprint(pipeline)
        if stored is None:
            return ADDED, "new", True
        if stored.fingerprint == now:
            changed = [] if stored.pipeline is None else _labels_changed(stored.pipeline.spec, pipeline.spec)
            if changed:
                return CHANGED, f"{' and '.join(changed)} changed", False
            return UNCHANGED, "the same since it was applied", False
        rows = not same_rows(stored.fingerprint, now)
        if stored.pipeline is None:
            return CHANGED, "it was stored by another version of Lakeward", rows
        words = differences(parts(stored.pipeline), parts(pipeline))
        return CHANGED, ", ".join(words) or "its SQL reads differently in this version of Lakeward", rows

    def indirect_change(self, pipeline: Pipeline) -> tuple[str, str]:
        """Return whether a pipeline that stays the same reads what another one makes differently from now on."""
        before = {
            key: name
            for name, each in self.applied.items()
            if each.pipeline is not None
            for key in _written(each.pipeline)
        }
        for name in pipeline.sources.values():
            key = name_key(name)
            if key in self.other_rows:
                return INDIRECT, f"reads {name}, which pipeline {self.writers[key]} makes differently"
            if key in before and key not in self.writers:
                return INDIRECT, f"reads {name}, which pipeline {before[key]} does not write any more"
        for model in latest_models(pipeline):
            if model_key(model) in self.other_rows:
                return INDIRECT, f"uses model {model}, which pipeline {self.writers[model_key(model)]} fits differently"
        return UNCHANGED, "the same since it was applied"

    def sources(self, graph: Graph) -> tuple[dict[str, Schema], list[str]]:
        """Return the schemas of the datasets that a pipeline reads, and warnings about them."""
        schemas, warnings = {}, []
        problems = Problems()
        for node, name in graph.pipeline.sources.items():
            written = self.to_be_written.get(name_key(name))
            record = self.catalog.find(name)
            if record is None and written is None:
                problems.add(self.unknown_source(graph, name, ("nodes", node, "source")))
            if record is not None:
                schemas[name] = record.schema
                if not record.head_version and written is None:
                    warnings.append(f"source {name} has no rows yet: `lakeward dataset import {name} FILE`")
            elif written is not None:
                schemas[name] = written
        problems.raise_all()
        return schemas, warnings

    def unknown_source(self, graph: Graph, name: str, path: tuple[str, ...]) -> SpecError:
        """Return the error for a source that is not there, with the nearest names that are."""
        try:
            self.catalog.dataset(name)
        except UnknownObject as error:
            hint = error.next_step or f"make it, as in `lakeward dataset import {name} FILE`, or name another"
            return graph.pipeline.origin.error(error.message, path, next_step=hint)
        raise AssertionError(f"{name} is there, and was not found a moment ago")

    def check_unused(self, graph: Graph, name: str, index: int) -> None:
        """Refuse to make a dataset anew that was renamed or dropped: whoever wrote the file may not know that."""
        try:
            self.catalog.check_unused(name)
        except UnknownObject as error:
            path = ("outputs", index, "dataset")
            hint = error.next_step or "name another dataset"
            raise graph.pipeline.origin.error(error.message, path, next_step=hint) from None

    def output(self, graph: Graph, index: int, compiler: Compiler, change: str) -> OutputPlan:
        output = graph.pipeline.spec.outputs[index]
        needed = output_schema(graph, index, compiler)
        self.to_be_written[name_key(output.dataset)] = needed
        record = self.catalog.find(output.dataset)
        if record is None:
            self.check_unused(graph, output.dataset, index)
            action, reason, arm = "create", "the dataset does not exist", output.arm or self.arm_of_new
        else:
            check_existing(graph, index, needed, record.schema)
            arm = record.arm
            action, reason = (NOTHING, "unchanged") if change == UNCHANGED else (FULL, f"the pipeline is {change}")
        columns = {column.name: str(column.type) for column in needed.columns}
        return OutputPlan(output.dataset, action, reason, output.strategy, arm, columns)


def _labels_changed(before: PipelineSpec, now: PipelineSpec) -> list[str]:
    """Return which keys differ of those that are about a pipeline, and not about what it makes."""
    return [key for key in ("tags", "schedule") if getattr(before, key) != getattr(now, key)]


def _written(pipeline: Pipeline) -> set[str]:
    """Return the keys of what a pipeline writes: its datasets, those for bad rows included, and models that it fits."""
    outputs = pipeline.spec.outputs
    bad = (quarantine_of(output.dataset, output.expectations, pipeline.origin) for output in outputs)
    datasets = {name_key(name) for name in (*(output.dataset for output in outputs), *bad) if name is not None}
    return datasets | {model_key(name) for name in fitted_models(pipeline).values()}


def _removed(project: Project, applied: Mapping[str, Applied], writers: Mapping[str, str]) -> Iterator[PipelinePlan]:
    for name, stored in applied.items():
        if project.pipeline(name) is None:
            outputs = stored.pipeline.spec.outputs if stored.pipeline else []
            yield PipelinePlan(name, REMOVED, "no file of the project has it", None, tuple(_left(outputs, writers)))


def _left(outputs: Sequence[OutputSpec], writers: Mapping[str, str]) -> Iterator[OutputPlan]:
    """Yield what becomes of datasets that a pipeline does not write any more."""
    for output in outputs:
        writer = writers.get(name_key(output.dataset))
        reason = "the dataset stays as it is" if writer is None else f"pipeline {writer} writes it now"
        lost = "no pipeline keeps it up to date any more" if writer is None else None
        yield OutputPlan(output.dataset, "leave", reason, output.strategy, output.arm or "", {}, lost)
