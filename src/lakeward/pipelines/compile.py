"""Makes one query of a pipeline output: each node that it needs becomes a common table expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakeward.compute.engine import Engine
from lakeward.errors import LakewardError, SchemaError, SqlError
from lakeward.pipelines.graph import Graph
from lakeward.pipelines.nodes import JoinNode, SplitNode
from lakeward.pipelines.spec import OutputSpec
from lakeward.types.logical import LogicalType
from lakeward.types.quoting import duckdb_name
from lakeward.types.schema import Schema


@dataclass(frozen=True)
class Compiled:
    """The query of one output, and the datasets that it reads by the names of their source nodes."""

    sql: str
    sources: Mapping[str, str]


class Compiler:
    """Compiles the outputs of one graph. A join's columns are those of its inputs, which the engine is asked for.

    Args:
        graph: the pipeline's.
        engine: the one that will run it; describes queries, and reads no data.
        schemas: of the datasets that it reads, by full name.
    """

    def __init__(self, graph: Graph, engine: Engine, schemas: Mapping[str, Schema]) -> None:
        self._graph = graph
        self._engine = engine
        self._schemas = schemas
        self._texts: dict[str, str] = {}

    def compile(self, output: OutputSpec) -> Compiled:
        """Return the query of an output.

        The users' own texts stand in parentheses on lines of their own, so that a comment at the end of one can't
        swallow what follows. The engine's parser has read each of them as one complete query before (`describe`), so
        none can break out.

        Raises:
            SqlError, SchemaError: see `describe`.
        """
        texts = self._steps(output.from_)
        steps = [f"{duckdb_name(name)} AS (\n{text}\n)" for name, text in texts.items()]
        start = "WITH " + ",\n".join(steps) + "\n" if steps else ""
        return Compiled(f"{start}SELECT * FROM {duckdb_name(output.from_)}", self._graph.sources(output))

    def describe(self, output: OutputSpec) -> dict[str, LogicalType]:
        """Return the columns that an output's query gives, without reading data.

        Raises:
            SqlError: a query is wrong, with file, line, node and a caret.
            SchemaError: the result's columns can't be those of a dataset.
        """
        return self._columns(output.from_)

    def _columns(self, name: str) -> dict[str, LogicalType]:
        sources = self._graph.pipeline.sources
        needed = self._graph.needed(name)
        inputs = {each: self._schemas[sources[each]] for each in needed if each in sources}
        steps = self._steps(name)
        final = steps.pop(name, f"SELECT * FROM {duckdb_name(name)}")
        try:
            return self._engine.describe(final, inputs, steps)
        except (SqlError, SchemaError) as error:
            raise self._located(error, str(error.fields.get("step") or name)) from None

    def _steps(self, name: str) -> dict[str, str]:
        """Return the texts of the names that `name` needs, in order; a source has none."""
        needed = self._graph.needed(name)
        return {each: self._text(each) for each in needed if each not in self._graph.pipeline.sources}

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
