"""Makes one query of a pipeline output: each transform that it needs becomes a common table expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakeward.compute.engine import Engine
from lakeward.errors import LakewardError, SchemaError, SqlError
from lakeward.pipelines.graph import Graph
from lakeward.pipelines.spec import OutputSpec
from lakeward.types.logical import LogicalType
from lakeward.types.quoting import duckdb_name
from lakeward.types.schema import Schema


@dataclass(frozen=True)
class Compiled:
    """The query of one output, and the datasets that it reads by the names of their source nodes."""

    sql: str
    sources: Mapping[str, str]


def compile_output(graph: Graph, output: OutputSpec) -> Compiled:
    """Return the query of an output.

    The users' own texts stand in parentheses on lines of their own, so that a comment at the end of one can't swallow
    what follows. The engine's parser has read each of them as one complete query before (`describe_output`), so none
    can break out.
    """
    needed = graph.needed(output.from_)
    steps = [f"{duckdb_name(name)} AS (\n{graph.queries[name].text}\n)" for name in needed if name in graph.queries]
    start = "WITH " + ",\n".join(steps) + "\n" if steps else ""
    sources = graph.pipeline.sources
    return Compiled(
        f"{start}SELECT * FROM {duckdb_name(output.from_)}",
        {name: sources[name] for name in needed if name in sources},
    )


def describe_output(
    graph: Graph, output: OutputSpec, engine: Engine, schemas: Mapping[str, Schema]
) -> dict[str, LogicalType]:
    """Return the columns that an output's query gives, without reading data.

    Args:
        graph: the pipeline's.
        output: one of its outputs.
        engine: the one that will run it.
        schemas: of the datasets, by their full names.

    Raises:
        SqlError: a query is wrong, with file, line, node and a caret.
        SchemaError: the result's columns can't be those of a dataset.
    """
    pipeline = graph.pipeline
    compiled = compile_output(graph, output)
    inputs = {node: schemas[dataset] for node, dataset in compiled.sources.items()}
    needed = graph.needed(output.from_)
    steps = {name: graph.queries[name].text for name in needed if name in graph.queries}
    final = steps.pop(output.from_, compiled.sql)
    try:
        return engine.describe(final, inputs, steps)
    except (SqlError, SchemaError) as error:
        node = str(error.fields.get("step") or output.from_)
        if isinstance(error, SqlError):
            raise pipeline.sql_error(node, error) from None
        raise _in_node(error, graph, node) from None


def _in_node(error: LakewardError, graph: Graph, node: str) -> SchemaError:
    origin = graph.pipeline.origin
    located = SchemaError(
        f"{origin.at(('nodes', node), key=True)}: node {node}: {error.message}", next_step=error.next_step
    )
    place = origin.place(("nodes", node), key=True)
    located.fields.update(
        {
            **error.fields,
            "file": origin.file,
            "line": place.line if place else None,
            "node": node,
            "pipeline": graph.pipeline.name,
        }
    )
    return located
