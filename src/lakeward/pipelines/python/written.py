"""Reads a `python` node as it is written in a spec, or stored."""

from __future__ import annotations

from typing import Any

from lakeward.errors import SchemaError
from lakeward.pipelines.nodes import PythonCall, PythonNode
from lakeward.pipelines.origin import Origin, Path
from lakeward.pipelines.python.code import parse_call
from lakeward.pipelines.spec_checks import checked_model, known_keys, mapping
from lakeward.types.logical import parse_type
from lakeward.types.schema import Schema

_EXAMPLE = "write `call: lib/clean.py:features`: a file by its path in the project, and a function in it"
_COLUMNS = "write `columns: {id: long, score: double}`"


def python_node(body: dict[str, Any], path: Path, origin: Origin) -> PythonNode:
    """Return the node.

    Args:
        body: of the node, whose keys are known.
        path: its place in the spec.
        origin: where the spec was written.

    Raises:
        SpecError: with file and line.
    """
    path = (*path, "python")
    data = mapping(body["python"], path, origin, "`call`, `inputs` and `columns`")
    known_keys(data, list(PythonCall.model_fields), path, origin)
    called = checked_model(PythonCall, data, path, origin)
    assert isinstance(called, PythonCall)
    if parse_call(called.call) is None:
        raise origin.error(f"'call' is {called.call!r}, and names no function", (*path, "call"), next_step=_EXAMPLE)
    for name in called.inputs:
        if not name.isidentifier():
            raise origin.error(
                f"input {name!r} can't be the name of an argument",
                (*path, "inputs", name),
                next_step=f"name the argument that gets it: `inputs: {{argument: {called.inputs[name]}}}`",
            )
    if not called.columns:
        raise origin.error("a python node needs columns", (*path, "columns"), next_step=_COLUMNS)
    for name, text in called.columns.items():
        try:
            parse_type(text)
        except SchemaError as error:
            raise origin.error(error.message, (*path, "columns", name), next_step=error.next_step or _COLUMNS) from None
    try:
        Schema.declare(called.columns)
    except SchemaError as error:
        raise origin.error(error.message, (*path, "columns"), next_step=error.next_step or _COLUMNS) from None
    return PythonNode(python=called)
