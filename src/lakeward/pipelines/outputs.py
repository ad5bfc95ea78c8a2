"""Fits an output's query to its dataset: the columns it gives, and what to say when the dataset has others."""

from __future__ import annotations

from lakeward.errors import SchemaError
from lakeward.pipelines.compile import Compiler
from lakeward.pipelines.graph import Graph
from lakeward.pipelines.origin import Path
from lakeward.types.schema import Schema


def output_schema(graph: Graph, index: int, compiler: Compiler) -> Schema:
    """Return the schema that an output's dataset needs.

    Args:
        graph: the pipeline's.
        index: which of its outputs.
        compiler: of this graph.

    Raises:
        SqlError, SchemaError: the query is wrong, or gives columns that no dataset can have; with file and line.
    """
    output = graph.pipeline.spec.outputs[index]
    columns = compiler.describe(output)
    path: Path = ("outputs", index)
    for column in output.primary_key:
        if column not in columns:
            raise located(
                SchemaError(
                    f"primary key column {column!r} is not in the result; there are {', '.join(columns)}",
                    next_step="name a column of the result, or select the column",
                ),
                graph,
                (*path, "primary_key"),
            )
    try:
        return Schema.declare(columns, output.primary_key, output.dataset)
    except SchemaError as error:
        raise located(error, graph, path) from None


def check_existing(graph: Graph, index: int, needed: Schema, existing: Schema) -> None:
    """Refuse an output whose dataset exists with other columns, types or key. The order of columns does not matter.

    Raises:
        SchemaError: with every difference, file and line.
    """
    output = graph.pipeline.spec.outputs[index]
    differences = _differences(needed, existing)
    if differences:
        error = SchemaError(
            f"dataset {output.dataset} exists with other columns than the query gives: {'; '.join(differences)}",
            safe="the dataset is unchanged",
            next_step="change the query (cast or name the columns as the dataset has them), or name another dataset",
            dataset=output.dataset,
            differences=differences,
        )
        raise located(error, graph, ("outputs", index, "dataset"))
    if needed.primary_key != existing.primary_key:
        has, declared = ", ".join(existing.primary_key), ", ".join(needed.primary_key)
        error = SchemaError(
            f"dataset {output.dataset} has the primary key [{has}], and the output declares [{declared}]",
            safe="the dataset is unchanged",
            next_step=f"write `primary_key: [{has}]` in the output, or name another dataset",
            dataset=output.dataset,
        )
        raise located(error, graph, ("outputs", index, "primary_key"))


def located(error: SchemaError, graph: Graph, path: Path) -> SchemaError:
    """Return the error with the file and line of a place in the spec in front."""
    origin = graph.pipeline.origin
    place = origin.place(path)
    result = SchemaError(f"{origin.at(path)}: {error.message}", safe=error.safe, next_step=error.next_step)
    result.fields.update(
        error.fields, file=origin.file, line=place.line if place else None, pipeline=graph.pipeline.name
    )
    return result


def _differences(needed: Schema, existing: Schema) -> list[str]:
    has = {column.name: column.type for column in existing.columns}
    gives = {column.name: column.type for column in needed.columns}
    words = [f"column {name!r} is new" for name in gives if name not in has]
    words += [f"column {name!r} is missing" for name in has if name not in gives]
    words += [
        f"column {name!r} is {has[name]} in the dataset and {gives[name]} in the query"
        for name in gives
        if name in has and has[name] != gives[name]
    ]
    return words
