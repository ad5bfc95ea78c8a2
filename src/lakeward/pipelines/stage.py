"""What a node that is no SQL does: it ends queries, and its rows are an input of the next one.

A model is one. To add a kind, add its node to `nodes.py` (a `StageNode`) and a file to `stages/`, with a `Stage` and
what runs it. The compiler binds it, before anything is read; the runner loads it, and gives it its inputs as streams.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

import pyarrow as pa

from lakeward.compute.engine import BATCH_ROWS
from lakeward.pipelines.models.registered import ModelCatalog
from lakeward.pipelines.models.registry import Models
from lakeward.pipelines.nodes import StageNode
from lakeward.pipelines.origin import Origin, Path
from lakeward.types.logical import LogicalType


@dataclass(frozen=True)
class Site:
    """Where a stage is.

    Args:
        node: its name.
        columns: those of each of its inputs, with types, by the input's own name (see `StageNode.inputs`).
        models: where models are looked up.
        origin: where the node was written.
        code: the files of the project that are stored with the pipeline, by their paths.
    """

    node: str
    columns: Mapping[str, Mapping[str, LogicalType]]
    models: ModelCatalog
    origin: Origin
    code: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Building:
    """The build that a stage runs in.

    Args:
        build_id: of its transactions, which are open until all of them are decided together.
        pipeline: which one is built; None: it runs once.
    """

    build_id: uuid.UUID
    pipeline: str | None


@dataclass(frozen=True)
class Tools:
    """What a stage may use.

    Args:
        models: the registered ones.
        threads: how many it may use.
        building: tells the build, once it runs.
    """

    models: Models
    threads: int
    building: Callable[[], Building]


class Running(Protocol):
    """A loaded stage."""

    def needs(self, columns: Sequence[str], key: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the columns of each input that are needed to give some columns.

        Args:
            columns: what the next query wants, all of them columns that the stage gives.
            key: the output's primary key, which names rows in errors; an input need not have it.
        """
        ...

    def run(
        self, inputs: Mapping[str, pa.RecordBatchReader], columns: Sequence[str], key: Sequence[str]
    ) -> pa.RecordBatchReader:
        """Start, and return a stream of exactly `columns`.

        Args:
            inputs: a stream of each input, with the columns that `needs` told.
            columns, key: as there.

        Raises:
            ComputeError: it failed; raised here or by the stream, with the node's name.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Stage(ABC):
    """A node whose names and types fit. It holds no rows, and nothing that is open.

    Args:
        node: its name.
        columns: what it gives, in order.
        batch_rows: how many rows at most are in a batch that it is given.
    """

    name: ClassVar[str]
    """The kind of its node, as it is written."""
    opaque: ClassVar[bool] = False
    """Whether nobody can tell from which columns one of its columns is made: `made_from` names all that it may be."""

    node: str
    columns: Mapping[str, LogicalType]
    batch_rows: int = BATCH_ROWS

    @classmethod
    @abstractmethod
    def read(cls, body: dict[str, Any], path: Path, origin: Origin) -> StageNode:
        """Return the node as it is written in a spec. Its inputs are looked up later.

        Args:
            body: of the node, whose keys are known.
            path: its place in the spec.
            origin: where the spec was written.

        Raises:
            SpecError: with file and line.
        """

    @classmethod
    @abstractmethod
    def bind(cls, node: StageNode, site: Site) -> Self:
        """Return the stage of a node.

        Raises:
            SpecError: what it names is not there or does not fit, with file and line.
        """

    @abstractmethod
    def load(self, tools: Tools) -> Running:
        """Return what runs it. Called once for each build, before any row is read.

        Raises:
            LakewardError: it can't be loaded.
        """

    @abstractmethod
    def made_from(self, column: str) -> Sequence[tuple[str, str]]:
        """Return the (input, column) pairs from which one of its columns is made."""
