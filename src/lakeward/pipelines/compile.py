"""Makes one query of a pipeline output: each node that it needs becomes a common table expression.

A node that is no SQL, such as a model, is a stage. It ends queries and begins another one: each of its inputs is a
query of its own, and its rows are an input of the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakeward.compute.engine import Engine
from lakeward.errors import LakewardError, SchemaError, SqlError
from lakeward.pipelines.graph import Graph
from lakeward.pipelines.models.registered import ModelCatalog, NoModels
from lakeward.pipelines.node_spec import stage_classes
from lakeward.pipelines.nodes import JoinNode, SplitNode, StageNode
from lakeward.pipelines.spec import OutputSpec
from lakeward.pipelines.spec_checks import nearest
from lakeward.pipelines.stage import Site, Stage
from lakeward.types.logical import LogicalType
from lakeward.types.quoting import duckdb_name
from lakeward.types.schema import Schema


@dataclass(frozen=True)
class Compiled:
    """The query of one name, an output's or one that a stage reads.

    Args:
        name: whose rows it gives.
        steps: the beginning of its text: the queries that it consists of.
        sources: the datasets that it is made from by the names of their source nodes, also those that stages on the way
            read.
        reads: the sources that the query itself reads.
        stages: those that the query itself reads, by the names of their nodes.
    """

    name: str
    steps: str
    sources: Mapping[str, str]
    reads: tuple[str, ...] = ()
    stages: Mapping[str, CompiledStage] = field(default_factory=dict)

    @property
    def sql(self) -> str:
        """The query of all columns."""
        return f"{self.steps}SELECT * FROM {duckdb_name(self.name)}"

    def selecting(self, columns: Sequence[str]) -> str:
        """Return the query of some columns."""
        return f"{self.steps}SELECT {', '.join(map(duckdb_name, columns))} FROM {duckdb_name(self.name)}"


@dataclass(frozen=True)
class CompiledStage:
    """A stage between queries.

    Args:
        stage: the node, bound.
        inputs: the query of each input, by the input's own name.
        schema: what it gives.
    """

    stage: Stage
    inputs: Mapping[str, Compiled]
    schema: Schema

    @property
    def sources(self) -> frozenset[str]:
        """The names of all source nodes that its rows are made from."""
        return frozenset(name for each in self.inputs.values() for name in each.sources)


class Compiler:
    """Compiles the outputs of one graph. A join's columns are those of its inputs, which the engine is asked for.

    Args:
        graph: the pipeline's.
        engine: the one that will run it; describes queries, and reads no data.
        schemas: of the datasets that it reads, by full name.
        models: where its models are looked up; None: there are none.
    """

    def __init__(
        self, graph: Graph, engine: Engine, schemas: Mapping[str, Schema], models: ModelCatalog | None = None
    ) -> None:
        self._graph = graph
        self._engine = engine
        self._schemas = schemas
        self._models = models or NoModels()
        self._texts: dict[str, str] = {}
        self._stages: dict[str, CompiledStage] = {}

    def compile(self, output: OutputSpec) -> Compiled:
        """Return the query of an output.

        The users' own texts stand in parentheses on lines of their own, so that a comment at the end of one can't
        swallow what follows. The engine's parser has read each of them as one complete query before (`describe`), so
        none can break out.

        Raises:
            SqlError, SchemaError, SpecError: see `describe`.
        """
        return self._compiled(output.from_)

    def _compiled(self, name: str) -> Compiled:
        steps = [f"{duckdb_name(step)} AS (\n{text}\n)" for step, text in self._steps(name).items()]
        start = "WITH " + ",\n".join(steps) + "\n" if steps else ""
        datasets = self._graph.pipeline.sources
        sources = {each: datasets[each] for each in self._graph.needed(name) if each in datasets}
        below = self._below(name)
        stages = {each: self._stage(each) for each in below if self._is_stage(each)}
        return Compiled(name, start, sources, tuple(each for each in below if each in datasets), stages)

    def describe(self, output: OutputSpec) -> dict[str, LogicalType]:
        """Return the columns that an output's query gives, without reading data.

        Raises:
            SqlError: a query is wrong, with file, line, node and a caret.
            SchemaError: the result's columns can't be those of a dataset.
            SpecError: a model is not there, or takes or gives something else, with file and line.
        """
        return self._columns(output.from_)

    def _columns(self, name: str) -> dict[str, LogicalType]:
        if self._is_stage(name):
            return dict(self._stage(name).stage.columns)
        sources = self._graph.pipeline.sources
        below = self._below(name)
        inputs = {each: self._schemas[sources[each]] for each in below if each in sources}
        inputs |= {each: self._stage(each).schema for each in below if self._is_stage(each)}
        steps = self._steps(name)
        final = steps.pop(name, f"SELECT * FROM {duckdb_name(name)}")
        try:
            return self._engine.describe(final, inputs, steps)
        except (SqlError, SchemaError) as error:
            raise self._located(error, str(error.fields.get("step") or name)) from None

    def _steps(self, name: str) -> dict[str, str]:
        """Return the texts of the names that `name` consists of, in order; a source or a stage has none."""
        inputs = self._graph.pipeline.sources
        return {each: self._text(each) for each in self._below(name) if each not in inputs and not self._is_stage(each)}

    def _is_stage(self, name: str) -> bool:
        return isinstance(self._graph.node(name), StageNode)

    def _below(self, name: str) -> tuple[str, ...]:
        """Return the names that the query of `name` consists of, in order, down to sources and stages."""
        wanted = {name}
        for each in reversed(self._graph.order):
            if each in wanted and not self._is_stage(each):
                wanted.update(self._graph.reads[each])
        return tuple(each for each in self._graph.order if each in wanted)

    def stage(self, name: str) -> Stage:
        """Return the stage of a node that is no SQL.

        Raises:
            SqlError, SchemaError, SpecError: see `describe`.
        """
        return self._stage(name).stage

    def _stage(self, name: str) -> CompiledStage:
        """Return a stage; one for all that read it, so that they can share its rows."""
        if name not in self._stages:
            node, origin = self._graph.node(name), self._graph.pipeline.origin
            assert isinstance(node, StageNode)
            columns = {each: self._columns(read) for each, read in node.inputs.items()}
            site = Site(name, columns, self._models, origin, self._graph.pipeline.spec.code)
            stage = stage_classes()[node.kind].bind(node, site)
            try:
                schema = Schema.declare(stage.columns)
            except SchemaError as error:
                hint = error.next_step or "rename the columns of its inputs in a query before"
                raise origin.error(f"node {name}: {error.message}", ("nodes", name), next_step=hint) from None
            inputs = {each: self._compiled(read) for each, read in node.inputs.items()}
            self._stages[name] = CompiledStage(stage, inputs, schema)
        return self._stages[name]

    def _text(self, name: str) -> str:
        if name not in self._texts:
            node = self._graph.node(name)
            if isinstance(node, JoinNode):
                inputs = self._graph.reads[name]
                self._check_key(name, node, columns := {each: list(self._columns(each)) for each in inputs})
                self._texts[name] = node.sql(columns)
            elif isinstance(node, SplitNode):
                self._texts |= node.sql()
            else:
                self._texts[name] = self._graph.queries[name].text
        return self._texts[name]

    def _check_key(self, name: str, node: JoinNode, columns: Mapping[str, list[str]]) -> None:
        origin = self._graph.pipeline.origin
        for index, key in enumerate(node.join.on):
            for side in (node.join.left, node.join.right):
                if key not in columns[side]:
                    raise origin.error(
                        f"node {name!r} joins on {key!r}, which {side!r} does not have; there are "
                        f"{', '.join(columns[side])}",
                        ("nodes", name, "join", "on", index),
                        next_step=nearest(key, columns[side]) or "give the column that name in a query before",
                    )

    def _located(self, error: LakewardError, name: str) -> LakewardError:
        graph = self._graph
        node = graph.makers[name]
        if isinstance(error, SqlError):
            written = graph.pipeline.spec.nodes[node]
            before = self._texts[name].index(written.split.where) if isinstance(written, SplitNode) else 0
            return graph.pipeline.sql_error(node, error, before)
        origin = graph.pipeline.origin
        located = SchemaError(
            f"{origin.at(('nodes', node), key=True)}: node {node}: {error.message}", next_step=error.next_step
        )
        place = origin.place(("nodes", node), key=True)
        facts = {"file": origin.file, "line": place.line if place else None, "node": node}
        located.fields.update({**error.fields, **facts, "pipeline": graph.pipeline.name})
        return located
