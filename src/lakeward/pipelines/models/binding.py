"""Binds a model node to its model: by names and types, and before anything is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakeward.pipelines.models.registered import (
    SOURCE_ROW_INDEX,
    Feature,
    ModelCatalog,
    ModelOutput,
    ModelVersion,
    latest_name,
    parse_reference,
)
from lakeward.pipelines.nodes import ModelNode
from lakeward.pipelines.origin import Origin, Path
from lakeward.pipelines.spec_checks import listed, nearest
from lakeward.types.logical import LogicalType, parse_type
from lakeward.types.schema import name_key

_NUMBERS = ("int", "long", "float", "double", "decimal")
_WIDER = {("float", "double"), ("int", "long")}


@dataclass(frozen=True)
class BoundModel:
    """A model node whose names and types fit.

    Args:
        node: its name.
        version: of the model.
        features: the column that each feature is read from, in the model's order; no column is named for the number
            of the row.
        outputs: the type of the column that each output becomes, in the node's order.
        batch_rows: so many rows are predicted at a time.
    """

    node: str
    version: ModelVersion
    features: tuple[tuple[Feature, str | None], ...]
    outputs: tuple[tuple[ModelOutput, LogicalType], ...]
    batch_rows: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(dict.fromkeys(column for _, column in self.features if column is not None))


def bind(
    name: str, node: ModelNode, columns: Mapping[str, LogicalType], models: ModelCatalog, at: Origin
) -> BoundModel:
    """Return a node bound to its model.

    Args:
        name: of the node.
        node: what was written.
        columns: those of the node that it reads, with types.
        models: where its model is looked up.
        at: where it was written.

    Raises:
        SpecError: no such model or version, a feature that is missing, too much, no column or of a type that does not
            fit, an output that the model does not give or whose column is there already; with file and line.
    """
    path: Path = ("nodes", name, "model")
    version = _find(node.model.model, models, (*path, "model"), at)
    return BoundModel(
        name,
        version,
        _features(node, version, columns, path, at),
        _outputs(node, version, columns, path, at),
        node.model.batch_rows,
    )


def _find(text: str, models: ModelCatalog, path: Path, at: Origin) -> ModelVersion:
    latest = latest_name(text)
    if latest is not None:
        return _newest(latest, models, path, at)
    reference = parse_reference(text)
    versions = models.versions(reference[0] if reference else text)
    if reference is None and versions:
        raise at.error(
            f"model {text!r} names no version, and a build must stay what it is when a new one is added",
            path,
            next_step=f"write `model: {versions[-1].reference}`, or `{text}@latest` to follow the newest one",
        )
    found = next((each for each in versions if reference and each.version == reference[1]), None)
    if found is not None:
        return found
    if versions and reference:
        raise at.error(
            f"model {reference[0]!r} has no version {reference[1]}",
            path,
            next_step=f"its newest is {versions[-1].reference}",
        )
    known = sorted({each.name for each in models.versions()})
    raise at.error(
        f"unknown model {text!r}; there are {listed(known) or 'none'}",
        path,
        next_step=nearest(reference[0] if reference else text, known) or "lakeward model add FILE --name NAME",
    )


def _newest(name: str, models: ModelCatalog, path: Path, at: Origin) -> ModelVersion:
    versions = models.versions(name)
    if not versions:
        known = sorted({each.name for each in models.versions()})
        raise at.error(
            f"model {name!r} has no version yet; there are {listed(known) or 'none'}",
            path,
            next_step=nearest(name, known)
            or "build the pipeline that fits it, or: lakeward model add FILE --name NAME",
        )
    return versions[-1]


def _features(
    node: ModelNode, version: ModelVersion, columns: Mapping[str, LogicalType], path: Path, at: Origin
) -> tuple[tuple[Feature, str | None], ...]:
    path = (*path, "features")
    wanted = {each.name: each for each in version.signature.features if each.name != SOURCE_ROW_INDEX}
    declared = node.model.features
    for feature in declared:
        if feature not in wanted:
            raise at.error(
                f"model {version.reference} has no feature {feature!r}; it takes {listed(wanted)}",
                path,
                next_step=nearest(feature, list(wanted)) or "take it out",
            )
    missing = [feature for feature in wanted if feature not in declared]
    if missing:
        raise at.error(
            f"model {version.reference} needs {listed(map(repr, missing))}, too; it takes {listed(wanted)}",
            path,
            next_step="name every feature; `features: {feature: column}` reads one from a column of another name",
        )
    for feature, column in declared.items():
        if column not in columns:
            raise at.error(
                f"feature {feature!r} is read from column {column!r}, which {node.model.input!r} does not have; there "
                f"are {listed(columns)}",
                path,
                next_step=nearest(column, list(columns)) or "write one of these, as in `features: {feature: column}`",
            )
        if not _takes(wanted[feature].type, columns[column]):
            raise at.error(
                f"feature {feature!r} of model {version.reference} is {wanted[feature].type}, and column {column!r} is "
                f"{columns[column]}",
                path,
                next_step=f"cast it in a transform before, if that is meant: cast({column} as …) as {column}",
            )
    return tuple((each, declared.get(each.name)) for each in version.signature.features)


def _takes(feature: LogicalType, column: LogicalType) -> bool:
    """Say whether values of a column go into a feature: as they are, or as the nearest number of a float's type."""
    if feature == column or (column.kind, feature.kind) in _WIDER:
        return True
    return feature.kind in ("float", "double") and column.kind in _NUMBERS


def _outputs(
    node: ModelNode, version: ModelVersion, columns: Mapping[str, LogicalType], path: Path, at: Origin
) -> tuple[tuple[ModelOutput, LogicalType], ...]:
    given = {each.name: each for each in version.signature.outputs}
    taken = {name_key(column): column for column in columns}
    found = []
    for name, text in node.model.outputs.items():
        here = (*path, "outputs", name)
        type_ = parse_type(text)
        if name not in given:
            raise at.error(
                f"model {version.reference} has no output {name!r}; it gives {listed(given)}",
                here,
                key=True,
                next_step=nearest(name, list(given)) or "write one of these",
            )
        if type_ != given[name].type and (given[name].type.kind, type_.kind) not in _WIDER:
            raise at.error(
                f"output {name!r} of model {version.reference} is {given[name].type}, and {type_} is declared",
                here,
                next_step=f"write `{name}: {given[name].type}`",
            )
        if name_key(name) in taken:
            raise at.error(
                f"output {name!r} would hide the column {taken[name_key(name)]!r} of {node.model.input!r}",
                here,
                key=True,
                next_step="rename or leave out that column in a transform before",
            )
        found.append((given[name], type_))
    return tuple(found)
