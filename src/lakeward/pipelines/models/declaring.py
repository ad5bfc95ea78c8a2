"""Reads what a user declares of a model: `amount:double` of features, `risk=probabilities[1]` of outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lakeward.errors import UsageError
from lakeward.pipelines.models.model_format import Declared, DeclaredOutput
from lakeward.types.logical import LogicalType, parse_type

_OUTPUT = re.compile(r"(?P<name>[^=:]+)(:(?P<type>[^=]+))?(=(?P<tensor>.+?)(\[(?P<column>\d+)\])?)?")


def declare_model(features: Sequence[str] | Mapping[str, str], outputs: Sequence[str]) -> Declared:
    """Return the declaration.

    Args:
        features: `name` or `name:type`, in the model's order, or a mapping of names to types.
        outputs: `name`, `name:type`, `name=tensor` or `name=tensor[column]`.

    Raises:
        UsageError: a part can't be read, or a feature stands twice.
        SchemaError: an unknown type.
    """
    given = [f"{name}:{type_}" for name, type_ in features.items()] if isinstance(features, Mapping) else features
    types: dict[str, LogicalType | None] = {}
    for text in given:
        name, colon, type_ = text.partition(":")
        name = name.strip()
        if not name or name in types:
            raise UsageError(f"feature {text!r} has no name, or stands twice", next_step="write --features amount,age")
        types[name] = parse_type(type_.strip()) if colon else None
    return Declared(types, [_output(text.strip()) for text in outputs])


def _output(text: str) -> DeclaredOutput:
    match = _OUTPUT.fullmatch(text)
    if match is None:
        raise UsageError(
            f"output {text!r} can't be read",
            next_step="write it as in --outputs risk=probabilities[1] or, for a function, --outputs risk:double",
        )
    return DeclaredOutput(
        match["name"].strip(),
        parse_type(match["type"].strip()) if match["type"] else None,
        match["tensor"],
        int(match["column"]) if match["column"] else None,
    )
