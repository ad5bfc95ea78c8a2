"""What the registry says of a model's version: the features that it takes and the outputs that it gives, with types."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from lakeward.types.logical import LogicalType, parse_type

SOURCE_ROW_INDEX = "__source_row_index__"
"""The number of a row in the whole input of a node, from 0. It goes along with each prediction; a function may ask for
it as a feature, and give it back to say which prediction belongs to which row."""

LATEST = "latest"
"""What stands for the number of the newest version."""

_REFERENCE = re.compile(r"(?P<name>[^@]+)@(?P<version>[1-9][0-9]{0,8})")


@dataclass(frozen=True)
class Feature:
    """One input of a model, by the name that it is bound by."""

    name: str
    type: LogicalType


@dataclass(frozen=True)
class ModelOutput:
    """One output of a model.

    Args:
        name: by which it is bound.
        type: of its values.
        tensor: where it comes from in the file, if that has another name for it.
        column: which column of that tensor; None: it has one.
    """

    name: str
    type: LogicalType
    tensor: str | None = None
    column: int | None = None


@dataclass(frozen=True)
class Signature:
    """What a model takes and gives."""

    features: tuple[Feature, ...]
    outputs: tuple[ModelOutput, ...]

    def to_json(self) -> dict[str, list[dict[str, Any]]]:
        """Return it as the registry keeps it."""
        return {
            "features": [{"name": each.name, "type": str(each.type)} for each in self.features],
            "outputs": [{**vars(each), "type": str(each.type)} for each in self.outputs],
        }

    @classmethod
    def from_json(cls, features: Sequence[Mapping[str, Any]], outputs: Sequence[Mapping[str, Any]]) -> Signature:
        """Read what `to_json` wrote."""
        return cls(
            tuple(Feature(each["name"], parse_type(each["type"])) for each in features),
            tuple(ModelOutput(**{**each, "type": parse_type(each["type"])}) for each in outputs),
        )


@dataclass(frozen=True)
class ModelVersion:
    """One version of a registered model. It never changes; another file or signature is another version.

    Args:
        name, version: `churn`, 3.
        format: `onnx` or `python_function`.
        sha256: of the file, in hexadecimal.
        size: of the file, in bytes.
        entry: which part of the file is meant: the function's name; empty for a format without parts.
        origin: where the file was, for people.
        build_id: the build that made it; None: it was added by hand.
        datasets: what that build wrote, its metrics among it.
    """

    name: str
    version: int
    format: str
    sha256: str
    size: int
    entry: str
    origin: str
    signature: Signature
    added_at: datetime
    added_by: str
    build_id: uuid.UUID | None = None
    datasets: Sequence[str] = ()

    @property
    def reference(self) -> str:
        """How a node names it: `churn@3`."""
        return f"{self.name}@{self.version}"

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        facts = {name: value for name, value in vars(self).items() if name != "signature"}
        build = str(self.build_id) if self.build_id is not None else None
        more = {"build_id": build, "datasets": list(self.datasets)}
        return {**facts, **more, "reference": self.reference, **self.signature.to_json()}


class ModelCatalog(Protocol):
    """Where models are looked up. The registry of a workspace is one."""

    def versions(self, name: str | None = None) -> list[ModelVersion]:
        """Return the versions of a model, oldest first; of all models, if no name is given."""
        ...


class NoModels:
    """A catalog without a model."""

    def versions(self, name: str | None = None) -> list[ModelVersion]:
        """See `ModelCatalog.versions`."""
        return []


def latest_name(text: str) -> str | None:
    """Return the name of `churn@latest`; None if it is another reference."""
    name, _, version = text.rpartition("@")
    return name if name and version == LATEST else None


def parse_reference(text: str) -> tuple[str, int] | None:
    """Return the name and version of `churn@3`; None if it names no version."""
    match = _REFERENCE.fullmatch(text)
    return (match["name"], int(match["version"])) if match else None
