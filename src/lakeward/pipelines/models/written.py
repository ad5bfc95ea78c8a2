"""Reads a model node as it is written in a spec. What it names is looked up by `bind`, when the model is known."""

from __future__ import annotations

from typing import Any

from lakeward.errors import SchemaError
from lakeward.pipelines.nodes import ModelNode, Predicted
from lakeward.pipelines.origin import Origin, Path
from lakeward.pipelines.spec_checks import checked_model, known_keys, mapping
from lakeward.types.logical import parse_type
from lakeward.types.schema import Schema

_TYPES = "write a name and its type, as in `outputs: {risk: double}`"


def model_node(body: dict[str, Any], path: Path, origin: Origin) -> ModelNode:
    """Return the node.

    Args:
        body: of the node, whose keys are known.
        path: its place in the spec.
        origin: where the spec was written.

    Raises:
        SpecError: with file and line.
    """
    path = (*path, "model")
    data = mapping(body["model"], path, origin, "`input`, `model`, `features` and `outputs`")
    known_keys(data, list(Predicted.model_fields), path, origin)
    predicted = checked_model(Predicted, data, path, origin)
    assert isinstance(predicted, Predicted)
    if not predicted.features:
        raise origin.error("a model needs features", (*path, "features"), next_step="write `features: [column]`")
    if not predicted.outputs:
        raise origin.error(
            "a model node needs outputs", (*path, "outputs"), next_step="write `outputs: {risk: double}`"
        )
    for name, text in predicted.outputs.items():
        try:
            parse_type(text)
        except SchemaError as error:
            raise origin.error(error.message, (*path, "outputs", name), next_step=error.next_step or _TYPES) from None
    try:
        Schema.declare(predicted.outputs)
    except SchemaError as error:
        raise origin.error(error.message, (*path, "outputs"), next_step=error.next_step or _TYPES) from None
    return ModelNode(model=predicted)
