"""What a format of models does: recognise a file by its content, tell what it takes and gives, and predict with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import pyarrow as pa

from lakeward.pipelines.models.registered import ModelVersion, Signature
from lakeward.types.logical import LogicalType


@dataclass(frozen=True)
class DeclaredOutput:
    """What a user says of one output: its name, and, where the file does not tell it, its type and where it is."""

    name: str
    type: LogicalType | None = None
    tensor: str | None = None
    column: int | None = None


@dataclass(frozen=True)
class Declared:
    """What a user says of a model that is added.

    Args:
        features: their names in the model's order, with types where the file does not tell them.
        outputs: which ones it gives; empty: all that the file tells.
        entry: which part of the file is meant.
    """

    features: Mapping[str, LogicalType | None] = field(default_factory=dict)
    outputs: Sequence[DeclaredOutput] = ()
    entry: str = ""


class Model(Protocol):
    """A loaded model."""

    takes_nulls: bool
    """Whether rows with a null feature are given to it."""

    def predict(self, features: pa.RecordBatch) -> object:
        """Return the predictions for the rows of a batch: one column, or a mapping of columns by output."""
        ...

    def interrupt(self) -> None:
        """Let a `predict` that runs in another thread end soon, by an error; it predicts nothing more after that.

        Does nothing where that is not possible.
        """
        ...


class ModelFormat(ABC):
    """One format of models. To add one, add a file to `formats/`; its docstring is its help."""

    name: ClassVar[str]
    runs_code: ClassVar[bool] = False
    """Whether a model of it is code, which runs as this process."""

    @abstractmethod
    def recognises(self, content: bytes) -> bool:
        """Say whether a file is of this format, by its content and never by its name. Runs nothing of it."""

    @abstractmethod
    def describe(self, content: bytes, declared: Declared) -> Signature:
        """Return what a model takes and gives. Runs nothing of it.

        Raises:
            ModelRefused: it can't be used, or is not as declared.
        """

    @abstractmethod
    def load(self, content: bytes, version: ModelVersion, threads: int) -> Model:
        """Make a model of a file whose hash was verified.

        Args:
            content: the file.
            version: of the registry.
            threads: how many it may use.

        Raises:
            ModelRefused: it can't be loaded.
        """
